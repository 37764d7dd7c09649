"""`fairwave.simulate` and `fairwave.Run`: a run's tables against arithmetic, and what a call may change."""

from __future__ import annotations

import _thread
import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from waiting import LIMIT_S, cpu_s, runs_beside, wait_for

import fairwave as fw

TWO = """
name = "two"
title = "Two sources, one sink"
scheme = "gtp"
duration = "4 s"
node = [{ name = "s{1..2}", capacity = "1 Gb/s" }, { name = "d", capacity = "500 Mb/s" }]
session = [{ name = "a", from = "s1", to = "d", rtt = "20 ms" }, { name = "b", from = "s2", to = "d", rtt = "40 ms" }]
"""


def run_one(*args: object, **changes: object) -> fw.Run:
    changes.setdefault("model", "fluid")
    run = fw.simulate(*args, **changes)  # type: ignore[call-overload]
    assert isinstance(run, fw.Run)
    return run


def final_mbps(run: fw.Run) -> dict[str, float]:
    return {session["name"]: session["final_rate_bps"] / 1e6 for session in run.summary["sessions"]}


def test_simulate__five_sources_share_a_sink_of_500() -> None:
    run = run_one("scenarios/five-to-one.toml")
    assert final_mbps(run) == pytest.approx({f"s{k}-d1": 100 for k in range(1, 6)}, rel=1e-9)  # 500 / 5
    assert run.summary["metrics"]["total_bps"] == pytest.approx(500e6)
    assert run.summary["metrics"]["gap_to_max_min"] < 1e-9
    assert (run.summary["model"], run.summary["seed"], run.summary["duration_s"]) == ("fluid", 1, 20.0)
    assert run.title == "Five sources, five RTTs, one sink"


def test_simulate__takes_paths_of_both_kinds_and_text(tmp_path: Path) -> None:
    (tmp_path / "two.toml").write_text(TWO)
    runs = [run_one(file) for file in (TWO, tmp_path / "two.toml", str(tmp_path / "two.toml"))]
    assert final_mbps(runs[0]) == pytest.approx({"a": 250, "b": 250}, rel=1e-6)
    for run in runs[1:]:
        pd.testing.assert_frame_equal(run.rates(), runs[0].rates())


def test_simulate__rates_have_the_columns_of_the_csv() -> None:
    run = run_one(TWO)
    rates = run.rates()
    assert list(rates.columns) == [
        "time_s", "session", "rate_bps", "wire_rate_bps",
        "expected_bps", "source_expected_bps", "sink_expected_bps", "target_bps", "measured_bps",
    ]  # fmt: skip
    assert len(rates) == 40 * 2  # 4 s in samples of 100 ms
    assert rates["session"].tolist() == ["a", "b"] * 40
    np.testing.assert_allclose(rates["time_s"], np.repeat(np.arange(1, 41) / 10, 2))
    assert (rates["wire_rate_bps"] == rates["rate_bps"]).all()  # no headers in the fluid model
    lesser = rates[["source_expected_bps", "sink_expected_bps"]].min(axis=1)
    assert (rates["expected_bps"] == lesser).all()
    # The mean over the last tenth of the run is that of its last four samples.
    last = rates[rates["session"] == "a"]["rate_bps"].tail(4).mean()
    assert last == pytest.approx(run.summary["sessions"][0]["final_rate_bps"], rel=1e-9)


def test_simulate__delivered_bytes_are_the_integral_of_the_rate() -> None:
    run = run_one(TWO)
    rates = run.rates()
    for session in run.summary["sessions"]:
        bits = rates[rates["session"] == session["name"]]["rate_bps"].sum() * 0.1
        # What is on its way at the end, at most rtt/2 of it, was sent and not delivered.
        assert session["delivered_bytes"] * 8 == pytest.approx(bits, abs=500e6 * 0.04)


def test_simulate__queues_and_losses_have_the_columns_of_the_csv() -> None:
    run = run_one(TWO)
    queues = run.queues()
    assert list(queues.columns) == ["time_s", "link", "queue_packets", "queue_bytes", "dropped_packets"]
    links = [link["name"] for link in run.summary["links"]]
    assert "d:in" in links
    assert queues["link"].tolist() == links * 40
    # 1000 B payload, 40 B header, 37 B of GTP.
    np.testing.assert_allclose(queues["queue_bytes"], queues["queue_packets"] * 1077)
    losses = run.losses()
    assert list(losses.columns) == ["time_s", "session", "kind"]
    assert losses.empty


def test_simulate__max_min_follows_the_demands() -> None:
    run = run_one("scenarios/demands.toml")
    table = run.max_min().pivot(index="time_s", columns="session", values="max_min_bps") / 1e6
    assert table.index.tolist() == [0, 5, 7, 10, 12]
    assert table["steady"].tolist() == [150.0] * 5
    # 1000 - 150 - 100, - 150 - 400, (1000 - 150) / 3, (1000 - 150 - 50) / 2, 1000 - 150 - 50
    np.testing.assert_allclose(table["unlimited"], [750, 450, 850 / 3, 400, 800])
    np.testing.assert_allclose(table["visitor"], [0, 0, 850 / 3, 400, 0])


def test_simulate__distance_is_that_of_the_rates_to_the_optimum() -> None:
    run = run_one(TWO)
    distance = run.distance()
    assert list(distance.columns) == ["time_s", "distance_bps", "max_min_norm_bps"]
    np.testing.assert_allclose(distance["max_min_norm_bps"], np.sqrt(2) * 250e6)
    assert distance["distance_bps"].iloc[0] > 100e6
    assert distance["distance_bps"].iloc[-1] < 1e-3 * 250e6
    assert run.summary["metrics"]["distance_start_bps"] == pytest.approx(np.sqrt(2) * 250e6)


def test_simulate__variants_and_repeats_make_lists() -> None:
    text = TWO + 'runs = 2\nvariant = [{label = "a"}, {label = "b", options.alpha = 0.2}]'
    runs = fw.simulate(text, model="fluid", runs="all")
    assert isinstance(fw.simulate(text, model="fluid"), list)
    assert [(run.summary["variant"], run.summary["seed"]) for run in runs] == [("a", 1), ("a", 2), ("b", 1), ("b", 2)]
    one = fw.simulate(text, model="fluid", variant="b", runs="all")
    for alone, among in zip(one, runs[2:], strict=True):
        pd.testing.assert_frame_equal(alone.rates(), among.rates())


def test_simulate__changes_count() -> None:
    run = run_one(TWO, seed=7, duration="2 s", set={"session.a.demand": "25 Mb/s", "options.alpha": 0.3})
    assert (run.summary["seed"], run.summary["duration_s"]) == (7, 2.0)
    assert final_mbps(run) == pytest.approx({"a": 25, "b": 475}, rel=1e-3)  # 500 - 25
    run = run_one(TWO, set={"session.a.demand": [["0 s", "25 Mb/s"], ["2 s", "50 Mb/s"]]})
    assert final_mbps(run) == pytest.approx({"a": 50, "b": 450}, rel=1e-3)  # 500 - 50
    run = run_one(TWO, scheme="gtp-printed")
    assert run.summary["scheme"] == "gtp-printed"


def test_simulate__window_moves_the_means() -> None:
    # While the window lies in the start-up the means are below the shares of 250.
    run = run_one(TWO, window="0 s..0.5 s")
    assert run.summary["sessions"][0]["rate_bps"] < 200e6
    assert run_one(TWO).summary["sessions"][0]["rate_bps"] == pytest.approx(250e6, rel=0.01)


def test_simulate__same_bits_for_the_same_seed() -> None:
    runs = [run_one("scenarios/sixteen-nodes.toml", variant="as printed", seed=seed) for seed in (5, 5, 6)]
    for run in runs:
        run.summary["engine"].update(wall_s=0, packet_hops_per_s=0)
    assert runs[0].summary == runs[1].summary
    assert runs[0].rates().equals(runs[1].rates())
    assert not runs[0].rates().equals(runs[2].rates())


def test_simulate__takes_the_window_of_all_means() -> None:
    # 10 s one after the other at 500 Mb/s: in the second half of the run the first has nothing.
    turns = TWO.replace('"4 s"', '"20 s"').replace('rtt = "20 ms"', 'rtt = "20 ms", stop = "10 s"')
    run = fw.simulate(turns.replace('rtt = "40 ms"', 'rtt = "40 ms", start = "10 s"'), model="fluid", runs=1)
    assert run.summary["window"] == {"from_s": 10.0, "to_s": 20.0}
    rates = run.sessions["rate_bps"]
    assert rates[0] < 0.01 * rates[1]
    link = run.links.set_index("name").loc["d:in"]
    assert rates.sum() == pytest.approx(link["utilisation"] * link["capacity_bps"], rel=1e-3)


def test_simulate__engine_counts_hops_per_second() -> None:
    engine = run_one(TWO, model="packet", duration="1 s").summary["engine"]
    assert engine["packet_hops"] > 0
    assert engine["packet_hops_per_s"] == pytest.approx(engine["packet_hops"] / engine["wall_s"])


def test_simulate__one_run_asked_for_is_one() -> None:
    many = TWO + "runs = 3"
    run = fw.simulate(many, model="fluid", runs=1)
    assert run.summary["seed"] == 1
    assert [run.summary["seed"] for run in fw.simulate(TWO, model="fluid", runs="all")] == [1]
    with pytest.raises(fw.ScenarioError, match="the file has 2") as refused:
        fw.simulate(many + '\nvariant = [{label = "a"}, {label = "b"}]', model="fluid", runs=1)
    assert refused.value.hint == "choose a variant: a, b"
    with pytest.raises(ValueError, match="runs: 2"):
        fw.simulate(many, runs=2)  # type: ignore[call-overload]


def test_simulate__takes_shipped_scenarios_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = run_one("scenarios/demands.toml", duration="2 s")
    monkeypatch.chdir(tmp_path)
    run = run_one("demands", duration="2 s")
    assert run.rates().equals(here.rates())
    assert len(fw.allocate("demands")) == 4
    with pytest.raises(FileNotFoundError):
        fw.simulate("no-such-scenario")
    (tmp_path / "demands").write_text(TWO)  # a file goes before a shipped scenario
    assert run_one("demands").summary["scenario"] == "two"


def test_run__survives_a_pickle() -> None:
    run = run_one(TWO, model="packet", scheme="sack", duration="1 s")
    again = pickle.loads(pickle.dumps(run))
    assert again.summary == run.summary
    assert (repr(again), again.title) == (repr(run), run.title)
    for table in ("rates", "queues", "windows", "losses", "max_min", "distance"):
        pd.testing.assert_frame_equal(getattr(again, table)(), getattr(run, table)())
    rates = again.rates()
    rates["rate_bps"] = 0.0
    assert again.rates()["rate_bps"].sum() > 0
    assert pickle.loads(pickle.dumps(again)).rates().equals(run.rates())


def test_run__completed_is_a_number() -> None:
    sized = TWO.replace('rtt = "20 ms"', 'rtt = "20 ms", size = "10 MB"')
    for text in (TWO, sized):
        assert run_one(text).sessions["completed_s"].dtype == np.float64
    completed = run_one(sized).sessions["completed_s"]
    assert completed[0] > 0
    assert np.isnan(completed[1])


def test_run__links_are_a_table() -> None:
    run = run_one(TWO)
    links = run.links
    assert list(links.columns) == [
        "name", "capacity_bps", "utilisation", "mean_queue_packets", "max_queue_packets", "dropped_packets",
    ]  # fmt: skip
    assert links.to_dict("records") == run.summary["links"]


def test_simulate__dropped_options_are_a_warning() -> None:
    with pytest.warns(UserWarning, match="alpha"):
        fw.simulate("scenarios/five-to-one.toml", scheme="abr-charny", duration="1 s")


def test_run__says_which_it_is() -> None:
    assert repr(run_one(TWO)) == '<Run "two": gtp, fluid, seed 1, 4 s, 2 sessions>'
    text = TWO + 'variant = [{label = "slow", options.alpha = 0.02}]'
    assert repr(run_one(text)) == '<Run "two", variant "slow": gtp, fluid, seed 1, 4 s, 2 sessions>'


def test_run__tables_are_the_callers_own() -> None:
    run = run_one(TWO)
    rates = run.rates()
    rates["rate_bps"] = 0.0
    assert run.rates()["rate_bps"].sum() > 0
    assert run.sessions["name"].tolist() == ["a", "b"]


def test_run__wide_table_takes_another_column() -> None:
    wide = run_one(TWO).rates().pivot(index="time_s", columns="session", values="rate_bps")
    wide["total"] = wide.sum(axis=1)
    assert wide["total"].iloc[-1] == pytest.approx(500e6, rel=1e-3)


def test_simulate__packet_model_has_headers_and_losses() -> None:
    text = """
        name = "sawtooth"
        scheme = "newreno"
        duration = "20 s"
        node = [{ name = "s", capacity = "1 Gb/s" }, { name = "d", capacity = "10 Mb/s", queue = "20 packets" }]
        session = [{ name = "only", from = "s", to = "d", rtt = "40 ms" }]
    """
    run = run_one(text, model="packet")
    assert run.summary["model"] == "packet"
    session = run.summary["sessions"][0]
    assert session["lost_packets"] > 0
    assert session["max_min_bps"] == 10e6
    # 1000 B of payload in 1040 B on the wire; what is lost counts on the wire alone, if there.
    assert session["rate_bps"] <= session["wire_rate_bps"] * 1000 / 1040 * (1 + 1e-9)
    losses = run.losses()
    assert losses["session"].tolist() == ["only"] * len(losses)
    assert losses["time_s"].is_monotonic_increasing
    assert len(losses) > 1
    assert set(losses["kind"]) <= {"loss", "timeout"}
    assert run.queues()["queue_packets"].max() <= 21  # the one in service does not count against the limit


def test_simulate__windows_follow_the_sawtooth() -> None:
    text = """
        name = "sawtooth"
        scheme = "sack"
        duration = "20 s"
        node = [{ name = "s", capacity = "1 Gb/s" }, { name = "d", capacity = "10 Mb/s", queue = "20 packets" }]
        session = [
            { name = "only", from = "s", to = "d", rtt = "40 ms" },
            { name = "plain", from = "s", to = "d", rtt = "40 ms", start = "10 s", scheme = "cbr", demand = "1 kb/s" },
        ]
    """
    run = run_one(text, model="packet")
    windows = run.windows()
    assert list(windows.columns) == ["time_s", "session", "cwnd_packets", "ssthresh_packets"]
    assert len(windows) == 2 * 200  # samples of 100 ms
    only = windows[windows["session"] == "only"]
    assert windows[windows["session"] == "plain"]["cwnd_packets"].isna().all()  # constant rates have no window
    assert np.isnan(only["ssthresh_packets"].iloc[0])  # slow start has no end before the first loss
    # The pipe holds 48 packets of 1040 B (10 Mb/s x 40 ms) and the queue 20: the window swings between 69 and half.
    late = only[only["time_s"] > 10]["cwnd_packets"]
    assert 30 <= late.min() <= 40
    assert 65 <= late.max() <= 72
    assert run_one("scenarios/demands.toml", duration="1 s").windows().empty  # the fluid model has none


def test_simulate__ctrl_c_stops_it() -> None:
    timer = threading.Timer(0.5, _thread.interrupt_main)
    timer.start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        fw.simulate("scenarios/lambda-1024.toml", model="fluid", set={"runs": 100_000})  # hours on any machine
    assert time.monotonic() - began < LIMIT_S
    assert final_mbps(run_one(TWO))["a"] > 0  # and the next one runs


LONG_SAMPLE = """
name = "long-sample"
scheme = "sack"
duration = "10 h"
sample = "10 h"
node = [{ name = "s", capacity = "10 Gb/s" }, { name = "d", capacity = "10 Gb/s" }]
session = [{ name = "only", from = "s", to = "d", rtt = "10 ms" }]
"""
MANY_TICKS = """
name = "many-ticks"
scheme = "gtp"
duration = "10 h"
sample = "10 h"
options = { interval = "1 ms" }
node = [{ name = "s{1..50}", capacity = "1 Gb/s" }, { name = "d", capacity = "1 Gb/s" }]
session = [{ from = "s{1..50}", to = "d", rtt = "10 ms" }]
"""


@pytest.mark.parametrize(("text", "model"), [(LONG_SAMPLE, "packet"), (MANY_TICKS, "fluid")])
def test_simulate__sigint_ends_a_run_in_the_middle_of_a_sample(text: str, model: str) -> None:
    """A process of its own gets the signal that Ctrl-C sends, in a run that no sample's end will come to for long."""
    script = (
        "import fairwave as fw, sys\n"
        "print('begins', flush=True)\n"
        "try:\n"
        f"    fw.simulate({text!r}, model={model!r})\n"
        "except KeyboardInterrupt:\n"
        "    sys.exit(42)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "begins\n"
        before = cpu_s(child.pid)
        wait_for("it computes", lambda: cpu_s(child.pid) > before + 0.3)
        assert child.poll() is None, "it was to run for hours"
        child.send_signal(signal.SIGINT)
        try:
            assert child.wait(timeout=LIMIT_S) == 42
        finally:
            child.kill()


def test_simulate__other_threads_run_meanwhile() -> None:
    assert runs_beside(lambda: fw.simulate("scenarios/lambda-1024.toml", model="fluid", duration="5 s"))
