#!/usr/bin/env bash
# Makes a release of the commit that is checked out, in target/dist: for each machine a tar of the static command, a tar
# of libfairwave, a Debian package and a bill of materials (CycloneDX); a container image; the lab for macOS and Windows;
# the source, and recipes of other packagers for it; install.sh; checksums. Packages for pip are in target/wheels. What
# this machine has no Rust for is left out, and named in the last lines.
# usage: packaging/release.sh TOOLS      (a venv with requirements-release.txt and cargo-cyclonedx)
set -euo pipefail
. "$(dirname "$0")/words.sh"
tools=$(realpath "$1")
cd "$root"
git diff --quiet HEAD || fail "uncommitted changes would not be in the source archive"
rm -rf target/dist
mkdir -p target/dist

source=fairwave-$version-source
git archive --format tar --prefix "$source/" HEAD | gzip -9n > "target/dist/$source.tar.gz"
"$tools/bin/python" packaging/recipes/write.py "target/dist/$source.tar.gz" target/dist/recipes
# The tool writes a file next to every Cargo.toml.
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
tar --extract --gzip --file "target/dist/$source.tar.gz" --directory "$tree" --strip-components 1

# Runs one of these scripts; false if it is for a target that is not to be had here.
left=()
attempt() {
  local status=0
  "$@" || status=$?
  case $status in
  0) ;;
  "$not_here") left+=("$(basename "$1" .sh) ${*:3}"); return 1 ;;
  *) fail "$* failed" ;;
  esac
}

for machine in "${machines[@]}"; do
  attempt packaging/build.sh "$tools" "$machine" || continue
  packaging/tar.sh "$machine"
  packaging/deb.sh "$machine"
  (cd "$tree" && "$tools/bin/cargo-cyclonedx" cyclonedx --quiet --quiet --manifest-path crates/cli/Cargo.toml --format json \
    --spec-version 1.5 --target "$machine-unknown-linux-musl" --no-build-deps)
  sed "s|file://$tree/|file:///|g" "$tree/crates/cli/fairwave-cli.cdx.json" > "target/dist/fairwave-$version-linux-$machine.cdx.json"
done
"$tools/bin/python" packaging/oci.py target/dist/image packaging/Containerfile "$version" "target/dist/fairwave-$version-image.tar"
for system in macos windows; do attempt packaging/lab.sh "$tools" "$system" || true; done
rm -rf target/wheels
for machine in "${machines[@]}"; do attempt packaging/wheels.sh "$tools" "$machine" || true; done
"$tools/bin/maturin" sdist >&2
cp install.sh target/dist
cd target/dist
sha256sum -- *.* > SHA256SUMS
ls -l . ../wheels >&2
for what in ${left[@]+"${left[@]}"}; do say "left out: $what: no Rust for it here"; done
