#!/usr/bin/env bash
# The runner that cargo calls for each test binary, in its crate's directory: the binaries of one part of the crates run,
# the others are passed over. Cargo itself cannot select some crates without building them with other features.
# usage: tests/part.sh files|hosts|cores BINARY ARGUMENT...
set -euo pipefail
tests=$(dirname "$0") wanted=$1
shift
case $(basename "$PWD") in
  files) part=files ;;
  # Every test of these runs in virtual time.
  units|schemes|node|proto|scenario|sim|fluid|catalogue|study) part=cores ;;
  *) part=hosts ;;
esac
[ "$part" = "$wanted" ] || exit 0
if [ "$part" = cores ]; then exec "$tests/once.sh" "$@"; fi
exec "$@"
