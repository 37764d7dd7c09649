"""Five sources and one sink next to other work: what each session has of its share, second by second.

Four loads, three schemes. Nothing is judged: the table shows what a busy machine does to Fairwave and to the kernel's
CUBIC, whose rounds take place in the kernel and need no processor of their own.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import csv
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

SCHEMES = ("gtp", "tally", "kernel:cubic")
CAPACITY = "150 Mb/s"
SHARE_BPS = 150e6 / 5
# Sessions have come to their shares by then.
FROM_S = 5

LOOP = "while :; do :; done"
# Computes for 5 to 50 ms and sleeps as long.
BURST = """
import random, time
while True:
    end = time.perf_counter() + random.uniform(0.005, 0.05)
    while time.perf_counter() < end:
        pass
    time.sleep(random.uniform(0.005, 0.05))
"""
# Starts processes, compresses, and writes to the disk.
PIPELINE = "while :; do head -c 2000000 /dev/urandom | gzip -1 | tee part.$$ | sha256sum >sum.$$; sync part.$$; done"
LOADS = {
    "none": (0, 0, 0),
    "4 loops": (4, 0, 0),
    "4 loops, 8 bursts": (4, 8, 0),
    "4 bursts, 6 pipelines": (0, 4, 6),
}


@contextlib.contextmanager
def beside(loops: int, bursts: int, pipelines: int) -> Iterator[None]:
    """Other work for as long as the context lasts."""
    with tempfile.TemporaryDirectory() as place:
        commands = [["sh", "-c", LOOP]] * loops + [[sys.executable, "-c", BURST]] * bursts
        commands += [["sh", "-c", PIPELINE]] * pipelines
        running = [subprocess.Popen(command, cwd=place, start_new_session=True) for command in commands]
        try:
            yield
        finally:
            for process in running:
                # With all that it has started.
                subprocess.run(["pkill", "-KILL", "-s", str(process.pid)], check=False)
                process.wait()


def seconds(rates: Path) -> dict[str, list[float]]:
    """Rate of each session, as IP packets, in each second from FROM_S on."""
    samples: dict[tuple[str, int], list[float]] = collections.defaultdict(list)
    with rates.open() as file:
        for row in csv.DictReader(file):
            # A sample is of the time up to it.
            samples[row["session"], int(float(row["time_s"]) - 1e-6)].append(float(row["wire_rate_bps"]))
    sessions: dict[str, list[float]] = collections.defaultdict(list)
    for (session, second), values in sorted(samples.items()):
        if second >= FROM_S:
            sessions[session].append(sum(values) / len(values))
    return sessions


def run(command: Path, scheme: str, duration_s: int) -> dict[str, float]:
    """One run: what its sessions had."""
    with tempfile.TemporaryDirectory() as place:
        out = Path(place, "out")
        sets = [f"--set=node.{name}.capacity={CAPACITY}" for name in ("d1", *(f"s{at}" for at in range(1, 6)))]
        call = [str(command), "testbed", "run", "five-to-one", "--scheme", scheme, "--duration", f"{duration_s} s"]
        done = subprocess.run([*call, *sets, "--busy", "--quiet", "--json", "--out", str(out)], check=True, stdout=-1)
        late = json.loads(done.stdout.splitlines()[0])["lateness"]
        by_session = seconds(out / "rates.csv")
    means = [sum(values) / len(values) for values in by_session.values()]
    all_seconds = [value for values in by_session.values() for value in values]
    return {
        "least_mbps": min(means) / 1e6,
        "most_mbps": max(means) / 1e6,
        "worst_second_mbps": min(all_seconds) / 1e6,
        "below_half": sum(value < SHARE_BPS / 2 for value in all_seconds),
        "session_seconds": len(all_seconds),
        "sum_mbps": sum(means) / 1e6,
        "jain": sum(means) ** 2 / (len(means) * sum(mean * mean for mean in means)),
        "relay_late_p99_ms": late["late_p99_us"] / 1e3,
    }


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="live.busy", description=__doc__)
    parser.add_argument("--command", type=Path, required=True, help="the command to measure")
    parser.add_argument("--duration", type=int, default=20, help="seconds of a run")
    parser.add_argument("--json", type=Path, help="also write the numbers to this file")
    args = parser.parse_args()
    rows = []
    print("| other work | scheme | means, Mb/s | worst second | below half | sum | Jain | relay late by (99 %) |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    for load, work in LOADS.items():
        with beside(*work):
            for scheme in SCHEMES:
                row = run(args.command, scheme, args.duration)
                rows.append({"other_work": load, "scheme": scheme, **row})
                means = f"{row['least_mbps']:.1f} to {row['most_mbps']:.1f}"
                below = f"{row['below_half']:.0f} of {row['session_seconds']:.0f}"
                numbers = f"{row['worst_second_mbps']:.1f} | {below} | {row['sum_mbps']:.0f} | {row['jain']:.3f}"
                print(f"| {load} | {scheme} | {means} | {numbers} | {row['relay_late_p99_ms']:.1f} ms |", flush=True)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
