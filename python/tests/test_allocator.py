"""`fairwave.Allocator`: one interval of a node's rule against arithmetic."""

from __future__ import annotations

import math

import numpy as np
import pytest

import fairwave as fw

INF = float("inf")


def test_allocate__idle_sessions_get_the_least_step() -> None:
    # Target 500 / 2 = 250 for both; step = max(0.1 x 250, 0.1 x 0.2 x 250) = 25.
    node = fw.Allocator("gtp", alpha=0.1, beta=0.2)
    np.testing.assert_allclose(node.allocate(500e6, [0.0, 0.0]), [25e6, 25e6], rtol=1e-12)


def test_allocate__low_session_moves_by_alpha_and_the_other_gets_what_is_left() -> None:
    # x_f = 500 / 2 = 250; 100 + 0.1 (250 - 100) = 115; the other: 500 - 100 = 400.
    node = fw.Allocator("gtp", alpha=0.1, beta=0.2)
    np.testing.assert_allclose(node.allocate(500e6, [100e6, 480e6]), [115e6, 400e6], rtol=1e-12)
    # The least step, 245 + 0.1 x 0.2 x 250 = 250, reaches the target; the other: 500 - 245.
    np.testing.assert_allclose(node.allocate(500e6, [245e6, 480e6]), [250e6, 255e6], rtol=1e-12)


def test_allocate__weights_share_the_rest() -> None:
    # Both above their share: 900 split 1 : 2.
    rates = fw.Allocator("gtp").allocate(900e6, [600e6, 900e6], weights=[1, 2])
    np.testing.assert_allclose(rates, [300e6, 600e6], rtol=1e-12)


def test_allocate__defaults_are_those_of_the_list() -> None:
    schemes = fw.schemes()
    options = dict(zip(schemes["name"], schemes["options"], strict=True))["gtp"]
    named = fw.Allocator("gtp", alpha=float(options["alpha"]), beta=float(options["beta"]))
    measured = [1e6, 2e6, 300e6]
    assert fw.Allocator("gtp").allocate(5e8, measured).tobytes() == named.allocate(5e8, measured).tobytes()


def test_allocate__printed_rule_oversteps_where_the_adopted_one_arrives() -> None:
    # One ulp below the target of 250 the print still steps by 0.15 x 0.2 x 250 = 7.5.
    just_below = math.nextafter(250e6, 0)
    printed = fw.Allocator("gtp-printed", alpha=0.15, beta=0.2).allocate(500e6, [just_below, 300e6])
    adopted = fw.Allocator("gtp", alpha=0.15, beta=0.2).allocate(500e6, [just_below, 300e6])
    np.testing.assert_allclose(printed[0], 257.5e6, rtol=1e-12)
    np.testing.assert_allclose(adopted[0], 250e6, rtol=1e-12)


def test_allocate__drain_takes_off_what_is_queued() -> None:
    # 600 offered to 500 for 0.1 s: 10 Mbit wait. Drained over tau = 0.2 s: 500 - 10 / 0.2 = 450 is left to share.
    node = fw.Allocator("gtp", drain=True)
    node.allocate(500e6, [300e6, 300e6], elapsed_s=0)
    rates = node.allocate(500e6, [300e6, 300e6], elapsed_s=0.1)
    np.testing.assert_allclose(rates, [225e6, 225e6], rtol=1e-9)


def test_allocate__atm_rule_advertises_the_rate_of_table_1() -> None:
    # Wu & Chien 2006, Table 1: three demands of 0.1 and one of 1 at a link of 1: the advertised rate is 0.7.
    rates = fw.Allocator("abr-charny").allocate(1e9, [1e8, 1e8, 1e8, 7e8], demand_bps=[1e8, 1e8, 1e8, 1e9])
    assert rates[3] == pytest.approx(0.7e9)


def test_allocate__takes_no_sessions_and_many() -> None:
    node = fw.Allocator("gtp", alpha=0.1)
    assert node.allocate(500e6, []).shape == (0,)
    assert node.allocate(500e6, np.zeros(100_000)).sum() == pytest.approx(0.1 * 500e6)  # alpha C
    assert node.allocate(500e6, [0.0]).shape == (1,)


def test_allocate__same_bits_every_time() -> None:
    measured = np.random.default_rng(1).uniform(0, 1e6, 1000)
    first = fw.Allocator("gtp").allocate(5e8, measured).tobytes()
    assert fw.Allocator("gtp").allocate(5e8, measured).tobytes() == first


MISTAKES: list[tuple[dict[str, object], str]] = [
    ({"capacity_bps": -1.0}, r"capacity_bps: -1 bit/s is not a rate"),
    ({"capacity_bps": float("nan")}, r"capacity_bps: NaN bit/s is not a rate"),
    ({"capacity_bps": INF}, r"capacity_bps: inf bit/s is not a rate"),
    ({"measured_bps": [1.0, float("nan")]}, r"measured_bps\[1\]: NaN bit/s is not a rate"),
    ({"measured_bps": [-5.0, 1.0]}, r"measured_bps\[0\]: -5 bit/s is not a rate"),
    ({"measured_bps": [[1.0, 2.0]]}, r"measured_bps: 2 dimensions, expected one"),
    ({"measured_bps": ["fast", "slow"]}, r"measured_bps: .*, expected numbers"),
    ({"weights": [1.0]}, r"weights: 1 values for 2 sessions"),
    ({"weights": [0.0, 1.0]}, r"weights\[0\]: 0 must be from 1e-6"),
    ({"weights": [1.0, float("nan")]}, r"weights\[1\]: NaN must be from 1e-6"),
    ({"demand_bps": [1.0, 2.0, 3.0]}, r"demand_bps: 3 values for 2 sessions"),
    ({"demand_bps": [1.0, -2.0]}, r"demand_bps\[1\]: -2 bit/s is not a rate"),
    ({"elapsed_s": -1.0}, r"elapsed_s: -1 must be a time"),
    ({"elapsed_s": float("nan")}, r"elapsed_s: NaN must be a time"),
    ({"elapsed_s": 1e20}, r"elapsed_s: 10* must be a time"),
]


@pytest.mark.parametrize(("wrong", "message"), MISTAKES)
def test_allocate__mistakes_name_the_argument(wrong: dict[str, object], message: str) -> None:
    arguments: dict[str, object] = {"capacity_bps": 5e8, "measured_bps": [1e6, 2e6]}
    with pytest.raises(ValueError, match=message):
        fw.Allocator("gtp").allocate(**{**arguments, **wrong})  # type: ignore[arg-type]


def test_allocator__mistakes_in_rule_and_options_say_what_there_is() -> None:
    with pytest.raises(ValueError, match='rule: "cubic" is not a node rule\nhint: use one of gtp, gtp-printed'):
        fw.Allocator("cubic")
    with pytest.raises(ValueError, match='option "gama": gtp has no such option\nhint: use one of alpha, beta'):
        fw.Allocator("gtp", gama=1)
    with pytest.raises(ValueError, match=r'option "alpha": 1.5 is out of range'):
        fw.Allocator("gtp", alpha=1.5)
    with pytest.raises(ValueError, match=r'option "alpha": "much" is not allowed'):
        fw.Allocator("gtp", alpha="much")
    with pytest.raises(ValueError, match=r'option "alpha": list is not allowed'):
        fw.Allocator("gtp", alpha=[0.1])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match='option "interval": not supported by Allocator'):
        fw.Allocator("gtp", interval="20 ms")


def test_allocator__names_its_rule() -> None:
    assert repr(fw.Allocator("abr-hou")) == '<Allocator "abr-hou">'
