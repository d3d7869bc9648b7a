#!/usr/bin/env bash
# Prints the path of a Terraform or OpenTofu CLI of at least 1.11: what is on PATH, or
# else an OpenTofu built from its Go module, which takes some minutes once.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh

readonly TOFU_VERSION=1.12.6 # as tools/opentofu/go.mod has it

# recent says whether the CLI at $1 is 1.11 or later.
recent() {
  local version
  version=$(env -u TF_CLI_CONFIG_FILE CHECKPOINT_DISABLE=1 "$1" version -json 2>/dev/null |
    sed -n 's/.*"terraform_version": *"\([0-9]*\.[0-9]*\).*/\1/p')
  [ -n "$version" ] && [ "$(printf '1.11\n%s\n' "$version" | sort -V | sed -n 1p)" = 1.11 ]
}

for name in terraform tofu; do
  if path=$(command -v "$name") && recent "$path"; then
    printf '%s\n' "$path"
    exit 0
  fi
done

cache=${XDG_CACHE_HOME:-${HOME:-$PWD/.bin}/.cache}/sandboxio
tofu=$cache/opentofu-$TOFU_VERSION/tofu
exec 9<scripts/ensure-cli.sh
flock 9 # one build at a time
if ! [ -x "$tofu" ]; then
  say "no CLI of 1.11 or later is on PATH; building OpenTofu $TOFU_VERSION, which takes some minutes"
  mkdir -p "$(dirname "$tofu")"
  # version.dev=no: a release build, whose number has no -dev behind it.
  (cd tools/opentofu && CGO_ENABLED=0 go build -mod=readonly -trimpath \
    -ldflags "-s -w -X github.com/opentofu/opentofu/version.dev=no" \
    -o "$tofu.new" github.com/opentofu/opentofu/cmd/tofu) >&2
  mv "$tofu.new" "$tofu"
fi
recent "$tofu" || die "$tofu doesn't say that it is 1.11 or later"
printf '%s\n' "$tofu"
