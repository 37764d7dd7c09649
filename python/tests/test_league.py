"""The league, with rules of the caller's own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from test_pages import command
from waiting import LIMIT_S

import fairwave as fw
from fairwave._league import main


class SlowStart:
    """Twice as fast until a loss, then half."""

    def __init__(self) -> None:
        self.window_packets = 2.0

    def on_ack(self, acked_packets: int, rtt_s: float, now_s: float) -> None:
        self.window_packets += 0.2 * acked_packets / self.window_packets


def test_league__has_a_row_for_each_scheme_and_scenario() -> None:
    scores = fw.league(SlowStart, field=["cubic", "vegas"])
    assert scores["scheme"].unique().tolist() == ["cubic", "vegas", "slow-start"]
    assert len(scores) == 3 * 12
    of_mine = scores[scores["scheme"] == "slow-start"].set_index("scenario")["utilisation"]
    assert of_mine["clean"] > 0.5
    # The rule of the packet simulator, by either way.
    swept = fw.sweep("league", seeds=3, scheme="mine", variant="shallow", model="packet", schemes={"mine": SlowStart})
    share = swept["metrics.total_bps"] / (swept["session.one.max_min_bps"] + swept["session.two.max_min_bps"])
    assert of_mine["shallow"] == pytest.approx(share.mean(), rel=1e-12)
    # Completion times are relative to the best.
    assert scores.groupby("scenario")["completion"].min().dropna().unique().tolist() == [1.0]


def test_league__mistakes_are_told() -> None:
    with pytest.raises(fw.ScenarioError, match='"rbudp" does not play'):
        fw.league(field=["rbudp"])
    with pytest.raises(ValueError, match="two are called"):
        fw.league(SlowStart, SlowStart)
    cubic = type("Cubic", (SlowStart,), {})
    with pytest.raises(ValueError, match="built-in scheme"):
        fw.league(cubic, field=[])


def test_league__error_of_a_rule_reaches_the_caller() -> None:
    class Broken(SlowStart):
        def on_ack(self, acked_packets: int, rtt_s: float, now_s: float) -> None:
            raise RuntimeError("no idea")

    with pytest.raises(RuntimeError, match="no idea"):
        fw.league(Broken, field=[])


def test_main__file_without_rules_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "none.py"
    file.write_text("import fairwave\nclass Other:\n    pass\n")
    assert main(str(file)) == 2
    assert "no class has on_ack or allocate" in capsys.readouterr().err


def test_command__adds_the_rules_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "steady.py"
    file.write_text(
        "class Steady:\n    rate_bps = 5e6\n    def on_ack(self, acked_packets, rtt_s, now_s):\n        pass\n"
    )
    # A field of two: all schemes take minutes in a build for tests.
    (tmp_path / "sitecustomize.py").write_text(
        "import fairwave._league as league\n"
        "whole = league.league\n"
        'league.league = lambda *rules: whole(*rules, field=["cubic"])\n'
    )
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{Path('python').resolve()}")
    done = subprocess.run(
        [command(), "league", "--add", file, "--json"], capture_output=True, text=True, timeout=LIMIT_S
    )
    assert done.returncode == 0, done.stderr
    scores = pd.DataFrame([json.loads(line) for line in done.stdout.splitlines()])
    assert scores["scheme"].unique().tolist() == ["cubic", "steady"]
    clean = scores[(scores["scenario"] == "clean") & (scores["scheme"] == "steady")].iloc[0]
    assert clean["utilisation"] == pytest.approx(0.5, abs=0.03)
