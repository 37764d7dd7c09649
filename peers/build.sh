#!/usr/bin/env bash
# Builds the programs that tests/compare.sh measures Fairwave beside, into peers/target/release.
# usage: peers/build.sh
set -euo pipefail
cd "$(dirname "$0")"
cargo build --release --locked --target-dir target
if echo '#include <udt/udt.h>' | g++ -E -x c++ - >/dev/null 2>&1; then
  g++ -std=c++17 -O2 -Wall -Wextra -o target/release/peer-udt udt.cpp -ludt
else
  rm -f target/release/peer-udt
  echo "peers: UDT is left out: its headers are not here (Debian: apt-get install g++ libudt-dev)" >&2
fi
