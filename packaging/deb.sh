#!/usr/bin/env bash
# Makes a Debian package of what packaging/build.sh made for a machine, in target/dist.
# usage: packaging/deb.sh MACHINE
set -euo pipefail
. "$(dirname "$0")/words.sh"
cd "$root"
machine=$1 dist=target/dist
command -v dpkg-deb >/dev/null || fail "dpkg-deb is missing: apt-get install dpkg"
debian=$(debian_of "$machine")
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

packaging/stage.sh "$machine" "$tree/usr" /usr
mv "$tree/usr/share/doc/fairwave/CHANGELOG.md" "$tree/usr/share/doc/fairwave/changelog"
gzip -9n "$tree/usr/share/doc/fairwave/changelog"
{
  printf 'Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: fairwave\n\n'
  printf 'Files: *\nCopyright: The Fairwave developers\nLicense: MIT or Apache-2.0\n'
  printf ' The texts are in LICENSE-MIT and LICENSE-APACHE beside this file.\n'
} > "$tree/usr/share/doc/fairwave/copyright"

size_kib=$(find "$tree" -type f -printf '%s\n' | awk '{ bytes += $1 } END { print int(bytes / 1024) }')
mkdir -p "$tree/DEBIAN"
cat > "$tree/DEBIAN/control" <<END
Package: fairwave
Version: $version
Architecture: $debian
Maintainer: The Fairwave developers <fairwave@localhost>
Section: net
Priority: optional
Installed-Size: $size_kib
Depends: libc6 (>= $(glibc_of "$(preload_of "$machine")"))
Description: fair bandwidth sharing at the ends of fast long networks
 Moves files between machines over UDP by GTP, under which all sessions that meet
 at a machine share its capacity fairly; carries the TCP connections of unchanged
 programs; and simulates the transport and its rivals.
END
if compgen -G "$tree/usr/lib/systemd/system/*" >/dev/null; then
  # The units are there to be enabled; nothing is started by installing it.
  for script in postinst postrm; do
    printf '#!/bin/sh\nset -e\nif [ -d /run/systemd/system ]; then systemctl daemon-reload || true; fi\n' > "$tree/DEBIAN/$script"
    chmod 755 "$tree/DEBIAN/$script"
  done
fi
(cd "$tree" && find usr -type f -print0 | sort -z | xargs -0 md5sum) > "$tree/DEBIAN/md5sums"
find "$tree" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
chmod 755 "$tree"
mkdir -p "$dist"
dpkg-deb --root-owner-group -Zxz --build "$tree" "$dist/fairwave_${version}_$debian.deb" >&2
