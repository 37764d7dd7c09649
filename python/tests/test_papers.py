"""`fairwave.papers`: the experiments, and what a run of one gives."""

from __future__ import annotations

import _thread
import threading
import time

import pytest
from waiting import LIMIT_S

import fairwave as fw


def test_list__has_every_experiment_once() -> None:
    frame = fw.papers.list()
    assert list(frame.columns) == ["id", "title", "cites", "scenario", "claims", "note"]
    assert frame["id"].is_unique
    assert {"000/table1", "000/table2", "002/eq-ii-2", "002/fig-vii-10", "002/fig-vii-18"} <= set(frame["id"])
    assert (frame["claims"] > 0).all()


def test_run__one_experiment_is_an_outcome_with_its_runs() -> None:
    outcome = fw.papers.run("002/fig-vii-10")
    assert isinstance(outcome, fw.papers.Outcome)
    assert (outcome.id, outcome.cites) == ("002/fig-vii-10", "Wu 2007, Fig. VII.10")
    claims = outcome.claims()
    assert list(claims.columns[:4]) == ["what", "paper", "ours", "unit"]
    # Wu 2007, Fig. VII.10: demands of 50, 100, 200 and 300 at a sink of 1 Gb/s; 350 = 1000 - 650 for the last.
    assert claims["paper"].tolist()[:5] == [50, 100, 200, 300, 350]
    assert claims["ours"].astype(float).tolist()[:5] == pytest.approx([50, 100, 200, 300, 350])
    assert claims["holds"][:5].all()
    assert outcome.runs[0].sessions["final_rate_bps"].sum() == pytest.approx(1e9)
    assert repr(outcome).startswith("<Outcome 002/fig-vii-10: ")


def test_run__a_paper_is_a_list_in_its_order(monkeypatch: pytest.MonkeyPatch) -> None:
    # Two fast experiments in place of a paper: the shortest paper takes a minute.
    native = fw._core.papers_run
    cheap = ["002/eq-ii-2", "002/sec-ii-4a"]
    monkeypatch.setattr(fw._core, "papers_run", lambda _id, quick: [native(id, quick)[0] for id in cheap])
    outcomes = fw.papers.run("002", quick=True)
    assert isinstance(outcomes, list)
    assert [outcome.id for outcome in outcomes] == cheap


def test_run__unknown_experiment_names_the_nearest() -> None:
    with pytest.raises(ValueError, match='id: unknown experiment "002/fig-vii-1O"\nhint: did you mean "002/fig-vii'):
        fw.papers.run("002/fig-vii-1O")


def test_run__ctrl_c_stops_it() -> None:
    timer = threading.Timer(0.2, _thread.interrupt_main)
    timer.start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        fw.papers.run("002")
    # All of it takes far longer.
    assert time.monotonic() - began < LIMIT_S
