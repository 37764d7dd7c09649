#!/usr/bin/env bash
# Put the Python module that a build made into the package, in one step: a running interpreter keeps the module that it has mapped.
# usage: tests/native.sh target/release|target/debug
set -euo pipefail
cd "$(dirname "$0")/.."
built=$1/lib_core.so place=python/fairwave/_core.abi3.so
cmp -s "$built" "$place" || { cp "$built" "$place.new" && mv -f "$place.new" "$place"; }
