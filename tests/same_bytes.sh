#!/usr/bin/env bash
# A scenario and a seed give the same bytes: on one and on two threads, in any build, and as the hashes in same_bytes.sha256 say.
# A change to these hashes is reviewed like code: `--write` renews them.
# usage: tests/same_bytes.sh FAIRWAVE [--write]
set -euo pipefail
fairwave=$1 mode=${2:-} recorded=tests/same_bytes.sha256
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# Scenario and, if it is not the one of the file, the scheme; "fluid/" in front selects the fluid model.
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
  RAYON_NUM_THREADS=1 "$fairwave" simulate "${args[@]}" --out "$dir/one/$case" >/dev/null
  RAYON_NUM_THREADS=2 "$fairwave" simulate "${args[@]}" --out "$dir/two/$case" >/dev/null
done
RAYON_NUM_THREADS=2 "$fairwave" simulate tests/mixed.toml --quiet --model packet --seed 4711 --out "$dir/seed" >/dev/null

diff -r "$dir/one" "$dir/two" || { echo "same_bytes: one and two threads differ"; exit 1; }
if diff -rq "$dir/one/mixed" "$dir/seed" >/dev/null; then
  echo "same_bytes: another seed changed nothing"; exit 1
fi
(cd "$dir/one" && find . -type f | LC_ALL=C sort | xargs sha256sum) > "$dir/hashes"
if [ "$mode" = --write ]; then
  cp "$dir/hashes" "$recorded"
elif ! diff "$recorded" "$dir/hashes"; then
  echo "same_bytes: these files are not what $recorded records"
  echo "hint: if the change is intended, tests/same_bytes.sh $fairwave --write"
  exit 1
fi
echo "same_bytes: $(wc -l < "$recorded") files of ${#cases[@]} runs are as recorded, on 1 and 2 threads"
