"""One transfer of Fairwave beside others, at one bottleneck.

Each transfer is of processes of its own, at both ends: what shares the bottleneck knows nothing of each other. Shares,
queues and drops are the relay's, of IP packets: drops in the whole run, the others in the last two thirds of the time.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from concurrent.futures import ThreadPoolExecutor

from .network import Carried, Flow, Relay, spaces
from .tables import attempt, table, worst
from .tools import TOOLS, Outcome, Plan

RATE_BPS = 100e6
RTTS_MS = [10.0, 60.0, 200.0]
BUFFERS_BDP = [0.2, 1.0, 5.0]
COUNTS = [1, 10]
# Two of Fairwave whose ways differ.
UNEQUAL_MS = [(10.0, 60.0), (10.0, 200.0), (60.0, 200.0)]
ATTEMPTS = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rtts", type=numbers, default=RTTS_MS, help="of neighbours, in ms, with commas between")
    parser.add_argument("--buffers", type=numbers, default=BUFFERS_BDP, help="of neighbours, in BDP")
    parser.add_argument("--counts", type=numbers, default=COUNTS, help="how many neighbours")


def numbers(text: str) -> list[float]:
    return [float(word) for word in text.split(",")]


def measure(options: argparse.Namespace, names: list[str]) -> None:
    rows, latest = [], (0.0, 0.0)
    cells = [
        (rtt_ms, rtt_ms, buffer, name, int(count))
        for rtt_ms in options.rtts
        for buffer in options.buffers
        for count in options.counts
        for name in names
    ]
    if "fairwave" in names and 1 in options.counts:
        pairs = [pair for pair in UNEQUAL_MS if set(pair) <= set(options.rtts)]
        cells += [(*pair, buffer, "fairwave", 1) for pair in pairs for buffer in options.buffers]
    for rtt_ms, other_ms, buffer, name, count in cells:
        found = []
        for number in range(options.repeat):
            beside, late = patiently(rtt_ms, other_ms, buffer, name, count, options.seconds, 1 + number)
            if beside:
                found.append(beside)
                latest = worst(latest, late)
        rtts = f"{rtt_ms:g}" if rtt_ms == other_ms else f"{rtt_ms:g} and {other_ms:g}"
        row = [rtts, f"{buffer:g}", f"{count} {name}"]
        rows.append(row + (summary(found, count) if found else ["machine busy", *[""] * 5]))
    heads = ["RTT, ms", "queue, BDP", "beside", "Fairwave's share, %", "an even one, %", "link used, %"]
    heads += ["mean / 95 % wait, ms", "Fairwave found the queue full, %", "the others, %"]
    title = f"One transfer of Fairwave beside others at {RATE_BPS / 1e6:g} Mb/s"
    table(f"{title}, {options.seconds:g} s, median of {options.repeat}", heads, rows)
    print(f"\nThe relay was late by {latest[0]:.3f} ms (half) and {latest[1]:.3f} ms (99 %) in the worst run.")


# Share of the two, share of the link, mean and 95 % of waits, drops of Fairwave and of the others.
Beside = tuple[float, float, float, float, float, float]


def summary(found: list[Beside], count: int) -> list[str]:
    share, used, mean, most, own, others = (statistics.median(values) for values in zip(*found, strict=True))
    text = f"{100 * share:.0f}"
    if len(found) > 1:
        text += f" ({100 * min(one[0] for one in found):.0f} to {100 * max(one[0] for one in found):.0f})"
    even = f"{100 / (1 + count):.0f}"
    return [text, even, f"{100 * used:.0f}", f"{mean:.0f} / {most:.0f}", f"{100 * own:.2f}", f"{100 * others:.2f}"]


def patiently(
    rtt_ms: float, other_ms: float, buffer: float, name: str, count: int, seconds: float, seed: int
) -> tuple[Beside | None, tuple[float, float]]:
    """A run, made again where the machine had no time for the relay."""
    label = f"{rtt_ms:g}/{other_ms:g} ms, {buffer:g} BDP, beside {count} {name}"
    for _ in range(ATTEMPTS):
        carried = run_once(label, rtt_ms, other_ms, buffer, name, count, seconds, seed)
        if not carried.is_busy:
            beside = judge(carried, seconds)
            print(f"    {label}: {[round(number, 3) for number in beside]}", file=sys.stderr)
            return beside, carried.late_ms
        print(f"    {label}: the relay was late by {carried.late_ms} ms", file=sys.stderr)
    return None, (0.0, 0.0)


def run_once(
    label: str, rtt_ms: float, other_ms: float, buffer: float, name: str, count: int, seconds: float, seed: int
) -> Carried:
    with spaces(3) as (sink, source, other):
        # In products of the rate and the longer RTT.
        queue_bytes = round(buffer * RATE_BPS / 8 * max(rtt_ms, other_ms) / 1e3)
        down = f"rate_mbps={RATE_BPS / 1e6:g},queue_bytes={queue_bytes},even=1"
        relay = Relay([sink, source, other], [down, f"delay_ms={rtt_ms / 2:g}", f"delay_ms={other_ms / 2:g}"], seed)
        plans = [("fairwave", Plan(source, sink, "10.66.0.1", seconds, port=9000, is_urgent=True))]
        if name.startswith("TCP"):
            plans.append((name, Plan(other, sink, "10.66.0.1", seconds, port=9100, is_urgent=True, flows=count)))
        else:
            # Each is processes of its own: none of them is asked to share with another.
            plans += [
                (name, Plan(other, sink, "10.66.0.1", seconds, port=9100 + at, is_urgent=True)) for at in range(count)
            ]

        def run(tool: str, plan: Plan) -> Outcome | str:
            return attempt(f"{label}: {tool}", lambda: TOOLS[tool](plan))

        with ThreadPoolExecutor(len(plans)) as pool:
            list(pool.map(lambda one: run(*one), plans))
        return relay.stop()


def judge(carried: Carried, seconds: float) -> Beside:
    own, others = (carried.flows.get(number, Flow()) for number in (1, 2))
    window = slice(carried.begin + round(100 * seconds / 3), carried.begin + round(100 * seconds) - 50)
    length_s = (window.stop - window.start) / 100
    own_bytes, other_bytes = sum(own.slots_bytes[window]), sum(others.slots_bytes[window])
    waits_ms = sorted(carried.waits_ms[window]) or [float("nan")]
    return (
        own_bytes / max(own_bytes + other_bytes, 1),
        8 * (own_bytes + other_bytes) / length_s / RATE_BPS,
        statistics.mean(waits_ms),
        waits_ms[int(0.95 * (len(waits_ms) - 1))],
        own.drop_share,
        others.drop_share,
    )
