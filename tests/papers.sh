#!/usr/bin/env bash
# Every experiment of the papers, with fewer draws and shorter runs: what they claim holds, or misses for a known reason,
# and the report has a picture of each.
# usage: tests/papers.sh FAIRWAVE
set -euo pipefail
fairwave=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

"$fairwave" papers run all --quick --out "$dir" >"$dir/text" || { grep -B2 -A3 '  miss ' "$dir/text"; exit 1; }
if grep -o 'No picture: [^<]*' "$dir/report.html"; then exit 1; fi
tail -1 "$dir/text"
