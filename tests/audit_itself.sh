#!/usr/bin/env bash
# tests/audit.sh finds what a database says of a crate that is built in, and says so where there is none to ask.
# usage: tests/audit_itself.sh CARGO_DENY
set -euo pipefail
deny=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
version=$(sed -n '/^name = "data-encoding"$/{n;s/^version = "\(.*\)"$/\1/p}' Cargo.lock)

# A database with one advisory, for the versions of a crate that are not in a range.
database() {
  rm -rf "$dir/db"
  mkdir -p "$dir/db/crates/data-encoding"
  cat > "$dir/db/crates/data-encoding/RUSTSEC-2020-9999.md" <<ADVISORY
\`\`\`toml
[advisory]
id = "RUSTSEC-2020-9999"
package = "data-encoding"
date = "2020-01-01"
categories = ["memory-exposure"]

[versions]
patched = ["$1"]
\`\`\`

# An advisory of a test

There is no such weakness.
ADVISORY
  git -C "$dir/db" init --quiet
  git -C "$dir/db" add --all
  git -C "$dir/db" -c user.name=test -c user.email=test@localhost commit --quiet --message test
}

# Runs the audit: it ends with a status and says something.
expect() {
  local status=$1 says=$2 code=0
  shift 2
  env "$@" bash tests/audit.sh "$deny" > "$dir/said" 2>&1 || code=$?
  if [[ $code != "$status" ]] || ! grep -q "$says" "$dir/said"; then
    cat "$dir/said"
    echo "make audit: status $code where $status was expected, with \"$says\""
    exit 1
  fi
}

database ">$version"
expect 1 RUSTSEC-2020-9999 AUDIT_DB="$dir/db"
database ">=$version"
expect 0 "advisories ok" AUDIT_DB="$dir/db"
mkdir "$dir/empty"
expect 2 "is no clone of an advisory database" AUDIT_DB="$dir/empty"
# Nothing can be fetched through a proxy that is not there.
expect 2 "nothing was looked at" CARGO_HOME="$dir/empty" https_proxy=http://127.0.0.1:1 AUDIT_DB=
