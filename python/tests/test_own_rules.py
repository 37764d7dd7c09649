"""Rules of the caller's own, of sessions and of nodes."""

import signal
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pandas.testing import assert_frame_equal
from waiting import LIMIT_S

import fairwave as fw
from fairwave._own import fingerprint

TWO = """
name = "two"
duration = "5 s"
scheme = "mine"
node = [{ name = "s{1..2}", capacity = "1 Gb/s" }, { name = "d", capacity = "10 Mb/s", queue = "10 packets" }]
session = [{ from = "s1", to = "d", rtt = "20 ms" }, { from = "s2", to = "d", rtt = "20 ms", scheme = "cubic" }]
"""


class NewReno:
    """The built-in rule once more."""

    def __init__(self) -> None:
        self.window_packets = 2.0
        self.ssthresh = float("inf")

    def on_ack(self, acked_packets: int, rtt_s: float, now_s: float) -> None:
        self.window_packets += acked_packets / (1 if self.window_packets < self.ssthresh else self.window_packets)

    def on_loss(self, in_flight_packets: int, now_s: float) -> None:
        self.window_packets = self.ssthresh = max(in_flight_packets / 2, 2.0)

    def on_timeout(self) -> None:
        self.ssthresh = max(self.window_packets / 2, 2.0)
        self.window_packets = 1.0


def mine(rule: Any, **more: Any) -> fw.Run:
    return fw.simulate(TWO, runs=1, schemes={"mine": rule}, **more)


def test_own_rule__is_the_built_in_one_where_it_says_the_same() -> None:
    own, built_in = mine(NewReno), fw.simulate(TWO, runs=1, scheme="sack")
    columns = ["rate_bps", "sent_packets", "lost_packets"]
    # A time-out would tell them apart: the rule does not receive what was in flight then.
    assert own.summary["sessions"][0]["timeouts"] == 0
    assert_frame_equal(own.sessions[columns], built_in.sessions[columns])
    assert own.sessions["scheme"].tolist() == ["mine", "cubic"]


def test_own_rule__may_be_a_rate() -> None:
    class Steady:
        rate_bps = 2e6

        def on_ack(self, acked_packets: int, rtt_s: float, now_s: float) -> None:
            pass

    session = mine(Steady).sessions.iloc[0]
    assert abs(session["wire_rate_bps"] - 2e6) < 0.1e6


def test_own_rule__subclass_of_a_built_in_one() -> None:
    class Slow(fw.Controller):
        def on_loss(self, in_flight_packets: int | None = None, now_s: float | None = None) -> None:
            super().on_loss(in_flight_packets, now_s)
            self.window_packets = 2

    run = mine(Slow)
    assert run.sessions["rate_bps"][0] < run.sessions["rate_bps"][1]


def test_own_rule__has_options_that_sweeps_set() -> None:
    class Fixed:
        options = {"size": 4.0}  # noqa: RUF012

        def __init__(self, size: float = 4.0) -> None:
            self.window_packets = size

        def on_ack(self, acked_packets: int, rtt_s: float, now_s: float) -> None:
            pass

    rows = fw.sweep(TWO, set={"options.size": [1, 2]}, seeds=1, schemes={"mine": Fixed}, duration="2 s")
    one, two = rows["session.s1-d.rate_bps"]
    assert one < two < 2.2 * one


def test_own_node_rule__runs_in_both_models() -> None:
    class Even(fw.Allocator):
        def allocate(self, capacity_bps: float, measured_bps: Any, *_: Any, **__: Any) -> Any:
            return np.full(len(measured_bps), capacity_bps / len(measured_bps))

    for model in ["fluid", "packet"]:
        with pytest.warns(UserWarning, match="dropped options.alpha"):
            run = fw.simulate("five-to-one", scheme="even", model=model, duration="2 s", schemes={"even": Even}, runs=1)
        assert np.allclose(run.sessions["final_wire_rate_bps"], 100e6, rtol=0.1), model


def test_own_rule__an_error_comes_out_with_its_own_traceback() -> None:
    class Broken(NewReno):
        def on_loss(self, in_flight_packets: int, now_s: float) -> None:
            raise ZeroDivisionError("the third loss of the seventh session")

    with pytest.raises(ZeroDivisionError, match="the third loss") as caught:
        mine(Broken)
    assert "on_loss" in "".join(traceback.format_tb(caught.value.__traceback__))
    # Nothing of it is left.
    assert mine(NewReno).sessions["rate_bps"][0] > 0


@pytest.mark.parametrize(
    ("window", "words"), [(float("nan"), "nan is not a window"), ("x", "real number"), (None, "real number")]
)
def test_own_rule__a_window_that_is_none(window: Any, words: str) -> None:
    class Wrong(NewReno):
        def on_ack(self, acked_packets: int, rtt_s: float, now_s: float) -> None:
            self.window_packets = window

    with pytest.raises((ValueError, TypeError), match=words):
        mine(Wrong)


@pytest.mark.parametrize("rates", [[], [1e6], [-1.0, 1.0], [float("nan"), 1.0], "ab", None])
def test_own_node_rule__rates_that_are_none(rates: Any) -> None:
    class Wrong:
        def allocate(self, *_: Any, **__: Any) -> Any:
            return rates if rates != [1e6] else [1e6, 1e6, 1e6]

    with pytest.raises((ValueError, TypeError)):
        fw.simulate(TWO.replace("cubic", "mine"), runs=1, schemes={"mine": Wrong}, model="fluid")


@pytest.mark.parametrize(
    ("schemes", "words"),
    [
        ({"cubic": NewReno}, "is a built-in scheme"),
        ({"My Rule": NewReno}, "is not a valid name"),
        ({"mine": 3}, "pass a class"),
        ({"mine": object}, "neither on_ack nor allocate"),
        ({"mine": type("Paced", (NewReno,), {"options": {"pacing": 1.0}})}, 'an option "pacing"'),
        ({"mine": type("Bare", (), {"on_ack": lambda *_: None})}, "neither window_packets nor rate_bps"),
    ],
)
def test_own_rule__what_is_no_rule(schemes: Any, words: str) -> None:
    with pytest.raises((ValueError, TypeError), match=words):
        fw.simulate(TWO, runs=1, schemes=schemes)


def test_fingerprint__looks_at_the_classes_above() -> None:
    def below(base: type) -> type:
        class Mine(base):  # type: ignore[misc]
            pass

        return Mine

    class Other(NewReno):
        def on_timeout(self) -> None:
            self.window_packets = 2.0

    one, other = fingerprint({"mine": below(NewReno)}), fingerprint({"mine": below(Other)})
    assert one != other
    assert one == fingerprint({"mine": below(NewReno)})
    # Of a class without a source its name counts, not where it lies in memory.
    assert fingerprint({"mine": below(fw.Controller)}) != one


def test_own_rule__that_was_not_given_is_unknown() -> None:
    with pytest.raises(fw.ScenarioError, match="is not a scheme"):
        fw.simulate(TWO, runs=1)


def test_own_rule__ctrl_c_ends_one_that_never_returns(tmp_path: Path) -> None:
    code = f"""
import fairwave as fw
class Endless:
    window_packets = 2.0
    def on_ack(self, *_):
        print("begun", flush=True)
        while True:
            pass
fw.simulate({TWO!r}, runs=1, schemes={{"mine": Endless}})
"""
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "begun\n"
    child.send_signal(signal.SIGINT)
    try:
        _, stderr = child.communicate(timeout=LIMIT_S)
    finally:
        child.kill()
    assert "KeyboardInterrupt" in stderr
    assert "on_ack" in stderr
