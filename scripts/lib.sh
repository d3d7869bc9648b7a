# shellcheck shell=bash
# What the scripts share. Source it; it runs nothing.

# The image that tests, demo and examples use.
# shellcheck disable=SC2034 # for those who source this
readonly TEST_IMAGE=sandboxio-test/busybox:1

# say prints progress to stderr: a script's stdout is its result.
say() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
}

die() {
  say "$@"
  exit 1
}

have() {
  command -v "$1" >/dev/null 2>&1
}

# as_root runs a command as root, through sudo where we aren't.
as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  elif have sudo; then
    sudo "$@"
  else
    die "this needs root, and there is no sudo: $*"
  fi
}

# apt_quietly runs apt-get and shows its output only when it fails.
apt_quietly() {
  have apt-get || die "there is no apt-get here to do this: apt-get $*"
  local log
  log=$(mktemp)
  if ! as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 "$@" </dev/null >"$log" 2>&1; then
    cat "$log" >&2
    rm -f "$log"
    die "apt-get $* failed"
  fi
  rm -f "$log"
}

# apt_install installs Debian packages.
apt_install() {
  say "installing $*"
  apt_quietly update
  apt_quietly install -y --no-install-recommends "$@"
}
