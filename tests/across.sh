#!/usr/bin/env bash
# Moves a tree with odd names between two builds of the command, both ways, by UDP and by TCP, and compares contents,
# modes, times and links of both ends. A build may be several words, such as an emulator and a command of another machine.
# usage: tests/across.sh "COMMAND" "OTHER"
set -euo pipefail
read -ra one <<< "$1"
read -ra other <<< "$2"
place=$(mktemp -d)
server=
stop() {
  if [ -z "$server" ]; then return; fi
  kill "$server" 2>/dev/null || true
  wait "$server" 2>/dev/null || true
  server=
}
trap 'stop; rm -rf "$place"' EXIT
export HOME=$place/home XDG_STATE_HOME=$place/home XDG_RUNTIME_DIR=$place/home
mkdir -m 700 "$HOME"

tree=$place/tree
mkdir -p "$tree/deep/er/und" "$tree/empty" "$tree/with space"
head -c 5000000 /dev/urandom > "$tree/big.bin"
: > "$tree/nothing"
printf x > "$tree/with space/ä ☂ \$(x) \"quoted\".txt"
printf y > "$tree/with space/two"$'\n'"lines"
printf z > "$tree/deep/er/und/-dash"
truncate -s 3M "$tree/holes" && printf end >> "$tree/holes"
chmod 750 "$tree/deep/er/und/-dash" && touch -d 2001-02-03T04:05:06.789Z "$tree/nothing"
ln -s ../big.bin "$tree/deep/link"
sums() {
  (cd "$1" && find . -type f -print0 | sort -z | xargs -0 sha256sum --zero &&
    find . \( -type f -printf '%p %m %T@\0' -o -printf '%p %y %l\0' \) | sort -z) | tr '\0' '\n'
}
sums "$tree" > "$place/sums"

# DIRECTION CARRIER, then the words of the server and, after --, those of the client.
moves() {
  local direction=$1 carrier=$2 serving=() there=$place/there
  shift 2
  while [ "$1" != -- ]; do serving+=("$1"); shift; done
  shift
  rm -rf "$there" "$place/ticket"
  "${serving[@]}" serve "$tree" --listen 127.0.0.1:0 --ticket "$place/ticket" > "$place/served" 2>&1 &
  server=$!
  for _ in $(seq 1200); do
    if [ -s "$place/ticket" ] || ! kill -0 "$server" 2>/dev/null; then break; fi
    sleep 0.1
  done
  if [ ! -s "$place/ticket" ]; then cat "$place/served" >&2; echo "across: $direction: no ticket" >&2; exit 1; fi
  timeout 120 "$@" get "@$place/ticket" "$there" --carrier "$carrier" --quiet
  stop
  sums "$there/tree" | diff "$place/sums" - >&2 || { echo "across: $direction by $carrier: trees differ" >&2; exit 1; }
  echo "good: $direction by $carrier: $(wc -l < "$place/sums") hashes, modes and times are equal" >&2
}
for carrier in udp tcp; do
  moves "\"$1\" to \"$2\"" "$carrier" "${one[@]}" -- "${other[@]}"
  moves "\"$2\" to \"$1\"" "$carrier" "${other[@]}" -- "${one[@]}"
done
