# What the scripts beside this one share; to be sourced.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"$/\1/p' "$root/Cargo.toml")
arch=$(uname -m)
# What is packed has the time of what it was built from, so that the same tree gives the same bytes.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$root" log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH

say() { printf '%s\n' "$*" >&2; }
fail() { say "$0: $*"; exit 1; }

# Whether the Rust toolchain of this tree can build for a target.
has_target() { [ -d "$(cd "$root" && rustc --print sysroot)/lib/rustlib/$1/lib" ]; }

# The newest version of glibc that a dynamic program or library asks for.
glibc_of() { objdump -T "$1" | grep -oE 'GLIBC_[0-9.]+' | cut -d_ -f2 | sort -uV | tail -1; }
