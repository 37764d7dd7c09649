"""`Run.plot`: what is in the picture."""

from __future__ import annotations

import io
from collections.abc import Iterator

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.text import Text

import fairwave as fw
from fairwave._plot import _apart


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    yield
    plt.close("all")


def shipped(name: str, variant: str | None = None) -> fw.Run:
    run = fw.simulate(f"scenarios/{name}.toml", model="fluid", variant=variant)
    assert isinstance(run, fw.Run)
    return run


def save(ax: Axes) -> None:
    figure = ax.get_figure(root=True)
    assert figure is not None
    figure.savefig(io.BytesIO(), format="png")


def texts(ax: Axes) -> list[str]:
    return [text.get_text() for text in ax.texts]


def test_plot__draws_each_session_and_its_max_min_rate() -> None:
    run = shipped("demands")
    ax = run.plot()
    assert isinstance(ax, Axes)
    rates = run.rates()
    lines = {line.get_label(): line for line in ax.get_lines() if not str(line.get_label()).startswith("_")}
    assert list(lines) == ["unlimited", "steady", "step", "visitor"]
    steady = rates[rates["session"] == "steady"]["rate_bps"] / 1e6
    np.testing.assert_array_equal(lines["steady"].get_ydata(), steady)
    dashed = [line for line in ax.get_lines() if line.is_dashed()]
    assert len(dashed) == 4
    assert {800.0, 150.0, 50.0} <= {float(np.asarray(line.get_ydata())[-1]) for line in dashed}
    assert ax.get_ylabel() == "rate (Mb/s)"
    assert ax.get_title(loc="left") == "Four sessions whose demands change"


def test_plot__names_stand_at_the_lines() -> None:
    shown = texts(shipped("demands").plot())
    assert {"unlimited  800", "steady  150", "step  50", "visitor"} <= set(shown)


def test_plot__labels_that_would_meet_stand_apart() -> None:
    run = shipped("five-to-one")
    ax = run.plot()
    save(ax)
    extents = [Text.get_window_extent(text) for text in ax.texts if text.get_text().startswith("s")]
    assert len(extents) == 5
    assert not any(a.overlaps(b) for k, a in enumerate(extents) for b in extents[k + 1 :])


def test_plot__many_sessions_become_their_distance() -> None:
    run = shipped("sixteen-nodes", "as printed")
    ax = run.plot()
    assert ax.get_yscale() == "log"
    frame = run.distance()
    share = (frame["distance_bps"] / frame["max_min_norm_bps"]).to_numpy()
    np.testing.assert_allclose(np.asarray(ax.get_lines()[0].get_ydata()), np.maximum(share, 1e-6))
    first_below = frame["time_s"][np.flatnonzero(share > 0.01)[-1] + 1]
    assert f"1 % from {first_below:.3g} s on" in texts(ax)
    assert run.plot(what="rates").get_yscale() == "linear"


def test_plot__draws_into_axes_that_are_there() -> None:
    _, (left, right) = plt.subplots(1, 2)
    run = shipped("weights")
    assert run.plot(left) is left
    assert run.plot(right, what="distance") is right


def test_plot__unknown_kind_is_an_error() -> None:
    with pytest.raises(ValueError, match='what: unknown plot "queues"'):
        shipped("weights").plot(what="queues")


def test_plot__shows_sessions_that_never_send() -> None:
    text = """
        name = "idle"
        scheme = "gtp"
        duration = "1 s"
        node = [{ name = "s", capacity = "1 Gb/s" }, { name = "d", capacity = "2 Gb/s" }]
        session = [{ name = "a", from = "s", to = "d", rtt = "20 ms", demand = "0 Mb/s" },
                   { name = "late", from = "s", to = "d", rtt = "20 ms", start = "5 s" }]
    """
    run = fw.simulate(text, model="fluid")
    assert isinstance(run, fw.Run)
    save(run.plot())
    save(run.plot(what="distance"))


def test_apart__keeps_the_order_and_the_room() -> None:
    assert _apart([1.0, 5.0], room=1.0, bottom=0.0) == [1.0, 5.0]
    assert _apart([5.0, 5.0, 5.0], room=1.0, bottom=0.0) == [4.0, 5.0, 6.0]
    # 3 and 3.5 make way for each other: 2.75 and 3.75; 9 stays.
    assert _apart([3.0, 3.5, 9.0], room=1.0, bottom=0.0) == [2.75, 3.75, 9.0]
    assert _apart([], room=1.0, bottom=0.0) == []
