"""The paper about Tally is built of what the tree gives."""

import subprocess
import sys
from pathlib import Path

from test_pages import command
from waiting import LIMIT_S


def test_paper__numbers_are_fresh_and_it_builds(tmp_path: Path) -> None:
    call = [sys.executable, "papers/tally/build.py", str(command()), "--check", "--out", str(tmp_path)]
    done = subprocess.run(call, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "tally.pdf").read_bytes().startswith(b"%PDF-")
