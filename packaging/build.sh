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

# Paths of this machine that would get into messages of panics and assertions.
flags="" c_flags=""
for path in "$root=/fairwave" "${CARGO_HOME:-$HOME/.cargo}=/cargo"; do
  flags+=" --remap-path-prefix=$path" c_flags+=" -ffile-prefix-map=$path"
done
export RUSTFLAGS=${flags# } CARGO_INCREMENTAL=0
# The smallest command; linking takes minutes more than for daily work.
export CARGO_PROFILE_RELEASE_LTO=fat
build() {
  need_target "$2"
  export "CFLAGS_${2//-/_}=$c_flags"
  "${CARGO:-cargo}" zigbuild --release --locked --package "fairwave-$1" --target "$2$3" >&2
}
build cli "$machine-unknown-linux-musl" ""
build preload "$machine-unknown-linux-gnu" .2.17
