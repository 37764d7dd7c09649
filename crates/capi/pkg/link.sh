#!/bin/sh
# Links the shared library from the static one: link.sh ARCHIVE OUTPUT. Only what fairwave.map names is exported, and
# debug information and other symbols stay behind (4.4 MB, from 8.9).
set -eu
here=$(dirname "$0")
# What nobody asks for stays in the archive: each call is asked for.
calls=$(sed -n 's/^ *\(g_[a-z]*\);$/-Wl,-u,\1/p' "$here/fairwave.map")
# shellcheck disable=SC2086
exec ${CC:-cc} -shared -o "$2" -Wl,-soname,libfairwave.so.0 -Wl,--version-script="$here/fairwave.map" \
    -Wl,-z,defs -Wl,--gc-sections -Wl,-s -Wl,-z,relro,-z,now $calls "$1" -lpthread -ldl -lm -lc
