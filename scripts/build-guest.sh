#!/usr/bin/env bash
# Builds the guest helper's embedded binaries. With --check it builds them elsewhere
# and fails if a byte differs from the committed ones.
set -euo pipefail
cd "$(dirname "$0")/.."

committed=internal/guest/embedded
out=$committed
if [[ ${1:-} == --check ]]; then
  out=$(mktemp -d)
  trap 'rm -rf "$out"' EXIT
fi

# The same toolchain gives the same bytes.
GOTOOLCHAIN=go$(go list -m -f '{{.GoVersion}}')
if [[ $(go env GOVERSION) == "$GOTOOLCHAIN" ]]; then
  GOTOOLCHAIN=local
fi
export GOTOOLCHAIN CGO_ENABLED=0 GOOS=linux GOFLAGS=-buildvcs=false

for arch in amd64 arm64; do
  GOARCH=$arch GOAMD64=v1 GOARM64=v8.0 go build -trimpath -ldflags "-s -w -buildid=" -o "$out/guest-$arch" ./internal/guest
  gzip -n -9 <"$out/guest-$arch" >"$out/guest-$arch.gz"
  rm "$out/guest-$arch"
  if [[ $out != "$committed" ]] && ! cmp -s "$out/guest-$arch.gz" "$committed/guest-$arch.gz"; then
    echo "$committed/guest-$arch.gz is not what internal/guest builds to: run scripts/build-guest.sh" >&2
    exit 1
  fi
done
