#!/usr/bin/env bash
# Builds the packages for pip into target/wheels: the source, and wheels for any Python from 3.11 on, x86-64 and aarch64,
# linked by zig for glibc 2.17 and newer (manylinux2014).
# usage: packaging/wheels.sh TOOLS      (a venv with requirements-release.txt)
set -euo pipefail
. "$(dirname "$0")/words.sh"
tools=$(realpath "$1")
export PATH=$tools/bin:$PATH
cd "$root"
# The module is for any interpreter: none is looked for.
unset PYO3_NO_PYTHON PYO3_BUILD_EXTENSION_MODULE
for machine in "${machines[@]}"; do
  need_target "$machine-unknown-linux-gnu"
  maturin build --release --locked --quiet --target "$machine-unknown-linux-gnu" --zig --compatibility manylinux2014 \
    ${std[@]+"${std[@]}"}
done
maturin sdist >&2
ls -l target/wheels >&2
