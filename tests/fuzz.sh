#!/usr/bin/env bash
# Looks for inputs that break what reads them, for some time a target: libFuzzer follows the code (bolero brings it, a C++
# compiler builds it). What it finds goes to __fuzz__ beside the file that has the target: inputs that reach something new into
# the target's corpus, inputs that break it into its crashes; `cargo test` runs both again.
# usage: tests/fuzz.sh [SECONDS A TARGET] [TARGET...]
set -euo pipefail
seconds=${1:-60}
shift || true
wanted=" $* "

flags="--cfg fuzzing --cfg fuzzing_libfuzzer -Cpasses=sancov-module"
for flag in inline-8bit-counters level=4 pc-table trace-compares stack-depth; do
  flags+=" -Cllvm-args=-sanitizer-coverage-$flag"
done
export BOLERO_FUZZER=libfuzzer

# Where targets are: crate, file, what cargo builds of it, and what stands before the targets' names.
places=(
  "proto tests/fuzz.rs --test=fuzz"
  "proto tests/fuzz_host.rs --test=fuzz_host"
  "host src/fuzz.rs --lib fuzz::"
  "host tests/fuzz.rs --test=fuzz"
  "files src/fuzz.rs --lib fuzz::"
  "cli src/fuzz.rs --bin=fairwave fuzz::"
)
for place in "${places[@]}"; do
  read -r crate file what module <<< "$place"
  targets=$(sed -n '/^#\[test\]/{n;s/^fn \(.*\)() {/\1/p}' "crates/$crate/$file")
  build=(env "RUSTFLAGS=$flags" cargo test --locked --package "fairwave-$crate" "$what" --profile fuzz
         --target-dir target/fuzz --target "$(rustc -vV | sed -n 's/^host: //p')" --no-run)
  binary=
  for target in $targets; do
    [[ $wanted == "  " || $wanted == *" $target "* ]] || continue
    if [[ -z $binary ]]; then
      "${build[@]}"
      binary=$("${build[@]}" --message-format json 2>/dev/null | grep '"test":true},' |
        sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | tail -1)
    fi
    name=${module//::/__}$target
    home=$PWD/crates/$crate/$(dirname "$file")/__fuzz__/$name
    mkdir -p "$home/corpus" "$home/crashes"
    BOLERO_LIBFUZZER_ARGS="$home/corpus $home/crashes -artifact_prefix=$home/crashes/ -max_total_time=$seconds -max_len=1500 -len_control=0 -timeout=10" \
      "$binary" --exact "$module$target" --nocapture --quiet --test-threads 1
    rmdir --ignore-fail-on-non-empty "$home/crashes"
  done
done
