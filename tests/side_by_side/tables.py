"""Attempts, medians, and tables in Markdown."""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable

from .network import Failed
from .tools import Outcome


def table(title: str, heads: list[str], rows: list[list[str]]) -> None:
    print(f"\n**{title}**\n\n| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    for row in rows:
        print(f"| {' | '.join(row)} |")
    sys.stdout.flush()


def attempt(name: str, run: Callable[[], Outcome]) -> Outcome | str:
    try:
        outcome = run()
    except (Failed, subprocess.SubprocessError, json.JSONDecodeError, KeyError) as error:
        print(f"    {name}: {error}", file=sys.stderr)
        return str(error).splitlines()[0][:60] if str(error) else "failed"
    print(f"    {name}: {outcome.goodput_bps / 1e9:.3f} Gb/s, {outcome.cpu_s_per_gb:.2f} CPU s/GB", file=sys.stderr)
    return outcome


def middle(outcomes: list[Outcome | str], value: Callable[[Outcome], float], digits: int) -> str:
    numbers = [value(outcome) for outcome in outcomes if isinstance(outcome, Outcome)]
    if not numbers:
        return next(outcome for outcome in outcomes if isinstance(outcome, str))
    return f"{statistics.median(numbers):.{digits}f}"


def worst(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    """The larger of each."""
    return max(one[0], other[0]), max(one[1], other[1])


def names_among(known: Iterable[str]) -> Callable[[str], list[str]]:
    """An argument of names with commas between, each of which is known."""
    there = list(known)

    def read(text: str) -> list[str]:
        names = text.split(",")
        for name in names:
            if name not in there:
                raise argparse.ArgumentTypeError(f"no {name!r}; there are {', '.join(there)}")
        return names

    return read
