#!/usr/bin/env bash
# Writes docs/ from the provider's schema, templates/ and examples/. With --check it
# writes elsewhere and fails if docs/ differs. It needs no Terraform.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go run ./internal/cmd/schemajson >"$work/schema.json"
cp -R templates examples "$work"
if ! .bin/tfplugindocs generate --provider-dir "$work" --provider-name sandboxio \
  --providers-schema "$work/schema.json" >"$work/log" 2>&1; then
  cat "$work/log" >&2
  exit 1
fi

if [ "${1:-}" = --check ]; then
  diff -ruN docs "$work/docs" || die "docs/ isn't what the schema, templates/ and examples/ give: run make docs"
else
  rm -rf docs
  cp -R "$work/docs" docs
fi
