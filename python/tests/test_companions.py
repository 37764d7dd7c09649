"""Files that a scenario names, relative to its own."""

from __future__ import annotations

from pathlib import Path

import fairwave as fw

SCENARIO = """
name = "companions"
duration = "2 s"
sample = "10 ms"
scheme = "cubic"
router = [{ name = "r{1..2}" }]
node = [{ name = "a", router = "r1", capacity = "1 Gb/s" }, { name = "b", router = "r2", capacity = "1 Gb/s" }]
link = [
  { from = "r1", to = "r2", capacity = "100 Mb/s", delay = "1 ms", conditions = { trace = "cell.csv" } },
  { from = "r2", to = "r1", capacity = "100 Mb/s", delay = "1 ms" },
]
arrivals = [{ name = "web", from = "a", to = "b", count = 20, rate = "10 Mb/s", sizes = "sizes.csv" }]
"""


def test_files_are_next_to_the_scenario(tmp_path: Path) -> None:
    """Sizes, and a trace that delays packets by 30 ms more, lead to completion times by size."""
    (tmp_path / "cell.csv").write_text("time_s,delay_ms\n0,31\n")
    (tmp_path / "sizes.csv").write_text("0 0\n2000 0.5\n40000 1\n")
    (tmp_path / "a.toml").write_text(SCENARIO)
    run = fw.simulate(tmp_path / "a.toml")
    table = run.completions()
    assert list(table["up_to_bytes"]) == [10_000, 100_000]
    assert table["sessions"].sum() == table["completed"].sum() == 20
    assert (table["completion_p50_s"] > 0.031).all()
    assert (run.sessions["size_bytes"] <= 40_000).all()
    assert (run.sessions["slowdown"] > 1).all()


def test_completions_are_empty_if_no_session_has_a_size() -> None:
    """The columns are there nevertheless."""
    table = fw.simulate("five-to-one", model="fluid", duration="1 s").completions()
    assert table.empty
    assert "slowdown_p99" in table
