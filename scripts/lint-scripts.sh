#!/usr/bin/env bash
# Checks the shell scripts.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh

have shellcheck || apt_install shellcheck
shellcheck scripts/*.sh .ci/run
