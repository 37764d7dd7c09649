#!/bin/sh
# Installs the static command for Linux into ~/.local, without root:
#   sh install.sh --from DIRECTORY          what `make release` leaves in target/dist
#   curl -fsSL URL/install.sh | sh -s -- --from URL
# The archive for this machine is verified with the SHA256SUMS next to it. An installed version is replaced.
set -eu

fail() { echo "install.sh: $*" >&2; exit 1; }
usage='usage: install.sh --from DIRECTORY|URL'

# All of the script is read before any of it runs.
main() {
  from=
  while [ $# -gt 0 ]; do
    case $1 in
    --from) [ $# -ge 2 ] || fail "--from needs a directory or URL; $usage"; from=${2%/}; shift 2 ;;
    --help) echo "$usage"; exit 0 ;;
    *) fail "unknown argument $1; $usage" ;;
    esac
  done
  [ -n "$from" ] || fail "there is no download site yet: build a release with \`make release\`, then use --from target/dist"
  [ -n "${HOME:-}" ] || fail "HOME is not set"
  system=$(uname -s) machine=$(uname -m)
  [ "$system" = Linux ] || fail "$system: there are archives for Linux only"
  case $machine in
  x86_64 | amd64) machine=x86_64 ;;
  aarch64 | arm64) machine=aarch64 ;;
  *) fail "$machine: there are archives for x86_64 and aarch64 only" ;;
  esac

  place=$(mktemp -d)
  trap 'rm -rf "$place"' EXIT
  trap 'exit 1' HUP INT TERM
  get SHA256SUMS
  archive=$(sed -n "s/^[0-9a-f]* [ *]\(fairwave-[^ ]*-linux-$machine\.tar\.gz\)\$/\1/p" "$place/SHA256SUMS")
  [ -n "$archive" ] || fail "$from/SHA256SUMS has no archive for $machine"
  get "$archive"
  (cd "$place" && grep " [ *]$archive\$" SHA256SUMS | sha256sum -c - >/dev/null 2>&1) ||
    fail "$archive: the checksum is not that of SHA256SUMS; nothing was installed"
  mkdir "$place/tree"
  gzip -dc "$place/$archive" | tar -xf - -C "$place/tree"
  tree=$place/tree/${archive%.tar.gz}
  # The units of systemd are for root.
  rm -rf "$tree/lib/systemd"

  to=$HOME/.local
  (cd "$tree" && find . -type d) | while read -r directory; do mkdir -p "$to/$directory"; done
  # A running command keeps the old file.
  (cd "$tree" && find . -type f) | while read -r file; do
    cp -p "$tree/$file" "$to/$file.new"
    mv -f "$to/$file.new" "$to/$file"
  done
  installed=$("$to/bin/fairwave" --version) || fail "$to/bin/fairwave does not run on this machine"
  echo "installed $installed as $to/bin/fairwave"
  case :$PATH: in
  *:"$to/bin":*) ;;
  *) echo "hint: add it to the path: export PATH=\"\$HOME/.local/bin:\$PATH\"" ;;
  esac
}

# A file of the source, into the temporary directory.
get() {
  case $from in
  http://* | https://*)
    if command -v curl >/dev/null 2>&1; then curl -fsSL -o "$place/$1" "$from/$1" || fail "cannot fetch $from/$1"
    elif command -v wget >/dev/null 2>&1; then wget -qO "$place/$1" "$from/$1" || fail "cannot fetch $from/$1"
    else fail "neither curl nor wget is installed"; fi ;;
  *) cp "$from/$1" "$place/$1" 2>/dev/null || fail "no file $from/$1" ;;
  esac
}

main "$@"
