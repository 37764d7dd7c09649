# What the scripts beside this one share; to be sourced.
# shellcheck shell=bash disable=SC2034

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"$/\1/p' "$root/Cargo.toml")
arch=$(uname -m)
# The machines that a release is for, this one first.
machines=("$arch")
for machine in x86_64 aarch64; do if [ "$machine" != "$arch" ]; then machines+=("$machine"); fi; done
# The time of what is packed: that of the commit, which the files of a source archive have too. So the same source gives
# the same bytes.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$root" log -1 --format=%ct 2>/dev/null || stat -c %Y "$root/Cargo.toml")}
export SOURCE_DATE_EPOCH

say() { printf '%s\n' "$*" >&2; }
fail() { say "$0: $*"; exit 1; }

# The names of a machine in Debian and in container images.
debian_of() { case $1 in x86_64) echo amd64 ;; aarch64) echo arm64 ;; *) fail "no packages for $1" ;; esac; }

# What packaging/build.sh makes for a machine.
built=$(cd "$root" && realpath -m "${CARGO_TARGET_DIR:-target}")
command_of() { echo "$built/$1-unknown-linux-musl/release/fairwave"; }
preload_of() { echo "$built/$1-unknown-linux-gnu/release/libfairwave_preload.so"; }

# Where packaging/toolchain.sh puts a compiler. The path is part of the standard library that it builds: a fixed one
# gives the same bytes.
debian_rust=${XDG_CACHE_HOME:-$HOME/.cache}/fairwave/rust

# Sets `std` to the options that cargo needs for a target, and the environment, if the Rust toolchain has no standard
# library for it: that is then built from Debian's source by Debian's compiler. Fails if neither is to be had.
need_target() {
  std=()
  unset RUSTC RUSTC_BOOTSTRAP
  if [ -d "$(cd "$root" && rustc --print sysroot)/lib/rustlib/$1/lib" ]; then return; fi
  bash "$root/packaging/toolchain.sh" || return
  std=(-Zbuild-std=std,panic_unwind)
  export PATH=$debian_rust/mingw:$PATH RUSTC=$debian_rust/bin/rustc RUSTC_BOOTSTRAP=1
}

# Sets `std` and the environment of a release build for a target. A script that calls it ends with the status that says
# that the target is not to be had here.
not_here=3
prepare() {
  local target=$1 path c_flags="" here=1
  need_target "$target" || here=
  # dlltool, which makes import libraries, is Debian's in any case.
  if [[ $target = *-windows-* ]]; then { bash "$root/packaging/toolchain.sh" && PATH=$debian_rust/mingw:$PATH; } || here=; fi
  if [ -z "$here" ]; then say "left out: $target: no Rust for it here"; exit $not_here; fi
  RUSTFLAGS=
  # Paths of this machine that would get into messages of panics and assertions.
  for path in "$root=/fairwave" "${CARGO_HOME:-$HOME/.cargo}=/cargo" "$debian_rust=/rust"; do
    RUSTFLAGS+=" --remap-path-prefix=$path" c_flags+=" -ffile-prefix-map=$path"
  done
  # Fairwave compresses with zstd's levels 1 to 9; what is for levels from 11 on is left out.
  c_flags+=" -DZSTD_EXCLUDE_BTOPT_BLOCK_COMPRESSOR -DZSTD_EXCLUDE_BTULTRA_BLOCK_COMPRESSOR"
  case $target in
  # Libraries that Debian's compiler asks for, and zig does not need.
  *-windows-*) RUSTFLAGS+=" -Lnative=$debian_rust/empty" ;;
  # What a program links to of Apple's libraries, besides that of C, which zig has.
  *-apple-*) RUSTFLAGS+=" -Lnative=packaging/macos -Lframework=packaging/macos"; export MACOSX_DEPLOYMENT_TARGET=11.0 ;;
  esac
  RUSTFLAGS=${RUSTFLAGS# }
  export RUSTFLAGS CARGO_INCREMENTAL=0 "CFLAGS_${target//-/_}=$c_flags"
}

# Builds packages for a target, which may have a version of glibc (x86_64-unknown-linux-gnu.2.17); zig is C compiler and
# linker.
build_for() {
  local target=$1
  shift
  prepare "${target%%.*}"
  "${CARGO:-cargo}" zigbuild --release --locked --target "$target" ${std[@]+"${std[@]}"} "$@" >&2
}

# A tar of a directory's entry, the same bytes for the same files.
pack() {
  tar --create --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" --directory "$1" "$2" | gzip -9n
}

# The newest version of glibc that a dynamic program or library asks for.
glibc_of() { readelf --version-info --wide "$1" | grep -oE 'GLIBC_[0-9.]+' | cut -d_ -f2 | sort -uV | tail -1; }
