#!/usr/bin/env bash
# The same scenario and seed give the same bytes: from two builds (debug and release), and on one and on two threads.
# usage: tests/same_bytes.sh DEBUG_BINARY RELEASE_BINARY
set -euo pipefail
debug=$1 release=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# Scenario and, where it is not the file's own, the scheme; fluid where that stands in front, else packet by packet.
cases=(fluid/five-to-one fluid/demands fluid/weights fluid/in-network fluid/sixteen-nodes fluid/002-fig-vii-19
       five-to-one:gtp mixed-gtp
       five-to-one:sack five-to-one:cubic sixteen-nodes:bic
       five-to-one:endpoint-xcp five-to-one:aecp five-to-one:vcp mixed)
for case in "${cases[@]}"; do
  name=${case#fluid/}
  file="scenarios/${name%:*}.toml"
  [ -f "$file" ] || file="tests/${name%:*}.toml"
  args=("$file" --quiet --model packet)
  [ "$case" = "$name" ] || args=("$file" --quiet --model fluid)
  [ "$name" = "${name%:*}" ] || args+=(--scheme "${name#*:}" --duration "5 s")
  RAYON_NUM_THREADS=1 "$debug"   simulate "${args[@]}" --out "$dir/debug/$case"    >/dev/null
  RAYON_NUM_THREADS=1 "$release" simulate "${args[@]}" --out "$dir/release1/$case" >/dev/null
  RAYON_NUM_THREADS=2 "$release" simulate "${args[@]}" --out "$dir/release2/$case" >/dev/null
  "$release" simulate "${args[@]}" --seed 4711 --out "$dir/seed/$case" >/dev/null
done

diff -r "$dir/debug" "$dir/release1" || { echo "same_bytes: debug and release differ"; exit 1; }
diff -r "$dir/release1" "$dir/release2" || { echo "same_bytes: one and two threads differ"; exit 1; }
if diff -rq "$dir/release1" "$dir/seed" >/dev/null; then
  echo "same_bytes: another seed changed nothing"; exit 1
fi
echo "same_bytes: $(find "$dir/release1" -type f | wc -l) files of ${#cases[@]} runs are equal in debug and release, on 1 and 2 threads"
