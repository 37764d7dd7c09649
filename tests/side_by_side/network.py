"""Namespaces of this machine, what runs in them, and the relay between them."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

TARGET = Path(os.environ.get("CARGO_TARGET_DIR", "target")) / "release"
PREFIX = f"fwcmp{os.getpid()}-"

# What is measured goes before what else the machine does, and the relay before that: where others work as well, an end
# that waits milliseconds for the processor looks like a bad path. Needs root; what runs all the time still leaves 5 %.
URGENT = ["chrt", "--rr"]
RELAY_PRIORITY, ENDS_PRIORITY = "20", "10"

# Later than that, the relay was not the network that was requested, and nothing is measured by it.
LATE_HALF_MS = 0.5
LATE_99_MS = 5.0


class Failed(Exception):
    """A tool did not do what it should; its last words."""


class Process:
    """A command in a namespace, whose CPU time is known when it has ended."""

    def __init__(
        self, space: str, command: list[str], environment: dict[str, str] | None = None, is_urgent: bool = False
    ) -> None:
        self.words = command
        self.output = tempfile.TemporaryFile("w+")
        self.errors = tempfile.TemporaryFile("w+")
        environment = {**os.environ, **(environment or {})}
        # The namespace belongs to the process itself: no wrapper that stays, whose CPU time would count instead.
        self.child = subprocess.Popen(
            ["ip", "netns", "exec", space, *([*URGENT, ENDS_PRIORITY] if is_urgent else []), *command],
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
        """Waits for its end: its CPU time. One that does not end is terminated, and then killed."""
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


@dataclasses.dataclass
class Flow:
    """What the relay carried from one host to another."""

    bytes: int = 0
    packets: int = 0
    lost: int = 0
    queue_drops: int = 0
    marked: int = 0
    # In slots of 10 ms since the relay began.
    slots_bytes: list[float] = dataclasses.field(default_factory=list)

    @property
    def drop_share(self) -> float:
        """Share of the packets that came to the queue and found it full."""
        return self.queue_drops / max(self.packets + self.queue_drops, 1)


@dataclasses.dataclass
class Carried:
    """What the relay carried to the first host, and how precisely."""

    # By the number of the host that they came from.
    flows: dict[int, Flow]
    # The longest that packets waited for the rate, in slots of 10 ms; empty without a rate.
    waits_ms: list[float]
    # How late it was with packets: half of them, and 99 %.
    late_ms: tuple[float, float]
    overflows: int

    @property
    def begin(self) -> int:
        """The slot in which the first data came: more than two packets."""
        firsts = (
            next((at for at, size in enumerate(flow.slots_bytes) if size > 3000), None) for flow in self.flows.values()
        )
        return min((at for at in firsts if at is not None), default=0)

    @property
    def is_busy(self) -> bool:
        """Whether it was kept from running: then it was another network than the one that it was to be."""
        return self.late_ms[0] > LATE_HALF_MS or self.late_ms[1] > LATE_99_MS or self.overflows > 0


class Relay:
    """Hosts behind the relay; the first is the sink."""

    def __init__(self, names: list[str], options: list[str], seed: int = 1) -> None:
        self.names = names
        hosts = [f"{name}:{option}" for name, option in zip(names, options, strict=True)]
        self.child = subprocess.Popen(
            [*URGENT, RELAY_PRIORITY, str(TARGET / "examples/relay"), "--seed", str(seed), *hosts],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.child.stdout
        if not self.child.stdout.readline().startswith("ready"):
            raise Failed(self.child.communicate()[1])

    def change(self, host: int, options: str, after_s: float = 0) -> None:
        """So much later. The relay's own clock keeps the time: this process has to wait for the processor."""
        assert self.child.stdin
        self.child.stdin.write(f"{self.names[host]}:after_ms={1e3 * after_s:g},{options}\n")
        self.child.stdin.flush()

    def stop(self) -> Carried:
        """What it carried to the sink."""
        output, errors = self.child.communicate()
        print(f"    {errors.strip()}", file=sys.stderr)
        if self.child.returncode:
            raise Failed(errors.strip())
        report = json.loads(output)
        fields = {field.name for field in dataclasses.fields(Flow)}
        flows = {
            flow["from"]: Flow(**{key: value for key, value in flow.items() if key in fields})
            for flow in report["flows"]
            if flow["to"] == 0
        }
        waits_ms = next((queue["waits_ms"] for queue in report["queues"] if queue["to"] == 0), [])
        late = report["late_ms"]
        return Carried(flows, waits_ms, (late["half"], late["p99"]), report["overflows"])
