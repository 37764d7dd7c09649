"""What all tests share."""

from __future__ import annotations

import signal
from pathlib import Path

import matplotlib
import pytest

# A job in the background is born with Ctrl-C ignored: tests of Ctrl-C would wait for ever there.
signal.signal(signal.SIGINT, signal.default_int_handler)

matplotlib.use("Agg")

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in the repository's root, as the guide and the shipped scenarios expect."""
    monkeypatch.chdir(ROOT)


@pytest.fixture(autouse=True)
def _with_a_state_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep keys and tickets out of the user's own directory."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
