"""The examples of docs/python.md and docs/studies.md do what the pages say."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import matplotlib.pyplot as plt
import pytest


@pytest.mark.parametrize(("name", "least"), [("docs/python.md", 6), ("docs/studies.md", 3)])
def test_guide__examples_give_what_they_show(
    name: str, least: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = Path(name).read_text()
    blocks = re.findall(r"^```python\n(.*?)^```$", page, flags=re.DOTALL | re.MULTILINE)
    assert len(blocks) >= least
    monkeypatch.setenv("OUT", str(tmp_path))
    names: dict[str, object] = {}
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    for number, block in enumerate(blocks, 1):
        examples = doctest.DocTestParser().get_doctest(block, names, f"block {number}", name, 0)
        assert examples.examples, f"block {number} has no >>>"
        runner.run(examples, clear_globs=False)
        names = examples.globs
    plt.close("all")
    assert runner.summarize(verbose=False).failed == 0
