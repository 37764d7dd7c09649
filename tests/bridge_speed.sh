#!/usr/bin/env bash
# How fast a bridge is between two namespaces joined by a veth pair, and TCP beside it, way by way. As root.
# usage: tests/bridge_speed.sh FAIRWAVE [MTU] [SECONDS]      (the library of `fairwave run` lies beside the command)
set -euo pipefail
fairwave=$(realpath "$1") mtu=${2:-1500} seconds=${3:-5}
ends=$(cd "$(dirname "$0")" && pwd)/bridge_speed.py
dir=$(mktemp -d)
here=fw-here-$$ there=fw-there-$$ pids=()
cleanup() {
  for pid in ${pids[@]+"${pids[@]}"}; do kill "$pid" 2>/dev/null || true; done
  ip netns del "$here" 2>/dev/null || true
  ip netns del "$there" 2>/dev/null || true
  rm -rf "$dir"
}
trap cleanup EXIT
export XDG_STATE_HOME=$dir XDG_RUNTIME_DIR=$dir
umask 077

ip netns add "$here"
ip netns add "$there"
ip link add fw0 mtu "$mtu" netns "$here" type veth peer name fw0 mtu "$mtu" netns "$there"
ip -n "$here" addr add 10.77.0.1/24 dev fw0
ip -n "$there" addr add 10.77.0.2/24 dev fw0
for end in "$here" "$there"; do
  ip -n "$end" link set lo up
  ip -n "$end" link set fw0 up
done
ip netns exec "$there" python3 "$ends" serve 0.0.0.0 8123 &
pids+=($!)
ip netns exec "$there" "$fairwave" bridge --to 127.0.0.1:8123 --listen 10.77.0.2:8642 > "$dir/ticket" 2> "$dir/said" &
pids+=($!)
for _ in $(seq 100); do if [ -s "$dir/ticket" ]; then break; fi; sleep 0.1; done
if [ ! -s "$dir/ticket" ]; then cat "$dir/said" >&2; exit 1; fi

echo "MTU $mtu, load $(cut -d' ' -f1 /proc/loadavg)"
for what in down up echo; do
  count=$seconds
  if [ "$what" = echo ]; then count=2000; fi
  bridge=$(ip netns exec "$here" "$fairwave" run --map "10.9.9.9:8123=@$dir/ticket" -- python3 "$ends" "$what" 10.9.9.9 8123 "$count")
  tcp=$(ip netns exec "$here" python3 "$ends" "$what" 10.77.0.2 8123 "$count")
  echo "$what: bridge $bridge; TCP $tcp"
done
