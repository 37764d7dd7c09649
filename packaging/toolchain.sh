#!/usr/bin/env bash
# Unpacks Debian's Rust compiler and the source of its standard library into the user's cache, for targets that the Rust
# toolchain lacks, and what makes import libraries of Windows. Needs apt-get, and root only if its lists are empty.
# usage: packaging/toolchain.sh
set -euo pipefail
. "$(dirname "$0")/words.sh"
to=$debian_rust
if [ -e "$to/mingw" ]; then exit; fi
command -v apt-get >/dev/null || fail "no apt-get, which fetches Debian's Rust compiler"
rm -rf "$to"
mkdir -p "$to/debs"
cd "$to/debs"
candidate() { apt-cache policy rustc-web | sed -n 's/^  Candidate: \([0-9].*\)/\1/p'; }
if [ -z "$(candidate)" ]; then apt-get update -qq || fail "no package rustc-web: apt-get update"; fi
release=$(candidate)
release=${release%%[+-]*} # 1.96.0
if [ -z "$release" ]; then fail "Debian has no package rustc-web here"; fi
packages=(rustc-web rust-web-src libstd-rust-web-dev "libstd-rust-web-${release%.*}" binutils-mingw-w64-x86-64)
# Libraries of the compiler that this machine may lack.
mapfile -t libraries < <(apt-cache depends --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces "${packages[@]}" |
  sed -n 's/^  Depends: \(libllvm[0-9]*\)$/\1/p' | sort -u)
apt-get -o APT::Sandbox::User=root download -qq "${packages[@]}" ${libraries[@]+"${libraries[@]}"}
for package in *.deb; do dpkg-deb --extract "$package" ..; done
rm -r "$to/debs"
mkdir "$to/bin"
printf '#!/bin/sh\nLD_LIBRARY_PATH=%s exec %s "$@"\n' "$to/usr/lib/$(uname -m)-linux-gnu" "$to/usr/bin/rustc" > "$to/bin/rustc"
chmod +x "$to/bin/rustc"
# rustc looks for these objects and libraries of C; zig has the real ones.
for machine in x86_64 aarch64; do
  objects=$to/usr/lib/rustlib/$machine-unknown-linux-musl/lib/self-contained
  mkdir -p "$objects"
  for name in crt1 rcrt1 Scrt1 crti crtn crtbegin crtbeginS crtend crtendS; do : > "$objects/$name.o"; done
done
mkdir "$to/empty"
for name in ssp ssp_nonshared; do printf '!<arch>\n' > "$to/empty/lib$name.a"; done
# rustc makes import libraries with these two. Last: what is complete has this directory.
mkdir "$to/mingw.new"
for name in as dlltool; do ln -s "../usr/bin/x86_64-w64-mingw32-$name" "$to/mingw.new"; done
mv "$to/mingw.new" "$to/mingw"
