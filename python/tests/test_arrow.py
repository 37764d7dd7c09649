"""Tables by the Arrow PyCapsule interface: to polars, pyarrow and pandas, and back."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

import fairwave as fw

MIXED = pd.DataFrame(
    {
        "number": [1.5, np.nan, -0.0],
        "count": np.array([1, -2, 2**62]),
        "small": np.array([1, 2, 3], dtype=np.uint32),
        "flag": [True, False, True],
        "word": ["a,b", None, "Grüße"],
        "name": pd.Categorical(["s1", "s2", "s1"]),
        "": [0.0, 1.0, 2.0],
    }
)


def test_arrow__polars_has_what_pandas_has() -> None:
    polars = pytest.importorskip("polars", reason="polars is not installed: nothing takes the table")
    frame = polars.DataFrame(fw.arrow(MIXED))
    assert frame.columns == list(MIXED.columns)
    assert frame["number"].to_list() == [1.5, None, -0.0]
    assert frame["count"].to_list() == [1, -2, 2**62]
    assert frame["small"].to_list() == [1, 2, 3]
    assert frame["flag"].to_list() == [True, False, True]
    assert frame["word"].to_list() == ["a,b", None, "Grüße"]
    assert frame["name"].cast(polars.String).to_list() == ["s1", "s2", "s1"]


def test_arrow__pyarrow_finds_nothing_wrong_and_takes_it_again() -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed: nothing checks the layout")
    given = fw.arrow(MIXED)
    for _ in range(2):
        table = pyarrow.table(given)
        table.validate(full=True)
        assert table["number"].null_count == 1
        assert table["name"].to_pylist() == ["s1", "s2", "s1"]
    assert pyarrow.schema(given) == pyarrow.table(given).schema
    # Nine rows have two bytes of a bitmap, the second of them with one bit.
    long = fw.arrow({"flag": np.arange(9) % 3 == 0, "gap": np.where(np.arange(9) % 2, np.nan, 1.0)})
    table = pyarrow.table(long)
    table.validate(full=True)
    assert table["flag"].to_pylist() == [at % 3 == 0 for at in range(9)]
    assert table["gap"].null_count == 4


def test_arrow__tables_of_runs_and_sweeps_go_over() -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed: nothing takes the tables")
    run = fw.simulate("five-to-one", model="packet", duration="1 s")
    tables = (run.rates, run.queues, run.windows, run.losses, run.delays, run.round_trips, run.percentiles)
    for frame in (run.sessions, *(table() for table in tables)):
        table = pyarrow.table(fw.arrow(frame))
        table.validate(full=True)
        assert_frame_equal(table.to_pandas(), frame, check_dtype=False, check_categorical=False)
    rows = fw.sweep("five-to-one", set={"options.alpha": [0.05, 0.1]}, seeds=2, model="fluid")
    assert_frame_equal(pyarrow.table(fw.arrow(rows)).to_pandas(), rows, check_dtype=False)


def test_arrow__what_nobody_took_is_freed() -> None:
    before = _resident_bytes()
    for _ in range(200):
        table = fw.arrow({"a": np.zeros(200_000), "b": np.ones(200_000)})  # 3.2 MB
        capsules = table.__arrow_c_stream__(), table.__arrow_c_schema__()
        del table, capsules
    gc.collect()
    assert _resident_bytes() - before < 100e6, "of 640 MB that were made"


def test_arrow__what_was_taken_outlives_the_table() -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed: nothing takes the table")
    given = fw.arrow({"a": np.arange(100_000, dtype=np.float64), "b": ["x"] * 100_000})
    table = pyarrow.table(given)
    column = table["a"]
    del given, table
    gc.collect()
    assert column.to_numpy().sum() == 99_999 * 100_000 / 2


def test_arrow__empty_tables_have_their_columns() -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed: nothing takes the table")
    run = fw.simulate("five-to-one", model="fluid", duration="1 s")
    table = pyarrow.table(fw.arrow(run.losses()))
    assert (table.num_rows, table.column_names) == (0, ["time_s", "session", "kind"])
    assert len(fw.arrow({})) == 0


@pytest.mark.parametrize(
    ("columns", "error", "words"),
    [
        ({"a": [1.0], "b": [1.0, 2.0]}, ValueError, "1 rows, and 2 in column"),
        ({"a": np.zeros((2, 2))}, ValueError, "2 dimensions"),
        ({"a": pd.to_datetime(["2026-01-01"])}, TypeError, "is not supported: use numbers"),
        ({"a": [object()]}, TypeError, "not a number or a string"),
        ({"a": np.array([2**63], dtype=np.uint64)}, ValueError, "64-bit"),
    ],
)
def test_arrow__says_what_is_wrong(columns: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        fw.arrow(columns)


def test_summarise__takes_frames_of_polars() -> None:
    polars = pytest.importorskip("polars", reason="polars is not installed: it gives no frame")
    pytest.importorskip("pyarrow", reason="pandas takes other frames by way of pyarrow")
    rows = fw.sweep("five-to-one", set={"options.alpha": [0.05, 0.1]}, seeds=2, model="fluid")
    assert_frame_equal(fw.summarise(polars.DataFrame(fw.arrow(rows))), fw.summarise(rows), check_dtype=False)
    ax = fw.plot_sweep(polars.DataFrame(fw.arrow(rows)), x="options.alpha")
    assert len(ax.lines) == 1


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
