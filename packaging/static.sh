#!/usr/bin/env bash
# Builds a command that needs nothing of the machine that it runs on, and prints its path: with musl, where the Rust
# toolchain has that target (`rustup target add x86_64-unknown-linux-musl`) and there is a C compiler for it (musl-gcc of
# Debian's musl-tools); else with glibc linked in. The latter looks names of hosts up through the system's own glibc:
# on a system whose glibc is another, addresses work and names may not.
# usage: packaging/static.sh
set -euo pipefail
. "$(dirname "$0")/words.sh"
cd "$root"
musl=$arch-unknown-linux-musl gnu=$arch-unknown-linux-gnu
name() { printf '%s' "$1" | tr 'a-z-' 'A-Z_'; }
if has_target "$musl" && command -v musl-gcc >/dev/null; then
  target=$musl
  export "CC_${musl//-/_}=musl-gcc"
else
  say "static: no target $musl with a musl-gcc here; glibc is linked in"
  target=$gnu
  # Without the latter random bytes come from /dev/urandom, and an empty root has none: the call of the system is looked
  # up among dynamic symbols, of which a static program has none.
  flags='-C target-feature=+crt-static --cfg getrandom_backend="linux_getrandom"'
  export "CARGO_TARGET_$(name "$gnu")_RUSTFLAGS=$flags"
fi
${CARGO:-cargo} build --release --locked --package fairwave-cli --target "$target" >&2
printf '%s\n' "${CARGO_TARGET_DIR:-target}/$target/release/fairwave"
