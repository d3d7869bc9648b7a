#!/usr/bin/env bash
# make demo: a sandbox on a real engine, from plan to the proof that nothing is left.
# Works in a temporary folder and removes it; exits 0 only if every step did what it says.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh

bold='' plain=''
if [ -t 1 ]; then
  bold=$'\e[1m' plain=$'\e[0m'
fi

heading() {
  printf '\n%s== %s%s\n' "$bold" "$*" "$plain"
}

scripts/ensure-engine.sh
cli=$(scripts/ensure-cli.sh)
scripts/ensure-image.sh

work=$(mktemp -d)
log=$work/output

# tf runs the CLI, shows what it prints and keeps it in $log. It drops the warning that
# a provider under development is used: that is what this is.
tf() {
  "$cli" "$@" -no-color </dev/null 2>&1 | awk '
    /^Warning: Provider development overrides are in effect/ { skip = 1 }
    !skip
    /(published )?releases?\.$/ { skip = 0 }' | cat -s | tee "$log"
}

applied=
cleanup() {
  local rc=$?
  trap - EXIT INT TERM
  if [ -n "$applied" ]; then
    heading "Cleaning up after a failure"
    "$cli" destroy -auto-approve -no-color </dev/null || true
  fi
  cd /
  rm -rf "$work"
  [ "$rc" -eq 0 ] || echo "the demo FAILED" >&2
  exit "$rc"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

heading "Building the provider"
mkdir "$work/bin" "$work/config"
CGO_ENABLED=0 go build -trimpath -o "$work/bin/terraform-provider-sandboxio" .
cat >"$work/cli.tfrc" <<EOF
provider_installation {
  dev_overrides { "sandboxio/sandboxio" = "$work/bin" }
  direct {}
}
EOF
cp examples/scenarios/quickstart/main.tf "$work/config"
export TF_CLI_CONFIG_FILE=$work/cli.tfrc CHECKPOINT_DISABLE=1 TF_IN_AUTOMATION=1 TF_INPUT=0
# An owner that only this run has tells our objects from everybody else's.
export TF_VAR_image=$TEST_IMAGE TF_VAR_owner=demo-$$-$RANDOM
cd "$work/config"
env -u TF_CLI_CONFIG_FILE "$cli" version | sed -n 1p
docker version --format 'Docker Engine {{.Server.Version}}'

# listed prints each object of sandboxio's on the engine: kind, role, owner, name.
listed() {
  local label='label=sandboxio.managed' columns='{{.Label "sandboxio.role"}}|{{.Label "sandboxio.owner"}}'
  docker ps -a --filter "$label" --format "container|$columns|{{.Names}}"
  docker network ls --filter "$label" --format "network|$columns|{{.Name}}"
  docker volume ls --filter "$label" --format "volume|$columns|{{.Name}}"
}
listed | sort >"$work/before"

heading "The configuration"
sed -n '/^resource/,/^output/p' main.tf | sed "/^output/d" | cat -s

heading "1. Plan: every security-relevant value is concrete before anything exists"
tf plan -out=first.tfplan

heading "2. Apply"
applied=yes
tf apply first.tfplan

heading "3. The command that ran inside: exit code, stdout and stderr apart"
result() {
  "$cli" output -raw -no-color "$1"
}
for name in exit_code stdout stderr; do
  printf '%-10s %s\n' "$name" "$(result "$name")"
done
[ "$(result exit_code)" = 7 ] || die "the exit code is $(result exit_code), not 7"
[ "$(result stdout)" = "this is stdout" ] || die "stdout isn't what the command wrote"
[ "$(result stderr)" = "this is stderr" ] || die "stderr isn't what the command wrote"

heading "4. A second plan is empty"
tf plan -detailed-exitcode || die "the second plan isn't empty"

heading "5. Drift: somebody stops the sandbox behind Terraform's back"
id=$(result sandbox_id)
echo "docker stop ${id:0:12}"
docker stop -t 5 "$id" >/dev/null
rc=0
tf plan -detailed-exitcode -out=repair.tfplan || rc=$?
[ "$rc" -eq 2 ] || die "the plan after the drift ended with $rc, not 2: it should have changes"
grep -q 'will be updated in-place' "$log" || die "the plan doesn't start the sandbox again in place"
grep -q '0 to add, 1 to change, 0 to destroy' "$log" || die "the plan has other changes than one start"

heading "6. Apply starts the same sandbox again"
tf apply repair.tfplan
[ "$(result sandbox_id)" = "$id" ] || die "it is another sandbox"
[ "$(docker inspect -f '{{.State.Running}}' "$id")" = true ] || die "the sandbox doesn't run"
echo "running again: ${id:0:12}"
tf plan -detailed-exitcode >/dev/null || die "the plan after the repair isn't empty"

heading "7. Destroy"
tf destroy -auto-approve
applied=

heading "8. Nothing is left"
for what in "ps -a" "network ls" "volume ls"; do
  echo "docker $what --filter label=sandboxio.managed"
  # shellcheck disable=SC2086 # two words each
  docker $what --filter label=sandboxio.managed | sed 's/^/  /'
done
echo "The guest helper (role guest) stays on purpose: one cached volume and image for all sandboxes of a version."
# What others have meanwhile made on this engine is theirs: it has an owner that isn't ours.
leftover=$(listed | sort | comm -13 "$work/before" - |
  awk -F '|' -v owner="$TF_VAR_owner" '$2 != "guest" && ($3 == "" || $3 == owner)')
if [ -n "$leftover" ] || docker inspect "$id" >/dev/null 2>&1; then
  die "this is left over: ${leftover:-container $id}"
fi
echo "Of this demo, nothing else is left."
