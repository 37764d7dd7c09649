"""Scenario files: run them, or allocate their capacity outright."""

from __future__ import annotations

import operator
import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from fairwave import _core
from fairwave._lazy import LazyModule
from fairwave._own import Schemes, own_rules
from fairwave._run import Run
from fairwave._toml import to_toml

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = LazyModule("pandas")


@overload
def simulate(
    file: str | os.PathLike[str],
    scheme: str | None = None,
    seed: int | None = None,
    model: str | None = None,
    variant: str | None = None,
    duration: str | None = None,
    set: Mapping[str, Any] | None = None,
    *,
    window: str | None = None,
    runs: Literal[1] | None = None,
    schemes: Schemes | None = None,
) -> Run: ...


@overload
def simulate(
    file: str | os.PathLike[str],
    scheme: str | None = None,
    seed: int | None = None,
    model: str | None = None,
    variant: str | None = None,
    duration: str | None = None,
    set: Mapping[str, Any] | None = None,
    *,
    window: str | None = None,
    runs: Literal["all"],
    schemes: Schemes | None = None,
) -> list[Run]: ...


def simulate(
    file: str | os.PathLike[str],
    scheme: str | None = None,
    seed: int | None = None,
    model: str | None = None,
    variant: str | None = None,
    duration: str | None = None,
    set: Mapping[str, Any] | None = None,
    *,
    window: str | None = None,
    runs: Literal[1, "all"] | None = None,
    schemes: Schemes | None = None,
) -> Run | list[Run]:
    """Simulate a scenario.

    A run depends only on the scenario and the seed: the same call gives the same numbers, to the last bit. The runs of
    a file with variants or with ``runs = N`` use all cores. Ctrl-C stops them.

    Args:
        file: Path of a scenario file, or the name of a shipped scenario if no such file exists ("five-to-one"). A
            string with several lines is the text of a scenario.
        scheme: Scheme, replacing the file's ("gtp", "gtp-printed", "abr-charny", ...; see `schemes`).
        seed: Seed, replacing the file's. All randomness of a run derives from it.
        model: "packet", or "fluid" for rates without losses and headers (``wire_rate_bps`` equals ``rate_bps``). By
            default "packet" if all schemes of the file support it.
        variant: Label of the variant to run. By default all variants run.
        duration: Length of the run with its unit, "20 s", replacing the file's.
        set: Keys of the file to change, by path. Elements go by name: ``{"session.a.demand": "25 Mb/s"}``,
            ``{"node.d1.capacity": "1 Gb/s"}``, ``{"options.alpha": 0.05}``.
        window: Part of the run over which the summary's means are taken, such as "10 s..20 s". By default the second
            half, or, if every session ends by itself, the time until the last one ends.
        runs: 1 to return a single `Run` with the file's first seed; a file with variants then needs ``variant``. "all"
            to return a list in any case.
        schemes: Your own rules by the name that the file, ``scheme`` or ``set`` uses: a class with ``on_ack``
            (a session's rule, see `Controller`) or with ``allocate`` (a node's, see `Allocator`). Each session, or each
            direction of a node, gets one instance. Such runs are not parallel.

    Returns:
        One `Run`, or a list of them if the file has variants or several seeds. Type checkers assume a single `Run`; set
        ``runs`` to choose.

    Raises:
        ScenarioError: The file or an argument is invalid; the message has the location, the problem and a hint.
        OSError: The file cannot be read.

    Example:
        >>> import fairwave as fw
        >>> run = fw.simulate('''
        ... name = "two"
        ... scheme = "gtp"
        ... duration = "5 s"
        ... node = [{ name = "s{1..2}", capacity = "1 Gb/s" }, { name = "d", capacity = "500 Mb/s" }]
        ... session = [{ from = "s{1..2}", to = "d", rtt = "20 ms" }]
        ... ''', model="fluid")
        >>> [round(session["final_rate_bps"] / 1e6) for session in run.summary["sessions"]]
        [250, 250]
    """
    if runs not in (None, 1, "all"):
        raise ValueError(f'runs: {runs!r} is neither 1 nor "all"')
    name, text = _read(file)
    changes = _changes(scheme, seed, variant, duration, {**(set or {}), "runs": 1} if runs == 1 else set)
    made, notes = _core.simulate(name, text, changes, _span(window), model, runs == 1, own_rules(schemes))
    _warn(notes)
    wrapped = [Run(run) for run in made]
    return wrapped[0] if len(wrapped) == 1 and runs != "all" else wrapped


def allocate(
    file: str | os.PathLike[str],
    at: str | None = None,
    *,
    seed: int | None = None,
    variant: str | None = None,
    set: Mapping[str, Any] | None = None,
) -> pd.DataFrame:
    """Allocate a scenario's capacity max-min fairly (Wu 2007, Algorithm 1), without running it.

    Args:
        file: Path of a scenario file, or the name of a shipped scenario if no such file exists. A string with several
            lines is the text of a scenario.
        at: Time such as "4 s": only sessions active at that time count, with their demands at that time. By default all
            sessions count as active, each with its largest demand.
        seed: Seed, replacing the file's, for random draws in the file.
        variant: Label of the variant to allocate. By default the first.
        set: Keys of the file to change, by path, as in `simulate`.

    Returns:
        One row per session: ``name``, ``from``, ``to``, ``rate_bps`` in bit/s, and ``limited_by``: the name of the node
        or
        link that limits it, "demand", or None if it is not active. The sum is ``frame["rate_bps"].sum()``.

    Raises:
        ScenarioError: The file or an argument is invalid, or a session is unlimited.
        OSError: The file cannot be read.

    Example:
        >>> import fairwave as fw
        >>> fw.allocate('''
        ... name = "two"
        ... duration = "5 s"
        ... node = [{ name = "s{1..2}", capacity = "1 Gb/s" }, { name = "d", capacity = "500 Mb/s" }]
        ... session = [{ from = "s{1..2}", to = "d", rtt = "20 ms" }]
        ... ''', set={"session.s1-d.demand": "100 Mb/s"})
           name from to     rate_bps limited_by
        0  s1-d   s1  d  100000000.0     demand
        1  s2-d   s2  d  400000000.0          d
    """
    name, text = _read(file)
    columns, notes = _core.allocate(name, text, _changes(None, seed, variant, None, set), at)
    _warn(notes)
    return pd.DataFrame(columns)


def _read(file: str | os.PathLike[str]) -> tuple[str, bytes]:
    """Name for messages and content of a file, or of a text that was given in place of one."""
    if isinstance(file, str) and "\n" in file:
        return "<text>", file.encode()
    path = Path(file)
    if isinstance(file, str) and not path.exists() and (shipped := _core.shipped(file)) is not None:
        return file, shipped.encode()
    with path.open("rb") as opened:
        return str(path), opened.read(_core.MAX_FILE_BYTES + 1)  # one too many is an error with the limit in it


def _changes(
    scheme: str | None, seed: int | None, variant: str | None, duration: str | None, changed: Mapping[str, Any] | None
) -> _core.Changes:
    if seed is not None and not 0 <= operator.index(seed) < 2**64:
        raise ValueError(f"seed: {seed} is not a seed: it must be a whole number from 0 to 2^64 - 1")
    if duration is not None and not isinstance(duration, str):
        raise TypeError(f'duration: {duration!r} has no unit\nhint: write it like "20 s"')
    return {
        "scheme": scheme,
        "seed": seed,
        "variant": variant,
        "duration": duration,
        "set": [(path, to_toml(value)) for path, value in (changed or {}).items()],
    }


def _span(window: str | None) -> tuple[str, str] | None:
    if window is None:
        return None
    begin, dots, end = window.partition("..")
    if not dots:
        raise ValueError(f'window: "{window}" is not a time span\nhint: write it like "10 s..20 s"')
    return begin, end


def _warn(notes: Sequence[str]) -> None:
    for note in notes:
        warnings.warn(note, stacklevel=3)
