#!/bin/bash
# Copies libfairwave to where programs find it: install.sh DESTDIR PREFIX VERSION BUILT.
set -euo pipefail
here=$(dirname "$0")
destination=$1$2 prefix=$2 version=$3 built=$4

install -d "$destination/include" "$destination/lib/pkgconfig" "$destination/share/man/man3"
install -m 644 "$here/../include/fairwave.h" "$destination/include/"
install -m 644 "$built/libfairwave.a" "$destination/lib/"
install -m 755 "$built/libfairwave.so.0" "$destination/lib/"
ln -sf libfairwave.so.0 "$destination/lib/libfairwave.so"
sed -e "s|@PREFIX@|$prefix|" -e "s|@VERSION@|$version|" "$here/fairwave.pc.in" > "$destination/lib/pkgconfig/fairwave.pc"
install -m 644 "$here/fairwave.3" "$destination/share/man/man3/"
for call in $(sed -n 's/^ *\(g_[a-z]*\);$/\1/p' "$here/fairwave.map"); do
    ln -sf fairwave.3 "$destination/share/man/man3/$call.3"
done
