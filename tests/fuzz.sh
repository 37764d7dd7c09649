#!/usr/bin/env bash
# Looks for datagrams that break what reads them, for some time a target: libFuzzer follows the code (bolero brings it, a C++
# compiler builds it). What it finds goes to tests/__fuzz__ of the crate: inputs that reach something new into a target's
# corpus, inputs that break it into its crashes; `cargo test` runs both again. The crates are those whose tests/fuzz.rs has
# the targets.
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

for crate in proto host; do
  targets=$(sed -n '/^#\[test\]/{n;s/^fn \(.*\)() {/\1/p}' crates/$crate/tests/fuzz.rs)
  build=(env "RUSTFLAGS=$flags" cargo test --locked --package fairwave-$crate --test fuzz --profile fuzz
         --target-dir target/fuzz --target "$(rustc -vV | sed -n 's/^host: //p')" --no-run)
  binary=
  for target in $targets; do
    [[ $wanted == "  " || $wanted == *" $target "* ]] || continue
    if [[ -z $binary ]]; then
      "${build[@]}"
      binary=$("${build[@]}" --message-format json 2>/dev/null | sed -n 's/.*"executable":"\([^"]*\/fuzz-[^"]*\)".*/\1/p')
    fi
    home=$PWD/crates/$crate/tests/__fuzz__/$target
    mkdir -p "$home/corpus" "$home/crashes"
    BOLERO_LIBFUZZER_ARGS="$home/corpus $home/crashes -artifact_prefix=$home/crashes/ -max_total_time=$seconds -max_len=1500 -timeout=10" \
      "$binary" --exact "$target" --nocapture --quiet --test-threads 1
    rmdir --ignore-fail-on-non-empty "$home/crashes"
  done
done
