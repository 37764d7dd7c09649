"""Pictures of runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, NullLocator

if TYPE_CHECKING:
    from fairwave._run import Run

MOST_LINES = 12
"""Sessions that a picture of rates can tell apart."""

# Twelve colours that differ for colour-blind readers too (after Paul Tol's muted and vibrant sets); names stand at the
# lines, so colour never carries meaning alone.
COLOURS = (
    "#0077bb", "#cc3311", "#009988", "#ee7733", "#882255", "#332288",
    "#117733", "#aa4499", "#999933", "#33bbee", "#cc6677", "#555555",
)  # fmt: skip
FLOOR = 1e-4
"""Least distance that a picture shows, as a share of the norm."""
INK, FAINT = "#222222", "#8a8a8a"
UNITS = ((1e9, "Gb/s"), (1e6, "Mb/s"), (1e3, "kb/s"), (1.0, "b/s"))

Floats = npt.NDArray[np.float64]


def draw(run: Run, ax: Axes | None, what: str | None) -> Axes:
    """Draw rates or the distance to the optimum."""
    sessions = len(run.summary["sessions"])
    if what is None:
        what = "rates" if sessions <= MOST_LINES else "distance"
    if what not in ("rates", "distance"):
        raise ValueError(f'what: unknown plot "{what}": use "rates" or "distance"')
    if ax is None:
        _, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
    if what == "rates":
        _draw_rates(run, ax)
    else:
        _draw_distance(run, ax)
    _dress(run, ax)
    return ax


def _draw_rates(run: Run, ax: Axes) -> None:
    names = [session["name"] for session in run.summary["sessions"]]
    end_s = float(run.summary["duration_s"])
    frame = run.rates()
    times = frame["time_s"].to_numpy()[:: max(len(names), 1)]
    # Wire rates, as the max-min rates are.
    rates = frame["wire_rate_bps"].to_numpy().reshape(len(times), len(names))
    starts, optimum = _steps(run, len(names))
    most = max(np.nanmax(rates, initial=0.0), np.nanmax(optimum, initial=0.0))
    factor, unit = next((pair for pair in UNITS if most >= pair[0]), UNITS[-1])
    finals = [session["final_wire_rate_bps"] / factor for session in run.summary["sessions"]]

    running: list[tuple[float, str, str]] = []
    staircases: dict[bytes, list[int]] = {}
    for k, name in enumerate(names):
        colour = COLOURS[k % len(COLOURS)]
        x, y = times, rates[:, k] / factor
        active = np.flatnonzero((y > 0) | (_held(starts, optimum[:, k], times) > 0))
        if active.size == 0:
            continue
        x, y = x[active[0] : active[-1] + 1], y[active[0] : active[-1] + 1]
        ax.plot(x, y, color=colour, linewidth=1.8, solid_capstyle="round", label=name, zorder=3)
        staircases.setdefault(optimum[:, k].tobytes(), []).append(k)
        if x[-1] >= end_s - 1e-9:
            running.append((y[-1], f"{name}  {_digits(finals[k])}", colour))
        else:
            peak = int(np.argmax(y))
            ax.annotate(
                name, (x[peak], y[peak]), (0, 5), textcoords="offset points", color=colour, fontsize=9, ha="center"
            )
    for ks in staircases.values():
        colour = COLOURS[ks[0] % len(COLOURS)] if len(ks) == 1 else INK
        x, y = np.append(starts, end_s), np.append(optimum[:, ks[0]], optimum[-1:, ks[0]]) / factor
        y[y == 0] = np.nan
        ax.step(x, y, where="post", color=colour, linewidth=1.1, dashes=(4, 3), alpha=0.9, zorder=4)

    ax.set_ylabel(f"rate ({unit})" if run.summary["model"] == "fluid" else f"wire rate ({unit})")
    ax.set_xlim(0, end_s)
    ax.set_ylim(0, most / factor * 1.06 if most > 0 else 1)
    _label_ends(ax, running, end_s)


def _steps(run: Run, sessions: int) -> tuple[Floats, Floats]:
    """Instants at which the max-min vector changes, and the vector from then on."""
    frame = run.max_min()
    starts = frame["time_s"].to_numpy()[:: max(sessions, 1)]
    return starts, frame["max_min_bps"].to_numpy().reshape(len(starts), sessions)


def _held(starts: Floats, values: Floats, times: Floats) -> Floats:
    """Value of a staircase just before each instant."""
    return np.asarray(values[np.maximum(np.searchsorted(starts, times) - 1, 0)])


def _label_ends(ax: Axes, ends: list[tuple[float, str, str]], end_s: float) -> None:
    """Write each line's name and final rate at its end, to the right of the axes, moved apart where they would meet."""
    bottom, top = ax.get_ylim()
    height_points = ax.get_window_extent().height * 72 / ax.figure.dpi
    ends = ends[::-1]  # of those that meet, the first stands on top
    ends.sort(key=lambda end: round(end[0] / top, 3))
    places = _apart([y for y, _, _ in ends], room=12.5 * (top - bottom) / height_points, bottom=bottom)
    for (y, text, colour), place in zip(ends, places, strict=True):
        ax.annotate(
            text,
            xy=(end_s, y),
            xytext=(1.035, place),
            textcoords=ax.get_yaxis_transform(),
            color=colour,
            fontsize=9,
            va="center",
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-", "color": colour, "linewidth": 0.7, "shrinkA": 2, "shrinkB": 0, "relpos": (0, 0.5)
            },
        )  # fmt: skip


def _apart(wanted: list[float], room: float, bottom: float) -> list[float]:
    """Places as near as can be to those wanted (rising), at least `room` from each other."""
    groups: list[list[float]] = []  # each: sum of the wanted places of its lowest member, members
    for place in wanted:
        groups.append([place, 1])
        while len(groups) > 1 and _low(groups[-1]) < _low(groups[-2]) + groups[-2][1] * room:
            total, members = groups.pop()
            # Members of the upper group stand above all of the lower one.
            groups[-1][0] += total - members * groups[-1][1] * room
            groups[-1][1] += members
    return [max(_low(group), bottom) + k * room for group in groups for k in range(int(group[1]))]


def _low(group: list[float]) -> float:
    """Place of a group's lowest member, so that the group is centred on what its members want."""
    return group[0] / group[1]


def _digits(number: float) -> str:
    """Three digits, without exponent."""
    return f"{number:.0f}" if number >= 100 else f"{number:.3g}"


def _draw_distance(run: Run, ax: Axes) -> None:
    frame = run.distance()
    times, distance = frame["time_s"].to_numpy(), frame["distance_bps"].to_numpy()
    norm = frame["max_min_norm_bps"].to_numpy()
    share = np.divide(distance, norm, out=np.full_like(distance, np.nan), where=norm > 0)
    # Zero has no place on a logarithmic axis; what is below the floor leaves the picture there.
    ax.plot(times, np.maximum(share, FLOOR / 100), color=COLOURS[0], linewidth=1.8, zorder=3)
    for level in (0.1, 0.01):
        above = np.flatnonzero(share > level)
        if 0 < above.size < share.size and above[-1] + 1 < share.size:
            x = times[above[-1] + 1]
            ax.plot([x], [level], "o", color=COLOURS[0], markersize=4.5, zorder=4)
            ax.annotate(f"{100 * level:g} % from {x:.3g} s on", (x, level), (7, 5), textcoords="offset points",
                        color=COLOURS[0], fontsize=9)  # fmt: skip
    ax.set_yscale("log")
    ax.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{100 * y:g} %"))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.set_ylabel("distance to max-min, share of its norm")
    ax.set_xlim(0, float(run.summary["duration_s"]))
    ax.set_ylim(FLOOR, max(1.3, 1.3 * float(np.nanmax(share, initial=1.0))))


def _dress(run: Run, ax: Axes) -> None:
    """Title, axes and grid."""
    summary = run.summary
    count = len(summary["sessions"])
    parts = [f"{count} sessions" if count != 1 else "one session", summary["scheme"], f"{summary['model']} model"]
    if summary["variant"] is not None:
        parts.insert(0, summary["variant"])
    if ax.get_yscale() != "log":
        parts.append("dashed: max-min fair")
    ax.set_title(run.title, loc="left", fontsize=12, fontweight="bold", color=INK, pad=22)
    ax.text(0, 1.025, "  ·  ".join(parts), transform=ax.transAxes, fontsize=9, color=FAINT, va="bottom")
    ax.set_xlabel("time (s)")
    ax.grid(axis="y", color="#e6e6e6", linewidth=0.8)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(FAINT)
    ax.tick_params(colors="#555555", labelsize=9)
    ax.xaxis.label.set_color("#555555")
    ax.yaxis.label.set_color("#555555")


def draw_sweep(means: pd.DataFrame, x: str, y: str, by: list[str], ax: Axes | None) -> Axes:
    """Draw means with their bands, a line for each value of what is in ``by``."""
    if ax is None:
        _, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
    groups = list(means.groupby(by, sort=False, dropna=False)) if by else [((), means)]
    is_number = pd.api.types.is_numeric_dtype(means[x])
    for k, (values, group) in enumerate(groups):
        colour = COLOURS[k % len(COLOURS)]
        group = group.sort_values(x) if is_number else group
        along = group[x].to_numpy() if is_number else group[x].astype(str).to_numpy()
        label = ", ".join(f"{name} = {value}" for name, value in zip(by, values, strict=True)) if by else None
        ax.plot(along, group["mean"], color=colour, linewidth=1.8, marker="o", markersize=4, label=label, zorder=3)
        ax.fill_between(along, group["low"], group["high"], color=colour, alpha=0.2, linewidth=0, zorder=2)
    if by:
        ax.legend(frameon=False, fontsize=9)
    runs = int(means["count"].max()) if len(means) else 0
    ax.set_title(f"means of {runs} runs, bands: 95 % intervals", loc="left", fontsize=9, color=FAINT)
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    ax.grid(axis="y", color="#e6e6e6", linewidth=0.8)
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(FAINT)
    return ax
