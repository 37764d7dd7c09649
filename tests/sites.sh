#!/usr/bin/env bash
# Moves files as docs/how-to/hpc-sites.md says, in imitations of sites: a user without root and with a login node's limits
# in one network namespace, the site in another, and firewalls that let little through. Needs root, iptables and sshd.
# usage: tests/sites.sh FAIRWAVE
set -euo pipefail
fairwave=$(realpath "$1")
place=$(mktemp -d)
user=sites$$-user site=sites$$-site
started=()
cleanup() {
  for pid in ${started[@]+"${started[@]}"}; do kill "$pid" 2>/dev/null || true; done
  ip netns delete "$user" 2>/dev/null || true
  ip netns delete "$site" 2>/dev/null || true
  rm -rf "$place"
}
trap cleanup EXIT
fail() { echo "sites: $*" >&2; exit 1; }
good() { echo "good: $*" >&2; }

chmod 755 "$place"
mkdir -p "$place/home/tree/odd é" "$place/far" "$place/keys"
head -c 5000000 /dev/urandom > "$place/home/tree/big.bin"
printf x > "$place/home/tree/odd é/"$'two\nlines'
install -m 755 "$fairwave" "$place/fairwave"
chown -R nobody "$place/home" "$place/far"

ip netns add "$user"
ip netns add "$site"
ip -n "$user" link add cable type veth peer name cable netns "$site"
ip -n "$user" address add 10.217.0.1/24 dev cable
ip -n "$site" address add 10.217.0.2/24 dev cable
for end in "$user" "$site"; do for card in lo cable; do ip -n "$end" link set "$card" up; done; done
# A firewall of the site: pairs of protocol and ports that it lets in.
opens() {
  ip netns exec "$site" iptables --flush INPUT
  ip netns exec "$site" iptables --policy INPUT DROP
  ip netns exec "$site" iptables --append INPUT --in-interface lo --jump ACCEPT
  while [ $# != 0 ]; do
    ip netns exec "$site" iptables --append INPUT --protocol "$1" --destination-port "$2" --jump ACCEPT
    shift 2
  done
}
# A command of a user without rights at an end: namespace, home, command.
at() {
  local where=$1 home=$2
  shift 2
  ip netns exec "$where" setpriv --reuid nobody --clear-groups env -i HOME="$home" XDG_STATE_HOME="$home/state" XDG_RUNTIME_DIR="$home" \
    PATH="$place:/usr/bin:/bin" "$@"
}
# Serves the tree at the site with the options that are given, and gets it.
moves() {
  local name=$1 server
  shift
  rm -rf "$place/far/ticket" "$place/home/there"
  cp -r "$place/home/tree" "$place/far/"
  chown -R nobody "$place/far"
  at "$site" "$place/far" fairwave serve "$place/far/tree" --ticket "$place/far/ticket" "$@" > "$place/said" 2>&1 &
  server=$!
  started+=("$server")
  for _ in $(seq 1200); do if [ -s "$place/far/ticket" ] || ! kill -0 "$server" 2>/dev/null; then break; fi; sleep 0.1; done
  [ -s "$place/far/ticket" ] || { cat "$place/said" >&2; fail "$name: no ticket"; }
  at "$user" "$place/home" bash -c 'ulimit -t 60 -n 64 -v 4000000 && exec nice -n 19 "$@"' login \
    fairwave get "@$place/far/ticket" "$place/home/there" --limit "500 Mb/s" --quiet || fail "$name: get failed"
  kill "$server" && { wait "$server" || true; }
  diff -r "$place/home/tree" "$place/home/there/tree" || fail "$name: trees differ"
  good "$name"
}

ip netns exec "$site" sysctl -qw net.ipv4.ip_unprivileged_port_start=443
opens tcp 443
moves "only TCP port 443 is open, at a login node with limits" --listen 10.217.0.2:443
opens udp 50000:51000
moves "only UDP ports 50000 to 51000 are open" --port 50000-51000

# A login node whose sshd is all that can be reached: nothing is installed there, then commands are not allowed.
opens tcp 22
if [ ! -x /usr/sbin/sshd ]; then echo "skipped: only TCP port 22 is open: no sshd here" >&2; exit; fi
for key in host user; do ssh-keygen -q -t ed25519 -N '' -f "$place/keys/$key"; done
printf '#!/bin/sh\ncd "%s" && exec env -i HOME="%s" XDG_RUNTIME_DIR="%s" PATH=/usr/bin:/bin SSH_CONNECTION="$SSH_CONNECTION" sh -c "$SSH_ORIGINAL_COMMAND"\n' \
  "$place/far" "$place/far" "$place/far" > "$place/keys/shell"
chmod 755 "$place/keys/shell"
mkdir -p /run/sshd
ssh="ssh -F none -i $place/keys/user -o UserKnownHostsFile=$place/keys/known -o StrictHostKeyChecking=accept-new -o LogLevel=ERROR"
# What each connection runs, the name of the row, then the options of cp.
copies() {
  local command=$1 name=$2 sshd
  shift 2
  printf '%s\n' "HostKey $place/keys/host" "AuthorizedKeysFile $place/keys/user.pub" "StrictModes no" "PermitRootLogin yes" \
    "UsePAM no" "PidFile $place/keys/pid" "ForceCommand $command" "Subsystem sftp internal-sftp" > "$place/keys/config"
  rm -rf "$place/far" "$place/keys/pid"
  mkdir "$place/far"
  ip netns exec "$site" /usr/sbin/sshd -D -f "$place/keys/config" 2>/dev/null &
  sshd=$!
  started+=("$sshd")
  for _ in $(seq 1200); do if [ -s "$place/keys/pid" ]; then break; fi; sleep 0.1; done
  ip netns exec "$user" env HOME="$place/home" XDG_STATE_HOME="$place/home/root" XDG_RUNTIME_DIR="$place/home" \
    "$place/fairwave" cp --ssh "$ssh" --quiet "$@" "$place/home/tree" "10.217.0.2:$place/far/tree" || fail "$name: cp failed"
  kill "$sshd" && { wait "$sshd" || true; }
  diff -r "$place/home/tree" "$place/far/tree" || fail "$name: trees differ"
  good "$name"
}
copies "$place/keys/shell" "only TCP port 22 is open, and nothing is installed there" --install
[ -x "$(echo "$place"/far/.cache/fairwave/*)" ] || fail "no command in the site's cache"
copies internal-sftp "only sftp is allowed" --carrier sftp
