"""One build of the command against another one, in turns: whether a change costs speed."""

from __future__ import annotations

import argparse
import dataclasses
import shlex
import statistics
import sys
from pathlib import Path

from .network import TARGET, Failed, veth
from .tables import names_among, table
from .tools import Outcome, Plan, fairwave_outcome, fairwave_sink, fairwave_source


@dataclasses.dataclass
class Run:
    """What one run of one build brought."""

    goodput_bps: float
    # CPU seconds of the source's and of the sink's process for each 10^9 bytes that arrived.
    source_s_per_gb: float
    sink_s_per_gb: float

    @property
    def both_s_per_gb(self) -> float:
        return self.source_s_per_gb + self.sink_s_per_gb


WORLDS = {"1500": (1500, True), "9000": (9000, True), "uncut": (1500, False)}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--against", type=Path, metavar="PROGRAM", help="another build of the command")
    parser.add_argument(
        "--worlds",
        type=names_among(WORLDS),
        default=list(WORLDS),
        help="against: which MTUs; uncut is 1500 without offload",
    )
    parser.add_argument("--words", default="", help='against: words for both ends of the bench, such as "--plain"')
    parser.add_argument("--words-there", help="against: the same for the other build; without it, those of this one")


def measure(options: argparse.Namespace, _: list[str]) -> None:
    """Every other pair begins with the other build, so that a machine that drifts favours nobody."""
    if options.against is None:
        raise SystemExit("compare: --only against needs --against PROGRAM")
    programs = [TARGET / "fairwave", options.against]
    there = options.words if options.words_there is None else options.words_there
    words = [tuple(shlex.split(options.words)), tuple(shlex.split(there))]
    rows = []
    for world in options.worlds:
        pairs: list[tuple[Run, Run]] = []
        for number in range(options.repeat):
            order = [0, 1] if number % 2 == 0 else [1, 0]
            runs = {which: run(programs[which], WORLDS[world], words[which], options.seconds) for which in order}
            pairs.append((runs[0], runs[1]))
            print(f"    {world}: {' | '.join(said(runs[which]) for which in (0, 1))}", file=sys.stderr)
        rows.append([world, *columns(pairs)])
    heads = ["MTU", "Gb/s here", "Gb/s there", "here / there", "CPU s/GB here", "CPU s/GB there", "here / there"]
    pairs_run = f"{options.repeat} pairs of {options.seconds:g} s"
    named = [shlex.join([str(program), *which]) for program, which in zip(programs, words, strict=True)]
    title = f"{named[0]} here, {named[1]} there, {pairs_run}: median (least to most)"
    table(title, heads, rows)


def run(program: Path, world: tuple[int, bool], words: tuple[str, ...], seconds: float) -> Run:
    """One session over a veth pair of its own."""
    mtu, has_offload = world
    with veth(mtu, has_offload) as (source, sink):
        plan = Plan(source, sink, "10.66.1.1", seconds, mtu, program=program)
        with fairwave_sink(plan, words) as (server, ticket, environment):
            client = fairwave_source(plan, words, ticket, environment)
            source_s = client.wait(seconds + 20)
            server.child.terminate()
            sink_s = server.wait(5)
            outcome: Outcome = fairwave_outcome(client, source_s + sink_s)
    if not outcome.payload_bytes:
        raise Failed(client.last_words())
    gigabytes = outcome.payload_bytes / 1e9
    return Run(outcome.goodput_bps, source_s / gigabytes, sink_s / gigabytes)


def said(one: Run) -> str:
    return f"{one.goodput_bps / 1e9:.2f} Gb/s {one.source_s_per_gb:.3f} + {one.sink_s_per_gb:.3f} s/GB"


def columns(pairs: list[tuple[Run, Run]]) -> list[str]:
    cells = []
    for value, digits in ((lambda one: one.goodput_bps / 1e9, 2), (lambda one: one.both_s_per_gb, 3)):
        cells += [spread([value(pair[which]) for pair in pairs], digits) for which in (0, 1)]
        cells.append(spread([value(here) / value(there) for here, there in pairs], 3))
    return cells


def spread(values: list[float], digits: int) -> str:
    middle, least, most = (f"{value:.{digits}f}" for value in (statistics.median(values), min(values), max(values)))
    return f"{middle} ({least} to {most})"
