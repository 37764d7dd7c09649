#!/usr/bin/env bash
# Pictures, reference pages, results in docs/ and texts in tests/texts are what the program and the recorded data give. `tests/generated.sh FAIRWAVE --write` renews them.
# usage: tests/generated.sh FAIRWAVE [--write]
set -euo pipefail
fairwave=$1 mode=${2:-}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

for name in five-to-one lambda-1024; do
  "$fairwave" simulate "scenarios/$name.toml" --model fluid --out "$dir/$name" --quiet >/dev/null
  if [ "$mode" = --write ]; then
    mkdir -p docs/pictures
    cp "$dir/$name/rates.svg" "docs/pictures/$name.svg"
  elif ! cmp -s "$dir/$name/rates.svg" "docs/pictures/$name.svg"; then
    echo "docs/pictures/$name.svg is not what the program draws"
    echo "hint: tests/generated.sh $fairwave --write"
    exit 1
  fi
done

check=--check
if [ "$mode" = --write ]; then check=; fi
python3 docs/generate.py "$fairwave" $check
python3 docs/results/render.py $check
python3 tests/texts.py "$fairwave" $mode
