#!/usr/bin/env bash
# Three networks in which end nodes share their bandwidth, as text and as pictures.
# usage: examples/demo.sh FAIRWAVE OUT
set -euo pipefail
fairwave=$1 out=$2
say() { printf '\n\n== %s\n\n' "$1"; }

say "1. Five sources with five RTTs, one sink: everyone gets a fifth"
"$fairwave" simulate scenarios/five-to-one.toml --model fluid --out "$out/five-to-one"

say "2. The 16-node network of Wu & Chien 2006, Table 2: total, the four fastest, and a misprint"
"$fairwave" simulate scenarios/sixteen-nodes.toml --model fluid --out "$out/sixteen-nodes"
"$fairwave" papers run 000/table2

say "3. 1024 end nodes that know nothing of each other: the distance to the optimum falls"
"$fairwave" simulate scenarios/lambda-1024.toml --model fluid --out "$out/lambda-1024"

say "Pictures"
find "$out" -name '*.svg' | sort
