#!/usr/bin/env bash
# Run a command of tests and check that it leaves nothing behind: see leftovers.py.
# usage: tests/leftovers.sh [--grace SECONDS] COMMAND...
set -euo pipefail
exec "${PYTHON:-python3}" "$(dirname "$0")/leftovers.py" "$@"
