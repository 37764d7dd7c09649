"""Fairwave's cp and rsync over the same sshd, between two namespaces of this machine: `make compare-files`.

Each case has a source at one host and, in its destination at the other, what an earlier copy left. Both are on the file
system of --place. Wall time is the command's; processor time that of both ends, ssh included; bytes on the wire are
those of the client's device, both ways. Needs root, rsync and OpenSSH.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from side_by_side.network import Failed, Relay, spaces, veth

PORT = 2222
# 60 ms there and back, and 0.1 % lost on both ways.
WAN = "delay_ms=15,loss=0.0005"
# A changed part of a file.
PART = 64 << 10
# A small file has at most this many bytes, and 10 kB on average.
SMALL = 20_000
HERTZ = os.sysconf("SC_CLK_TCK")


@dataclass
class World:
    """Two hosts, and how the client reaches the server."""

    client: str
    server: str
    address: str
    ssh: list[str]
    sshd: int

    def wire_bytes(self) -> int:
        """Bytes of the client's devices so far."""
        words = ["ip", "netns", "exec", self.client, "cat", "/proc/net/dev"]
        lines = subprocess.run(words, check=True, capture_output=True, text=True).stdout.splitlines()[2:]
        devices = (line.split(":", 1) for line in lines)
        fields = (rest.split() for name, rest in devices if name.strip() != "lo")
        return sum(int(numbers[0]) + int(numbers[8]) for numbers in fields)

    def server_cpu_s(self) -> float:
        """Processor time of the sessions of sshd that have ended."""
        numbers = Path(f"/proc/{self.sshd}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(numbers[13]) + int(numbers[14])) / HERTZ


@dataclass
class Result:
    """Cost of a copy."""

    wall_s: float
    cpu_s: float
    wire_bytes: int


@dataclass
class Case:
    """A source, and what is at the destination before."""

    name: str
    make_old: Callable[[Path], None] | None
    make_new: Callable[[Path, Path], None]


def small_files(count: int) -> Callable[[Path], None]:
    """Makes files of random content, a hundred a directory."""

    def make(root: Path) -> None:
        draws = random.Random(1)
        for number in range(count):
            path = root / f"{number // 100:05}" / f"{number % 100:02}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(draws.randbytes(draws.randrange(SMALL)))

    return make


def large_file(size: int) -> Callable[[Path], None]:
    """Makes a file of random content."""

    def make(root: Path) -> None:
        draws = random.Random(2)
        root.mkdir(parents=True, exist_ok=True)
        with (root / "large").open("wb") as file:
            for start in range(0, size, 1 << 20):
                file.write(draws.randbytes(min(1 << 20, size - start)))

    return make


def unchanged(old: Path, new: Path) -> None:
    """Copies it, times as well."""
    subprocess.run(["cp", "-a", old, new], check=True)


def change_in_place(old: Path, new: Path) -> None:
    """Overwrites 1 % of a file, in parts of 64 KiB."""
    unchanged(old, new)
    draws = random.Random(3)
    path = new / "large"
    size = path.stat().st_size
    with path.open("r+b") as file:
        for _ in range(size // PART // 100):
            file.seek(draws.randrange(size - PART))
            file.write(draws.randbytes(PART))
    os.utime(path, (1, 2_000_000_000))


def insert_at_front(old: Path, new: Path) -> None:
    """Inserts 1 MB before everything else."""
    new.mkdir(parents=True)
    with (old / "large").open("rb") as source, (new / "large").open("wb") as target:
        target.write(random.Random(4).randbytes(1_000_000))
        shutil.copyfileobj(source, target, 1 << 20)


def change_some(old: Path, new: Path) -> None:
    """Rewrites one file of a hundred."""
    unchanged(old, new)
    draws = random.Random(5)
    for path in sorted(new.glob("*/00")):
        path.write_bytes(draws.randbytes(draws.randrange(SMALL)))


def make_new(make: Callable[[Path], None]) -> Callable[[Path, Path], None]:
    """A maker of a source that needs no older tree."""
    return lambda _, new: make(new)


def cases(options: argparse.Namespace) -> list[Case]:
    """The cases, in the order of the table."""
    large, small = large_file(options.size), small_files(options.files)
    size, files = f"{options.size / 1e9:g} GB", f"{options.files}"
    all_cases = [
        Case(f"1 file of {size}", None, make_new(large)),
        Case(f"{files} files of 10 kB", None, make_new(small)),
        Case(f"{files} unchanged", small, unchanged),
        Case(f"1 % of {size} changed in parts of 64 KiB", large, change_in_place),
        Case(f"1 MB inserted at the front of {size}", large, insert_at_front),
        Case(f"{files}, of which 1 % changed", small, change_some),
    ]
    if options.million:
        all_cases.append(Case("1000000 unchanged", small_files(1_000_000), unchanged))
    return [all_cases[int(number) - 1] for number in options.cases.split(",")] if options.cases else all_cases


@contextmanager
def ssh_server(client: str, server: str, address: str, programs: Path) -> Iterator[World]:
    """A separate sshd at the server, with separate keys."""
    with tempfile.TemporaryDirectory(prefix="compare-files-") as name:
        home = Path(name)
        for key in ["host", "user"]:
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", home / key], check=True)
        shutil.copy(home / "user.pub", home / "authorized")
        Path("/run/sshd").mkdir(exist_ok=True)
        lines = [
            f"Port {PORT}",
            f"HostKey {home}/host",
            f"AuthorizedKeysFile {home}/authorized",
            f"SetEnv PATH={programs}:/usr/bin:/bin",
            "StrictModes no",
            "PermitRootLogin yes",
            "UsePAM no",
        ]
        (home / "config").write_text("\n".join(lines) + "\n")
        words = ["ip", "netns", "exec", server, "/usr/sbin/sshd", "-D", "-e", "-f", str(home / "config")]
        with (home / "log").open("wb") as log:
            daemon = subprocess.Popen(words, stderr=log)
        ssh = ["ssh", "-p", f"{PORT}", "-i", f"{home}/user", "-o", "StrictHostKeyChecking=no", "-o", "LogLevel=ERROR"]
        ssh += ["-o", f"UserKnownHostsFile={home}/known"]
        try:
            try_until(
                lambda: subprocess.run(
                    ["ip", "netns", "exec", client, *ssh, address, "true"], check=True, capture_output=True
                )
            )
            yield World(client, server, address, ssh, daemon.pid)
        finally:
            daemon.terminate()
            daemon.wait()


def try_until(action: Callable[[], object], seconds: float = 20) -> None:
    """Repeats it until it succeeds."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            action()
            return
        except subprocess.CalledProcessError as error:
            if time.monotonic() > deadline:
                raise Failed(error.stderr.decode()) from error
            time.sleep(0.2)


@contextmanager
def network(kind: str, programs: Path) -> Iterator[World]:
    """The two hosts, on a cable or far from each other."""
    if kind == "local":
        with veth(1500, True) as (client, server), ssh_server(client, server, "10.66.1.1", programs) as world:
            yield world
        return
    with spaces(2) as names:
        relay = Relay(names, [WAN, WAN])
        try:
            with ssh_server(names[0], names[1], "10.66.1.1", programs) as world:
                yield world
        finally:
            carried = relay.stop()
            if carried.is_busy:
                print("    the relay was kept from running: these numbers are not of that network", file=sys.stderr)


def run(world: World, command: list[str]) -> Result:
    """Runs a copy."""
    server_cpu_s, wire_bytes = world.server_cpu_s(), world.wire_bytes()
    begin = time.monotonic()
    child = subprocess.Popen(
        ["ip", "netns", "exec", world.client, *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert child.stdout
    output = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    wall_s = time.monotonic() - begin
    if os.waitstatus_to_exitcode(status):
        raise Failed(f"{command[0]}: {output.decode(errors='replace')[-500:]}")
    # The far end's processes are counted when sshd has waited for them.
    time.sleep(0.5)
    cpu_s = usage.ru_utime + usage.ru_stime + world.server_cpu_s() - server_cpu_s
    return Result(wall_s, cpu_s, world.wire_bytes() - wire_bytes)


def same(one: Path, other: Path) -> bool:
    """Whether two trees have the same names and contents."""
    return subprocess.run(["diff", "-rq", one, other], capture_output=True, check=False).returncode == 0


def measure(world: World, case: Case, tools: dict[str, list[str]], place: Path, repeat: int) -> dict[str, Result]:
    """The best of some runs of each tool, in turns."""
    old, new, far = place / "old", place / "data", place / "far"
    for path in [old, new, far]:
        shutil.rmtree(path, ignore_errors=True)
    if case.make_old:
        case.make_old(old)
    case.make_new(old, new)
    results: dict[str, list[Result]] = {name: [] for name in tools}
    for _ in range(repeat):
        for name, words in tools.items():
            shutil.rmtree(far, ignore_errors=True)
            far.mkdir()
            if case.make_old:
                unchanged(old, far / "data")
            os.sync()
            results[name].append(run(world, [*words, str(new), f"{world.address}:{far}/"]))
            if not same(new, far / "data"):
                raise Failed(f"{name}: the copy differs")
    return {name: min(all_of, key=lambda one: one.wall_s) for name, all_of in results.items()}


def written(result: Result) -> str:
    """A result as a cell of the table."""
    return f"{result.wall_s:.2f} s, {result.cpu_s:.2f} s, {result.wire_bytes / 1e6:.2f} MB"


def main() -> None:
    """Measure and print, and write what the results pages show."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fairwave", type=Path, default=Path("target/release/fairwave"))
    parser.add_argument("--before", type=Path, help="another build of the command, for a column of its own")
    parser.add_argument("--place", type=Path, default=Path("/dev/shm"), help="where the files are (default /dev/shm)")
    parser.add_argument("--size", type=lambda text: int(float(text)), default=2_000_000_000)
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--million", action="store_true", help="1 000 000 unchanged files as well")
    parser.add_argument("--networks", default="local,wan")
    parser.add_argument("--cases", help="their numbers, such as 4,5")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", type=Path, help="writes the measurements for docs/results here")
    options = parser.parse_args()
    builds = {"fairwave": options.fairwave, **({"before": options.before} if options.before else {})}
    measurements = []
    with tempfile.TemporaryDirectory(prefix="compare-files-", dir=options.place) as name:
        place = Path(name)
        for kind in options.networks.split(","):
            title = "Over a cable" if kind == "local" else "Over 60 ms with 0.1 % loss"
            rows: list[list[str]] = []
            for case in cases(options):
                row = [case.name]
                for label, program in {"rsync": None, **builds}.items():
                    bin_at = place / f"bin-{label}"
                    bin_at.mkdir(exist_ok=True)
                    if program and not (bin_at / "fairwave").exists():
                        shutil.copy(program, bin_at / "fairwave")
                    with network(kind, bin_at) as world:
                        ssh = " ".join(world.ssh)
                        words = [str(bin_at / "fairwave"), "cp", "--quiet", "--ssh", ssh] if program else None
                        tool = words or ["rsync", "-rlt", "-e", ssh]
                        result = measure(world, case, {label: tool}, place, options.repeat)[label]
                    print(f"{title}: {case.name}: {label}: {written(result)}", file=sys.stderr, flush=True)
                    row.append(written(result))
                rows.append(row)
            heads = [f"{label}: wall, processor, wire" for label in ["rsync", *builds]]
            measurements.append(
                {
                    "title": title,
                    "columns": ["case", *heads],
                    "rows": rows,
                    "recorded": f"{datetime.date.today():%Y-%m-%d}",
                    "command": "make compare-files",
                    "spread": f"best of {options.repeat}",
                }
            )
    for table in measurements:
        print(f"\n## {table['title']}\n")
        for row in [table["columns"], ["---"] * len(table["columns"]), *table["rows"]]:
            print(f"| {' | '.join(row)} |")
    if options.json:
        options.json.write_text(json.dumps(measurements, indent=1) + "\n")


if __name__ == "__main__":
    try:
        main()
    except Failed as failure:
        sys.exit(f"compare-files: {failure}")
