#!/usr/bin/env bash
# The long counts: thousands of random networks, many more cases a property.
set -euo pipefail
export FAIRWAVE_INSTANCES=${FAIRWAVE_INSTANCES:-1300} PROPTEST_CASES=${PROPTEST_CASES:-5000}
set -x
cargo test --locked --release --package fairwave-fluid --test random_instances -- --nocapture
cargo test --locked --release --package fairwave-units --package fairwave-schemes --package fairwave-scenario --package fairwave-sim
# Whole hosts of the protocol on bad networks, a world a seed.
FAIRWAVE_WORLDS=${FAIRWAVE_WORLDS:-5000} cargo test --locked --release --package fairwave-proto --test system -- --nocapture
