#!/usr/bin/env bash
# Writes the checksums of all that is in target/dist.
# usage: packaging/sums.sh
set -euo pipefail
. "$(dirname "$0")/words.sh"
cd "$root/target/dist"
find . -maxdepth 1 -type f ! -name SHA256SUMS ! -name '*.new' -printf '%f\0' | sort -z | xargs -0 sha256sum > SHA256SUMS.new
mv -f SHA256SUMS.new SHA256SUMS
