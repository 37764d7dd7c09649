#!/usr/bin/env bash
# Builds the lab's command for a system other than Linux and packs it into target/dist: for macOS, of both machines in one
# file and experimental (nothing here can run it), or for Windows. zig is C compiler and linker for both.
# usage: packaging/lab.sh TOOLS macos|windows
set -euo pipefail
. "$(dirname "$0")/words.sh"
tools=$(realpath "$1") system=$2
cd "$root"
export PATH=$tools/bin:$PATH
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
name=fairwave-$version-$system-lab
mkdir -p "$tree/$name" target/dist
lab=(--package fairwave-cli --no-default-features --features lab)
case $system in
macos)
  for machine in aarch64 x86_64; do build_for "$machine-apple-darwin" "${lab[@]}"; done
  "$tools/bin/python" packaging/macho.py join "$tree/$name/fairwave" "$built"/{aarch64,x86_64}-apple-darwin/release/fairwave
  ;;
windows)
  build_for x86_64-pc-windows-gnu "${lab[@]}"
  install "$built/x86_64-pc-windows-gnu/release/fairwave.exe" "$tree/$name"
  ;;
*) fail "$system: is none of macos, windows" ;;
esac
cp README.md LICENSE-APACHE LICENSE-MIT "$tree/$name"
chmod -R u=rwX,go=rX "$tree/$name"
pack "$tree" "$name" > "target/dist/$name.tar.gz"
