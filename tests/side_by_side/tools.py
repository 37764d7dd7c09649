"""The tools that are measured: each runs one plan."""

from __future__ import annotations

import dataclasses
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from .network import TARGET, Failed, Process

PEERS = Path(os.environ["FAIRWAVE_PEERS"]) if "FAIRWAVE_PEERS" in os.environ else None


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
    # How long a tool may take to begin and to end beyond its time.
    patience_s: float = 20
    # Whether its processes go before what else the machine does.
    is_urgent: bool = False
    # Connections or sessions side by side.
    flows: int = 1
    # Called when the source has been started.
    begun: Callable[[], None] = lambda: None
    # The build of Fairwave's command.
    program: Path = TARGET / "fairwave"


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
            sink = Process(plan.sink, [str(program), "serve", *common], is_urgent=plan.is_urgent)
            time.sleep(0.5)
            words = ["--time", str(plan.seconds), "--rate", str(plan.rate_bps)]
            source = Process(plan.source, [str(program), "send", *common, *words], is_urgent=plan.is_urgent)
            plan.begun()
            cpu_s = source.wait(plan.seconds + plan.patience_s)
            # Who has not heard of the end waits for a silence of 10 s.
            cpu_s += sink.wait(12)
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
        sink = Process(
            plan.sink, ["iperf3", "--server", "--one-off", "--port", str(plan.port)], is_urgent=plan.is_urgent
        )
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
            "--parallel",
            str(plan.flows),
        ]
        source = Process(plan.source, words, is_urgent=plan.is_urgent)
        plan.begun()
        cpu_s = source.wait(plan.seconds + plan.patience_s) + sink.wait(3)
        if not source.lines():
            raise Failed(source.last_words())
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
            plan.begun()
            cpu_s = source.wait(plan.seconds + 10 + plan.patience_s)
            sink.child.terminate()
            cpu_s += sink.wait(5)
            return fairwave_outcome(source, cpu_s)

    return run


@contextmanager
def fairwave_sink(plan: Plan, options: tuple[str, ...]) -> Iterator[tuple[Process, str, dict[str, str]]]:
    with tempfile.TemporaryDirectory() as home:
        environment = {"XDG_STATE_HOME": home, "XDG_RUNTIME_DIR": home, "HOME": home}
        words = [str(plan.program), "bench", "serve", "--listen", f"{plan.address}:{plan.port}", *options]
        words += dedicated(plan)
        sink = Process(plan.sink, words, environment, plan.is_urgent)
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
    words = [str(plan.program), "bench", "-", "--time", f"{plan.seconds:g} s", "--json", *options]
    words += dedicated(plan)
    if plan.rate_bps:
        words += ["--limit", f"{plan.rate_bps / 1e6} Mb/s"]
    words[2] = f"@{environment['HOME']}/ticket-{plan.source}"
    Path(words[2][1:]).write_text(ticket)
    home = {key: f"{value}/{plan.source}" for key, value in environment.items()}
    for path in home.values():
        Path(path).mkdir(exist_ok=True)
    return Process(plan.source, words, home, plan.is_urgent)


def fairwave_outcome(source: Process, cpu_s: float) -> Outcome:
    lines = [json.loads(line) for line in source.lines() if line.startswith("{")]
    if not lines or "goodput_bps" not in lines[-1]:
        raise Failed(source.last_words())
    last = lines[-1]
    return Outcome(last["goodput_bps"] / 8 * last["wall_s"], last["goodput_bps"], cpu_s)


TOOLS: dict[str, Callable[[Plan], Outcome]] = {
    "fairwave": run_fairwave(),
    "fairwave --plain": run_fairwave("--plain"),
    "fairwave --rule tally": run_fairwave("--rule", "tally"),
    "quinn": run_peer("peer-quinn"),
    "quinn (BBR)": run_peer("peer-quinn", "--cc", "bbr"),
    "s2n-quic": run_peer("peer-s2n"),
    "TCP (CUBIC)": run_tcp("cubic"),
    "TCP (BBR)": run_tcp("bbr"),
    "TCP (reno)": run_tcp("reno"),
    "UDT": run_peer("peer-udt"),
    "SRT": run_peer("peer-srt"),
}
