#!/usr/bin/env bash
# Builds the package for pip of a machine into target/wheels, for any Python from 3.11 on, linked by zig for glibc 2.17 and
# newer (manylinux2014).
# usage: packaging/wheels.sh TOOLS [MACHINE]      (a venv with requirements-release.txt; this machine, or x86_64, aarch64)
set -euo pipefail
. "$(dirname "$0")/words.sh"
tools=$(realpath "$1") machine=${2:-$arch}
export PATH=$tools/bin:$PATH
cd "$root"
# The module is for any interpreter: none is looked for.
unset PYO3_NO_PYTHON PYO3_BUILD_EXTENSION_MODULE
prepare "$machine-unknown-linux-gnu"
maturin build --release --locked --quiet --target "$machine-unknown-linux-gnu" --zig --compatibility manylinux2014 \
  ${std[@]+"${std[@]}"}
