#!/usr/bin/env bash
# Packs a static command with all that belongs to it into target/dist: a tar for any Linux of this machine's kind, the
# tree of a container image, and checksums.
# usage: packaging/dist.sh PRELOAD      (the library that `cargo build --release` leaves in target/release)
set -euo pipefail
. "$(dirname "$0")/words.sh"
cd "$root"
preload=$1 dist=target/dist name=fairwave-$version-linux-$arch
fairwave=$(packaging/static.sh)
if readelf -lW "$fairwave" | grep -q INTERP; then fail "$fairwave is not static"; fi

rm -rf "$dist/$name" "$dist/image"
mkdir -p "$dist"
packaging/stage.sh "$fairwave" "$preload" "$dist/$name" /usr/local
tar --create --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" --directory "$dist" "$name" |
  gzip -9n > "$dist/$name.tar.gz"
rm -rf "${dist:?}/$name"

# An image has this command alone, so that nothing there could load the library.
install -D -m 755 "$fairwave" "$dist/image/usr/bin/fairwave"
install -d -m 1777 "$dist/image/tmp"
install -d -m 700 "$dist/image/var/lib/fairwave"
packaging/sums.sh
ls -l "$dist/$name.tar.gz" "$fairwave" >&2
