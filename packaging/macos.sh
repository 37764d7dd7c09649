#!/usr/bin/env bash
# Builds the lab's command for macOS, both machines in one file, and packs it into target/dist. It is experimental: nothing
# here can run it.
# usage: packaging/macos.sh TOOLS
set -euo pipefail
. "$(dirname "$0")/words.sh"
tools=$(realpath "$1")
cd "$root"
export PATH=$tools/bin:$PATH
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
name=fairwave-$version-macos-lab
mkdir -p "$tree/$name" target/dist
# What it links to of Apple's libraries, besides that of C, which zig has.
more_flags="-Lnative=packaging/macos -Lframework=packaging/macos"
export MACOSX_DEPLOYMENT_TARGET=11.0
for machine in aarch64 x86_64; do
  build_for "$machine-apple-darwin" "" --package fairwave-cli --no-default-features --features lab
done
"$tools/bin/python" packaging/macho.py join "$tree/$name/fairwave" "$built"/{aarch64,x86_64}-apple-darwin/release/fairwave
cp README.md LICENSE-APACHE LICENSE-MIT "$tree/$name"
chmod -R u=rwX,go=rX "$tree/$name"
pack "$tree" "$name" > "target/dist/$name.tar.gz"
