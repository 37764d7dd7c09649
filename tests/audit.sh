#!/usr/bin/env bash
# Looks for known vulnerabilities of what is built in, by RustSec's database: the clone of it that AUDIT_DB names, or the one
# that is fetched. Exit code 0: none; 1: some, which are printed; 2: there is no database that can be asked.
# usage: [AUDIT_DB=DIRECTORY] tests/audit.sh CARGO_DENY
set -euo pipefail
deny=$1
# The directory that cargo-deny keeps the database of https://github.com/RustSec/advisory-db in: the end is a hash of that.
name=advisory-db-3157b0e258782691
fetched=${CARGO_HOME:-$HOME/.cargo}/advisory-dbs/$name
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# cargo-deny says 1 for whatever is wrong: only what it has to say of the crates counts as that.
check() {
  local code=0
  "$deny" "$@" check advisories 2>&1 | tee "$dir/said" || code=$?
  if grep -q '^advisories ok' "$dir/said"; then return 0; fi
  if grep -q '^advisories FAILED' "$dir/said"; then return 1; fi
  echo "the advisory database cannot be read (cargo-deny ended with status $code)" >&2
  return 2
}

if [[ -n ${AUDIT_DB:-} ]]; then
  if ! git -C "$AUDIT_DB" rev-parse --verify --quiet HEAD >/dev/null; then
    echo "AUDIT_DB=$AUDIT_DB: is no clone of an advisory database" >&2
    echo "hint: git clone https://github.com/RustSec/advisory-db, where that can be reached" >&2
    exit 2
  fi
  mkdir "$dir/databases"
  ln -s "$(cd "$AUDIT_DB" && pwd)" "$dir/databases/$name"
  sed "s|^\[advisories\]\$|&\ndb-path = \"$dir/databases\"|" deny.toml > "$dir/deny.toml"
  echo "by the database of $(git -C "$AUDIT_DB" show -s --format=%cs HEAD) in $AUDIT_DB"
  check --offline --config "$dir/deny.toml"
elif "$deny" fetch db >"$dir/fetch" 2>&1; then
  check
elif git -C "$fetched" rev-parse --verify --quiet HEAD >/dev/null 2>&1; then
  echo "the database cannot be fetched; by the one of $(git -C "$fetched" show -s --format=%cs HEAD), which was fetched before"
  check --offline
else
  sed 's/^/  /' "$dir/fetch" >&2
  echo "nothing was looked at: there is no advisory database here, and it cannot be fetched" >&2
  echo "hint: AUDIT_DB=DIRECTORY make audit, with a clone of https://github.com/RustSec/advisory-db" >&2
  exit 2
fi
