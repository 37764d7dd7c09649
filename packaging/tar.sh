#!/usr/bin/env bash
# Packs what packaging/build.sh made for a machine into target/dist: a tar for any Linux, and the tree of an image.
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

# An image has this command alone, so that nothing there could load the library.
image=$dist/image/$(debian_of "$machine")
rm -rf "$image"
install -D -m 755 "$fairwave" "$image/usr/bin/fairwave"
install -d -m 1777 "$image/tmp"
install -d -m 700 "$image/var/lib/fairwave"
