"""Measures Fairwave beside its peers, between network namespaces of this machine. Start it with tests/compare.sh."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import platform
import statistics
import sys

from side_by_side import against, bad_paths, neighbours
from side_by_side.network import Failed, Flow, Relay, spaces, veth
from side_by_side.tables import attempt, middle, names_among, table
from side_by_side.tools import TOOLS, Outcome, Plan, fairwave_sink, fairwave_source


def measure_veth(options: argparse.Namespace, names: list[str]) -> None:
    worlds = [(1500, True), (9000, True), (1500, False)]
    results: dict[str, list[str]] = {name: [] for name in names}
    for mtu, has_offload in worlds:
        for name in names:
            outcomes = []
            for _ in range(options.repeat):
                with veth(mtu, has_offload) as (source, sink):
                    plan = Plan(source, sink, "10.66.1.1", options.seconds, mtu)
                    outcomes.append(attempt(f"veth {mtu} {name}", lambda plan=plan, name=name: TOOLS[name](plan)))
            results[name] += [
                middle(outcomes, lambda one: one.goodput_bps / 1e9, 2),
                middle(outcomes, lambda one: one.cpu_s_per_gb, 2),
            ]
    heads = ["memory to memory, one session"]
    for mtu, has_offload in worlds:
        label = f"MTU {mtu}{'' if has_offload else ', tx-udp-segmentation off'}"
        heads += [f"{label}: Gb/s", "CPU s/GB"]
    table(
        f"Over a veth pair, {options.seconds:g} s, median of {options.repeat}",
        heads,
        [[name, *results[name]] for name in names],
    )


def through_relay(plan: Plan, name: str, hosts: list[str], capacity: str) -> Outcome | str:
    relay = Relay([plan.sink, plan.source], hosts)
    outcome = attempt(f"{capacity} {name}", lambda: TOOLS[name](plan))
    carried = relay.stop()
    if isinstance(outcome, Outcome) and 1 in carried.flows:
        outcome.slots_bytes = carried.flows[1].slots_bytes
    return outcome


def wire_share(outcome: Outcome, capacity_bps: float, skip_s: float, seconds: float) -> float:
    """Share of the capacity, of IP packets at the sink, from `skip_s` after the first large slot on."""
    begin = next((at for at, size in enumerate(outcome.slots_bytes) if size > 3000), 0)
    part = outcome.slots_bytes[begin + round(100 * skip_s) : begin + round(100 * seconds)]
    slots = round(100 * (seconds - skip_s))
    return 8 * sum(part) / (slots / 100) / capacity_bps if slots else float("nan")


def measure_paced(options: argparse.Namespace, names: list[str]) -> None:
    rows = []
    for name in names:
        outcomes = []
        for _ in range(options.repeat):
            with spaces(2) as (sink, source):
                plan = Plan(source, sink, "10.66.0.1", options.seconds, rate_bps=500e6, capacity_bps=1000e6)
                outcomes.append(
                    through_relay(plan, name, ["rate_mbps=1000,queue_bytes=8000000", "delay_ms=30"], "paced")
                )
        rows.append(
            [
                name,
                middle(outcomes, lambda one: one.goodput_bps / 1e6, 0),
                middle(outcomes, lambda one: one.cpu_s_per_gb, 2),
            ]
        )
    table("Paced at 500 Mb/s, RTT 60 ms, no loss", ["", "goodput, Mb/s", "CPU s/GB, both ends"], rows)


def measure_loss(options: argparse.Namespace, names: list[str]) -> None:
    rows = []
    seconds = max(options.seconds, 15)
    for name in names:
        outcomes = []
        for _ in range(options.repeat):
            with spaces(2) as (sink, source):
                plan = Plan(source, sink, "10.66.0.1", seconds, capacity_bps=500e6)
                hosts = ["rate_mbps=500,queue_bytes=3750000", "delay_ms=30,loss=0.00025"]
                outcomes.append(through_relay(plan, name, hosts, "loss"))
        share = middle(outcomes, lambda one: 100 * wire_share(one, 500e6, 3, seconds), 1)
        rows.append([name, share, middle(outcomes, lambda one: one.goodput_bps / 1e6, 0)])
    table("Capacity 500 Mb/s, RTT 60 ms, 0.025 % loss", ["", "% of capacity from 3 s on", "goodput, Mb/s"], rows)


def measure_sink(options: argparse.Namespace, names: list[str]) -> None:
    rtts_ms = [1, 1, 60, 60, 140]
    capacity_bps = 700e6
    seconds = max(options.seconds, 10)
    share_bps = capacity_bps / len(rtts_ms)
    rows = []
    # In turns: a row a run, since a median of three times to the goal hides the run that missed it.
    for name in names * options.repeat:
        try:
            sent = five_senders(name, rtts_ms, capacity_bps, seconds)
        except (Failed, json.JSONDecodeError) as error:
            rows.append([name, str(error)[:60], *[""] * (len(rtts_ms) + 2)])
            continue
        rates = sent.rates(5, seconds - 1)
        jain = sum(rates) ** 2 / (len(rates) * sum(rate**2 for rate in rates)) if any(rates) else float("nan")
        near_s = [sent.near_from(source, share_bps, seconds - 1) for source in range(len(rtts_ms))]
        print(
            f"    sink {name}: {[round(rate / 1e6) for rate in rates]} Jain {jain:.4f}, near {near_s}", file=sys.stderr
        )
        rows.append([name, *[f"{rate / 1e6:.1f}" for rate in rates], f"{sum(rates) / 1e6:.0f}", f"{jain:.4f}"])
        rows[-1].append("never" if None in near_s else f"{max(at for at in near_s if at is not None):.1f}")
    heads = ["Mb/s of IP packets, from 5 s on", *[f"RTT {rtt} ms" for rtt in rtts_ms], "sum", "Jain"]
    heads.append(f"s until all are within {100 * NEAR:g} % of their fifth for a second")
    table(f"Five senders into one sink of 700 Mb/s, {seconds:g} s", heads, rows)


# A sender is near a rate where so many means of so many slots of 10 ms in a row are: for a second.
NEAR = 0.05
NEAR_SLOTS = 20
NEAR_LASTS = 5


@dataclasses.dataclass
class Sent:
    """What each of several senders sent, in bytes of IP packets at the relay, in slots of 10 ms."""

    # When the last of them began: its handshake takes two round trips, and they do not start at one instant.
    begin: int
    slots: list[list[float]]

    def rates(self, from_s: float, to_s: float) -> list[float]:
        """The mean of each in bit/s, in seconds from the beginning."""
        window = slice(self.begin + round(100 * from_s), self.begin + round(100 * to_s))
        return [8 * sum(source[window]) / (to_s - from_s) for source in self.slots]

    def near_from(self, source: int, bps: float, to_s: float) -> float | None:
        """Seconds from the beginning until a sender is near a rate for a second; none if it never is."""
        slots = self.slots[source][self.begin : self.begin + round(100 * to_s)]
        means = [
            8 * 100 * statistics.mean(slots[at : at + NEAR_SLOTS])
            for at in range(0, len(slots) - NEAR_SLOTS + 1, NEAR_SLOTS)
        ]
        near = [abs(mean - bps) <= NEAR * bps for mean in means]
        stays = (at for at in range(len(near) - NEAR_LASTS + 1) if all(near[at : at + NEAR_LASTS]))
        return next((at * NEAR_SLOTS / 100 for at in stays), None)


def five_senders(name: str, rtts_ms: list[int], capacity_bps: float, seconds: float) -> Sent:
    with spaces(1 + len(rtts_ms)) as (sink, *sources):
        # A queue of one delay-bandwidth product at the mean RTT.
        queue = round(capacity_bps / 8 * statistics.mean(rtts_ms) / 1e3)
        hosts = [f"rate_mbps={capacity_bps / 1e6:g},queue_bytes={queue}", *[f"delay_ms={rtt / 2:g}" for rtt in rtts_ms]]
        relay = Relay([sink, *sources], hosts)
        plans = [
            Plan(source, sink, "10.66.0.1", seconds, capacity_bps=capacity_bps, port=9000 + number)
            for number, source in enumerate(sources)
        ]
        if name.startswith("fairwave"):
            options = tuple(name.split()[1:])
            with fairwave_sink(plans[0], options) as (_, ticket, environment):
                running = [fairwave_source(plan, options, ticket, environment) for plan in plans]
                for process in running:
                    process.wait(seconds + 20)
        else:
            # Each in a thread of its own: a run waits for its end.
            from concurrent.futures import ThreadPoolExecutor

            with ThreadPoolExecutor() as pool:
                list(pool.map(lambda plan: attempt(f"sink {name}", lambda: TOOLS[name](plan)), plans))
        carried = relay.stop()
    slots = [carried.flows.get(1 + number, Flow()).slots_bytes for number in range(len(rtts_ms))]
    begins = [next((at for at, size in enumerate(source) if size > 3000), 0) for source in slots]
    return Sent(max(begins), slots)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    # Each table, with the tools that it has where none are named, and with its time and its runs.
    tables = {
        "veth": (
            measure_veth,
            ["fairwave", "fairwave --plain", "quinn", "s2n-quic", "TCP (CUBIC)", "UDT", "SRT"],
            8,
            3,
        ),
        "paced": (measure_paced, ["fairwave", "fairwave --plain", "quinn", "s2n-quic", "TCP (CUBIC)", "UDT"], 8, 3),
        "loss": (
            measure_loss,
            ["fairwave", "quinn", "quinn (BBR)", "s2n-quic", "TCP (CUBIC)", "TCP (BBR)", "UDT"],
            8,
            3,
        ),
        "sink": (
            measure_sink,
            ["fairwave", "fairwave --rule tally", "quinn", "TCP (CUBIC)", "TCP (BBR)", "TCP (reno)", "UDT"],
            8,
            1,
        ),
        "bad-paths": (bad_paths.measure, ["fairwave", "TCP (CUBIC)", "TCP (BBR)", "quinn"], 30, 5),
        "neighbours": (neighbours.measure, ["fairwave", "TCP (CUBIC)", "TCP (BBR)"], 30, 1),
        "against": (against.measure, ["fairwave"], 4, 8),
    }
    parser.add_argument(
        "--seconds", type=float, help="of each run (8; 30 on bad paths and beside neighbours; 4 against another build)"
    )
    parser.add_argument(
        "--repeat",
        type=int,
        help="runs whose median is printed (3; 5 on bad paths; 1 beside neighbours; 8 pairs against another build);"
        " into one sink a row a run (1)",
    )
    parser.add_argument("--only", choices=list(tables), help="one of the tables; without it, all but the last three")
    parser.add_argument("--peers", type=names_among(TOOLS), default=list(TOOLS), help="which, with commas between")
    bad_paths.add_arguments(parser)
    neighbours.add_arguments(parser)
    against.add_arguments(parser)
    given = parser.parse_args()
    if os.geteuid() != 0:
        print("compare: namespaces need root", file=sys.stderr)
        return 2
    print(f"Linux {platform.release()}, {os.cpu_count()} CPUs; load {os.getloadavg()[0]:.2f} at the start")
    for name, (measure, tools, seconds, repeat) in tables.items():
        # The long ones run where they are named.
        if given.only == name or (given.only is None and name not in ("bad-paths", "neighbours", "against")):
            options = argparse.Namespace(**vars(given))
            options.seconds = given.seconds or seconds
            options.repeat = given.repeat or repeat
            measure(options, [tool for tool in tools if tool in given.peers])
    return 0


if __name__ == "__main__":
    sys.exit(main())
