"""The notebooks of docs/notebooks run, and show what is stored in them.

`STORE=1 python -m pytest python/tests/test_notebooks.py` runs them and stores what they give.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs/notebooks").glob("*.ipynb"))


# Libraries of the runner warn of each other.
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook__gives_what_it_shows(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed: nothing reads notebooks")
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed: nothing runs notebooks")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed: nothing runs notebooks")
    # Pictures are those of a notebook, and the package is that of this tree.
    monkeypatch.delenv("MPLBACKEND", raising=False)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    stored = nbformat.read(path, as_version=4)
    shown = [_told(cell) for cell in stored.cells]
    nbclient.NotebookClient(stored, timeout=300, kernel_name="python3", record_timing=False).execute(
        cwd=str(path.parent)
    )
    errors = [output for cell in stored.cells for output in cell.get("outputs", []) if output.output_type == "error"]
    assert not errors
    assert sum("image/png" in kinds for _, kinds in map(_told, stored.cells)) >= 1, "a notebook shows a picture"
    if os.environ.get("STORE"):
        _store(nbformat, stored, path)
    else:
        for cell, before in zip(stored.cells, shown, strict=True):
            assert _told(cell) == before, f"STORE=1 stores what this cell gives now:\n{cell.source}"


def test_notebooks__are_three_and_linked() -> None:
    assert len(NOTEBOOKS) == 3
    pages = "".join(page.read_text() for page in (Path(__file__).parents[2] / "docs/tutorials").glob("*.md"))
    for path in NOTEBOOKS:
        assert f"(../notebooks/{path.name})" in pages


def _told(cell: Any) -> tuple[str, list[str]]:
    """What a cell shows as text, and the kinds of all that it shows: pictures differ by versions of fonts."""
    text, kinds = "", []
    for output in cell.get("outputs", []):
        text += output.get("text", "")
        data = output.get("data", {})
        kinds += sorted(data)
        text += data.get("text/plain", "") if "image/png" not in data else ""
    return re.sub(r"0x[0-9a-f]+", "0x...", text), kinds


def _store(nbformat: Any, notebook: Any, path: Path) -> None:
    # Versions of the runner are nobody's concern.
    notebook.metadata.language_info = {"name": "python"}
    for cell in notebook.cells:
        cell.metadata.clear()
    path.write_text(nbformat.writes(notebook, indent=1) + "\n")
