"""Waiting for events, at any speed of the machine."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

# Limit of every wait: far beyond what a busy machine needs, so a test that reaches it has found a hang.
LIMIT_S = 120


def wait_for(what: str, holds: Callable[[], object]) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + LIMIT_S
    while not holds():
        assert time.monotonic() < deadline, f"not within {LIMIT_S} s: {what}"
        time.sleep(0.005)


def cpu_s(pid: int) -> float:
    """CPU time of a process in user mode: proc(5)."""
    words = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    return int(words[11]) / os.sysconf("SC_CLK_TCK")


def runs_beside(work: Callable[[], object]) -> bool:
    """Whether this thread gets some turns while another one is in the middle of one call."""
    calls, is_over = [0], threading.Event()

    def again() -> None:
        while not is_over.is_set():
            work()
            calls[0] += 1

    worker = threading.Thread(target=again)
    worker.start()
    try:
        deadline = time.monotonic() + LIMIT_S
        while time.monotonic() < deadline:
            before, turns = calls[0], 0
            # A call that holds the interpreter's lock leaves one turn at its end, and one between two calls.
            while calls[0] == before and turns < 6:
                time.sleep(0.001)
                turns += 1
            if calls[0] == before:
                return True
        return False
    finally:
        is_over.set()
        worker.join()
