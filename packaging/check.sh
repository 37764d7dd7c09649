#!/usr/bin/env bash
# Installs what `make release` made, and what `cargo install` makes, each into an empty root, home or venv, and uses it
# there: the command moves a file, the module simulates. The other machine's command runs under qemu-user, that of
# Windows under wine; that of macOS is only inspected. A check that this machine cannot do is reported as skipped; one that
# fails ends the script.
# usage: packaging/check.sh TOOLS [NAME]...      (names: those of `every` below)
set -euo pipefail
. "$(dirname "$0")/words.sh"
cd "$root"
tools=$(realpath "$1")
python=$tools/bin/python
shift
wanted=("$@")
every=(sums tar library across image deb install between sites macos windows bill wheel cargo portable crates sdist again)
if [ ${#wanted[@]} = 0 ]; then wanted=("${every[@]}"); fi
place=$(mktemp -d)
server=
spaces=()
cleanup() {
  if [ -n "$server" ]; then kill -- "-$server" 2>/dev/null || true; fi
  for space in ${spaces[@]+"${spaces[@]}"}; do ip netns delete "$space" 2>/dev/null || true; done
  rm -rf "$place"
}
trap cleanup EXIT
dist=$root/target/dist
passed=0 skipped=0
skip() { say "skipped: $*"; skipped=$((skipped + 1)); }
good() { say "good: $*"; passed=$((passed + 1)); }
made=()
for machine in "${machines[@]}"; do
  if [ -e "$dist/fairwave-$version-linux-$machine.tar.gz" ]; then made+=("$machine"); else skip "$machine: the release was made without it"; fi
done
[ "${made[*]:0:1}" = "$arch" ] || fail "no release for $arch in target/dist: make release"
machines=("${made[@]}")

# Sets `emulator` to the words that run a program of a machine here, none for this one's; false if there are none.
emulator_for() {
  emulator=()
  if [ "$1" = "$arch" ]; then return; fi
  emulator=("$(command -v "qemu-$1-static")") || { skip "$2: $1: apt-get install qemu-user-static"; return 1; }
}

# Runs in another root, with nothing of this one except the emulator.
in_root() {
  local to=$1 outside=()
  shift
  if [ "$(id -u)" != 0 ]; then outside=(unshare --map-root-user); fi
  if [ ${#emulator[@]} != 0 ]; then
    [ -e "$to/emulator" ] || cp "${emulator[0]}" "$to/emulator"
    set -- /emulator "$@"
  fi
  env -i HOME=/var/lib/fairwave XDG_STATE_HOME=/var/lib/fairwave XDG_RUNTIME_DIR=/tmp PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    ${outside[@]+"${outside[@]}"} "$(command -v chroot)" "$to" "$@"
}
in_home() {
  local home=$1
  shift
  env -i HOME="$home" XDG_STATE_HOME="$home" XDG_RUNTIME_DIR="$home" PATH="$PATH" ${emulator[@]+"${emulator[@]}"} "$@"
}

# A file goes from one process to another by the command that is called so; the first word is the directory that both see.
moves_a_file() {
  local files=$1
  shift
  head -c 3000000 /dev/urandom > "$files/big.bin"
  # A group of its own: what the shell starts there ends with it.
  set -m
  ("$@" serve "${files#"$seen"}/big.bin" --listen 127.0.0.1:0 > "$files/ticket" 2> "$files/said") &
  server=$!
  set +m
  for _ in $(seq 600); do if [ -s "$files/ticket" ]; then break; fi; sleep 0.1; done
  if [ ! -s "$files/ticket" ]; then cat "$files/said" >&2; fail "no ticket"; fi
  "$@" get "@${files#"$seen"}/ticket" "${files#"$seen"}/there" --quiet
  cmp "$files/big.bin" "$files/there/big.bin"
  kill -- "-$server" && { wait "$server" || true; }
  server=
  rm -rf "$files/there" "$files/big.bin"
}

check_sums() {
  (cd "$dist" && sha256sum --check --quiet SHA256SUMS) || fail "checksums"
  good "checksums: $(wc -l < "$dist/SHA256SUMS") files"
}

check_tar() {
  local machine to file bytes unit
  for machine in "${machines[@]}"; do
    to=$place/tar-$machine
    mkdir -p "$to/tmp" "$to/var/lib/fairwave"
    tar --extract --gzip --file "$dist/fairwave-$version-linux-$machine.tar.gz" --directory "$to" --strip-components 1
    for file in share/man/man1/fairwave-papers-run.1.gz share/bash-completion/completions/fairwave \
      share/zsh/site-functions/_fairwave share/fish/vendor_completions.d/fairwave.fish lib/fairwave/libfairwave_preload.so; do
      [ -s "$to/$file" ] || fail "the tar has no $file"
    done
    gunzip --test "$to"/share/man/man1/*.gz || fail "manual pages"
    for unit in "$to"/lib/systemd/system/*; do
      grep -q /usr/local/bin/fairwave "$unit" || [[ $unit = *.socket ]] || fail "$unit: starts another command"
    done
    bytes=$(stat -c %s "$to/bin/fairwave")
    [ "$bytes" -lt 15000000 ] || fail "the command has $bytes bytes"
    printf '%s\n' "$(glibc_of "$to/lib/fairwave/libfairwave_preload.so")" 2.17 | sort --version-sort --check=quiet ||
      fail "the library needs a glibc newer than 2.17"
    if grep -qaF -e "$root/" -e "${CARGO_HOME:-$HOME/.cargo}/" "$to/bin/fairwave"; then fail "the command has paths of this machine in it"; fi
    emulator_for "$machine" tar || continue
    seen=$to
    [ "$(in_root "$to" /bin/fairwave --version)" = "fairwave $version" ]
    moves_a_file "$to/tmp" in_root "$to" /bin/fairwave
    good "tar: $machine: a static command of $bytes bytes moves a file in an empty root"
  done
}

# An example is compiled with what the tar has, and moves a file; zig is the compiler.
check_library() {
  local machine to ticket
  for machine in "${machines[@]}"; do
    to=$place/library-$machine
    mkdir "$to"
    tar --extract --gzip --file "$dist/libfairwave-$version-linux-$machine.tar.gz" --directory "$to" --strip-components 1
    diff <(sed -n 's/^ *\(g_[a-z]*\);$/\1/p' crates/capi/pkg/fairwave.map | sort) \
      <(readelf --dyn-syms --wide "$to/lib/libfairwave.so.0" | awk '$5 == "GLOBAL" && $4 == "FUNC" && $7 != "UND" { sub("@.*", "", $8); print $8 }' | sort) ||
      fail "library: $machine: exports other calls than fairwave.map"
    printf '%s\n' "$(glibc_of "$to/lib/libfairwave.so.0")" 2.17 | sort --version-sort --check=quiet || fail "library: needs a glibc newer than 2.17"
    # shellcheck disable=SC2016
    "$python" -m ziglang cc -target "$machine-linux-gnu.2.17" -o "$to/copy" examples/c/copy.c -I "$to/include" -L "$to/lib" -lfairwave \
      -Wl,-rpath,'$ORIGIN/lib'
    emulator_for "$machine" library || continue
    if [ "$machine" != "$arch" ]; then
      if [ ! -d "/usr/$machine-linux-gnu/lib" ]; then skip "library: $machine: apt-get install libc6-$(debian_of "$machine")-cross"; continue; fi
      emulator+=(-L "/usr/$machine-linux-gnu")
    fi
    head -c 3000000 /dev/urandom > "$to/big.bin"
    set -m
    (in_home "$to" "$to/copy" "$to/big.bin" > "$to/ticket") &
    server=$!
    set +m
    for _ in $(seq 600); do if [ -s "$to/ticket" ]; then break; fi; sleep 0.1; done
    read -r ticket < "$to/ticket" || fail "library: $machine: no ticket"
    in_home "$to" "$to/copy" "$ticket" "$to/there"
    wait "$server" || fail "library: $machine: the server failed"
    server=
    cmp "$to/big.bin" "$to/there"
    good "library: $machine: examples/c/copy.c, linked to it, moves a file"
  done
}

check_across() {
  local machine
  bash tests/same_bytes.sh "$(command_of "$arch")" >&2
  for machine in "${machines[@]:1}"; do
    emulator_for "$machine" across || continue
    bash tests/across.sh "$(command_of "$arch")" "${emulator[*]} $(command_of "$machine")"
    # A word that starts it: the test takes a program.
    printf '#!/bin/sh\nexec %s "$@"\n' "${emulator[*]} $(command_of "$machine")" > "$place/fairwave-$machine"
    chmod +x "$place/fairwave-$machine"
    bash tests/same_bytes.sh "$place/fairwave-$machine" >&2
    good "across: $arch and $machine have the same trees after each way, and simulations as recorded"
  done
}

# The steps of the Containerfile: what is copied is there, what is started runs.
check_image() {
  local file=packaging/Containerfile entry machine
  entry=$(sed -n 's/^ENTRYPOINT \["\(.*\)"\]$/\1/p' "$file")
  # shellcheck disable=SC2016
  grep -qx 'COPY ${TARGETARCH}/ /' "$file" || fail "$file: copies something else"
  for machine in "${machines[@]}"; do
    emulator_for "$machine" image || continue
    seen=$place/image-$machine
    cp -a "$dist/image/$(debian_of "$machine")" "$seen"
    [ "$(in_root "$seen" "$entry" --version)" = "fairwave $version" ]
    moves_a_file "$seen/tmp" in_root "$seen" "$entry"
    good "image: $machine: its tree moves a file"
  done
  if command -v skopeo >/dev/null; then
    for machine in "${machines[@]}"; do
      mkdir "$place/oci-$machine"
      skopeo --insecure-policy --override-os linux --override-arch "$(debian_of "$machine")" copy --quiet \
        "oci-archive:$dist/fairwave-$version-image.tar:fairwave:$version" "dir:$place/oci-$machine/image"
      mkdir "$place/oci-$machine/tree"
      "$python" - "$place/oci-$machine/image" <<'END' | tar --extract --gzip --directory "$place/oci-$machine/tree"
import json, pathlib, sys

image = pathlib.Path(sys.argv[1])
manifest = json.loads((image / "manifest.json").read_text())
(layer,) = manifest["layers"]
sys.stdout.buffer.write((image / layer["digest"].removeprefix("sha256:")).read_bytes())
END
      diff -r "$place/oci-$machine/tree" "$dist/image/$(debian_of "$machine")" || fail "image: $machine: the tar has another tree"
    done
    good "image: skopeo reads the tar, which has the trees of ${machines[*]}"
  else
    skip "image: the tar was not read: apt-get install skopeo"
  fi
  if docker info >/dev/null 2>&1; then
    docker build --quiet --tag "fairwave-check:$version" --file "$file" "$dist/image" >/dev/null
    [ "$(docker run --rm "fairwave-check:$version" --version)" = "fairwave $version" ]
    docker rmi "fairwave-check:$version" >/dev/null
    good "image: docker builds and runs it"
  else
    skip "image: no docker that answers; its steps were run by hand"
  fi
}

check_deb() {
  local machine debian to dpkg home units
  if [ "$(id -u)" != 0 ]; then skip "deb: dpkg installs only as root"; return; fi
  for machine in "${machines[@]}"; do
    debian=$(debian_of "$machine") to=$place/deb-$machine home=$place/home-$machine
    mkdir -p "$home" "$to/var/lib/dpkg/"{info,updates} && touch "$to/var/lib/dpkg/status"
    dpkg=(dpkg --root "$to" --force-architecture --force-script-chrootless --force-depends --log "$place/deb.log")
    "${dpkg[@]}" --install "$dist/fairwave_${version}_$debian.deb" >/dev/null 2> "$place/said" || { cat "$place/said" >&2; fail "dpkg"; }
    [ -s "$to/usr/lib/fairwave/libfairwave_preload.so" ] || fail "the package has no library for \`fairwave run\`"
    if emulator_for "$machine" deb; then
      seen=""
      [ "$(in_home "$home" "$to/usr/bin/fairwave" --version)" = "fairwave $version" ]
      moves_a_file "$home" in_home "$home" "$to/usr/bin/fairwave"
    fi
    if [ "$machine" = "$arch" ]; then check_units "$to"; fi
    "${dpkg[@]}" --purge "fairwave:$debian" >/dev/null 2>&1 || "${dpkg[@]}" --purge fairwave >/dev/null 2>&1
    [ ! -e "$to/usr" ] || fail "dpkg --purge leaves $(find "$to/usr")"
    good "deb: $debian: installed, moves a file, purged without a rest"
  done
}
check_units() {
  local units=$place/units names
  if ! command -v systemd-analyze >/dev/null || ! compgen -G "/usr/lib/systemd/system/*.target" >/dev/null; then
    skip "deb: units were not verified: no systemd here"
    return
  fi
  # Next to those of this machine's systemd, which they name, and with the one program of another package that they run.
  cp -a "$1" "$units"
  # Some versions of cp report an error if a file is there already.
  cp -an /usr/lib/systemd/system/. "$units/usr/lib/systemd/system/" || true
  install -D /bin/kill "$units/bin/kill"
  names=("$units"/usr/lib/systemd/system/fairwave*)
  [ -e "${names[0]}" ] || fail "the package has no units"
  systemd-analyze verify --man=no --recursive-errors=no --root "$units" "${names[@]}" || fail "units"
  # That it would see a mistake: a program that is not there.
  sed -i 's|^ExecStart=.*|ExecStart=/usr/bin/nothing|' "$units/usr/lib/systemd/system/fairwave.service"
  if systemd-analyze verify --man=no --recursive-errors=no --root "$units" "${names[@]}" 2>/dev/null; then
    fail "systemd-analyze sees no mistakes in units"
  fi
}

check_install() {
  local machine home port
  emulator=()
  home=$place/install
  mkdir "$home"
  env -i HOME="$home" PATH="$PATH" sh "$dist/install.sh" --from "$dist" > "$place/said" || fail "install.sh: $(cat "$place/said")"
  grep -q 'hint: add it to the path' "$place/said" || fail "install.sh: no hint about the path"
  seen=""
  moves_a_file "$home" in_home "$home" "$home/.local/bin/fairwave"
  # An archive with another byte is not installed, and leaves what is there.
  cp -r "$dist" "$place/changed"
  printf x >> "$place/changed/fairwave-$version-linux-$arch.tar.gz"
  mkdir "$place/other"
  if env -i HOME="$place/other" PATH="$PATH" sh "$dist/install.sh" --from "$place/changed" 2> "$place/said"; then
    fail "install.sh: installs an archive with another checksum"
  fi
  grep -q checksum "$place/said" || fail "install.sh: $(cat "$place/said")"
  [ -z "$(ls -A "$place/other")" ] || fail "install.sh: leaves files of a refused archive"
  # Through a pipe from a web server, with the other machine's name: its archive is chosen.
  "$python" -u -m http.server --bind 127.0.0.1 --directory "$dist" 0 > "$place/served" 2>&1 &
  server=$!
  for _ in $(seq 600); do if grep -q port "$place/served"; then break; fi; sleep 0.1; done
  port=$(sed -n 's/.* port \([0-9]*\) .*/\1/p' "$place/served")
  for machine in "${machines[@]}"; do
    home=$place/install-$machine
    mkdir -p "$home/bin"
    # shellcheck disable=SC2016
    printf '#!/bin/sh\nif [ "$1" = -m ]; then echo %s; else echo Linux; fi\n' "$machine" > "$home/bin/uname"
    chmod +x "$home/bin/uname"
    curl -fsSL "http://127.0.0.1:$port/install.sh" |
      env -i HOME="$home" PATH="$home/bin:$PATH" sh -s -- --from "http://127.0.0.1:$port" > "$place/said" 2>&1 || true
    cmp "$home/.local/bin/fairwave" "$(command_of "$machine")" || fail "install.sh: $machine: $(cat "$place/said")"
  done
  kill "$server" && { wait "$server" || true; }
  server=
  good "install.sh: into an empty home, from a directory and through a pipe; a changed archive is refused"
}

# Two machines, each with its own installation in a home that was empty, and a cable between them.
check_between() {
  local end home files
  if [ "$(id -u)" != 0 ] || ! command -v ip >/dev/null; then skip "between: needs root and iproute2"; return; fi
  spaces=("release-$$-a" "release-$$-b")
  for end in "${spaces[@]}"; do
    ip netns add "$end" || { skip "between: no network namespaces here"; return; }
    ip -n "$end" link set lo up
    mkdir "$place/$end"
    env -i HOME="$place/$end" PATH="$PATH" sh "$dist/install.sh" --from "$dist" > "$place/said" || fail "install.sh: $(cat "$place/said")"
  done
  ip -n "${spaces[0]}" link add cable type veth peer name cable netns "${spaces[1]}"
  for end in 0 1; do
    ip -n "${spaces[end]}" address add "10.213.0.$((end + 1))/24" dev cable
    ip -n "${spaces[end]}" link set cable up
  done
  at() {
    local end=$1 home=$place/${spaces[$1]}
    shift
    ip netns exec "${spaces[end]}" env -i HOME="$home" XDG_STATE_HOME="$home" XDG_RUNTIME_DIR="$home" PATH="$PATH" \
      "$home/.local/bin/fairwave" "$@"
  }
  files=$place/files
  mkdir -p "$files/odd names/é☂" && head -c 20000000 /dev/urandom > "$files/odd names/é☂/-big.bin" && printf x > "$files/"$'two\nlines'
  set -m
  (at 0 serve "$files" --listen 10.213.0.1:0 > "$place/ticket" 2> "$place/said") &
  server=$!
  set +m
  for _ in $(seq 600); do if [ -s "$place/ticket" ]; then break; fi; sleep 0.1; done
  if [ ! -s "$place/ticket" ]; then cat "$place/said" >&2; fail "no ticket"; fi
  at 1 get "@$place/ticket" "$place/arrived" --quiet
  diff -r "$files" "$place/arrived/files" || fail "between: trees differ"
  kill -- "-$server" && { wait "$server" || true; }
  server=
  for end in "${spaces[@]}"; do ip netns delete "$end"; done
  spaces=()
  good "between: a tree goes from one installation to another in another network namespace"
}

check_sites() {
  if [ "$(id -u)" != 0 ] || ! command -v iptables >/dev/null; then skip "sites: needs root, iproute2 and iptables"; return; fi
  bash tests/sites.sh "$(command_of "$arch")"
  good "sites: firewalls, limits and login nodes of docs/how-to/hpc-sites.md"
}

unpack_lab() {
  mkdir "$place/$1"
  tar --extract --gzip --file "$dist/fairwave-$version-$1-lab.tar.gz" --directory "$place/$1" --strip-components 1
}

check_macos() {
  local libc
  unpack_lab macos
  libc=$(dirname "$("$python" -c 'import ziglang; print(ziglang.__file__)')")/lib/libc/darwin/libSystem.tbd
  "$python" packaging/macho.py check "$place/macos/fairwave" "/usr/lib/libSystem.B.dylib=$libc" \
    "/usr/lib/libobjc.A.dylib=packaging/macos/libobjc.tbd" \
    "/System/Library/Frameworks/CoreFoundation.framework/Versions/A/CoreFoundation=packaging/macos/CoreFoundation.framework/CoreFoundation.tbd" \
    > "$place/said" || fail "macos: $(cat "$place/said")"
  good "macos: inspected, not run: $(paste -sd';' "$place/said")"
}

check_windows() {
  local wine said
  unpack_lab windows
  wine=$(command -v wine64 || command -v wine || ls /usr/lib/wine/wine64 2>/dev/null) || { skip "windows: apt-get install wine"; return; }
  # wine 8 lacks this library, of which Rust's random numbers are.
  printf '%s\n' '#include <windows.h>' 'BOOLEAN NTAPI SystemFunction036(PVOID, ULONG);' \
    '__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE p, SIZE_T n) { return SystemFunction036(p, (ULONG)n); }' > "$place/prng.c"
  "$python" -m ziglang cc -target x86_64-windows-gnu -shared -o "$place/windows/bcryptprimitives.dll" "$place/prng.c" -ladvapi32
  on_windows() { env -i HOME="$place/windows" PATH="$PATH" WINEDEBUG=-all WINEPREFIX="$place/wine" "$wine" "$place/windows/fairwave.exe" "$@"; }
  said=$(on_windows --version | tr -d '\r')
  [ "$said" = "fairwave $version" ] || fail "windows: --version: $said"
  "$(command_of "$arch")" allocate five-to-one --json > "$place/here"
  on_windows allocate five-to-one --json > "$place/there" || fail "windows: allocate"
  cmp "$place/here" "$place/there" || fail "windows: allocate differs"
  "$(command_of "$arch")" simulate five-to-one --model packet --quiet --out "$place/here.out" >/dev/null
  (cd "$place" && on_windows simulate five-to-one --model packet --quiet --out there.out >/dev/null)
  diff -r "$place/here.out" "$place/there.out" || fail "windows: a simulation differs"
  if said=$(on_windows serve x 2>&1); then fail "windows: serve does not fail"; fi
  [[ $said = *"needs the feature 'transfer'"* ]] || fail "windows: serve: $said"
  good "windows: under wine: the same rates and the same simulation as on Linux"
}

check_bill() {
  local machine
  for machine in "${machines[@]}"; do
    "$python" - "$dist/fairwave-$version-linux-$machine.cdx.json" Cargo.lock "$root" <<'END' || fail "bill of materials"
import json, sys, tomllib

text = open(sys.argv[1]).read()
assert sys.argv[3] not in text and "/tmp" not in text, "paths of this machine"
bill = json.loads(text)
locked = {(package["name"], package["version"]) for package in tomllib.load(open(sys.argv[2], "rb"))["package"]}
named = {(part["name"], part["version"]) for part in bill["components"]}
assert bill["bomFormat"] == "CycloneDX" and bill["metadata"]["component"]["name"] == "fairwave-cli"
assert named <= locked, named - locked
assert {"clap", "blake3", "aws-lc-rs", "fairwave-host"} <= {name for name, _ in named}, named
END
    good "bill of materials: $machine: its packages are in Cargo.lock"
  done
}

# The source archive, built in another directory, gives the same bytes.
check_again() {
  local name
  mkdir "$place/again"
  tar --extract --gzip --file "$dist/fairwave-$version-source.tar.gz" --directory "$place/again" --strip-components 1
  (cd "$place/again" && unset CARGO_TARGET_DIR SOURCE_DATE_EPOCH &&
    packaging/build.sh "$tools" "$arch" && packaging/tar.sh "$arch" && packaging/deb.sh "$arch") || fail "the source cannot be built"
  for name in "fairwave-$version-linux-$arch.tar.gz" "libfairwave-$version-linux-$arch.tar.gz" "fairwave_${version}_$(debian_of "$arch").deb"; do
    cmp "$place/again/target/dist/$name" "$dist/$name" || fail "a second build gives another $name"
  done
  good "again: the source archive gives the same tars and Debian package in another directory"
}

check_python() {
  local what=$1 package machine
  "$python" -m venv "$place/$what"
  if [ "$what" = wheel ]; then
    package=$(compgen -G "target/wheels/fairwave-$version-*$arch.whl" | head -1) || true
  else
    package=target/wheels/fairwave-$version.tar.gz
    # Whether the source is whole is what is checked: it is compiled quickly.
    export MATURIN_PEP517_ARGS="--profile dev" CARGO_TARGET_DIR=$root/target/sdist
  fi
  [ -s "$package" ] || fail "$what: target/wheels has none for $arch: \`make wheel\` makes it, or says why not"
  (unset PYO3_NO_PYTHON PYO3_BUILD_EXTENSION_MODULE && "$place/$what/bin/python" -m pip install --quiet "$package")
  unset CARGO_TARGET_DIR
  # In a directory without a fairwave of its own.
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
  if [ "$what" != wheel ]; then return; fi
  for machine in "${machines[@]:1}"; do
    package=$(compgen -G "target/wheels/fairwave-$version-*$machine.whl" | head -1) || fail "wheel: none for $machine"
    "$place/wheel/bin/python" -m zipfile --extract "$package" "$place/wheel-$machine"
    readelf --dyn-syms --wide "$place/wheel-$machine"/fairwave/_core.*.so | grep -q ' PyInit__core$' || fail "$package: no module"
    printf '%s\n' "$(glibc_of "$place/wheel-$machine"/fairwave/_core.*.so)" 2.17 | sort --version-sort --check=quiet || fail "$package: a glibc newer than 2.17"
    skip "wheel: $machine: $(basename "$package") was inspected, and cannot be tried on $arch"
  done
}
check_wheel() { check_python wheel; }
check_sdist() { check_python sdist; }

# Compiled quickly: the build for this machine's libc is what is checked.
check_cargo() {
  "${CARGO:-cargo}" install --quiet --debug --path crates/cli --locked --root "$place/cargo" --target-dir target
  emulator=() seen=""
  mkdir -p "$place/home"
  moves_a_file "$place/home" in_home "$place/home" "$place/cargo/bin/fairwave"
  bash tests/across.sh "$(command_of "$arch")" "$place/cargo/bin/fairwave"
  good "cargo install: moves a file, and trees to and from the static command"
}

# The system calls of macOS, on Linux: a build option for tests.
check_portable() {
  CARGO_TARGET_DIR=target/portable RUSTFLAGS="--cfg fairwave_portable" "${CARGO:-cargo}" build --quiet --locked \
    --package fairwave-cli --no-default-features --features transfer
  bash tests/across.sh "$(command_of "$arch")" target/portable/debug/fairwave
  good "portable: moves trees to and from the static command"
}

# Packed and compiled as crates.io would have them; nothing is uploaded.
check_crates() {
  local crates
  mapfile -t crates < <(sed -n 's/^\(fairwave-[a-z]*\) = {.* version = .*/\1/p' Cargo.toml)
  "${CARGO:-cargo}" publish --dry-run --quiet --locked "${crates[@]/#/--package=}" || fail "crates"
  good "crates: ${crates[*]} can be published"
}

for what in "${wanted[@]}"; do
  declare -F "check_$what" >/dev/null || fail "$what: is none of ${every[*]}"
  "check_$what"
done
say "$passed passed, 0 failed, $skipped skipped"
