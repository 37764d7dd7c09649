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


def test_response__mistakes() -> None:
    with pytest.raises(ValueError, match=r"loss_rate\[1\]: 0 must be between 0 and 1"):
        fw.response("newreno", [0.1, 0.0])
    with pytest.raises(ValueError, match=r"loss_rate\[0\]: NaN must be between 0 and 1"):
        fw.response("newreno", float("nan"))
    with pytest.raises(ValueError, match='scheme: "gtp" has no response function'):
        fw.response("gtp", [0.1])
    with pytest.raises(ValueError, match='scheme: "gpt" has no response function'):
        fw.response("gpt", [])
