#!/usr/bin/env bash
# Installs what `make dist deb wheel` made, and what `cargo install` makes, each into an empty root or venv, and tries it
# there: the command moves a file, the module simulates. What this machine lacks the means for is said as skipped; what was
# tried and fails ends it.
# usage: packaging/check.sh PYTHON [tar|image|deb|wheel|sdist|cargo]...
set -euo pipefail
. "$(dirname "$0")/words.sh"
cd "$root"
python=$1
shift
wanted=("$@")
if [ ${#wanted[@]} = 0 ]; then wanted=(tar image deb wheel sdist cargo); fi
place=$(mktemp -d)
server=
cleanup() { if [ -n "$server" ]; then kill -- "-$server" 2>/dev/null || true; fi; rm -rf "$place"; }
trap cleanup EXIT
dist=$root/target/dist
passed=0 skipped=0
skip() { say "skipped: $*"; skipped=$((skipped + 1)); }
good() { say "good: $*"; passed=$((passed + 1)); }

# Runs in another root, with nothing of this one.
in_root() {
  local to=$1
  shift
  if [ "$(id -u)" = 0 ]; then env -i HOME=/var/lib/fairwave XDG_STATE_HOME=/var/lib/fairwave XDG_RUNTIME_DIR=/tmp PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot "$to" "$@"
  else env -i HOME=/var/lib/fairwave XDG_STATE_HOME=/var/lib/fairwave XDG_RUNTIME_DIR=/tmp PATH=/usr/sbin:/usr/bin:/sbin:/bin unshare --map-root-user chroot "$to" "$@"; fi
}

# A file goes from one process to another by the command that is called so; the last word is the directory that both see.
moves_a_file() {
  local files=$1
  shift
  head -c 3000000 /dev/urandom > "$files/big.bin"
  # A group of its own: what the shell starts there ends with it.
  set -m
  ("$@" serve "${files#"$seen"}/big.bin" --listen 127.0.0.1:0 > "$files/ticket" 2> "$files/said") &
  server=$!
  set +m
  for _ in $(seq 100); do if [ -s "$files/ticket" ]; then break; fi; sleep 0.1; done
  if [ ! -s "$files/ticket" ]; then cat "$files/said" >&2; fail "no ticket"; fi
  "$@" get "@${files#"$seen"}/ticket" "${files#"$seen"}/there" --quiet
  cmp "$files/big.bin" "$files/there/big.bin"
  kill -- "-$server" && { wait "$server" || true; }
  server=
  rm -rf "$files/there" "$files/big.bin"
}

if [[ " ${wanted[*]} " =~ " tar " || " ${wanted[*]} " =~ " deb " ]]; then (cd "$dist" && sha256sum --check --quiet SHA256SUMS); fi

for what in "${wanted[@]}"; do
  case $what in
  tar)
    mkdir -p "$place/tar/tmp" "$place/tar/var/lib/fairwave"
    tar --extract --gzip --file "$dist/fairwave-$version-linux-$arch.tar.gz" --directory "$place/tar" --strip-components 1
    seen=$place/tar
    [ "$(in_root "$place/tar" /bin/fairwave --version)" = "fairwave $version" ]
    moves_a_file "$place/tar/tmp" in_root "$place/tar" /bin/fairwave
    for file in share/man/man1/fairwave-papers-run.1.gz share/bash-completion/completions/fairwave \
      share/zsh/site-functions/_fairwave share/fish/vendor_completions.d/fairwave.fish lib/fairwave/libfairwave_preload.so; do
      [ -s "$place/tar/$file" ] || fail "the tar has no $file"
    done
    bytes=$(stat -c %s "$place/tar/bin/fairwave")
    [ "$bytes" -lt 20000000 ] || fail "the command has $bytes bytes"
    gunzip --test "$place"/tar/share/man/man1/*.gz || fail "manual pages"
    for unit in "$place"/tar/lib/systemd/system/*; do
      grep -q /usr/local/bin/fairwave "$unit" || [[ $unit = *.socket ]] || fail "$unit: starts another command"
    done
    good "tar: a static command of $bytes bytes moves a file in an empty root"
    # What is not linked to musl has glibc in it.
    if has_target "$arch-unknown-linux-musl" && command -v musl-gcc >/dev/null; then
      good "tar: linked with musl"
    else
      skip "tar: musl: no target $arch-unknown-linux-musl with a musl-gcc here; the static command has glibc in it"
    fi ;;
  image)
    # The steps of the Containerfile: what is run is a target of the Makefile, what is copied is there, what is started runs.
    file=packaging/Containerfile
    sed -n 's/^RUN //p' "$file" | while read -r step; do
      [[ $step = "make "* ]] || fail "$file: \"$step\" is no call of make"
      # shellcheck disable=SC2086
      make --dry-run --silent ${step#make } >/dev/null || fail "$file: \"$step\" cannot be made"
    done
    copied=$(sed -n 's|^COPY --from=build /src/\(.*\) /$|\1|p' "$file")
    [ -d "$copied" ] || fail "$file: no $copied"
    cp -a "$copied/." "$place/image"
    entry=$(sed -n 's/^ENTRYPOINT \["\(.*\)"\]$/\1/p' "$file")
    seen=$place/image
    [ "$(in_root "$place/image" "$entry" --version)" = "fairwave $version" ]
    moves_a_file "$place/image/tmp" in_root "$place/image" "$entry"
    good "container: the tree of the image moves a file"
    if docker info >/dev/null 2>&1; then
      docker build --quiet --tag "fairwave-check:$version" --file "$file" . >/dev/null
      [ "$(docker run --rm "fairwave-check:$version" --version)" = "fairwave $version" ]
      docker rmi "fairwave-check:$version" >/dev/null
      good "container: docker builds and runs it"
    else
      skip "container: no docker that answers; its steps were run by hand"
    fi ;;
  deb)
    package=$(echo "$dist"/fairwave_"${version}"_*.deb)
    if [ "$(id -u)" != 0 ]; then skip "deb: dpkg installs as root alone"; continue; fi
    mkdir -p "$place/deb/var/lib/dpkg/"{info,updates} && touch "$place/deb/var/lib/dpkg/status"
    dpkg=(dpkg --root "$place/deb" --force-script-chrootless --force-depends --log "$place/deb.log")
    "${dpkg[@]}" --install "$package" >/dev/null 2> "$place/deb.said" || { cat "$place/deb.said" >&2; fail "dpkg"; }
    seen= home=$place/home
    mkdir -p "$home"
    [ "$("$place/deb/usr/bin/fairwave" --version)" = "fairwave $version" ]
    moves_a_file "$home" env HOME="$home" XDG_STATE_HOME="$home" XDG_RUNTIME_DIR="$home" "$place/deb/usr/bin/fairwave"
    [ -s "$place/deb/usr/lib/fairwave/libfairwave_preload.so" ] || fail "the package has no library for \`fairwave run\`"
    if ! command -v systemd-analyze >/dev/null || ! compgen -G "/usr/lib/systemd/system/*.target" >/dev/null; then
      skip "deb: units were not verified: no systemd here"
    else
      # Beside those of this machine's systemd, which they name, and with the one program of another package that they run.
      cp -a "$place/deb" "$place/units"
      # Some versions of cp call it an error that a file is there already.
      cp -an /usr/lib/systemd/system/. "$place/units/usr/lib/systemd/system/" || true
      install -D /bin/kill "$place/units/bin/kill"
      units=("$place"/units/usr/lib/systemd/system/fairwave*)
      [ -e "${units[0]}" ] || fail "the package has no units"
      systemd-analyze verify --man=no --recursive-errors=no --root "$place/units" "${units[@]}" || fail "units"
      # That it would see a mistake: a program that is not there.
      sed -i 's|^ExecStart=.*|ExecStart=/usr/bin/nothing|' "$place/units/usr/lib/systemd/system/fairwave.service"
      if systemd-analyze verify --man=no --recursive-errors=no --root "$place/units" "${units[@]}" 2>/dev/null; then
        fail "systemd-analyze sees no mistakes in units"
      fi
    fi
    "${dpkg[@]}" --purge fairwave >/dev/null 2>&1
    [ ! -e "$place/deb/usr" ] || fail "dpkg --purge leaves $(find "$place/deb/usr")"
    good "deb: installed, moves a file, purged without a rest" ;;
  wheel | sdist)
    "$python" -m venv "$place/$what"
    if [ "$what" = wheel ]; then
      package=$(ls -t target/wheels/fairwave-"$version"-*"$arch".whl 2>/dev/null | head -1) || true
    else
      package=target/wheels/fairwave-$version.tar.gz
      # That the source is whole is what is asked: it is compiled quickly.
      export MATURIN_PEP517_ARGS="--profile dev" CARGO_TARGET_DIR=$root/target/sdist
    fi
    [ -s "$package" ] || fail "$what: target/wheels has none for $arch: \`make wheel\` makes it, or says why not"
    (unset PYO3_NO_PYTHON PYO3_BUILD_EXTENSION_MODULE && "$place/$what/bin/python" -m pip install --quiet "$package")
    unset CARGO_TARGET_DIR
    # Where no fairwave lies beside it.
    (cd "$place" && "$place/$what/bin/python" - "$root/scenarios/five-to-one.toml" <<'END'
import sys

import fairwave

run = fairwave.simulate(sys.argv[1], model="fluid")
rates = sorted(run.sessions["final_rate_bps"])
assert len(rates) == 5, rates
assert max(rates) < 1.05 * min(rates), rates
print(fairwave.__file__, rates)
END
    )
    good "$what: $(basename "$package") simulates in an empty venv"
    if [ "$what" = wheel ]; then
      for machine in x86_64 aarch64; do
        if [ "$machine" = "$arch" ]; then continue; fi
        package=$(compgen -G "target/wheels/fairwave-$version-*$machine.whl" | head -1) || true
        if [ -z "$package" ]; then
          skip "wheel: $machine: none was made: no Rust target $machine-unknown-linux-gnu, or no linker (ziglang), here"
        else
          "$place/wheel/bin/python" -m zipfile --test "$package" >/dev/null || fail "$package"
          skip "wheel: $machine: $(basename "$package") is whole, and cannot be tried on $arch"
        fi
      done
    fi ;;
  cargo)
    ${CARGO:-cargo} install --quiet --path crates/cli --locked --root "$place/cargo" --target-dir target
    seen= home=$place/home
    mkdir -p "$home"
    moves_a_file "$home" env HOME="$home" XDG_STATE_HOME="$home" XDG_RUNTIME_DIR="$home" "$place/cargo/bin/fairwave"
    good "cargo install: moves a file" ;;
  *) fail "$what: is none of tar, image, deb, wheel, sdist, cargo" ;;
  esac
done
say "$passed passed, 0 failed, $skipped skipped"
