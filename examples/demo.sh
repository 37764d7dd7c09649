#!/usr/bin/env bash
# Moves a file with a kill and a resume, then simulates three networks as text and as pictures. If the system allows
# namespaces, it also runs real programs over an emulated network.
# usage: [DEMO_MIB=256] examples/demo.sh FAIRWAVE OUT
set -euo pipefail
mkdir -p "$2"
fairwave=$(realpath "$1") out=$2
say() { printf '\n\n== %s\n\n' "$1"; }
fail() { printf 'demo: %s\n' "$1" >&2; exit 1; }

# --- 1. A file ---------------------------------------------------------------------------------------------------

mib=${DEMO_MIB:-256}
# The whole file takes about four seconds at this rate.
rate="$((mib * 2)) Mb/s"
place=$(mktemp -d "$(realpath "$out")/file-XXXXXX")
server='' client=''
clean_up() {
  for process in $client $server; do
    kill -KILL "$process" 2>/dev/null || true
    { wait "$process" || true; } 2>/dev/null
  done
  rm -rf "$place"
}
trap clean_up EXIT
# Keeps tickets, keys and sockets of the demo apart from the user's.
export XDG_STATE_HOME=$place/state XDG_RUNTIME_DIR=$place/run
mkdir -m 700 "$XDG_RUNTIME_DIR"

# The last number with this name in the transfer's log, or 0.
number() {
  local all
  all=$(sed -n "s/.*\"$1\":\([0-9]*\).*/\1/p" "$place/log" | tail -n 1)
  echo "${all:-0}"
}
mega() { echo "$(($1 / 1000000)) MB"; }
sum() { sha256sum "$1" | cut -d ' ' -f 1; }

say "1. A file of $mib MiB over UDP, killed halfway and resumed"
head -c "${mib}M" /dev/urandom > "$place/big.bin"
"$fairwave" serve "$place/big.bin" --listen 127.0.0.1:0 --ticket "$place/ticket" 2> "$place/server" &
server=$!
for _ in $(seq 600); do
  [ ! -s "$place/ticket" ] || break
  kill -0 "$server" 2>/dev/null || fail "the server ended: $(cat "$place/server")"
  sleep 0.1
done
[ -s "$place/ticket" ] || fail "the server wrote no ticket in 60 s"
echo "fairwave serve big.bin --ticket ticket one process offers it, and writes a ticket"

get=("$fairwave" get "@$place/ticket" "$place/there" --limit "$rate" --json)
echo "fairwave get @ticket there             another fetches it, at $rate"
"${get[@]}" > "$place/log" 2> "$place/said" &
client=$!
# A third of the file is enough to show what is kept.
while [ "$(number bytes_done)" -lt $((mib * 1048576 / 3)) ]; do
  kill -0 "$client" 2>/dev/null || fail "the first transfer ended before it could be killed: $(cat "$place/said")"
  sleep 0.1
done
kill -KILL "$client"
{ wait "$client" || true; } 2>/dev/null
client=''
kept=$(number bytes_done)
echo "kill -9                                killed after $(mega "$kept") of $(mega $((mib * 1048576))) were written and verified"
[ ! -e "$place/there/big.bin" ] || fail "an incomplete file has its final name"

echo "fairwave get @ticket there             the same command again"
"${get[@]}" > "$place/log" 2> "$place/said" || fail "the second transfer failed: $(cat "$place/said")"
resumed=$(number bytes_resumed)
moved=$(($(number bytes) - resumed))
echo "                                       $(mega "$resumed") were kept, $(mega "$moved") were fetched now"
[ "$resumed" -ge "$kept" ] || fail "$(mega "$kept") had arrived before the kill, and only $(mega "$resumed") were kept"
[ "$(sum "$place/big.bin")" = "$(sum "$place/there/big.bin")" ] || fail "the two files differ"
echo "sha256sum big.bin there/big.bin        the same: $(sum "$place/there/big.bin")"
kill -TERM "$server"
{ wait "$server" || true; } 2>/dev/null
server=''

# --- 2. Three networks -------------------------------------------------------------------------------------------

say "2. Five sources with five RTTs, one sink: each gets a fifth"
"$fairwave" simulate scenarios/five-to-one.toml --model fluid --out "$out/five-to-one"

say "3. The 16-node network of Wu & Chien 2006, Table 2: total, the four fastest, and a misprint"
"$fairwave" simulate scenarios/sixteen-nodes.toml --model fluid --out "$out/sixteen-nodes"
"$fairwave" papers run 000/table2

say "4. 1024 end nodes without coordination: the distance to the optimum falls"
"$fairwave" simulate scenarios/lambda-1024.toml --model fluid --out "$out/lambda-1024"

# --- 3. Real programs --------------------------------------------------------------------------------------------

say "5. Real programs: five senders with RTTs of 1 to 140 ms into one sink, GTP and then the kernel's CUBIC, 10 s each"
wired() {
  "$fairwave" testbed run scenarios/002-fig-ix-8.toml --scheme "$1" --scale 0.5 --duration "10 s" --json --quiet \
    --out "$out/testbed-$2" 2> "$place/said"
}
if ! wired gtp gtp > "$place/gtp" || ! wired kernel:cubic cubic > "$place/cubic"; then
  # No namespaces, no CUBIC, or a busy machine: the message is the reason.
  echo "skipped: $(tail -n 2 "$place/said" | head -n 1)"
else
  "${PYTHON:-python3}" - "$place/gtp" "$place/cubic" << 'TABLE'
import json, sys
gtp, cubic = (json.load(open(name)) for name in sys.argv[1:])
print(f"  {'from':<6} {'RTT':>7} {'fair':>12} {'GTP':>12} {'CUBIC':>12}   final rates, packets on the wire")
for one, other in zip(gtp["sessions"], cubic["sessions"]):
    rates = [one["max_min_bps"], one["final_wire_rate_bps"], other["final_wire_rate_bps"]]
    print(f"  {one['from']:<6} {one['rtt_s'] * 1e3:>4.0f} ms" + "".join(f" {rate / 1e6:>7.1f} Mb/s" for rate in rates))
jain = [run["metrics"]["jain"] for run in (gtp, cubic)]
print(f"  Jain's index {'':>15} {jain[0]:>11.4f}  {jain[1]:>11.4f}   the relay was late by "
      f"{gtp['lateness']['late_half_us']:.0f} us (half)")
TABLE
fi

say "Pictures"
find "$out" -name '*.svg' | sort
