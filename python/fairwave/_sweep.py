"""Sweeps: a grid of parameters, many seeds, all cores or a cluster, and what to make of the rows."""

from __future__ import annotations

import hashlib
import operator
import os
import sys
import threading
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from fairwave import _core
from fairwave._arrow import frame
from fairwave._lazy import LazyModule
from fairwave._own import Schemes, fingerprint, own_rules
from fairwave._scenario import _changes, _read, _span
from fairwave._toml import to_toml

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
else:
    pd = LazyModule("pandas")

_TASKS_A_CORE = 8
"""A lost worker costs a task; so many tasks for each core keep it small, and a task's own cost, too."""


def sweep(
    file: str | os.PathLike[str],
    set: Mapping[str, Any] | None = None,
    seeds: Iterable[int] | int | None = None,
    jobs: int | None = None,
    client: Any = None,
    *,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    scheme: str | None = None,
    model: str | None = None,
    variant: str | None = None,
    duration: str | None = None,
    window: str | None = None,
    start_jitter: str | None = None,
    schemes: Schemes | None = None,
    quiet: bool = False,
) -> pd.DataFrame:
    """Run a scenario over a grid of parameters with many seeds, on all cores or on a cluster.

    In a sweep, sessions start slightly apart, differently for each seed (``start_jitter="auto"``), unless the file,
    ``set`` or ``start_jitter`` sets another value. A run is identified by the scenario with all changes, the seed and
    the version.

    Args:
        file: Path of a scenario file, or the name of a shipped scenario if no such file exists. A string with several
            lines is the text of a scenario.
        set: Keys of the file by path, each with a value or a list of values; all combinations are run.
            ``{"options.alpha": [0.05, 0.1], "duration": "20 s"}``
        seeds: Seeds of each point, such as ``range(30)``, or their number, from the file's seed on. By default those of
            the file.
        jobs: Number of parallel runs; by default one per core.
        client: A ``dask.distributed.Client`` whose workers run the sweep. The current runs of a lost worker are
            repeated.
        out: A Parquet file for the rows. A journal next to it keeps finished runs if the process is killed.
        resume: Keep the existing results of this sweep, which may have had fewer values or seeds, and run what is
            missing.
        scheme: Scheme, replacing the file's, as in `simulate`.
        model: "packet" or "fluid", as in `simulate`.
        variant: Label of the variant to run, as in `simulate`; by default all.
        duration: Length of the runs, "20 s".
        window: Part of the run over which means are taken, as in `simulate`.
        start_jitter: Maximum random delay of each session's start, such as "100 ms"; "0 s" for none.
        schemes: Your own rules by name, as in `simulate`; such runs are not parallel within a process.
        quiet: Show no progress on stderr.

    Returns:
        One row per run, in the order of the grid, with one column per parameter, ``seed``, ``run`` (its ID) and the
        flattened numbers of the summary: ``metrics.jain``, ``session.s1-d1.rate_bps``, ``link.d1:in.utilisation``.

    Raises:
        ScenarioError: The file, the grid or an argument is invalid, or the results are of another sweep.
        OSError: A file cannot be read or written.

    Example:
        >>> import fairwave as fw
        >>> rows = fw.sweep("five-to-one", set={"options.alpha": [0.05, 0.1]}, seeds=range(3), model="fluid")
        >>> rows[["options.alpha", "seed"]].values.tolist()
        [[0.05, 0.0], [0.05, 1.0], [0.05, 2.0], [0.1, 0.0], [0.1, 1.0], [0.1, 2.0]]
        >>> bool((rows["metrics.jain"] > 0.99).all())
        True
    """
    name, text = _read(file)
    own = own_rules(schemes)
    one, grid = _grid(set)
    if start_jitter is not None:
        one["start_jitter"] = start_jitter
    if jobs is not None and operator.index(jobs) < 1:
        raise ValueError(f"jobs: {jobs} must be at least 1")
    jobs = jobs or os.cpu_count() or 1
    if own and client is None:
        jobs = 1
    call: _core.SweepCall = {
        "changes": _changes(scheme, None, variant, duration, one),
        "grid": grid,
        "seeds": _seeds(seeds),
        "model": model,
        "window": _span(window),
        "salt": list(fingerprint(schemes)),
        "jobs": jobs,
    }
    if resume and out is None:
        raise ValueError("resume: no results to continue\nhint: set out to the file with the rows")
    core = _core.Sweep(name, text, call, None if out is None else os.fspath(out), resume, own)
    for note in core.notes():
        warnings.warn(note, stacklevel=2)
    try:
        with _progress(core, quiet):
            if client is None:
                core.run(jobs)
            else:
                _run_on(client, core, (name, text, call, schemes))
        rows = pd.DataFrame(core.columns())
    except BaseException:
        # The rows that are there stay, and the file is let go of: whoever mends the mistake goes on with it. On a full
        # disk they stay in the journal.
        with suppress(OSError):
            core.finish()
        raise
    same = core.seeds_change_nothing()
    core.finish()
    if same:
        warnings.warn(
            "the seed has no effect: each point has the same results for every seed; use one seed, "
            "or start_jitter to vary the start times",
            stacklevel=2,
        )
    return rows


def read_parquet(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Read the rows of a sweep, or a table of a run, from a Parquet file that Fairwave wrote.

    Args:
        path: The file.

    Returns:
        Its columns, as returned by `sweep`. With pyarrow, ``pandas.read_parquet`` returns the same.

    Raises:
        ScenarioError: It is not a Parquet file.
        OSError: It cannot be read.
    """
    return pd.DataFrame(_core.read_parquet(os.fspath(path)))


def _grid(given: Mapping[str, Any] | None) -> tuple[dict[str, Any], list[tuple[str, list[str]]]]:
    """Split what is one value from what is a list of values."""
    one: dict[str, Any] = {}
    grid: list[tuple[str, list[str]]] = []
    for path, value in (given or {}).items():
        if isinstance(value, np.ndarray | pd.Series | range | tuple):
            value = list(value)
        if not isinstance(value, list):
            # A parameter of one value is a column, too.
            value = [value]
        grid.append((path, [to_toml(each) for each in value]))
    return one, grid


def _seeds(seeds: Iterable[int] | int | None) -> list[int] | int | None:
    if seeds is None:
        return None
    if isinstance(seeds, int | np.integer):
        if not 0 <= seeds < 2**64:
            raise ValueError(f"seeds: {seeds} is not a number of seeds")
        return int(seeds)
    listed = [operator.index(seed) for seed in seeds]
    for seed in listed:
        if not 0 <= seed < 2**64:
            raise ValueError(f"seeds: {seed} is not a seed: it must be a whole number from 0 to 2^64 - 1")
    return listed


# ---- on a cluster

_known: dict[str, _core.Sweep] = {}
"""Sweeps that this worker has planned."""


def _work(spec: tuple[str, bytes, _core.SweepCall, Schemes | None], runs: list[int]) -> list[tuple[int, str, bytes]]:
    """Run some of a sweep's runs, at a worker."""
    name, text, call, schemes = spec
    identity = repr((name, text, call))
    core = None if schemes else _known.get(identity)
    if core is None:
        core = _core.Sweep(name, text, call, None, False, own_rules(schemes))
        _known.clear()
        _known[identity] = core
    return [(run, core.key(run), core.one(run)) for run in runs]


def _task_name(core: _core.Sweep, part: list[int]) -> str:
    """Name a task by its content: one that is submitted twice is one, and one that is lost is run again."""
    digest = hashlib.blake2b(digest_size=16)
    for word in [*core.own_columns(), "", *map(core.key, part)]:
        digest.update(f"{word}\0".encode())
    return f"fairwave-{digest.hexdigest()}"


def _run_on(client: Any, core: _core.Sweep, spec: tuple[str, bytes, _core.SweepCall, Schemes | None]) -> None:
    try:
        from dask.distributed import as_completed
    except ImportError as error:
        raise ImportError("client: dask.distributed is not installed\nhint: pip install distributed") from error

    missing = core.missing()
    if not missing:
        return
    threads = sum(client.nthreads().values()) or 1
    size = max(1, -(-len(missing) // (threads * _TASKS_A_CORE)))
    parts = [missing[at : at + size] for at in range(0, len(missing), size)]
    futures = [client.submit(_work, spec, part, key=_task_name(core, part), pure=True, retries=2) for part in parts]
    try:
        for future in as_completed(futures):  # type: ignore[no-untyped-call]
            for run, key, row in future.result():
                core.add(run, key, row)
            future.release()
    finally:
        client.cancel([future for future in futures if not future.done()])
    if left := core.missing():
        raise RuntimeError(f"no results from the cluster for {len(left)} runs, first run {left[0]}")


# ---- progress


@contextmanager
def _progress(core: _core.Sweep | _core.League, quiet: bool) -> Iterator[None]:
    """Tell on stderr how far it is, where a person watches."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    ended, begin, first, runs = threading.Event(), time.monotonic(), core.done(), core.runs()

    def tell() -> None:
        while not ended.wait(0.5):
            done, gone = core.done(), time.monotonic() - begin
            left = f", {gone / (done - first) * (runs - done):.0f} s to go" if done > first else ""
            print(f"\r{done} of {runs} runs, {gone:.0f} s gone{left}  ", end="", file=sys.stderr, flush=True)
        print("\r" + " " * 60 + "\r", end="", file=sys.stderr, flush=True)

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        ended.set()
        teller.join()


# ---- what to make of the rows


def summarise(
    rows: pd.DataFrame, by: str | Sequence[str] | None = None, columns: str | Sequence[str] | None = None
) -> pd.DataFrame:
    """Means over seeds with their 95 % intervals (Student's t).

    Args:
        rows: The result of `sweep`, or ``pandas.read_parquet`` of its file, or a polars or pyarrow table.
        by: Columns that identify a point; by default the parameters, which are the columns before ``seed``.
        columns: Columns to summarise; by default all numbers of the whole run, ``metrics.*``.

    Returns:
        One row per point and column: the parameters, ``what``, ``count`` (runs with a number), ``mean``, ``low`` and
        ``high`` (ends of the interval; NaN for a single run).

    Example:
        >>> import fairwave as fw
        >>> rows = fw.sweep("five-to-one", set={"options.alpha": [0.05, 0.2]}, seeds=5, model="fluid")
        >>> means = fw.summarise(rows, columns="metrics.converged_s")
        >>> means[["options.alpha", "what", "count"]]
           options.alpha                 what  count
        0           0.05  metrics.converged_s      5
        1           0.20  metrics.converged_s      5
        >>> bool((means["low"] < means["mean"]).all() and means["mean"][0] > means["mean"][1])
        True
    """
    rows = frame(rows)
    if by is None:
        if "seed" not in rows.columns:
            raise ValueError('by: the rows have no column "seed"\nhint: set by to the columns that identify a point')
        by = list(rows.columns[: list(rows.columns).index("seed")])
    by = [by] if isinstance(by, str) else list(by)
    if columns is None:
        columns = [name for name in rows.columns if name.startswith("metrics.")]
    columns = [columns] if isinstance(columns, str) else list(columns)
    for name in [*by, *columns]:
        if name not in rows.columns:
            raise ValueError(f'columns: the rows have no column "{name}"')
    points = rows.groupby(by, sort=False, dropna=False) if by else [((), rows)]
    made: list[dict[str, Any]] = []
    for point, group in points:
        values_of_point = dict(zip(by, point if isinstance(point, tuple) else (point,), strict=True))
        for name in columns:
            values = group[name].to_numpy(dtype=np.float64)
            values = values[np.isfinite(values)]
            count = int(values.size)
            mean = float(values.mean()) if count else float("nan")
            half = _core.t_95(count - 1) * float(values.std(ddof=1)) / count**0.5 if count > 1 else float("nan")
            made.append(
                {**values_of_point, "what": name, "count": count, "mean": mean, "low": mean - half, "high": mean + half}
            )
    return pd.DataFrame(made, columns=[*by, "what", "count", "mean", "low", "high"])


def plot_sweep(
    rows: pd.DataFrame, x: str, y: str = "metrics.jain", by: str | Sequence[str] | None = None, ax: Axes | None = None
) -> Axes:
    """Draw a column against a parameter: means over seeds as lines, 95 % intervals as bands.

    Args:
        rows: The result of `sweep`.
        x: The parameter along the axis.
        y: The column to draw.
        by: Parameters that get a line for each of their values; by default all others.
        ax: Axes to draw into. Without it, new ones.

    Returns:
        The axes.

    Example:
        >>> import fairwave as fw
        >>> rows = fw.sweep("five-to-one", set={"options.alpha": [0.05, 0.1, 0.2]}, seeds=4, model="fluid")
        >>> ax = fw.plot_sweep(rows, x="options.alpha", y="metrics.converged_s")
        >>> ax.get_xlabel(), len(ax.lines), len(ax.collections)
        ('options.alpha', 1, 1)
    """
    from fairwave import _plot

    rows = frame(rows)
    if by is None:
        before = list(rows.columns[: list(rows.columns).index("seed")]) if "seed" in rows.columns else []
        by = [name for name in before if name != x and rows[name].nunique(dropna=False) > 1]
    by = [by] if isinstance(by, str) else list(by)
    return _plot.draw_sweep(summarise(rows, [*by, x], y), x, y, by, ax)
