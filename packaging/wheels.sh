#!/usr/bin/env bash
# Builds the packages for pip into target/wheels: a wheel for any Python from 3.11 on for x86-64 and for aarch64, as far as
# the Rust toolchain has the target, and the source. With zig (`pip install ziglang` into the interpreter that is named)
# wheels are for glibc 2.17 and newer (manylinux2014), and the other architecture can be linked; without, for this machine's
# glibc.
# usage: packaging/wheels.sh MATURIN PYTHON
set -euo pipefail
. "$(dirname "$0")/words.sh"
maturin=$(realpath "$1") python=$2
cd "$root"
# The module is for any interpreter: none is looked for.
unset PYO3_NO_PYTHON PYO3_BUILD_EXTENSION_MODULE
zig=()
if "$python" -m ziglang version >/dev/null 2>&1; then zig=(--zig --compatibility manylinux2014); fi
for machine in x86_64 aarch64; do
  target=$machine-unknown-linux-gnu
  if ! has_target "$target"; then
    say "wheels: skipped $machine: no Rust target here (rustup target add $target)"
  elif [ "$machine" != "$arch" ] && [ ${#zig[@]} = 0 ]; then
    say "wheels: skipped $machine: no linker for it (pip install ziglang)"
  else
    "$maturin" build --release --locked --quiet --target "$target" ${zig[@]+"${zig[@]}"}
  fi
done
"$maturin" sdist --quiet
ls -l target/wheels >&2
