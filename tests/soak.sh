#!/usr/bin/env bash
# The long counts: thousands of random networks, many more cases a property.
set -euo pipefail
export FAIRWAVE_INSTANCES=${FAIRWAVE_INSTANCES:-1300} PROPTEST_CASES=${PROPTEST_CASES:-5000}
set -x
# The release build gives the bytes that the tests recorded.
bash tests/same_bytes.sh target/release/fairwave
FAIRWAVE_CLIMB=${FAIRWAVE_CLIMB:-2000} FAIRWAVE_TALLY=${FAIRWAVE_TALLY:-10000} \
  cargo test --locked --release --package fairwave-schemes --test all tally:: -- --nocapture
# Ten families: 10^6 networks.
FAIRWAVE_FLUID_TALLY=${FAIRWAVE_FLUID_TALLY:-100000} cargo test --locked --release --package fairwave-fluid --test all tally:: -- --nocapture
# s-PERC, which is exact without losses.
FAIRWAVE_FLUID_SPERC=${FAIRWAVE_FLUID_SPERC:-1000} cargo test --locked --release --package fairwave-fluid --test all sperc:: -- --nocapture
cargo test --locked --release --package fairwave-fluid --test all random_instances:: -- --nocapture
# Tally packet by packet: 1024 end nodes.
FAIRWAVE_TALLY_NODES=${FAIRWAVE_TALLY_NODES:-1024} \
  cargo test --locked --release --package fairwave-units --package fairwave-schemes --package fairwave-scenario --package fairwave-sim
# Whole hosts of the protocol on bad networks, a world a seed; overflows are found.
FAIRWAVE_WORLDS=${FAIRWAVE_WORLDS:-5000} cargo test --locked --profile fuzz --package fairwave-proto --test system -- --nocapture
# Mirrors: random sequences of copies, interrupts, changes and deletions.
FAIRWAVE_SEQUENCES=${FAIRWAVE_SEQUENCES:-10000} cargo test --locked --release --package fairwave-files --lib mirror__random -- --nocapture
# Archives of random trees beside rsync's.
FAIRWAVE_TREES=${FAIRWAVE_TREES:-2000} cargo test --locked --release --package fairwave-files --lib archive__random -- --nocapture
# The host runtime and files between namespaces: ends killed 200 times, stops of 28 s, floods of
# 10 s beside a transfer of 1 Gb/s, networks cut for 40 s. As root.
FAIRWAVE_KILLS=${FAIRWAVE_KILLS:-200} FAIRWAVE_STOP_S=${FAIRWAVE_STOP_S:-28} FAIRWAVE_FLOOD_S=${FAIRWAVE_FLOOD_S:-10} \
  FAIRWAVE_FLOOD_MBPS=${FAIRWAVE_FLOOD_MBPS:-1000} FAIRWAVE_LONG=1 \
  cargo test --locked --release --package fairwave-host --package fairwave-files --test all net:: -- --include-ignored --nocapture --test-threads 1
BOLERO_RANDOM_ITERATIONS=${BOLERO_RANDOM_ITERATIONS:-50000} cargo test --locked --release --package fairwave-host --test all fuzz::
# The end node of a machine: a daemon and processes killed, stopped and started 500 times, which takes 20 min.
FAIRWAVE_SOAK=${FAIRWAVE_SOAK:-500} cargo test --locked --release --package fairwave-cli --test all soak -- --nocapture
# A copy whose far end is silent for longer than a session lasts.
FAIRWAVE_LONG=1 cargo test --locked --release --package fairwave-cli --test all could_not_be_heard -- --nocapture
# Calls of libfairwave beside those of TCP.
FAIRWAVE_SEQUENCES=${FAIRWAVE_SEQUENCES:-10000} cargo test --locked --release --package fairwave-capi --test all any_calls -- --nocapture
