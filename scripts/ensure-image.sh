#!/usr/bin/env bash
# Makes the image that tests, demo and examples use, without a registry: Debian's
# static busybox with every applet linked, no CMD. Does nothing if the image is there
# and was made by this same recipe.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh

readonly LABEL=sandboxio-test.recipe
recipe=$(sha256sum <scripts/ensure-image.sh | cut -c1-12)

present() {
  [ "$(docker image inspect -f "{{index .Config.Labels \"$LABEL\"}}" "$TEST_IMAGE" 2>/dev/null)" = "$recipe" ]
}

present && exit 0
# Test packages run side by side and call this at once: the first makes it.
exec 9<scripts/ensure-image.sh
flock 9
present && exit 0

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work" # apt downloads as a user of its own

# static says whether the file at $1 is a program that needs no libraries.
static() {
  [ -x "$1" ] && ! ldd "$1" >/dev/null 2>&1
}

busybox=/bin/busybox
if ! static "$busybox"; then
  say "fetching busybox-static"
  # Downloaded, not installed: as a package it would replace the system's own busybox.
  apt_quietly update
  (cd "$work" && apt-get -qq download busybox-static >/dev/null 2>&1) || die "apt-get download busybox-static failed"
  dpkg-deb -x "$work"/busybox-static_*.deb "$work/deb"
  busybox=$(find "$work/deb" -type f -path '*/bin/busybox')
  static "$busybox" || die "the package busybox-static holds no static busybox"
fi

root=$work/root
mkdir -p "$root"/{bin,etc,root,tmp,var/tmp}
cp "$busybox" "$root/bin/busybox"
chmod 755 "$root/bin/busybox"
chmod 1777 "$root/tmp" "$root/var/tmp"
for applet in $("$busybox" --list); do
  [ "$applet" = busybox ] || ln -s busybox "$root/bin/$applet"
done
printf 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n' >"$root/etc/passwd"
printf 'root:x:0:\nnogroup:x:65534:\n' >"$root/etc/group"

old=$(docker image inspect -f '{{.Id}}' "$TEST_IMAGE" 2>/dev/null || true)
tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -C "$root" -c . |
  docker import --change 'ENV PATH=/bin' --change "LABEL $LABEL=$recipe" - "$TEST_IMAGE" >/dev/null
[ -z "$old" ] || docker image rm "$old" >/dev/null 2>&1 || true # unless a container has it
say "made $TEST_IMAGE"
