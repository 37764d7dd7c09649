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

# A target of the Rust toolchain, installed if it is missing.
need_target() {
  if [ -d "$(cd "$root" && rustc --print sysroot)/lib/rustlib/$1/lib" ]; then return; fi
  (cd "$root" && rustup --quiet target add "$1" >&2) || fail "the Rust toolchain has no target $1"
}

# A tar of a directory's entry, the same bytes for the same files.
pack() {
  tar --create --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" --directory "$1" "$2" | gzip -9n
}

# The newest version of glibc that a dynamic program or library asks for.
glibc_of() { readelf --version-info --wide "$1" | grep -oE 'GLIBC_[0-9.]+' | cut -d_ -f2 | sort -uV | tail -1; }
