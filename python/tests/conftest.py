"""What all tests share."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import pytest

matplotlib.use("Agg")

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in the repository's root, as the guide and the shipped scenarios expect."""
    monkeypatch.chdir(ROOT)
