#!/usr/bin/env bash
# Makes sure that a Docker Engine answers, and that its CLI is there. Where none does,
# it installs Debian's and starts it; with an engine it does nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh

readonly START_SECONDS=60

answers() {
  timeout 20 docker version >/dev/null 2>&1
}

# await waits until the engine answers, $1 seconds at most. It has no event to offer.
await() {
  local deadline=$((SECONDS + $1))
  until answers; do
    [ "$SECONDS" -lt "$deadline" ] || return 1
    sleep 0.5
  done
}

if ! have docker; then
  apt_install docker.io
  # Later Debians have the CLI in a package of its own.
  have docker || apt_install docker-cli
fi
answers && exit 0

if [ -n "${DOCKER_HOST:-}" ]; then
  die "no engine answers at DOCKER_HOST=$DOCKER_HOST; correct it, or unset it to use a local one"
fi
if [ "$(id -u)" -ne 0 ] && have sudo && sudo -n docker version >/dev/null 2>&1; then
  die "the engine runs, but $(id -un) may not talk to it: join the group docker, or run this as root"
fi
have dockerd || [ -x /usr/sbin/dockerd ] || apt_install docker.io

say "starting the engine"
log=$(mktemp /tmp/dockerd.XXXXXX.log)
if [ -d /run/systemd/system ]; then
  as_root systemctl start docker >"$log" 2>&1 || true
else
  as_root service docker start >"$log" 2>&1 || true
fi
if ! await 15; then
  # In a container the service script often fails for want of a privilege that the
  # engine can do without. A second engine beside a slow one ends by itself.
  as_root env PATH="$PATH:/usr/sbin:/sbin" setsid dockerd </dev/null >>"$log" 2>&1 &
fi
if ! await "$START_SECONDS"; then
  tail -n 20 "$log" >&2
  die "the engine doesn't answer after $START_SECONDS seconds; its log is $log"
fi
rm -f "$log"
