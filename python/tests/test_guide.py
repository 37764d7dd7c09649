"""The Python examples of the pages below docs/ do what the pages show."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

PYTHON = re.compile(r"^```(?:python|pycon)\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
ROOT = Path(__file__).resolve().parents[2]
PAGES = {str(path.relative_to(ROOT)): PYTHON.findall(path.read_text()) for path in sorted(ROOT.glob("docs/**/*.md"))}


@pytest.mark.parametrize("name", [name for name, blocks in PAGES.items() if any(">>> " in block for block in blocks)])
def test_page__examples_give_what_they_show(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUT", str(tmp_path))
    names: dict[str, object] = {}
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    for number, block in enumerate(PAGES[name], 1):
        if ">>> " in block:
            examples = doctest.DocTestParser().get_doctest(block, names, f"block {number}", name, 0)
            runner.run(examples, clear_globs=False)
            names = examples.globs
    plt.close("all")
    assert runner.summarize(verbose=False).failed == 0


@pytest.mark.parametrize("name", [name for name, blocks in PAGES.items() if blocks])
def test_page__python_without_prompts_is_valid(name: str) -> None:
    for block in PAGES[name]:
        if ">>> " not in block:
            compile(block, name, "exec")


def test_pages__are_found() -> None:
    assert {"docs/tutorials/write-a-rule.md", "docs/how-to/cluster-study.md"} <= PAGES.keys()
