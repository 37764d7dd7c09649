"""One transfer alone, on paths that lose packets, hold them back, or change their rate.

The path is the same for all: 100 Mb/s, 60 ms there and back, room for 60 ms before the bottleneck. Packets are lost or
held back before the bottleneck, on the way of the data. What arrived is the tool's own count of payload at the
receiving end; what packets did is seen by the relay alone.
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
import sys
from collections.abc import Callable

from .network import Carried, Relay, spaces
from .tables import attempt, names_among, table, worst
from .tools import TOOLS, Outcome, Plan

RATE_BPS = 100e6
LOW_BPS = 20e6
RTT_MS = 60
# One product of rate and RTT.
QUEUE_BYTES = round(RATE_BPS / 8 * RTT_MS / 1e3)
# How often a run is made again that the machine was too busy for.
ATTEMPTS = 3


@dataclasses.dataclass
class BadPath:
    """One row of the table."""

    name: str
    # The relay's settings for the way from the source.
    hardship: str = ""
    jumps: bool = False


PATHS = {
    "clean": BadPath("clean"),
    "late": BadPath("5 % late by 20 ms", "late=0.05,late_by_ms=20"),
    "loss-1": BadPath("1 % lost", "loss=0.01"),
    "loss-5": BadPath("5 % lost", "loss=0.05"),
    "loss-30": BadPath("30 % lost", "loss=0.3"),
    "jumps": BadPath("rate 100, 20, 100 Mb/s", jumps=True),
}


@dataclasses.dataclass
class Run:
    """What one run brought."""

    goodput_bps: float
    # How long a packet would have taken more than twice the RTT.
    doubled_s: float
    # How long packets waited for the rate, in the mean over time.
    wait_ms: float
    # Of the packets that came to the bottleneck, the share that found it full.
    drop_share: float


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--paths", type=names_among(PATHS), default=list(PATHS), help="rows of bad-paths, with commas between"
    )


def measure(options: argparse.Namespace, names: list[str]) -> None:
    chosen = {key: path for key, path in PATHS.items() if key in options.paths}
    goodputs, others, latest = [], [], (0.0, 0.0)
    for path in chosen.values():
        cells: dict[str, list[Run | str]] = {name: [] for name in names}
        # In turns, so that what else the machine does is shared by all.
        for number in range(options.repeat):
            for name in names:
                run, late = patiently(path, name, options.seconds, 1 + number)
                cells[name].append(run)
                latest = worst(latest, late)
        goodputs.append([path.name, *[shown(cells[name], lambda run: run.goodput_bps / 1e6, 1) for name in names]])
        for name in names:
            others.append(
                [
                    path.name,
                    name,
                    shown(cells[name], lambda run: run.wait_ms, 0),
                    shown(cells[name], lambda run: 100 * run.drop_share, 2),
                    shown(cells[name], lambda run: run.doubled_s, 2) if path.jumps else "",
                ]
            )
    runs = f"{options.seconds:g} s, median of {options.repeat} (least to most)"
    link = f"{RATE_BPS / 1e6:g} Mb/s, RTT {RTT_MS} ms, queue of {RTT_MS} ms"
    table(f"Goodput in Mb/s, {link}; {runs}", ["", *names], goodputs)
    heads = ["", "", "mean wait for the rate, ms", "found the queue full, %", f"s above an RTT of {2 * RTT_MS} ms"]
    table("The same runs, seen from the bottleneck", heads, others)
    print(f"\nThe relay was late by {latest[0]:.3f} ms (half) and {latest[1]:.3f} ms (99 %) in the worst run.")


def patiently(path: BadPath, name: str, seconds: float, seed: int) -> tuple[Run | str, tuple[float, float]]:
    """A run, made again where the machine had no time for the relay."""
    for _ in range(ATTEMPTS):
        run, carried = run_once(path, name, seconds, seed)
        if not carried.is_busy:
            return run, carried.late_ms
        print(f"    {path.name} {name}: the relay was late by {carried.late_ms} ms", file=sys.stderr)
    return "machine busy", (0.0, 0.0)


def run_once(path: BadPath, name: str, seconds: float, seed: int) -> tuple[Run | str, Carried]:
    with spaces(2) as (sink, source):
        down = f"rate_mbps={RATE_BPS / 1e6:g},queue_bytes={QUEUE_BYTES},even=1"
        relay = Relay([sink, source], [down, f"delay_ms={RTT_MS / 2:g},{path.hardship}"], seed)

        def begin() -> None:
            if path.jumps:
                for share, rate_bps in [(1 / 3, LOW_BPS), (2 / 3, RATE_BPS)]:
                    relay.change(0, f"rate_mbps={rate_bps / 1e6:g}", share * seconds)

        plan = Plan(source, sink, "10.66.0.1", seconds, patience_s=60, is_urgent=True, begun=begin)
        outcome = attempt(f"{path.name} {name}", lambda: TOOLS[name](plan))
        carried = relay.stop()
    if isinstance(outcome, str):
        return outcome, carried
    return judge(outcome, carried, seconds), carried


def judge(outcome: Outcome, carried: Carried, seconds: float) -> Run | str:
    """What a run brought, as far as the relay confirms it."""
    flow = carried.flows.get(1)
    if not flow or outcome.payload_bytes > flow.bytes:
        return "says that more came than the relay carried"
    # Whoever stood still at the end has not been faster for that.
    took_s = max(seconds, 8 * outcome.payload_bytes / max(outcome.goodput_bps, 1))
    waits_ms = carried.waits_ms[carried.begin : carried.begin + round(100 * seconds)]
    return Run(
        8 * outcome.payload_bytes / took_s,
        sum(wait > RTT_MS + 1 for wait in waits_ms) / 100,
        statistics.mean(waits_ms) if waits_ms else float("nan"),
        flow.drop_share,
    )


def shown(runs: list[Run | str], value: Callable[[Run], float], digits: int) -> str:
    """The median, and the least and the most."""
    numbers = [value(run) for run in runs if isinstance(run, Run)]
    words = [run for run in runs if isinstance(run, str)]
    if not numbers:
        return words[0]
    text = f"{statistics.median(numbers):.{digits}f}"
    if len(numbers) > 1:
        text += f" ({min(numbers):.{digits}f} to {max(numbers):.{digits}f})"
    return f"{text}; {len(words)} of {len(runs)} failed" if words else text
