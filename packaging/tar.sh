#!/usr/bin/env bash
# Packs what packaging/build.sh made for a machine into target/dist: a tar for any Linux, the tree of an image, and a tar
# of libfairwave.
# usage: packaging/tar.sh MACHINE
set -euo pipefail
. "$(dirname "$0")/words.sh"
cd "$root"
machine=$1 dist=target/dist name=fairwave-$version-linux-$machine
fairwave=$(command_of "$machine")
if readelf -lW "$fairwave" | grep -q INTERP; then fail "$fairwave is not static"; fi

tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$dist"
packaging/stage.sh "$machine" "$tree/$name" /usr/local
pack "$tree" "$name" > "$dist/$name.tar.gz"

library=libfairwave-$version-linux-$machine
bash crates/capi/pkg/install.sh "$tree" /usr/local "$version" "$(dirname "$(preload_of "$machine")")"
mv "$tree/usr/local" "$tree/$library"
install -D -m 644 --target-directory "$tree/$library/share/doc/fairwave" LICENSE-APACHE LICENSE-MIT
chmod -R u=rwX,go=rX "$tree/$library"
pack "$tree" "$library" > "$dist/$library.tar.gz"

# An image has this command alone, so that nothing there could load the library.
image=$dist/image/$(debian_of "$machine")
rm -rf "$image"
install -D -m 755 "$fairwave" "$image/usr/bin/fairwave"
install -d -m 1777 "$image/tmp"
install -d -m 700 "$image/var/lib/fairwave"
