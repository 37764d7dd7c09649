"""Round-trip times, queueing delays and completion times."""

from __future__ import annotations

import pickle

import pytest

import fairwave as fw

FIVE = """
name = "five"
scheme = "newreno"
duration = "3 s"
node = [{ name = "s{1..5}", capacity = "500 Mb/s" }, { name = "d", capacity = "50 Mb/s", queue = "100 packets" }]
session = [{ from = "s{1..5}", to = "d", rtt = { each = ["10 ms", "30 ms", "50 ms", "70 ms", "90 ms"] } }]
"""


def test_percentiles__of_packets_are_those_of_the_summary() -> None:
    run = fw.simulate(FIVE)
    assert isinstance(run, fw.Run)
    table = run.percentiles(q=(50, 95, 99)).set_index("session")
    for session in run.summary["sessions"]:
        for what in ("mean", "p50", "p95", "p99"):
            for kind in ("rtt", "queueing"):
                key = f"{kind}_{what}_s"
                assert table.loc[session["name"], key] == pytest.approx(session[key], rel=0.004), key
    trips = run.round_trips()
    assert trips.groupby("session", observed=True)["samples"].sum().tolist() == run.sessions["rtt_samples"].tolist()
    assert (trips["rtt_s"] >= 0.01).all()
    by_scheme = run.percentiles(by="scheme").iloc[0]
    assert by_scheme["rtt_p95_s"] == pytest.approx(run.summary["schemes"][0]["rtt_p95_s"], rel=0.01)
    # The extremes are the least and the most of all samples.
    ends = run.percentiles(by="scheme", q=(0, 100)).iloc[0]
    assert (ends["rtt_p0_s"], ends["rtt_p100_s"]) == (trips["rtt_s"].min(), trips["rtt_s"].max())
    assert pickle.loads(pickle.dumps(run)).percentiles().equals(run.percentiles())


def test_percentiles__completion_counts_from_a_session_s_own_start() -> None:
    run = fw.simulate(
        """
        name = "sized"
        scheme = "newreno"
        duration = "20 s"
        node = [{ name = "s", capacity = "1 Gb/s" }, { name = "d", capacity = "10 Mb/s", queue = "20 packets" }]
        session = [{ name = "a", from = "s", to = "d", rtt = "20 ms", size = "1 MB", start = "5 s" }]
        """
    )
    assert isinstance(run, fw.Run)
    session = run.summary["sessions"][0]
    assert session["completion_s"] == pytest.approx(session["completed_s"] - 5)
    # 1 MB in packets of 1040 for 1000 bytes at 10 Mb/s take 0.832 s at least.
    assert 0.832 < run.percentiles()["completion_p50_s"][0] < 3
    assert run.summary["schemes"][0]["completion_mean_s"] == session["completion_s"]
