"""The check that a run of tests leaves nothing behind."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest


def run(script: str, *options: str) -> tuple[int, str]:
    command = ["bash", "tests/leftovers.sh", *options, "sh", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stderr


def test_status__is_that_of_the_command() -> None:
    # Whatever it makes and removes, and whatever child ends before it.
    assert run('true & echo x > "$TMPDIR/x"; mkdir -p "$XDG_RUNTIME_DIR/fairwave"; rm "$TMPDIR/x"') == (0, "")
    assert run("exit 7") == (7, "")
    assert run("kill -TERM $$")[0] == 128 + 15
    missing = subprocess.run(["bash", "tests/leftovers.sh", "/no/such/program"], capture_output=True, check=False)
    assert missing.returncode == 127


@pytest.mark.parametrize(
    ("script", "what"),
    [
        ('echo x > "$TMPDIR/x"', "file tmp/x"),
        ('mkdir -p "$TMPDIR/a/b"', "file tmp/a/b"),
        ('echo x > "$XDG_STATE_HOME/x"', "file state/x"),
        # Out of its session and with another environment.
        ("exec env -i setsid sh -c 'sleep 1000 & exit'", ": sleep 1000"),
    ],
)
def test_leftovers__are_named_and_removed(script: str, what: str) -> None:
    code, said = run(script, "--grace", "0.5")
    assert code == 1
    assert what in said
    if ": sleep" in what:
        pid = next(line for line in said.splitlines() if what in line).split()[1].rstrip(":")
        assert not Path("/proc", pid).exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root")
def test_leftovers__a_mount_is_named_and_undone() -> None:
    code, said = run('mkdir "$TMPDIR/at"; mount -t tmpfs none "$TMPDIR/at"; echo "$TMPDIR" >&2; exit 3')
    place, *lines = said.splitlines()
    assert code == 3
    assert f"  mount {place}/at" in lines
    assert place not in Path("/proc/self/mountinfo").read_text()
    assert not Path(place).exists()
