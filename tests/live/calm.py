"""Whether the machine is calm: how long a short sleep and a fixed piece of work take now."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import statistics
import time
from pathlib import Path

# A calm machine ends half of all sleeps of 1 ms within this, and 99 of 100 within the second. The relay and the pacing
# of senders wait in such sleeps; crates/testbed/src/lateness.rs takes 1 ms as the limit beyond which times say nothing.
HALF_LATE_US = 200.0
P99_LATE_US = 1000.0
# Share of all processors that other processes may take, and that the host of a virtual machine may.
OTHERS_SHARE = 0.10
# Work takes at most this much longer than at the fastest moment of the run.
SLOWDOWN = 1.25
# Seconds that a look takes. The first one is longer: it finds out how fast this machine is.
LOOK_S = 0.5
FIRST_LOOK_S = 3.0


@dataclasses.dataclass
class Calm:
    """State of the machine over half a second."""

    half_late_us: float
    p99_late_us: float
    # Share of all processors that other processes had, and that the host took.
    others_share: float
    steal_share: float
    # Seconds that the fixed work took, and at the fastest moment so far.
    work_s: float
    fastest_s: float

    @property
    def misses(self) -> list[str]:
        """Reasons why the machine is not calm; empty on a calm one."""
        slowdown = self.work_s / self.fastest_s
        judged = [
            (self.half_late_us > HALF_LATE_US, f"half of all sleeps end {self.half_late_us:.0f} us late"),
            (self.p99_late_us > P99_LATE_US, f"1 % of all sleeps end {self.p99_late_us / 1e3:.1f} ms late"),
            (self.others_share > OTHERS_SHARE, f"other processes take {self.others_share:.0%} of the processors"),
            (self.steal_share > OTHERS_SHARE, f"the host takes {self.steal_share:.0%} of the processors"),
            (slowdown > SLOWDOWN, f"work takes {slowdown:.2f} times as long as at the best moment"),
        ]
        return [text for is_off, text in judged if is_off]


class Calibration:
    """Looks at the machine, and remembers its best moment."""

    def __init__(self) -> None:
        self.fastest_s = float("inf")
        self.first = self.look(FIRST_LOOK_S)

    def look(self, seconds: float = LOOK_S) -> Calm:
        """Measure for some seconds. No measurement runs meanwhile."""
        before, own = _ticks(), time.process_time()
        begin = time.monotonic()
        late_us, work_s = [], []
        while time.monotonic() - begin < seconds:
            for _ in range(20):
                at = time.monotonic()
                time.sleep(0.001)
                late_us.append((time.monotonic() - at - 0.001) * 1e6)
            at = time.monotonic()
            hashlib.sha256(b"\0" * (1 << 20)).digest()
            work_s.append(time.monotonic() - at)
        after, own = _ticks(), time.process_time() - own
        self.fastest_s = min(self.fastest_s, *work_s)
        total = max(after["all"] - before["all"], 1e-9)
        busy = after["busy"] - before["busy"]
        late_us.sort()
        return Calm(
            half_late_us=statistics.median(late_us),
            p99_late_us=late_us[len(late_us) * 99 // 100],
            others_share=max(busy - own, 0.0) / total,
            steal_share=(after["steal"] - before["steal"]) / total,
            work_s=statistics.median(work_s),
            fastest_s=self.fastest_s,
        )


def _ticks() -> dict[str, float]:
    """Seconds of all processors so far, by /proc/stat: proc(5)."""
    words = Path("/proc/stat").read_text().splitlines()[0].split()[1:9]
    user, nice, system, idle, wait, irq, soft, steal = (float(word) / os.sysconf("SC_CLK_TCK") for word in words)
    busy = user + nice + system + irq + soft
    return {"busy": busy, "steal": steal, "all": busy + idle + wait + steal}
