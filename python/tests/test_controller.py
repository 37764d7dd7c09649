"""`fairwave.Controller`: each rule against arithmetic, and whatever is wrong with a call."""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

import numpy as np
import pytest

import fairwave as fw

INF = float("inf")
# Window-based schemes: those with a first window, which pace or do not. BBR sets its own rate, reported by its sender.
OPTIONS = fw.schemes().set_index("name")["options"]
NAMES = [str(name) for name, options in OPTIONS.items() if {"initial_window", "pacing"} <= set(options)]


def round_trip(controller: fw.Controller, rtt_s: float = 0.05) -> None:
    """A window of acknowledgements, one packet each."""
    for _ in range(int(controller.window_packets)):
        controller.on_ack(rtt_s=rtt_s)


def test_clock__advances_a_round_trip_for_a_window() -> None:
    c = fw.Controller("newreno", 10, initial_ssthresh_packets=5)
    c.on_ack(acked_packets=10, rtt_s=0.05)
    assert c.now_s == pytest.approx(0.05, abs=1e-9)
    c.on_ack(rtt_s=0.11)  # the window is 11 by now: 0.11 x 1 / 11
    assert c.now_s == pytest.approx(0.06, abs=1e-9)
    c.on_ack(now_s=2.5)
    assert c.now_s == 2.5
    c.on_ack()
    c.on_ack(now_s=c.now_s)
    c.on_loss(now_s=2.6)
    assert c.now_s == 2.6


def test_newreno__doubles_then_halves_then_adds_one_a_round_trip() -> None:
    c = fw.Controller("newreno")
    assert (c.window_packets, c.ssthresh_packets) == (2.0, INF)
    round_trip(c)
    round_trip(c)
    assert c.window_packets == 8.0
    c.window_packets = 100
    c.on_loss()
    assert (c.window_packets, c.ssthresh_packets) == (50.0, 50.0)
    for _ in range(550):
        c.on_ack()
    # w' = 1 / w: w^2 = 50^2 + 2 x 550, 60 after ten round trips.
    assert c.window_packets == pytest.approx(60, abs=0.01)
    c.on_loss(in_flight_packets=40)
    assert c.window_packets == 20.0
    c.on_timeout()
    assert (c.window_packets, c.ssthresh_packets) == (1.0, 10.0)


def test_newreno__sawtooth_has_the_mean_of_its_response() -> None:
    # A loss every 15000 packets: sqrt(1.5 x 15000) = 150, between 100 and 200.
    c = fw.Controller("newreno", 150)
    packets = rounds = 0.0
    tops = []
    for cycle in range(20):
        c.on_loss()
        for _ in range(15_000):
            if cycle >= 10:
                packets += 1
                rounds += 1 / c.window_packets
            c.on_ack()
        tops.append(c.window_packets)
    assert tops[-1] == pytest.approx(200, rel=0.01)
    assert packets / rounds == pytest.approx(fw.response("newreno", 1 / 15_000)[0], rel=0.01)


@pytest.mark.parametrize(
    ("window", "increase", "decrease", "within"),
    [(38, 1, 0.5, 1e-12), (118, 2, 0.44, 0.05), (83_000, 72.516, 0.1, 1e-4)],
)
def test_hstcp__increase_and_decrease_depend_on_the_window(
    window: float, increase: float, decrease: float, within: float
) -> None:
    # RFC 3649: a(38) = 1, b = 0.5; its table has 2 and 0.44 at 118; 83000^2 x 1e-7 x 2 x 0.1 / 1.9 = 72.516.
    c = fw.Controller("hstcp", window, initial_ssthresh_packets=2)
    c.on_ack()
    assert (c.window_packets - window) * window == pytest.approx(increase, rel=max(within, 1e-6))
    c.window_packets = window
    c.on_loss()
    assert 1 - c.window_packets / window == pytest.approx(decrease, rel=max(within, 1e-6))


def test_hstcp__loss_rate_at_1000_follows_the_line_of_ns2() -> None:
    # p(1000) on the line from (38, 1.5 / 38^2) to (83000, 1e-7); a = w^2 p 2 b / (2 - b).
    low_p = 1.5 / 38**2
    way = math.log(1000 / 38) / math.log(83_000 / 38)
    p = low_p * (1e-7 / low_p) ** way
    b = 0.5 - 0.4 * way
    c = fw.Controller("hstcp", 1000, initial_ssthresh_packets=2)
    c.on_ack()
    assert (c.window_packets - 1000) * 1000 == pytest.approx(1e6 * p * 2 * b / (2 - b), rel=1e-6)
    assert fw.response("hstcp", p)[0] == pytest.approx(1000, rel=1e-9)


def test_limited_slow_start__grows_by_half_of_its_threshold_a_round_trip() -> None:
    # RFC 3742 with max_ssthresh 100: 1, 1/2, 1/3 ... 1/20 packet an acknowledgement.
    for window, step in [(100, 1), (101, 1 / 2), (149, 1 / 2), (150, 1 / 3), (199, 1 / 3), (1000, 1 / 20)]:
        c = fw.Controller("newreno", window, max_ssthresh="100 packets")
        c.on_ack()
        assert c.window_packets - window == pytest.approx(step, abs=1e-9), window


def test_stcp__comes_back_in_13_round_trips_at_any_window() -> None:
    for top in [800, 8000]:
        c = fw.Controller("stcp", top)
        c.on_loss()
        assert c.window_packets == top * 0.875
        while c.window_packets < top:
            c.on_ack(rtt_s=1.0)
        # 13.42 = ln(8/7) / ln 1.01 in whole round trips; acknowledgement by acknowledgement ln(8/7) / 0.01 = 13.35.
        assert c.now_s == pytest.approx(13.35, abs=0.05)


def test_aimd__comes_back_in_four_round_trips() -> None:
    c = fw.Controller("aimd", 1000)
    c.on_loss()
    assert c.window_packets == 875
    while c.window_packets < 1000:
        c.on_ack(rtt_s=1.0)
    assert c.now_s == pytest.approx(125 / 32, abs=0.01)  # 3.9


def test_bic__searches_for_the_window_of_the_last_loss() -> None:
    def step(window: float) -> float:
        bic.window_packets = window
        bic.on_ack()
        return (bic.window_packets - window) * window

    bic = fw.Controller("bic", 1000)
    bic.on_loss()
    assert bic.window_packets == 875
    # Half the gap to 1000, at most 32, at least 0.01; beyond 1000 as much as it is beyond.
    for window, packets in [(875, 32), (936, 32), (940, 30), (970, 15), (999, 0.5), (999.99, 0.01), (1000, 0.01)]:
        assert step(window) == pytest.approx(packets, rel=1e-6, abs=1e-7), window
    assert step(1000.5) == pytest.approx(0.5, rel=1e-6)
    assert step(1100) == pytest.approx(32, rel=1e-6)
    # A loss below the last maximum: fast convergence aims at 950 x 1.875 / 2 = 890.625.
    bic.window_packets = 950
    bic.on_loss()
    assert bic.window_packets == 831.25
    assert step(880.625) == pytest.approx(5, rel=1e-6)


def test_bic__gap_halves_until_the_least_step() -> None:
    bic = fw.Controller("bic", 1000)
    bic.on_loss()
    gaps = []
    for _ in range(18):
        round_trip(bic)
        gaps.append(1000 - bic.window_packets)
    near = [(a, b) for a, b in itertools.pairwise(gaps) if b > 0.1 and a < 60]
    assert len(near) > 5
    for a, b in near:
        assert b / a == pytest.approx(math.exp(-0.5), rel=0.01)  # half the gap of each moment, for a round trip


def test_cubic__passes_the_old_maximum_after_k() -> None:
    # K = cbrt(300 / 0.4) = 9.0856 s: 700 at 0, 1000 at K, 1300 at 2 K.
    c = fw.Controller("cubic", 1000)
    c.on_loss()
    assert c.window_packets == 700
    k_s, seen = 9.0856, {}
    while c.now_s < 2 * k_s:
        c.on_ack(rtt_s=0.1)
        seen[c.now_s] = c.window_packets
    at = np.interp([k_s / 2, k_s, 1.5 * k_s, 2 * k_s], list(seen), list(seen.values()))
    # W(K / 2) = 1000 - 0.4 (K / 2)^3 = 962.5; the window aims an RTT ahead and follows by about as much.
    np.testing.assert_allclose(at, [962.5, 1000, 1037.5, 1300], rtol=2e-3)


def test_cubic__grows_by_the_clock_that_it_is_given() -> None:
    c = fw.Controller("cubic", 1000)
    c.on_loss(now_s=100)
    c.on_ack(now_s=100)
    for tick in range(1, 20_000):
        c.on_ack(now_s=100 + tick * 9.0856 / 20_000)
    assert c.window_packets == pytest.approx(1000, rel=2e-3)


@pytest.mark.parametrize(("rtt_s", "change"), [(0.101, 1), (0.106, 0), (0.115, -1)])
def test_vegas__holds_between_one_and_three_packets_queued(rtt_s: float, change: float) -> None:
    # 38 packets over a base of 100 ms: 38 (1 - 100 / 106) = 2.15 queued; 0.38 at 101 ms, 4.96 at 115 ms.
    c = fw.Controller("vegas", 38, initial_ssthresh_packets=2)
    c.on_ack(rtt_s=0.1)
    round_trip(c, rtt_s)  # the first round, with one sample of the base
    before = c.window_packets
    for _ in range(2):
        for _ in range(39):
            c.on_ack(rtt_s=rtt_s)
    assert np.sign(round(c.window_packets - before, 2)) == change


def test_fast__goes_to_alpha_packets_queued() -> None:
    c = fw.Controller("fast", 500, initial_ssthresh_packets=2, alpha=50)
    for _ in range(200_000):
        c.on_ack(rtt_s=0.1 * max(1.0, c.window_packets / 1000))  # a pipe of 1000 packets
    assert c.window_packets == pytest.approx(1050, abs=2)


def test_htcp__grows_faster_the_longer_there_was_no_loss() -> None:
    # 22 = 1 + 10 x 2 + (2 / 2)^2 packets a round trip, 3 s after a loss.
    c = fw.Controller("htcp", 1000)
    c.on_loss(now_s=0)
    c.window_packets = 1000
    c.on_ack(now_s=3.0)
    assert (c.window_packets - 1000) * 1000 == pytest.approx(22, rel=1e-6)


def test_options__are_those_of_scenario_files() -> None:
    assert fw.Controller("aimd", 100, initial_ssthresh_packets=2, decrease=0.25).window_packets == 100
    c = fw.Controller("aimd", 100, decrease=0.25, max_window="120 packets")
    c.on_loss()
    assert c.window_packets == 75
    c.window_packets = 500
    assert c.window_packets == 120
    assert fw.Controller("cubic", initial_window="10 packets", max_window="inf").window_packets == 10
    assert fw.Controller("cubic", initial_window=10, max_window=INF).window_packets == 10
    linux = fw.Controller("bic", 1000, constants="linux")
    linux.on_loss()
    assert linux.window_packets == pytest.approx(1000 * 819 / 1024)


def test_defaults__are_those_of_the_list() -> None:
    schemes = fw.schemes().set_index("name")["options"]
    sender = {"sack", "delayed_ack", "pacing", "max_burst", "min_rto", "initial_rto", "idle_restart", "send_jitter"}
    for name in NAMES:
        spelled: dict[str, Any] = {}
        for option, text in schemes[name].items():
            if option not in sender:
                try:
                    spelled[option] = float(text)
                except ValueError:
                    spelled[option] = {"true": True, "false": False}.get(text, text)
        by_default, by_list = fw.Controller(name), fw.Controller(name, **spelled)
        for step in range(2000):
            for c in (by_default, by_list):
                c.on_ack(rtt_s=0.05 + 0.001 * (step % 7))
                if step % 500 == 499:
                    c.on_loss()
            assert by_default.window_packets == by_list.window_packets, f"{name} at {step}"


@pytest.mark.parametrize("name", NAMES)
def test_any_sequence__leaves_a_window(name: str) -> None:
    draw = random.Random(name)
    for _ in range(30):
        c = fw.Controller(name, draw.uniform(1, 1e5), draw.choice([INF, 2.0, 500.0]))
        for _ in range(300):
            match draw.randrange(10):
                case 0:
                    c.on_loss(draw.choice([None, 0, 1, 10**6, 2**32 - 1]))
                case 1:
                    c.on_timeout()
                case 2:
                    c.window_packets = draw.choice([1, 3.5, 2.0**32 - 1])
                case 3:
                    c.on_ack(draw.choice([1, 2**32 - 1]), draw.choice([1e-9, 1e9]))
                case 4 if c.now_s < 1e9:  # the clock stands still at its end, after 584 years
                    c.on_ack(1, 0.1, now_s=c.now_s + draw.choice([0.0, 1e-3, 1e6]))
                case _:
                    c.on_ack(draw.randint(1, 100), draw.uniform(1e-4, 1.0))
            assert 1 <= c.window_packets < 1e300
            assert c.ssthresh_packets >= 2


MISTAKES: list[tuple[str, dict[str, object], str]] = [
    ("on_ack", {"acked_packets": 0}, "acked_packets: 0 must be a whole number of packets from 1"),
    ("on_ack", {"acked_packets": -3}, "acked_packets: -3 must be a whole number"),
    ("on_ack", {"acked_packets": 2**40}, "acked_packets: 1099511627776 must be a whole number"),
    ("on_ack", {"rtt_s": -0.1}, "rtt_s: -0.1 must be a time above zero"),
    ("on_ack", {"rtt_s": 0}, "rtt_s: 0 must be a time above zero"),
    ("on_ack", {"rtt_s": float("nan")}, "rtt_s: NaN must be a time above zero"),
    ("on_ack", {"rtt_s": INF}, "rtt_s: inf must be a time above zero"),
    ("on_ack", {"now_s": float("nan")}, "now_s: NaN must be a time from 0"),
    ("on_ack", {"now_s": -1}, "now_s: -1 must be a time from 0"),
    ("on_ack", {"now_s": 4.5}, "now_s: 4.5 must be at least 5"),
    ("on_loss", {"in_flight_packets": -1}, "in_flight_packets: -1 must be a whole number of packets from 0"),
    ("on_loss", {"now_s": 1}, "now_s: 1 must be at least 5"),
]


@pytest.mark.parametrize(("method", "wrong", "message"), MISTAKES)
def test_mistakes__name_the_argument_and_change_nothing(method: str, wrong: dict[str, object], message: str) -> None:
    c = fw.Controller("bic", 100)
    c.on_ack(now_s=5)
    before = (c.window_packets, c.ssthresh_packets, c.now_s)
    with pytest.raises(ValueError, match=message):
        getattr(c, method)(**wrong)
    assert (c.window_packets, c.ssthresh_packets, c.now_s) == before


def test_mistakes__of_the_start_say_what_there_is() -> None:
    for scheme in ["gtp", "xcp", "cbr", "udt", "reno", ""]:
        names = ", ".join(NAMES)
        with pytest.raises(ValueError, match=f'scheme: "{scheme}" has no window rule\nhint: use one of {names}'):
            fw.Controller(scheme)
    with pytest.raises(ValueError, match=r'option "smax": bic has no such option\nhint: use one of .*s_max'):
        fw.Controller("bic", smax=32)
    with pytest.raises(ValueError, match=r'option "beta": 1.5 is out of range'):
        fw.Controller("bic", beta=1.5)
    with pytest.raises(ValueError, match='option "s_max": NaN is out of range'):
        fw.Controller("bic", s_max=float("nan"))
    with pytest.raises(ValueError, match='option "pacing": not supported by Controller'):
        fw.Controller("bic", pacing=True)
    with pytest.raises(ValueError, match='option "initial_window": same as initial_window_packets'):
        fw.Controller("bic", 10, initial_window=10)
    with pytest.raises(ValueError, match=r"hstcp: high_window 38 .* must be above low_window 38"):
        fw.Controller("hstcp", high_window=38)
    for wrong in [0, -1, float("nan"), INF]:
        with pytest.raises(ValueError, match=r"initial_window_packets: .* must be a number of packets from 1"):
            fw.Controller("bic", wrong)
    for wrong in [0, -1, float("nan"), -INF]:
        with pytest.raises(ValueError, match=r"initial_ssthresh_packets: .* must be a number of packets from 1"):
            fw.Controller("bic", initial_ssthresh_packets=wrong)
        c = fw.Controller("bic")
        with pytest.raises(ValueError, match=r"window_packets: .* must be a number of packets from 1"):
            c.window_packets = wrong


def test_repr__names_rule_and_window() -> None:
    assert repr(fw.Controller("cubic", 12.5)) == '<Controller "cubic": 12.5 packets>'
