#!/usr/bin/env bash
# make test: every test, the acceptance tests with a real CLI on a real engine included.
# Fails also when acceptance tests were skipped or none ran: see internal/cmd/testgate.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh

# The only reasons for which a test may be skipped: texts that the reason contains.
allowed_skips=(
  "this backend holds nothing but sandboxes" # the contract's test of objects that aren't sandboxio's
)

scripts/ensure-engine.sh
cli=$(scripts/ensure-cli.sh)
scripts/ensure-image.sh
# The race detector is linked with C.
have gcc || have clang || apt_install gcc libc6-dev

gate=$(mktemp)
trap 'rm -f "$gate"' EXIT
go build -o "$gate" ./internal/cmd/testgate

unset TF_CLI_CONFIG_FILE TF_ACC_TERRAFORM_VERSION TF_ACC_PROVIDER_HOST TF_LOG
export TF_ACC=1 TF_ACC_TERRAFORM_PATH=$cli SANDBOXIO_REQUIRE_ENGINE=1 CHECKPOINT_DISABLE=1 CGO_ENABLED=1
if [ "$(basename "$cli")" = tofu ]; then
  export TF_ACC_PROVIDER_HOST=registry.opentofu.org
fi

say "testing with $cli"
args=()
for text in ${allowed_skips[@]+"${allowed_skips[@]}"}; do
  args+=(-allow-skip "$text")
done
go test -json -race -count=1 -timeout=40m ./... </dev/null | "$gate" ${args[@]+"${args[@]}"}
