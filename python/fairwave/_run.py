"""The outcome of a run."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from fairwave import _core
from fairwave._lazy import LazyModule

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
else:
    pd = LazyModule("pandas")


_TABLES = ("rates", "queues", "windows", "losses", "max_min", "distance", "round_trips")


class _Kept:
    """The tables of a run out of a pickle, as the native module gives them."""

    def __init__(
        self, title: str, summary: str, tables: dict[str, dict[str, Any]], ways: list[list[int]] | None = None
    ) -> None:
        self.title = title
        self._ways = ways or []
        self._summary = summary
        self._tables = tables

    def summary(self) -> str:
        return self._summary

    def ways(self) -> list[list[int]]:
        return self._ways

    def _copy(self, table: str) -> dict[str, Any]:
        # The columns that a caller gets are his own.
        return {name: np.array(column) for name, column in self._tables[table].items()}

    def rates(self) -> dict[str, Any]:
        return self._copy("rates")

    def queues(self) -> dict[str, Any]:
        return self._copy("queues")

    def windows(self) -> dict[str, Any]:
        return self._copy("windows")

    def losses(self) -> dict[str, Any]:
        return self._copy("losses")

    def max_min(self) -> dict[str, Any]:
        return self._copy("max_min")

    def distance(self) -> dict[str, Any]:
        return self._copy("distance")

    def round_trips(self) -> dict[str, Any]:
        return self._copy("round_trips")


def _restored(title: str, summary: str, tables: dict[str, dict[str, Any]], ways: list[list[int]] | None = None) -> Run:
    return Run(_Kept(title, summary, tables, ways))


def _percentiles(values: Any, counts: Any, q: Sequence[float]) -> list[float]:
    """For each percentile, the smallest value that covers it; NaN without values."""
    if not len(values):
        return [float("nan")] * len(q)
    order = np.argsort(values, kind="stable")
    below = np.cumsum(counts[order])
    wanted = np.maximum(np.ceil(np.asarray(q, dtype=np.float64) / 100 * below[-1]), 1)
    return [float(value) for value in values[order][np.searchsorted(below, wanted)]]


class Run:
    """The result of a run: the summary, samples as DataFrames, and plots.

    Returned by `fairwave.simulate`; it can be pickled and sent to other processes. Rates are in bit/s, times in seconds
    from the start of the run.

    Example:
        >>> import fairwave as fw
        >>> run = fw.simulate('''
        ... name = "one"
        ... scheme = "gtp"
        ... duration = "3 s"
        ... node = [{ name = "s", capacity = "1 Gb/s" }, { name = "d", capacity = "500 Mb/s" }]
        ... session = [{ name = "a", from = "s", to = "d", rtt = "20 ms" }]
        ... ''', model="fluid")
        >>> run
        <Run "one": gtp, fluid, seed 1, 3 s, 1 session>
        >>> run.summary["links"][1]["name"], round(run.summary["links"][1]["utilisation"], 3)
        ('d:in', 1.0)
    """

    def __init__(self, core: _core.Run | _Kept) -> None:
        """Wrap a run of the native module; `fairwave.simulate` does."""
        self._core = core

    def __reduce__(self) -> tuple[Any, ...]:
        """Give what makes the same run elsewhere: the summary and all tables."""
        tables = {table: getattr(self._core, table)() for table in _TABLES}
        return _restored, (self._core.title, self._core.summary(), tables, self._core.ways())

    @property
    def title(self) -> str:
        """The scenario's title, or its name if it has none."""
        return self._core.title or str(self.summary["scenario"])

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The summary, as `fairwave simulate --json` prints it.

        ``sessions``, ``schemes``, ``links`` and ``background`` are lists of dicts; ``options``, ``window``, ``metrics``
        and ``engine`` are dicts. Means of sessions, links and totals are taken over ``window``. A session's
        ``final_rate_bps`` is the mean over the last tenth of its active time, ``max_min_bps`` its rate in the global
        optimum at the end of that time.
        """
        summary: dict[str, Any] = json.loads(self._core.summary())
        return summary

    @property
    def sessions(self) -> pd.DataFrame:
        """The summary's sessions as a table, one row per session; ``completed_s`` is NaN if a session did not end."""
        return pd.DataFrame(self.summary["sessions"]).astype({"completed_s": "float64"})

    @property
    def links(self) -> pd.DataFrame:
        """The summary's links as a table, one row per link or used direction of a node ("d1:in", "s1:out").

        ``utilisation`` and ``mean_queue_packets`` are means over the summary's window. ``marked_packets`` is present if
        a queue marks, and NaN for those that do not.
        """
        columns = ["name", "capacity_bps", "utilisation", "mean_queue_packets", "max_queue_packets", "dropped_packets"]
        if any("marked_packets" in link for link in self.summary["links"]):
            columns.append("marked_packets")
        return pd.DataFrame(self.summary["links"], columns=columns)

    def rates(self) -> pd.DataFrame:
        """Rates per sample and session, the columns of ``rates.csv``, by time and session.

        ``time_s`` is the end of the sample. ``rate_bps`` and ``wire_rate_bps`` are means over the sample; the rates at
        its end are ``source_expected_bps`` and ``sink_expected_bps`` (the grants of the two end nodes, the sink's as
        known to the source), ``expected_bps`` (the smaller), ``target_bps`` (where they lead the session) and
        ``measured_bps`` (measured by the sink's end node at its last tick). NaN if a scheme has no such rate or the
        session is not active.

        One column per session: ``run.rates().pivot(index="time_s", columns="session", values="rate_bps")``.
        """
        return self._named(self._core.rates(), "session", "sessions")

    def queues(self) -> pd.DataFrame:
        """Queues per sample and link, the columns of ``queues.csv``, by time and link.

        ``link`` is a link's name, or a node's and the direction ("d1:in", "s1:out"). ``queue_packets`` and
        ``queue_bytes`` are taken at the end of the sample, ``dropped_packets`` counts within it, and so
        does ``marked_packets`` if a queue marks.
        """
        return self._named(self._core.queues(), "link", "links")

    def windows(self) -> pd.DataFrame:
        """Congestion windows per sample and session, the columns of ``windows.csv``, by time and session.

        ``cwnd_packets`` and ``ssthresh_packets`` are the scheme's at the end of the sample, ``time_s``. NaN for a
        scheme without a window, while the session is not active, and for an infinite ssthresh. Empty in the fluid model
        and in the runs of `fairwave.papers`.
        """
        return self._named(self._core.windows(), "session", "sessions")

    def losses(self) -> pd.DataFrame:
        """Loss events, the columns of ``losses.csv``; empty in the fluid model.

        ``time_s``, ``session``, and ``kind``: "timeout" if its retransmission timer expired, "mark" for a
        congestion mark, otherwise "loss".
        """
        return self._named(self._core.losses(), "session", "sessions")

    def completions(self) -> pd.DataFrame:
        """Completion times and slowdowns by size, the columns of ``completions.csv``; empty if sizes do not differ.

        A row is for sizes above ``above_bytes`` and up to ``up_to_bytes``, NaN for the last. A slowdown is the
        completion time over that of the session alone: half its round-trip time, and its transmission at the smallest
        capacity on its path.
        """
        times = [f"completion_{of}_s" for of in ("mean", "p50", "p95", "p99")]
        slowdowns = [f"slowdown_{of}" for of in ("mean", "p50", "p99")]
        columns = ["above_bytes", "up_to_bytes", "sessions", "completed", *times, *slowdowns]
        table = pd.DataFrame(self.summary.get("completions", []), columns=columns)
        numbers = dict.fromkeys(["up_to_bytes", *times, *slowdowns], "float64")
        return table.astype(numbers | dict.fromkeys(["above_bytes", "sessions", "completed"], "int64"))

    def max_min(self) -> pd.DataFrame:
        """The global optimum over time: ``max_min_bps`` of each ``session`` from ``time_s`` on, until the next.

        It changes when sessions start or stop and when demands change; 0 for an inactive session.
        """
        return self._named(self._core.max_min(), "session", "sessions")

    def distance(self) -> pd.DataFrame:
        """Distance to the global optimum at the end of each sample (Wu 2007, VII.1.C).

        ``distance_bps`` is the 2-norm of the difference between the sessions' rates and the max-min vector of that
        instant, ``max_min_norm_bps`` the 2-norm of that vector.
        """
        return pd.DataFrame(self._core.distance())

    def delays(self) -> pd.DataFrame:
        """Queueing delay and round-trip time per sample and session, by time and session.

        ``queueing_s`` is the time to drain the queues at the end of the sample, summed over the links of the session's
        path in both directions; ``rtt_s`` adds the propagation delay.
        """
        queues = self._core.queues()
        sessions, links = self.summary["sessions"], self.summary["links"]
        ways = self._core.ways()
        if not ways or not links:
            return self._named(
                {name: np.zeros(0) for name in ("time_s", "session", "queueing_s", "rtt_s")}
                | {"session": np.zeros(0, dtype=np.uint32)},
                "session",
                "sessions",
            )
        capacity_bps = np.array([link["capacity_bps"] or np.inf for link in links], dtype=np.float64)
        waiting_s = queues["queue_bytes"].reshape(-1, len(links)) * 8 / capacity_bps
        queueing_s = np.column_stack([waiting_s[:, way].sum(axis=1) for way in ways])
        least_s = np.array([session["rtt_s"] for session in sessions])
        columns = {
            "time_s": np.repeat(queues["time_s"][:: len(links)], len(sessions)),
            "session": np.tile(np.arange(len(sessions), dtype=np.uint32), queueing_s.shape[0]),
            "queueing_s": queueing_s.ravel(),
            "rtt_s": (queueing_s + least_s).ravel(),
        }
        return self._named(columns, "session", "sessions")

    def round_trips(self) -> pd.DataFrame:
        """Round-trip times of acknowledgements in the summary's window, with counts; empty in the fluid model.

        One row per ``session`` and value: ``rtt_s``, ``queueing_s`` (without propagation: waiting and transmission
        time), and the number of ``samples``. Values are accurate to 0.4 %. For sessions that do not acknowledge single
        packets (GTP, Tally, UDT, RBUDP), each data packet is a sample: its one-way delay plus that of the last message
        from its sink. Constant-bit-rate sessions have no samples.
        """
        return self._named(self._core.round_trips(), "session", "sessions")

    def percentiles(self, by: str = "session", q: Sequence[float] = (50, 95, 99)) -> pd.DataFrame:
        """Round-trip times, queueing delays and completion times, by session or by scheme.

        Args:
            by: "session" or "scheme".
            q: Percentiles, from 0 to 100.

        Returns:
            One row per session or scheme: ``rtt_mean_s``, ``rtt_p50_s`` ..., ``queueing_mean_s``, ``queueing_p50_s``
            ... over the summary's window: of single acknowledgements (`round_trips`), in the fluid model of samples
            (`delays`); and of sessions of finite size ``completion_mean_s``, ``completion_p50_s`` ...: the time from
            their start to completion.

        Example:
            >>> import fairwave as fw
            >>> run = fw.simulate("five-to-one", model="fluid")
            >>> run.percentiles()[["session", "rtt_p50_s"]].round(3).head(2)  # the start left a queue of 33 ms
              session  rtt_p50_s
            0   s1-d1      0.043
            1   s2-d1      0.063
        """
        if by not in ("session", "scheme"):
            raise ValueError(f'by: "{by}" is neither "session" nor "scheme"')
        for percent in q:
            if not 0 <= percent <= 100:
                raise ValueError(f"q: percentile {percent} must be from 0 to 100")
        sessions, delays = self.sessions, self._counted_delays()
        keys = sessions["name"] if by == "session" else sessions["scheme"]
        of_row = keys.to_numpy()[delays["session"]] if len(delays["session"]) else np.zeros(0, dtype=object)
        completion_s = sessions.get("completion_s", pd.Series(np.nan, index=sessions.index)).to_numpy(dtype=np.float64)
        rows = []
        for key in dict.fromkeys(keys):
            row: dict[str, Any] = {by: key}
            mine = of_row == key
            times_s = completion_s[(keys == key).to_numpy()]
            times_s = times_s[np.isfinite(times_s)]
            samples = {
                "rtt": (delays["rtt_s"][mine], delays["samples"][mine]),
                "queueing": (delays["queueing_s"][mine], delays["samples"][mine]),
                "completion": (times_s, np.ones(times_s.size, dtype=np.int64)),
            }
            for what, (values, counts) in samples.items():
                row[f"{what}_mean_s"] = float(np.average(values, weights=counts)) if values.size else float("nan")
                for percent, value in zip(q, _percentiles(values, counts, q), strict=True):
                    row[f"{what}_p{percent:g}_s"] = value
            rows.append(row)
        return pd.DataFrame(rows)

    def _counted_delays(self) -> dict[str, Any]:
        """Round-trip times with their numbers: of acknowledgements, or else of the window's samples."""
        counted = self._core.round_trips()
        if len(counted["session"]):
            return counted
        delays, window = self.delays(), self.summary["window"]
        inside = delays[(delays["time_s"] > window["from_s"]) & (delays["time_s"] <= window["to_s"])]
        return {
            "session": inside["session"].cat.codes.to_numpy(dtype=np.int64),
            "rtt_s": inside["rtt_s"].to_numpy(),
            "queueing_s": inside["queueing_s"].to_numpy(),
            "samples": np.ones(len(inside), dtype=np.int64),
        }

    def to_parquet(self, path: str | os.PathLike[str], table: str = "rates") -> None:
        """Write one of the run's tables as a Parquet file.

        Args:
            path: The file; an existing file is replaced.
            table: "rates", "queues", "windows", "losses", "max_min", "distance",
                "round_trips", "delays", "sessions" or "links".

        Raises:
            OSError: The file cannot be written.
        """
        if table in ("sessions", "links"):
            frame = getattr(self, table)
        elif table in (*_TABLES, "delays"):
            frame = getattr(self, table)()
        else:
            names = ", ".join((*_TABLES, "delays", "sessions", "links"))
            raise ValueError(f'table: unknown table "{table}"\nhint: use one of {names}')
        columns: dict[str, Any] = {}
        for name, values in frame.items():
            if values.dtype.kind in "iu":
                columns[str(name)] = values.to_numpy(dtype=np.int64)
            elif values.dtype.kind == "f":
                columns[str(name)] = values.to_numpy(dtype=np.float64)
            else:
                columns[str(name)] = [None if pd.isna(value) else str(value) for value in values]
        _core.write_parquet(os.fspath(path), columns, self._core.summary())

    def plot(self, ax: Axes | None = None, *, what: str | None = None) -> Axes:
        """Draw the run.

        Args:
            ax: Axes to draw into. Without it, new ones.
            what: "rates" draws each session's wire rate over time with its max-min rate dashed; "distance" draws the
                distance to the global optimum, as a share of its norm. Without it, rates for up to 12 sessions.

        Returns:
            The axes, to change or to save: ``run.plot().figure.savefig("run.png")``.
        """
        from fairwave import _plot  # matplotlib takes a second to load, and only pictures need it

        return _plot.draw(self, ax, what)

    def __repr__(self) -> str:
        """Say which run it is."""
        summary = self.summary
        variant = f', variant "{summary["variant"]}"' if summary["variant"] is not None else ""
        count = len(summary["sessions"])
        return (
            f'<Run "{summary["scenario"]}"{variant}: {summary["scheme"]}, {summary["model"]}, seed {summary["seed"]}, '
            f"{summary['duration_s']:g} s, {count} session{'' if count == 1 else 's'}>"
        )

    def _named(self, columns: dict[str, Any], key: str, elements: str) -> pd.DataFrame:
        names = [element["name"] for element in self.summary[elements]]
        columns[key] = pd.Categorical.from_codes(columns[key], categories=pd.Index(names, dtype="str"))
        return pd.DataFrame(columns)
