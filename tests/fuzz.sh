#!/usr/bin/env bash
# Looks for datagrams that break what reads them, for some time a target; what it finds goes to crates/proto/tests/__fuzz__,
# where `cargo test` runs it again. With a nightly toolchain and cargo-bolero, libFuzzer follows the code; without them
# inputs are random.
# usage: tests/fuzz.sh [SECONDS A TARGET]
set -euo pipefail
seconds=${1:-60}
file=crates/proto/tests/fuzz.rs
targets=$(sed -n '/^#\[test\]/{n;s/^fn \(.*\)() {/\1/p}' $file)

if rustup run nightly rustc --version >/dev/null 2>&1 && cargo bolero --version >/dev/null 2>&1; then
  for target in $targets; do
    cargo +nightly bolero test --package fairwave-proto --sanitizer NONE --time "${seconds}s" "$target"
  done
else
  echo "no nightly toolchain, or no cargo-bolero (cargo install cargo-bolero): inputs are random"
  BOLERO_RANDOM_TEST_TIME_MS=${seconds}000 BOLERO_RANDOM_ITERATIONS=1000000000 \
    cargo test --locked --release --package fairwave-proto --test fuzz -- --nocapture
fi
