"""Sweeps: rows, seeds, files, and what goes wrong."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

import fairwave as fw

ALPHA = {"options.alpha": [0.05, 0.1]}


def swept(**more: object) -> pd.DataFrame:
    return fw.sweep("five-to-one", set=ALPHA, seeds=3, model="fluid", **more)  # type: ignore[arg-type]


def test_sweep__has_a_row_a_run_in_the_order_of_the_grid() -> None:
    rows = swept()
    assert rows["options.alpha"].tolist() == [0.05] * 3 + [0.1] * 3
    assert rows["seed"].tolist() == [0, 1, 2] * 2
    assert rows["run"].nunique() == 6
    # Five sessions share 500 Mb/s.
    assert np.allclose(rows["session.s2-d1.final_rate_bps"], 100e6, rtol=0.05)
    assert rows["metrics.converged_s"].nunique() == 6, "starts differ with the seed"


def test_sweep__is_the_same_on_any_number_of_threads_and_again() -> None:
    assert_frame_equal(swept(jobs=1), swept(jobs=3))


def test_sweep__a_row_is_what_simulate_gives() -> None:
    row = swept().iloc[4]
    run = fw.simulate("five-to-one", seed=1, model="fluid", set={"options.alpha": 0.1, "start_jitter": "auto"})
    assert row["metrics.converged_s"] == run.summary["metrics"]["converged_s"]


def test_sweep__keeps_rows_in_a_file_and_goes_on_with_them(tmp_path: Path) -> None:
    out = tmp_path / "r.parquet"
    few = fw.sweep("five-to-one", set={"options.alpha": [0.05]}, seeds=2, model="fluid", out=out)
    assert len(few) == 2
    with pytest.raises(fw.ScenarioError, match="is there already"):
        swept(out=out)
    more = swept(out=out, resume=True)
    assert_frame_equal(more, swept())
    assert_frame_equal(fw.read_parquet(out), more)
    with pytest.raises(fw.ScenarioError, match="another sweep"):
        fw.sweep("five-to-one", seeds=2, model="fluid", duration="3 s", out=out, resume=True)


def test_sweep__files_are_read_by_others(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = swept(out=tmp_path / "r.parquet")
    assert_frame_equal(parquet.read_table(tmp_path / "r.parquet").to_pandas(), rows, check_dtype=False)
    polars = pytest.importorskip("polars")
    assert polars.read_parquet(tmp_path / "r.parquet")["metrics.jain"].to_list() == rows["metrics.jain"].tolist()


def test_sweep__that_was_killed_goes_on_to_the_same_rows(tmp_path: Path) -> None:
    out = tmp_path / "r.parquet"
    call = (
        "fw.sweep('five-to-one', set={'options.alpha': [0.05, 0.1]}, seeds=20, model='fluid', duration='60 s', jobs=1"
    )
    code = f"import fairwave as fw; {call}, out={str(out)!r})"
    child = subprocess.Popen([sys.executable, "-c", code])
    journal, begin = tmp_path / "r.parquet.part", time.monotonic()
    while not journal.exists() or journal.stat().st_size < 20_000:
        assert child.poll() is None, "it ended before it was killed"
        assert time.monotonic() - begin < 60, "it never began"
        time.sleep(0.002)
    child.send_signal(signal.SIGKILL)
    child.wait()
    again = fw.sweep("five-to-one", set=ALPHA, seeds=20, model="fluid", duration="60 s", out=out, resume=True)
    assert_frame_equal(again, fw.sweep("five-to-one", set=ALPHA, seeds=20, model="fluid", duration="60 s"))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ({"set": {"options.alpa": [0.1]}}, 'did you mean "alpha"'),
        ({"set": {"options.alpha": []}}, "no values"),
        ({"set": {"seed": [1]}}, "no parameter"),
        ({"seeds": []}, "no seeds"),
        ({"seeds": [1, 1]}, "twice"),
        ({"seeds": [-1]}, "is not a seed"),
        ({"jobs": 0}, "jobs: 0"),
        ({"resume": True}, "nothing to go on with"),
        ({"model": "gas"}, "no model"),
        ({"start_jitter": "5"}, "not a time"),
    ],
)
def test_sweep__says_what_is_wrong(call: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        fw.sweep("five-to-one", **call)  # type: ignore[arg-type]


def test_sweep__files_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="make the directory first"):
        swept(out=tmp_path / "no" / "r.parquet")
    with pytest.raises(ValueError, match="is a directory"):
        swept(out=tmp_path)
    (tmp_path / "r.parquet").write_text("words")
    with pytest.raises(ValueError, match="is no Parquet file"):
        swept(out=tmp_path / "r.parquet", resume=True)
    assert [path.name for path in tmp_path.iterdir()] == ["r.parquet"]


def test_sweep__says_where_seeds_change_nothing() -> None:
    with pytest.warns(UserWarning, match="seeds change nothing"):
        fw.sweep("five-to-one", set={"options.phase": "0 s"}, seeds=2, model="fluid", start_jitter="0 s")


def test_summarise__is_the_t_interval_of_the_seeds() -> None:
    rows = pd.DataFrame({"a": [1.0] * 3 + [2.0], "seed": [0, 1, 2, 0], "metrics.x": [1.0, 2.0, 3.0, 7.0]})
    means = fw.summarise(rows)
    # 1, 2, 3: s = 1, standard error 1 / sqrt 3 = 0.57735, times t(2) = 4.3027: 2.4841.
    assert means["mean"].tolist() == [2.0, 7.0]
    assert means["count"].tolist() == [3, 1]
    assert abs(means["high"][0] - 4.4841) < 1e-3
    assert np.isnan(means["low"][1])
    with pytest.raises(ValueError, match="no column"):
        fw.summarise(rows, columns="metrics.y")


def test_plot_sweep__draws_a_band_for_each_of_the_other_parameters() -> None:
    rows = fw.sweep(
        "five-to-one", set={"options.alpha": [0.05, 0.1], "options.beta": [0.1, 0.2]}, seeds=2, model="fluid"
    )
    ax = fw.plot_sweep(rows, x="options.alpha", y="metrics.converged_s")
    assert (len(ax.lines), len(ax.collections)) == (2, 2)
    assert "options.beta = 0.1" in [text.get_text() for text in ax.get_legend().get_texts()]  # type: ignore[union-attr]
