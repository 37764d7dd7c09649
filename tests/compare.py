"""Measures Fairwave beside its peers, between network namespaces of this machine. Start it with tests/compare.sh."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

TARGET = Path(os.environ.get("CARGO_TARGET_DIR", "target")) / "release"
PEERS = Path(os.environ["FAIRWAVE_PEERS"]) if "FAIRWAVE_PEERS" in os.environ else None
PREFIX = f"fwcmp{os.getpid()}-"


@dataclasses.dataclass
class Outcome:
    """What one run brought."""

    payload_bytes: float
    goodput_bps: float
    cpu_s: float
    # Of IP packets at the sink, in slots of 10 ms since the relay began; empty without a relay.
    slots_bytes: list[float] = dataclasses.field(default_factory=list)

    @property
    def cpu_s_per_gb(self) -> float:
        return self.cpu_s / (self.payload_bytes / 1e9) if self.payload_bytes else float("nan")


@dataclasses.dataclass
class Plan:
    """What one run is to do."""

    source: str
    sink: str
    address: str
    seconds: float
    mtu: int = 1500
    rate_bps: float = 0
    capacity_bps: float = 0
    port: int = 9000


class Failed(Exception):
    """A tool did not do what it should; its last words."""


class Process:
    """A command in a namespace, whose CPU time is known when it has ended."""

    def __init__(self, space: str, command: list[str], environment: dict[str, str] | None = None) -> None:
        self.words = command
        self.output = tempfile.TemporaryFile("w+")
        self.errors = tempfile.TemporaryFile("w+")
        environment = {**os.environ, **(environment or {})}
        # The namespace belongs to the process itself: no wrapper that stays, whose CPU time would count instead.
        self.child = subprocess.Popen(
            ["ip", "netns", "exec", space, *command],
            stdin=subprocess.DEVNULL,
            stdout=self.output,
            stderr=self.errors,
            env=environment,
        )

    def lines(self) -> list[str]:
        """What it printed so far."""
        self.output.seek(0)
        return self.output.read().splitlines()

    def wait_line(self, wanted: Callable[[str], bool], seconds: float = 10) -> str:
        """The first line of that kind."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            for line in self.lines():
                if wanted(line):
                    return line
            if self.child.poll() is not None:
                break
            time.sleep(0.05)
        self.child.kill()
        raise Failed(self.last_words())

    def wait(self, seconds: float) -> float:
        """Waits for its end: its CPU time. One that does not end is told to, and then killed."""
        deadline = time.monotonic() + seconds
        while True:
            pid, status, usage = os.wait4(self.child.pid, os.WNOHANG)
            if pid:
                self.child.returncode = os.waitstatus_to_exitcode(status)
                return usage.ru_utime + usage.ru_stime
            if time.monotonic() > deadline + 5:
                self.child.kill()
            elif time.monotonic() > deadline:
                self.child.terminate()
            time.sleep(0.02)

    def last_words(self) -> str:
        """What it said last."""
        self.errors.seek(0)
        words = [*self.lines(), *self.errors.read().splitlines()]
        return f"{' '.join(self.words[:2])}: {words[-1] if words else 'said nothing'}"


# --- the network


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@contextmanager
def spaces(count: int) -> Iterator[list[str]]:
    """Namespaces; TCP may use windows that a fast long path needs."""
    names = [f"{PREFIX}{number}" for number in range(count)]
    try:
        for name in names:
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
            for key in ["net.ipv4.tcp_rmem=4096 1048576 67108864", "net.ipv4.tcp_wmem=4096 1048576 67108864"]:
                subprocess.run(["ip", "netns", "exec", name, "sysctl", "-qw", key], check=True)
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


@contextmanager
def veth(mtu: int, has_offload: bool) -> Iterator[list[str]]:
    """Two hosts on a veth pair."""
    with spaces(2) as names:
        ip(
            "-n",
            names[0],
            "link",
            "add",
            "veth",
            "mtu",
            str(mtu),
            "type",
            "veth",
            "peer",
            "name",
            "veth",
            "mtu",
            str(mtu),
            "netns",
            names[1],
        )
        for number, name in enumerate(names):
            ip("-n", name, "address", "add", f"10.66.{number}.1/16", "dev", "veth")
            ip("-n", name, "link", "set", "veth", "up")
            if not has_offload:
                subprocess.run(
                    ["ip", "netns", "exec", name, "ethtool", "-K", "veth", "tx-udp-segmentation", "off"],
                    check=True,
                    capture_output=True,
                )
        yield names


class Relay:
    """Hosts behind the relay; the first is the sink."""

    def __init__(self, names: list[str], options: list[str]) -> None:
        hosts = [f"{name}:{option}" for name, option in zip(names, options, strict=True)]
        self.child = subprocess.Popen(
            [str(TARGET / "examples/relay"), *hosts],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.child.stdout
        if not self.child.stdout.readline().startswith("ready"):
            raise Failed(self.child.communicate()[1])

    def stop(self) -> list[list[float]]:
        """For each source its bytes at the sink, in slots of 10 ms."""
        output, errors = self.child.communicate()
        print(f"    {errors.strip()}", file=sys.stderr)
        flows = json.loads(output)["flows"]
        found = {flow["from"]: flow["slots_bytes"] for flow in flows if flow["to"] == 0}
        return [found.get(source, []) for source in range(1, 1 + max(found, default=0))]


# --- the tools: each runs one plan


def run_peer(name: str, *options: str) -> Callable[[Plan], Outcome]:
    """A program of FAIRWAVE_PEERS."""

    def run(plan: Plan) -> Outcome:
        program = PEERS / name if PEERS else None
        if not program or not program.exists():
            raise Failed(f"{name} is not in FAIRWAVE_PEERS")
        with tempfile.TemporaryDirectory() as home:
            common = [
                "--address",
                f"{plan.address}:{plan.port}",
                "--cert",
                f"{home}/cert",
                "--mtu",
                str(plan.mtu),
                *options,
            ]
            sink = Process(plan.sink, [str(program), "serve", *common])
            time.sleep(0.5)
            words = ["--time", str(plan.seconds), "--rate", str(plan.rate_bps)]
            source = Process(plan.source, [str(program), "send", *common, *words])
            cpu_s = source.wait(plan.seconds + 20)
            # Who has not heard of the end waits for nothing.
            cpu_s += sink.wait(3)
            ends = [json.loads(line) for line in sink.lines() if line.startswith("{")]
            if not ends:
                # It counts only at its end: so many bytes as the source could hand over.
                raise Failed(f"{sink.last_words()} / {source.last_words()}")
            end = ends[-1]
            return Outcome(end["bytes"], 8 * end["bytes"] / max(end["seconds"], 1e-9), cpu_s)

    return run


def run_tcp(control: str) -> Callable[[Plan], Outcome]:
    """The kernel's TCP, driven by iperf3."""

    def run(plan: Plan) -> Outcome:
        sink = Process(plan.sink, ["iperf3", "--server", "--one-off", "--port", str(plan.port)])
        time.sleep(0.3)
        words = [
            "iperf3",
            "--client",
            plan.address,
            "--port",
            str(plan.port),
            "--time",
            str(round(plan.seconds)),
            "--json",
            "--congestion",
            control,
            "--bitrate",
            f"{round(plan.rate_bps)}",
        ]
        source = Process(plan.source, words)
        cpu_s = source.wait(plan.seconds + 20) + sink.wait(3)
        result = json.loads("\n".join(source.lines()))
        if "error" in result:
            raise Failed(result["error"])
        received = result["end"]["sum_received"]
        return Outcome(received["bytes"], received["bits_per_second"], cpu_s)

    return run


def run_fairwave(*options: str) -> Callable[[Plan], Outcome]:
    """Fairwave's own bench."""

    def run(plan: Plan) -> Outcome:
        with fairwave_sink(plan, options) as (sink, ticket, environment):
            source = fairwave_source(plan, options, ticket, environment)
            cpu_s = source.wait(plan.seconds + 30)
            sink.child.terminate()
            cpu_s += sink.wait(5)
            return fairwave_outcome(source, cpu_s)

    return run


@contextmanager
def fairwave_sink(plan: Plan, options: tuple[str, ...]) -> Iterator[tuple[Process, str, dict[str, str]]]:
    with tempfile.TemporaryDirectory() as home:
        environment = {"XDG_STATE_HOME": home, "XDG_RUNTIME_DIR": home, "HOME": home}
        words = [str(TARGET / "fairwave"), "bench", "serve", "--listen", f"{plan.address}:{plan.port}", *options]
        words += dedicated(plan)
        sink = Process(plan.sink, words, environment)
        line = sink.wait_line(lambda line: "fw1" in line)
        ticket = next(word for word in line.replace('"', " ").split() if word.startswith("fw1"))
        try:
            yield sink, ticket, environment
        finally:
            if sink.child.poll() is None:
                sink.child.kill()


def dedicated(plan: Plan) -> list[str]:
    return ["--path", "dedicated", "--capacity", f"{plan.capacity_bps / 1e6:g} Mb/s"] if plan.capacity_bps else []


def fairwave_source(plan: Plan, options: tuple[str, ...], ticket: str, environment: dict[str, str]) -> Process:
    words = [str(TARGET / "fairwave"), "bench", "-", "--time", f"{plan.seconds:g} s", "--json", *options]
    words += dedicated(plan)
    if plan.rate_bps:
        words += ["--limit", f"{plan.rate_bps / 1e6} Mb/s"]
    words[2] = f"@{environment['HOME']}/ticket-{plan.source}"
    Path(words[2][1:]).write_text(ticket)
    home = {key: f"{value}/{plan.source}" for key, value in environment.items()}
    for path in home.values():
        Path(path).mkdir(exist_ok=True)
    return Process(plan.source, words, home)


def fairwave_outcome(source: Process, cpu_s: float) -> Outcome:
    lines = [json.loads(line) for line in source.lines() if line.startswith("{")]
    if not lines or "goodput_bps" not in lines[-1]:
        raise Failed(source.last_words())
    last = lines[-1]
    return Outcome(last["goodput_bps"] / 8 * last["wall_s"], last["goodput_bps"], cpu_s)


TOOLS: dict[str, Callable[[Plan], Outcome]] = {
    "fairwave": run_fairwave(),
    "fairwave --plain": run_fairwave("--plain"),
    "quinn": run_peer("peer-quinn"),
    "quinn (BBR)": run_peer("peer-quinn", "--cc", "bbr"),
    "s2n-quic": run_peer("peer-s2n"),
    "TCP (CUBIC)": run_tcp("cubic"),
    "TCP (BBR)": run_tcp("bbr"),
    "TCP (reno)": run_tcp("reno"),
    "UDT": run_peer("peer-udt"),
    "SRT": run_peer("peer-srt"),
}


# --- the tables


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
    slots = relay.stop()
    if isinstance(outcome, Outcome) and slots:
        outcome.slots_bytes = slots[0]
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
    seconds = max(options.seconds, 30)
    rows = []
    for name in names:
        try:
            rates = five_senders(name, rtts_ms, capacity_bps, seconds)
        except (Failed, json.JSONDecodeError) as error:
            rows.append([name, str(error)[:60], *[""] * (len(rtts_ms) + 1)])
            continue
        jain = sum(rates) ** 2 / (len(rates) * sum(rate**2 for rate in rates)) if any(rates) else float("nan")
        print(f"    sink {name}: {[round(rate / 1e6) for rate in rates]} Jain {jain:.4f}", file=sys.stderr)
        rows.append([name, *[f"{rate / 1e6:.1f}" for rate in rates], f"{sum(rates) / 1e6:.0f}", f"{jain:.4f}"])
    heads = ["Mb/s of IP packets, from 5 s on", *[f"RTT {rtt} ms" for rtt in rtts_ms], "sum", "Jain"]
    table(f"Five senders into one sink of 700 Mb/s, {seconds:g} s", heads, rows)


def five_senders(name: str, rtts_ms: list[int], capacity_bps: float, seconds: float) -> list[float]:
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
            options = ("--plain",) if "--plain" in name else ()
            with fairwave_sink(plans[0], options) as (_, ticket, environment):
                running = [fairwave_source(plan, options, ticket, environment) for plan in plans]
                for process in running:
                    process.wait(seconds + 20)
        else:
            # Each in a thread of its own: a run waits for its end.
            from concurrent.futures import ThreadPoolExecutor

            with ThreadPoolExecutor() as pool:
                list(pool.map(lambda plan: attempt(f"sink {name}", lambda: TOOLS[name](plan)), plans))
        slots = relay.stop()
    begin = min(next((at for at, size in enumerate(source) if size > 3000), 1 << 30) for source in slots)
    window = slice(begin + 500, begin + round(100 * seconds) - 100)
    return [8 * sum(source[window]) / ((window.stop - window.start) / 100) for source in slots]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=8, help="of each run")
    parser.add_argument("--repeat", type=int, default=3, help="runs whose median is printed")
    parser.add_argument("--only", choices=["veth", "paced", "loss", "sink"], help="one of the tables")
    parser.add_argument("--peers", default=",".join(TOOLS), help="which, with commas between")
    options = parser.parse_args()
    if os.geteuid() != 0:
        print("compare: namespaces need root", file=sys.stderr)
        return 2
    chosen = [name for name in TOOLS if name in options.peers.split(",")]
    if not chosen:
        print(f"compare: no such peer; there are {', '.join(TOOLS)}", file=sys.stderr)
        return 2
    print(f"Linux {platform.release()}, {os.cpu_count()} CPUs; load {os.getloadavg()[0]:.2f} at the start")
    tables = {
        "veth": (measure_veth, ["fairwave", "fairwave --plain", "quinn", "s2n-quic", "TCP (CUBIC)", "UDT", "SRT"]),
        "paced": (measure_paced, ["fairwave", "fairwave --plain", "quinn", "s2n-quic", "TCP (CUBIC)", "UDT"]),
        "loss": (measure_loss, ["fairwave", "quinn", "quinn (BBR)", "s2n-quic", "TCP (CUBIC)", "TCP (BBR)", "UDT"]),
        "sink": (measure_sink, ["fairwave", "quinn", "TCP (CUBIC)", "TCP (BBR)", "TCP (reno)", "UDT"]),
    }
    for name, (measure, tools) in tables.items():
        if options.only in (None, name):
            measure(options, [tool for tool in tools if tool in chosen])
    return 0


if __name__ == "__main__":
    sys.exit(main())
