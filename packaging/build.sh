#!/usr/bin/env bash
# Builds what a release has for one machine: the command, static with musl; and for glibc 2.17 and newer the library that
# `fairwave run` loads into programs, and libfairwave. zig is C compiler and linker for all. The same source gives the
# same bytes, wherever it is built.
# usage: packaging/build.sh TOOLS MACHINE      (TOOLS: a venv with requirements-release.txt; MACHINE: x86_64, aarch64)
set -euo pipefail
. "$(dirname "$0")/words.sh"
tools=$(realpath "$1") machine=$2
cd "$root"
export PATH=$tools/bin:$PATH
# The smallest command; linking takes minutes more than for daily work.
CARGO_PROFILE_RELEASE_LTO=fat build_for "$machine-unknown-linux-musl" --package fairwave-cli
build_for "$machine-unknown-linux-gnu.2.17" --package fairwave-preload --package fairwave-capi
built=$(dirname "$(preload_of "$machine")")
CC="python -m ziglang cc -target $machine-linux-gnu.2.17 -lunwind" sh crates/capi/pkg/link.sh "$built/libfairwave.a" "$built/libfairwave.so.0"
