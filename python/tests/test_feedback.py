"""`fairwave.xcp_control` and `fairwave.aecp_control`: against arithmetic, and whatever is wrong with a call."""

from __future__ import annotations

import math

import pytest

import fairwave as fw


@pytest.mark.parametrize(
    ("input_bytes", "queue_bytes", "positive", "negative"),
    [
        # Of 100 Mb/s, 0.1 s: nothing came, 0.4 x 100.
        (0, 0, 40e6, 0),
        # At capacity a tenth is shuffled.
        (1.25e6, 0, 10e6, 10e6),
        # 110 Mb/s with 50 kB standing: -4 - 0.904, and 11 - 4.904 = 6.096 shuffled.
        (1.375e6, 50e3, 6.096e6, 11e6),
        # 200 Mb/s: -40, and nothing is shuffled.
        (2.5e6, 0, 0, 40e6),
    ],
)
def test_xcp_control__by_hand(input_bytes: float, queue_bytes: float, positive: float, negative: float) -> None:
    assert fw.xcp_control(100e6, 0.1, input_bytes, queue_bytes, 0.1) == pytest.approx((positive, negative), abs=1e-3)


def test_aecp_control__by_hand() -> None:
    # (50,000 + (600 - 100) / 2) / 62,500 = 0.804.
    assert fw.aecp_control(10_000, 62_500, 50_000, 600) == pytest.approx(10_000 * math.exp(0.1 * 0.196), rel=1e-12)
    assert fw.aecp_control(10_000, 62_500, 50_000, 600, interval_s=0.2) == pytest.approx(
        10_000 * math.exp(0.2 * 0.196), rel=1e-12
    )
    # Within one packet a second and the capacity.
    assert fw.aecp_control(62_500, 62_500, 0, 0) == 62_500
    assert fw.aecp_control(1, 62_500, 1e9, 1e9) == 1


@pytest.mark.parametrize("wrong", [-1.0, math.nan, math.inf, 1e300])
def test_controls__name_the_argument_that_is_wrong(wrong: float) -> None:
    good = {"capacity_bps": 100e6, "interval_s": 0.1, "input_bytes": 0, "queue_bytes": 0, "avg_rtt_s": 0.1}
    for name in good:
        with pytest.raises(ValueError, match=f"^{name}: "):
            fw.xcp_control(**{**good, name: wrong})
    good = {
        "rate_packets_per_s": 1e4,
        "capacity_packets_per_s": 1e5,
        "arrival_packets_per_s": 0,
        "queue_packets": 0,
        "interval_s": 0.1,
    }
    for name in good:
        with pytest.raises(ValueError, match=f"^{name}: "):
            fw.aecp_control(**{**good, name: wrong})


def test_controls__zero_is_no_capacity_and_no_time() -> None:
    with pytest.raises(ValueError, match=r"^capacity_bps: 0 must be a rate above zero and at most 1e18, in bit/s$"):
        fw.xcp_control(0, 0.1, 0, 0, 0.1)
    with pytest.raises(ValueError, match=r"^interval_s: 0 must be a time above zero"):
        fw.xcp_control(1e6, 0, 0, 0, 0.1)
    with pytest.raises(ValueError, match=r"^capacity_packets_per_s: 0.5 must be a rate from 1 to 1e18"):
        fw.aecp_control(1, 0.5, 0, 0)
    with pytest.raises(ValueError, match="could not convert"):
        fw.aecp_control("fast", 1, 0, 0)  # type: ignore[arg-type]
