#!/usr/bin/env bash
# Run a check whose result depends on nothing but the tree: not again if it passed with the same files, compiler and arguments.
# Checks that use sockets, processes or clocks are not run through this: they may find something another time.
# usage: tests/once.sh COMMAND...
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
passed=${CARGO_TARGET_DIR:-$root/target}/passed
# Without git, as in a source archive, nothing tells which files belong to the tree: everything runs.
if ! files=$(git -C "$root" ls-files --cached --others --exclude-standard 2>/dev/null); then exec "$@"; fi
key=$({ (cd "$root" && tr '\n' '\0' <<<"$files" | xargs -0 sha256sum 2>&1 || true); rustc -vV; printf '%s\n' "$PWD" "$@"; } | sha256sum | cut -c1-32)
if [ -e "$passed/$key" ]; then echo "passed before with the same files: ${*//$root\//}"; exit; fi
"$@"
mkdir -p "$passed"
# Kept for two weeks: a tree that comes back, as by a branch, is recognised.
find "$passed" -type f -mtime +14 -delete
touch "$passed/$key"
