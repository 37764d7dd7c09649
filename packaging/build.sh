#!/usr/bin/env bash
# Builds what a release has for one machine: the command, static with musl, and the library that `fairwave run` loads
# into programs, for glibc 2.17 and newer. zig is C compiler and linker for both. The same source gives the same bytes,
# wherever it is built.
# usage: packaging/build.sh TOOLS MACHINE      (TOOLS: a venv with requirements-release.txt; MACHINE: x86_64, aarch64)
set -euo pipefail
. "$(dirname "$0")/words.sh"
tools=$(realpath "$1") machine=$2
cd "$root"
export PATH=$tools/bin:$PATH
build_for "$machine-unknown-linux-musl" "" --package fairwave-cli
build_for "$machine-unknown-linux-gnu" .2.17 --package fairwave-preload
