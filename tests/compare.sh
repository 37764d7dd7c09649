#!/usr/bin/env bash
# Fairwave beside what else carries bytes, in one run on one machine, as Markdown tables on standard output. Needs root,
# ethtool and iperf3 (Debian has both); other peers are taken from FAIRWAVE_PEERS, a directory with peer-quinn, peer-s2n,
# peer-udt and peer-srt, where it is set: `make compare` builds them from peers/. Keep the machine quiet meanwhile.
# usage: tests/compare.sh [--seconds N] [--repeat N] [--only veth|paced|loss|sink] [--peers NAME,...]
#        tests/compare.sh --only bad-paths [--paths clean,late,loss-1,loss-5,loss-30,jumps]    (65 to 80 min; 6 with
#            --seconds 12 --repeat 1)
#        tests/compare.sh --only neighbours [--rtts MS,...] [--buffers BDP,...] [--counts N,...]    (half an hour)
#        tests/compare.sh --only against --against PROGRAM [--worlds 1500,9000,uncut] [--words "--plain"]    (another
#            build of the command, pair by pair over a veth pair: whether a change costs speed; 4 min)
set -euo pipefail
cd "$(dirname "$0")/.."
command -v ethtool >/dev/null || { echo "compare: ethtool is not here (Debian: apt-get install ethtool)" >&2; exit 2; }
cargo build --release --locked --quiet --package fairwave-cli
cargo build --release --locked --quiet --package fairwave-wan --example relay
exec python3 tests/compare.py "$@"
