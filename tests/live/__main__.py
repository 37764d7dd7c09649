"""Measure the running command, where the machine is calm enough for that.

Each measurement is made several times. The machine is looked at before and after each time: where it was not calm the
time does not count, and a measurement of which fewer than half of the times count is "not judged: machine busy".
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from side_by_side.network import Failed as NetworkFailed

from .calm import Calibration
from .measurements import LONG, MEASUREMENTS, Busy, Measure, Value
from .programs import Failed, Missing


@dataclasses.dataclass
class Verdict:
    """Verdict on one number, or on a measurement without any."""

    measurement: str
    number: str
    verdict: str
    values: list[float]
    unit: str = ""
    least: float | None = None
    most: float | None = None
    source: str = ""
    because: str = ""

    @property
    def is_off(self) -> bool:
        return self.verdict in ("off", "failed")


def measure(name: str, make: Measure, command: Path, repeat: int, calibration: Calibration) -> list[Verdict]:
    """Make one measurement several times, and judge its numbers."""
    runs: list[tuple[list[Value], list[str]]] = []
    before = calibration.look()
    for _ in range(repeat):
        failed = ""
        try:
            values = make(command)
        except Missing as missing:
            return [Verdict(name, "", "left out", [], because=str(missing))]
        except Busy as busy:
            runs.append(([], [str(busy)]))
            before = calibration.look()
            continue
        except (Failed, NetworkFailed) as error:
            values, failed = [], str(error)
        after = calibration.look()
        misses = before.misses + after.misses
        if failed and not misses:
            return [Verdict(name, "", "failed", [], because=failed)]
        runs.append((values, misses))
        before = after
    calm = [values for values, misses in runs if not misses]
    is_judged = 2 * len(calm) >= len(runs)
    counted = calm if is_judged else [values for values, _ in runs if values]
    because = "" if is_judged else next(misses[0] for _, misses in reversed(runs) if misses)
    if not counted:
        return [Verdict(name, "", "not judged: machine busy", [], because=because)]
    verdicts = []
    for first in counted[0]:
        found = [value for values in counted for value in values if value.name == first.name]
        middle = dataclasses.replace(first, value=statistics.median(value.value for value in found))
        verdict = ("as it should be" if middle.is_in_range else "off") if is_judged else "not judged: machine busy"
        numbers = [value.value for value in found]
        verdicts.append(
            Verdict(
                name, first.name, verdict, numbers, first.unit, first.least, first.most, first.source, because=because
            )
        )
    return verdicts


def text(value: float) -> str:
    return f"{value:.4g}" if value != float("inf") else "any"


def show(verdicts: list[Verdict]) -> None:
    heads = ["measurement", "median (least to most)", "range", "source", "verdict"]
    rows = []
    for one in verdicts:
        label = f"{one.measurement}: {one.number}" if one.number else one.measurement
        if one.values:
            low, high = min(one.values), max(one.values)
            found = f"{text(statistics.median(one.values))} ({text(low)} to {text(high)}) {one.unit}".rstrip()
        else:
            found = "-"
        allowed = "-" if one.least is None or one.most is None else f"{text(one.least)} to {text(one.most)}"
        rows.append(
            [label, found, allowed, one.source or "-", f"{one.verdict}{f': {one.because}' if one.because else ''}"]
        )
    widths = [max(len(row[at]) for row in [heads, *rows]) for at in range(len(heads) - 1)]
    for row in [heads, *rows]:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        print("  ".join([*cells, row[-1]]))


def for_json(one: Verdict) -> dict[str, Any]:
    """Without numbers that JSON does not have."""
    fields = dataclasses.asdict(one)
    for key in ("least", "most"):
        fields[key] = None if fields[key] in (float("inf"), float("-inf")) else fields[key]
    fields["values"] = [None if value == float("inf") else value for value in one.values]
    return fields


def main() -> int:
    parser = argparse.ArgumentParser(prog="make live", description=__doc__)
    parser.add_argument("--command", type=Path, default=Path("target/release/fairwave"), help="the command to measure")
    parser.add_argument("--repeat", type=int, default=3, help="times that each measurement is made (default 3)")
    parser.add_argument("--only", default="", metavar="WORDS", help="only measurements whose name has these words")
    parser.add_argument("--long", action="store_true", help="also those that take a minute or longer")
    parser.add_argument("--json", action="store_true", help="print JSON, one object a number")
    parser.add_argument("--list", action="store_true", help="print the names of all measurements")
    options = parser.parse_args()
    chosen = {
        name: make
        for name, make in MEASUREMENTS.items()
        if options.only in name and (options.long or name not in LONG or options.only)
    }
    if options.list:
        print("\n".join(chosen))
        return 0
    if not options.command.exists():
        print(f"live: {options.command}: no such command\nhint: make build", file=sys.stderr)
        return 2
    calibration = Calibration()
    first = calibration.first
    print(
        f"sleeps of 1 ms end {first.half_late_us:.0f} us late (99 %: {first.p99_late_us:.0f} us), others take "
        f"{first.others_share:.0%} of the processors, the host {first.steal_share:.0%}: "
        f"{'; '.join(first.misses) or 'a calm machine'}",
        file=sys.stderr,
    )
    verdicts = []
    for name, make in chosen.items():
        begin = time.monotonic()
        made = measure(name, make, options.command, max(options.repeat, 1), calibration)
        verdicts += made
        print(f"{name}: {made[0].verdict} ({time.monotonic() - begin:.0f} s)", file=sys.stderr)
    if options.json:
        for one in verdicts:
            print(json.dumps(for_json(one)))
    else:
        show(verdicts)
    return int(any(one.is_off for one in verdicts))


if __name__ == "__main__":
    sys.exit(main())
