"""Sweeps: rows, seeds, files, and what goes wrong."""

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

import fairwave as fw
from fairwave import _sweep

TWO = """
name = "two"
duration = "3 s"
scheme = "gtp"
node = [{ name = "s{1..2}", capacity = "1 Gb/s" }, { name = "d", capacity = "10 Mb/s", queue = "20 packets" }]
session = [{ from = "s{1..2}", to = "d", rtt = "20 ms" }]
"""
ALPHA = {"options.alpha": [0.05, 0.1]}


def swept(**more: object) -> pd.DataFrame:
    return fw.sweep("five-to-one", set=ALPHA, seeds=3, model="fluid", **more)  # type: ignore[arg-type]


def test_sweep__has_a_row_a_run_in_the_order_of_the_grid() -> None:
    rows = swept()
    assert rows["options.alpha"].tolist() == [0.05] * 3 + [0.1] * 3
    # As the command does: from the file's seed on.
    assert rows["seed"].tolist() == [1, 2, 3] * 2
    assert rows["run"].nunique() == 6
    # Five sessions share 500 Mb/s.
    assert np.allclose(rows["session.s2-d1.final_rate_bps"], 100e6, rtol=0.05)
    assert rows["metrics.converged_s"].nunique() == 6, "starts differ with the seed"


def test_sweep__is_the_same_on_any_number_of_threads_and_again() -> None:
    assert_frame_equal(swept(jobs=1), swept(jobs=3))


def test_sweep__a_row_is_what_simulate_gives() -> None:
    row = swept().iloc[4]
    run = fw.simulate("five-to-one", seed=2, model="fluid", set={"options.alpha": 0.1, "start_jitter": "auto"})
    assert row["metrics.converged_s"] == run.summary["metrics"]["converged_s"]


def test_sweep__keeps_rows_in_a_file_and_goes_on_with_them(tmp_path: Path) -> None:
    out = tmp_path / "r.parquet"
    few = fw.sweep("five-to-one", set={"options.alpha": [0.05]}, seeds=2, model="fluid", out=out)
    assert len(few) == 2
    with pytest.raises(fw.ScenarioError, match="already exists"):
        swept(out=out)
    more = swept(out=out, resume=True)
    assert_frame_equal(more, swept())
    assert_frame_equal(fw.read_parquet(out), more)
    with pytest.raises(fw.ScenarioError, match="another sweep"):
        fw.sweep("five-to-one", seeds=2, model="fluid", duration="3 s", out=out, resume=True)


def test_sweep__of_the_command_is_gone_on_with(tmp_path: Path) -> None:
    out = tmp_path / "r.parquet"
    fw.sweep("five-to-one", set=ALPHA, seeds=range(1, 4), model="fluid", out=out)
    assert_frame_equal(swept(out=out, resume=True), swept())


def test_sweep__names_old_rows_by_new_parameters(tmp_path: Path) -> None:
    out = tmp_path / "r.parquet"
    plain = fw.sweep(TWO, seeds=2, model="fluid", out=out)
    assert "duration" not in plain.columns
    # 3 s is the file's own: its runs are there.
    durations = {"duration": ["3 s", "4 s"]}
    rows = fw.sweep(TWO, set=durations, seeds=2, model="fluid", out=out, resume=True)
    assert rows["duration"].tolist() == ["3 s", "3 s", "4 s", "4 s"]
    assert_frame_equal(rows, fw.sweep(TWO, set=durations, seeds=2, model="fluid"))


def test_sweep__lets_go_of_the_file_after_an_error(tmp_path: Path) -> None:
    out, fails = tmp_path / "r.parquet", [True]

    class Fragile:
        options = {"size": 4.0}  # noqa: RUF012

        def __init__(self, size: float = 4.0) -> None:
            self.window_packets = size

        def on_ack(self, acked_packets: int, rtt_s: float, now_s: float) -> None:
            if fails[0] and self.window_packets > 5:
                raise ZeroDivisionError("the second point")

    def run(**more: Any) -> pd.DataFrame:
        sizes = {"options.size": [4, 6]}
        return fw.sweep(TWO, set=sizes, seeds=1, scheme="fragile", schemes={"fragile": Fragile}, out=out, **more)

    # Whoever keeps the error keeps the call's frame, too: the file must not hang on it.
    with pytest.raises(ZeroDivisionError, match="the second point") as caught:
        run()
    assert caught.value.__traceback__ is not None
    assert [path.name for path in tmp_path.iterdir()] == ["r.parquet"]
    assert fw.read_parquet(out)["options.size"].tolist() == [4]
    fails[0] = False
    assert run(resume=True)["options.size"].tolist() == [4, 6]


def test_sweep__tasks_of_a_cluster_are_named_by_all_of_their_runs() -> None:
    class Planned:
        def __init__(self, *columns: str) -> None:
            self.columns = columns

        def own_columns(self) -> list[str]:
            return [*self.columns, "seed"]

        def key(self, run: int) -> str:
            return f"{run:032x}"

    def name(part: list[int], *columns: str) -> str:
        return _sweep._task_name(Planned(*columns), part)  # type: ignore[arg-type]

    assert name([0, 1]) == name([0, 1])
    assert len({name([0, 1]), name([0, 2]), name([0]), name([0, 1], "duration")}) == 4


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
        ({"set": {"seed": [1]}}, "not a parameter"),
        ({"seeds": []}, "no seeds"),
        ({"seeds": [1, 1]}, "twice"),
        ({"seeds": [-1]}, "is not a seed"),
        ({"seeds": 0}, "no seeds"),
        ({"seeds": -1}, "not a number of seeds"),
        ({"jobs": 0}, "jobs: 0"),
        ({"resume": True}, "no results to continue"),
        ({"model": "gas"}, "unknown model"),
        ({"start_jitter": "5"}, "not a time"),
    ],
)
def test_sweep__says_what_is_wrong(call: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        fw.sweep("five-to-one", **call)  # type: ignore[arg-type]


def test_sweep__files_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="create the directory first"):
        swept(out=tmp_path / "no" / "r.parquet")
    with pytest.raises(ValueError, match="is a directory"):
        swept(out=tmp_path)
    (tmp_path / "r.parquet").write_text("words")
    with pytest.raises(ValueError, match="not a readable Parquet file"):
        swept(out=tmp_path / "r.parquet", resume=True)
    assert [path.name for path in tmp_path.iterdir()] == ["r.parquet"]


def test_sweep__says_where_seeds_change_nothing() -> None:
    with pytest.warns(UserWarning, match="the seed has no effect"):
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


def test_sweep__on_a_full_disk_keeps_what_there_is_and_says_so(tmp_path: Path) -> None:
    out = tmp_path / "r.parquet"
    # What is written beyond 30 kB fails, as on a disk without room; a row of five-to-one has some 5 kB.
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, resource.RLIM_INFINITY))\n"
        f"import fairwave as fw; fw.sweep('five-to-one', set={ALPHA}, seeds=5, model='fluid', out={str(out)!r})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "exceeds the maximum file size" in done.stderr.splitlines()[-2]
    assert done.stderr.splitlines()[-1] == (
        "hint: finished runs are kept in the journal: free disk space and continue with --resume"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["r.parquet.part"]
    again = fw.sweep("five-to-one", set=ALPHA, seeds=5, model="fluid", out=out, resume=True)
    assert_frame_equal(again, fw.sweep("five-to-one", set=ALPHA, seeds=5, model="fluid"))


def test_sweep__in_a_second_process_into_the_same_file_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "r.parquet"
    call = f"fw.sweep('five-to-one', seeds=400, model='fluid', duration='200 s', jobs=1, out={str(out)!r})"
    child = subprocess.Popen([sys.executable, "-c", f"import fairwave as fw; {call}"])
    begin = time.monotonic()
    journal = tmp_path / "r.parquet.part"
    # It is locked before anything is written to it.
    while not (journal.exists() and journal.stat().st_size > 0):
        assert child.poll() is None, "it ended before it began"
        assert time.monotonic() - begin < 60, "it never began"
        time.sleep(0.002)
    for resume in (False, True):
        with pytest.raises(fw.ScenarioError, match="another process is writing these results"):
            fw.sweep("five-to-one", seeds=400, model="fluid", duration="200 s", out=out, resume=resume)
    child.kill()
    child.wait()


def test_sweep__has_round_trip_times_of_packets() -> None:
    rows = fw.sweep(TWO, set={"scheme": ["newreno", "vegas"]}, seeds=2)
    # 20 packets of 1040 B at 10 Mb/s are 17 ms beyond the 20 ms of propagation; Vegas lets three wait at the most.
    medians = rows.groupby("scheme")["session.s1-d.queueing_p50_s"].mean()
    assert medians["vegas"] < 0.008 < medians["newreno"] < 0.018
    assert (rows["session.s1-d.rtt_p99_s"] >= rows["session.s1-d.rtt_p50_s"]).all()
    assert rows["schemes.newreno.rtt_p50_s"].notna().tolist() == [True, True, False, False]
