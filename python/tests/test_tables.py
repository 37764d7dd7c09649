"""`fairwave.allocate`, `fairwave.schemes` and `fairwave.response`."""

from __future__ import annotations

import math

import numpy as np
import pytest

import fairwave as fw


def test_allocate__sixteen_nodes_as_printed() -> None:
    # Wu & Chien 2006, Table 2 as printed: 3388.39 Mb/s in total, the largest 232.1, 214.3, 200.9, 156.3.
    frame = fw.allocate("scenarios/sixteen-nodes.toml", variant="as printed")
    assert list(frame.columns) == ["name", "from", "to", "rate_bps", "limited_by"]
    mbps = (frame["rate_bps"] / 1e6).sort_values(ascending=False)
    assert mbps.sum() == pytest.approx(3388.39, abs=0.005)
    np.testing.assert_allclose(mbps.head(4), [232.1, 214.3, 200.9, 156.3], atol=0.05)


def test_allocate__at_an_instant_counts_who_is_there() -> None:
    def mbps(at: str | None) -> dict[str, float]:
        frame = fw.allocate("scenarios/demands.toml", at=at)
        return dict(zip(frame["name"], frame["rate_bps"] / 1e6, strict=True))

    assert mbps("1 s") == pytest.approx({"unlimited": 750, "steady": 150, "step": 100, "visitor": 0})
    # (1000 - 150) / 3
    assert mbps("8 s") == pytest.approx({"unlimited": 850 / 3, "steady": 150, "step": 850 / 3, "visitor": 850 / 3})
    frame = fw.allocate("scenarios/demands.toml", at="1 s").set_index("name")
    assert frame["limited_by"].fillna("nothing").to_dict() == {
        "unlimited": "d1", "steady": "demand", "step": "demand", "visitor": "nothing",
    }  # fmt: skip


def test_allocate__agrees_with_max_min() -> None:
    frame = fw.allocate("scenarios/lambda-1024.toml")
    nodes = {name: k for k, name in enumerate(sorted({*frame["from"], *frame["to"]}))}
    rows = np.column_stack([frame["from"].map(nodes), frame["to"].map(nodes)])
    rates = fw.max_min(np.full(len(nodes), 1e9), rows)
    np.testing.assert_allclose(frame["rate_bps"], rates, rtol=1e-12)


def test_schemes__are_a_row_each() -> None:
    frame = fw.schemes()
    expected = ["name", "kind", "models", "needs", "options", "header_bytes", "cites", "help"]
    assert list(frame.columns) == expected
    assert frame["name"].is_unique
    assert {"gtp", "gtp-printed", "abr-charny", "abr-hou", "newreno", "cubic", "xcp"} <= set(frame["name"])
    assert set(frame["kind"]) == {"session", "node", "link"}
    fluid = frame[["fluid" in models for models in frame["models"]]]
    assert {"gtp", "gtp-printed", "abr-charny", "abr-hou"} <= set(fluid["name"])


def test_response__reno_and_stcp() -> None:
    # Reno: sqrt(1.5 / p). Scalable TCP: increase 0.01 an ack, decrease 1/8: about 0.075 / p.
    np.testing.assert_allclose(fw.response("newreno", [1e-6, 1e-4]), [math.sqrt(1.5e6), math.sqrt(1.5e4)])
    np.testing.assert_allclose(fw.response("stcp", [1e-6]), [0.075e6], rtol=0.01)
    assert fw.response("hstcp", 1e-7).shape == (1,)


def test_response__hstcp_passes_through_the_points_of_its_rfc() -> None:
    # RFC 3649: 83000 packets at p = 1e-7, on a line in logarithms through 38 at TCP's own 1.5 / 38^2 = 1.0388e-3:
    # 83000 / 100^(1 / 1.20279) = 1804 at 1e-5. The RFC's Table 2, with 1e-3 and rounded slopes, has 1795.
    np.testing.assert_allclose(fw.response("hstcp", [1e-7, 1e-5]), [83_000, 1804], rtol=1e-3)


def test_response__bic_in_all_its_forms() -> None:
    # Xu et al. 2004, Eq. 6: sqrt(32 / 2 x 1.875 / 0.125 / p) = sqrt(240 / p).
    np.testing.assert_allclose(fw.response("bic", 1e-8, form="asymptote"), [math.sqrt(240e8)])
    np.testing.assert_allclose(
        fw.response("bic", [1e-7, 1e-8], form="large"), fw.response("bic", [1e-7, 1e-8]), rtol=0.01
    )
    np.testing.assert_allclose(fw.response("bic", 3e-4, form="search"), fw.response("bic", 3e-4), rtol=0.001)
    assert 0.82 < fw.response("bic", 3e-4, form="rule")[0] / fw.response("bic", 3e-4)[0] < 0.85
    assert fw.response("bic", 1e-8, s_max=64)[0] == pytest.approx(math.sqrt(2) * fw.response("bic", 1e-8)[0], rel=0.01)
    # Independent of s_max while searches alone do it (after Eq. 7).
    np.testing.assert_allclose(fw.response("bic", 1e-3, s_max=64), fw.response("bic", 1e-3), rtol=1e-12)


def test_response__of_rules_that_grow_by_the_clock() -> None:
    # RFC 8312, Table 1 (RTT 0.1 s): 187, 1054, 5926.
    windows = fw.response("cubic", [1e-4, 1e-5, 1e-6], rtt_s=0.1)
    np.testing.assert_allclose(windows, [187, 1054, 5926], rtol=0.003)
    # Four times the scale of the cubic is a fourth root of it in the window.
    np.testing.assert_allclose(fw.response("cubic", [1e-6], rtt_s=0.1, c=6.4), 2 * windows[2], rtol=1e-12)
    assert fw.response("htcp", 1e-6, rtt_s=0.1)[0] > fw.response("htcp", 1e-6, rtt_s=0.01)[0]
    for scheme in ["cubic", "htcp"]:
        with pytest.raises(ValueError, match=f"rtt_s: required for {scheme}, .*\nhint: pass rtt_s"):
            fw.response(scheme, 1e-4)
    for wrong in [0.0, -1.0, math.nan, math.inf]:
        with pytest.raises(ValueError, match=r"rtt_s: .* must be a time above zero"):
            fw.response("cubic", 1e-4, rtt_s=wrong)


def test_response__mistakes() -> None:
    with pytest.raises(ValueError, match=r"loss_rate\[1\]: 0 must be between 0 and 1"):
        fw.response("newreno", [0.1, 0.0])
    with pytest.raises(ValueError, match=r"loss_rate\[0\]: NaN must be between 0 and 1"):
        fw.response("newreno", float("nan"))
    with pytest.raises(ValueError, match='scheme: "gtp" has no response function'):
        fw.response("gtp", [0.1])
    with pytest.raises(ValueError, match='scheme: "gpt" has no response function'):
        fw.response("gpt", [])
    for delay in ["vegas", "fast"]:
        with pytest.raises(
            ValueError, match="its window depends on the delay, not on the loss rate\nhint: use one of newreno, "
        ):
            fw.response(delay, [0.1])
    with pytest.raises(
        ValueError, match='option "max_window": no effect on the response of bic\nhint: use one of s_max'
    ):
        fw.response("bic", [0.1], max_window=100)
    with pytest.raises(ValueError, match='option "s_max": newreno has no such option'):
        fw.response("newreno", [0.1], s_max=1)
    with pytest.raises(ValueError, match='constants = "linux" has no closed-form response function'):
        fw.response("bic", [0.1], constants="linux")
    with pytest.raises(ValueError, match="hstcp: high_window"):
        fw.response("hstcp", [0.1], high_p=0.5)
    with pytest.raises(ValueError, match=r'form: unknown form "small" of bic.*\nhint: use one of paper, search'):
        fw.response("bic", [0.1], form="small")
    with pytest.raises(ValueError, match="form: stcp has only one form"):
        fw.response("stcp", [0.1], form="paper")
