"""Draws the pictures that explain Fairwave: architecture, the way of a packet, an end node, a Tally exchange.

usage: python docs/pictures/teach.py [--check]

Writes SVG files next to this script; --check fails if one differs. Each picture has a light card as its background, and
reads the same on light and dark pages.
"""

from __future__ import annotations

import html
import itertools
import sys
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
INK, GREY, LINE, CARD = "#1f2933", "#52606d", "#9aa5b1", "#fbfcfd"
TEAL, TEAL_FILL = "#00796b", "#d7f0ec"
BLUE, BLUE_FILL = "#1d4ed8", "#dbe7fd"
AMBER, AMBER_FILL = "#b45309", "#fdeccf"
ROSE, ROSE_FILL = "#be123c", "#fde0e6"
PLAIN_FILL = "#eef1f4"
FONT = "Helvetica Neue,Helvetica,Arial,DejaVu Sans,sans-serif"
MONO = "ui-monospace,Menlo,Consolas,DejaVu Sans Mono,monospace"


class Picture:
    """Shapes on a card."""

    def __init__(self, width: int, height: int, title: str) -> None:
        """An empty card."""
        self.width, self.height, self.title = width, height, title
        self.shapes: list[str] = []

    def box(
        self, x: float, y: float, w: float, h: float, lines: list[str], fill: str = PLAIN_FILL, edge: str = LINE
    ) -> None:
        """A box with a bold first line."""
        self.shapes.append(
            f'<rect x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" rx="6" fill="{fill}" stroke="{edge}"/>'
        )
        step = 18
        top = y + h / 2 - step * (len(lines) - 1) / 2
        for number, line in enumerate(lines):
            weight = "bold" if number == 0 else "normal"
            self.text(x + w / 2, top + number * step, line, "middle", weight=weight, size=14 if number == 0 else 12.5)

    def frame(self, x: float, y: float, w: float, h: float, label: str, edge: str = LINE) -> None:
        """A dashed frame around shapes, with a label at its top."""
        self.shapes.append(
            f'<rect x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" rx="10" fill="none" stroke="{edge}" '
            f'stroke-dasharray="5 4"/>'
        )
        self.text(x + 12, y + 16, label, "start", colour=GREY, size=12.5)

    def text(
        self,
        x: float,
        y: float,
        text: str,
        anchor: str = "start",
        *,
        size: float = 13,
        colour: str = INK,
        weight: str = "normal",
        font: str = FONT,
    ) -> None:
        """A line of text, vertically centred at y."""
        self.shapes.append(
            f'<text x="{x:g}" y="{y:g}" dy="0.35em" text-anchor="{anchor}" font-family="{font}" font-size="{size:g}" '
            f'font-weight="{weight}" fill="{colour}">{html.escape(text)}</text>'
        )

    def arrow(self, points: list[tuple[float, float]], colour: str = GREY, *, dashed: bool = False) -> None:
        """A line through points, with a head at its end."""
        (x0, y0), (x1, y1) = points[-2:]
        length = ((x1 - x0) ** 2 + (y1 - y0) ** 2) ** 0.5
        ux, uy = (x1 - x0) / length, (y1 - y0) / length
        route = [*points[:-1], (x1 - 7 * ux, y1 - 7 * uy)]
        path = " ".join(f"{x:.4g},{y:.4g}" for x, y in route)
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self.shapes.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.8"{dash}/>')
        head = [(x1, y1), (x1 - 9 * ux - 4 * uy, y1 - 9 * uy + 4 * ux), (x1 - 9 * ux + 4 * uy, y1 - 9 * uy - 4 * ux)]
        corners = " ".join(f"{x:.4g},{y:.4g}" for x, y in head)
        self.shapes.append(f'<polygon points="{corners}" fill="{colour}"/>')

    def bar(self, x: float, y: float, w: float, h: float, fill: str, edge: str = "none") -> None:
        """A bar of a chart."""
        self.shapes.append(f'<rect x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" fill="{fill}" stroke="{edge}"/>')

    def line(self, x0: float, y0: float, x1: float, y1: float, colour: str = LINE, dash: str = "") -> None:
        """A plain line."""
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        self.shapes.append(
            f'<line x1="{x0:g}" y1="{y0:g}" x2="{x1:g}" y2="{y1:g}" stroke="{colour}" stroke-width="1.5"{dashes}/>'
        )

    def svg(self) -> str:
        """The whole file."""
        shapes = "\n".join(self.shapes)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" width="{self.width}" '
            f'height="{self.height}" role="img">\n<title>{html.escape(self.title)}</title>\n'
            f'<rect x="0.5" y="0.5" width="{self.width - 1}" height="{self.height - 1}" rx="10" fill="{CARD}" '
            f'stroke="#d2d9e0"/>\n{shapes}\n</svg>\n'
        )


def architecture() -> Picture:
    """Which crates there are, and which use which."""
    p = Picture(900, 520, "The crates of Fairwave: pure cores, drivers around them, and what people use")
    p.frame(20, 20, 860, 108, "used by people and programs")
    p.box(40, 50, 190, 60, ["fairwave", "the command (cli)"], BLUE_FILL, BLUE)
    p.box(250, 50, 190, 60, ["import fairwave", "Python"], BLUE_FILL, BLUE)
    p.box(460, 50, 190, 60, ["libfairwave", "C sockets (capi)"], BLUE_FILL, BLUE)
    p.box(670, 50, 190, 60, ["unmodified programs", "preload, bridge"], BLUE_FILL, BLUE)
    p.frame(20, 160, 420, 168, "the lab: simulations")
    p.box(40, 190, 120, 120, ["study", "sweeps, seeds"], AMBER_FILL, AMBER)
    p.box(170, 190, 120, 120, ["catalogue", "papers, claims,", "pictures"], AMBER_FILL, AMBER)
    p.box(300, 190, 120, 54, ["fluid", "exact rates"], AMBER_FILL, AMBER)
    p.box(300, 256, 120, 54, ["sim", "every packet"], AMBER_FILL, AMBER)
    p.frame(460, 160, 420, 168, "the transport: real sockets")
    p.box(480, 190, 120, 54, ["files", "trees, resume"], TEAL_FILL, TEAL)
    p.box(480, 256, 120, 54, ["pipe", "byte streams"], TEAL_FILL, TEAL)
    p.box(610, 190, 120, 120, ["host", "sockets, keys,", "one thread"], TEAL_FILL, TEAL)
    p.box(740, 190, 120, 54, ["daemon", "one end node"], TEAL_FILL, TEAL)
    p.box(740, 256, 120, 54, ["testbed", "real programs"], TEAL_FILL, TEAL)
    p.frame(20, 360, 860, 140, "cores: no clock, no socket, no file, no thread")
    p.box(40, 392, 150, 90, ["units", "time, rate, bytes"])
    p.box(200, 392, 150, 90, ["scenario", "TOML in, results out"])
    p.box(360, 392, 180, 90, ["schemes", "every rule, one file each:", "GTP, Tally, CUBIC, BBR ..."])
    p.box(550, 392, 150, 90, ["node", "a capacity and", "its sessions"])
    p.box(710, 392, 150, 90, ["proto", "GTP as packets", "and timers"])
    p.arrow([(230, 136), (230, 158)])
    p.arrow([(670, 136), (670, 158)])
    p.arrow([(230, 334), (230, 358)])
    p.arrow([(670, 334), (670, 358)])
    p.text(246, 347, "drives schemes and proto", colour=GREY, size=12.5)
    p.text(686, 347, "drives the same ones", colour=GREY, size=12.5)
    return p


def packet_walk() -> Picture:
    """A datagram from the giver's disk to the taker's."""
    p = Picture(900, 470, "The way of a block from one disk to the other")
    p.frame(20, 20, 400, 430, "the end that has the file")
    p.frame(480, 20, 400, 430, "the end that wants it")
    left, right, w, h = 50, 510, 340, 52
    rows = [52, 132, 212, 292, 372]
    source = [
        ["Readers", "read what was requested, and hash it (BLAKE3)"],
        ["GivingEnd", "keeps what is in memory, by stream and offset"],
        ["Outbound", "next packet: grants, path model, pacing"],
        ["DataPacket::seal", "cipher and copy in one pass"],
        ["Socket", "up to 64 datagrams per call (GSO)"],
    ]
    sink = [
        ["Committer", "fsync, rename to the final name"],
        ["Worker", "verifies the hash, writes, notes it in the journal"],
        ["Inbound", "new bytes and missing numbers, measured rate"],
        ["DataPacket::open", "checks and decrypts in place"],
        ["Socket", "up to 16 messages per call (GRO)"],
    ]
    for y, lines in zip(rows, source, strict=True):
        p.box(left, y, w, h, lines, TEAL_FILL, TEAL)
    for y, lines in zip(rows, sink, strict=True):
        p.box(right, y, w, h, lines, BLUE_FILL, BLUE)
    for above, below in itertools.pairwise(rows):
        p.arrow([(left + w / 2, above + h), (left + w / 2, below)], TEAL)
        p.arrow([(right + w / 2, below), (right + w / 2, above + h)], BLUE)
    p.arrow([(left + w, 392), (right, 392)], INK)
    p.text(450, 380, "data", "middle", size=12.5)
    p.arrow([(right, 238), (left + w, 238)], AMBER, dashed=True)
    p.text(450, 190, "requests,", "middle", size=12.5, colour=AMBER)
    p.text(450, 206, "reports,", "middle", size=12.5, colour=AMBER)
    p.text(450, 222, "grants", "middle", size=12.5, colour=AMBER)
    p.text(450, 440, "UDP", "middle", size=12.5, colour=GREY)
    return p


def end_node() -> Picture:
    """One end node, its table and one tick of GTP."""
    p = Picture(900, 440, "An end node at one tick: measured rates in, expected rates out")
    p.text(30, 34, "A receiver of 1000 Mb/s and its table at one tick of GTP (alpha 0.1)", size=15, weight="bold")
    # Wu 2007, Algorithm 2, with the repaired step: the example of "max-min and GTP".
    capacity, alpha, beta = 1000.0, 0.1, 0.2
    measured = {"a": 100.0, "b": 310.0, "c": 600.0}
    x0, scale, rows = 330.0, 0.8, [110, 184, 258]
    for x, words in ((45, "session"), (110, "measured"), (190, "target"), (262, "expected"), (x0, "Mb/s")):
        p.text(x, 72, words, colour=GREY, size=12.5)
    remaining = capacity
    for number, ((name, rate), y) in enumerate(zip(measured.items(), rows, strict=True)):
        target = remaining / (len(measured) - number)
        step = max(alpha * (target - rate), alpha * beta * target)
        is_short = rate >= target
        expected = target if is_short else rate + step
        p.text(68, y + 14, name, "middle", weight="bold", font=MONO, size=15)
        for x, value in ((110, rate), (190, target), (262, expected)):
            p.text(x, y + 14, f"{value:.0f}", weight="bold" if x == 262 else "normal")
        p.bar(x0, y, rate * scale, 28, TEAL_FILL, TEAL)
        end, to = x0 + rate * scale, x0 + expected * scale
        colour, fill = (ROSE, ROSE_FILL) if is_short else (BLUE, BLUE_FILL)
        p.bar(min(end, to), y + 6, abs(to - end), 16, fill, colour)
        at = x0 + target * scale
        p.line(at, y - 12, at, y + 34, AMBER)
        p.text(
            at,
            y - 20,
            f"target {target:.0f} = {remaining:.0f} / {len(measured) - number}",
            "middle",
            size=12,
            colour=AMBER,
        )
        words = "above its target: cut to it" if is_short else f"below its target: {step:.0f} more"
        p.text(x0 + 8 if rate > 200 else max(end, to) + 8, y + 14, words, size=12, colour=INK)
        remaining -= rate
    y = 338
    p.box(30, y, 190, 70, ["1  measure", "what each session moved"])
    p.box(245, y, 190, 70, ["2  targets", "slowest session first"], AMBER_FILL, AMBER)
    p.box(460, y, 190, 70, ["3  steps", "a tenth of the gap"], BLUE_FILL, BLUE)
    p.box(675, y, 195, 70, ["4  grants", "to sources, half an RTT"], PLAIN_FILL)
    for x in (220, 435, 650):
        p.arrow([(x, y + 35), (x + 25, y + 35)])
    p.text(
        450,
        424,
        "Each end node repeats this once per control interval (20 ms by default).",
        "middle",
        size=12.5,
        colour=GREY,
    )
    return p


def tally_exchange() -> Picture:
    """A newcomer gets its share under Tally: cut, confirmation, grant."""
    p = Picture(1060, 520, "Tally: a newcomer's share is cut from the other session, confirmed, and only then granted")
    columns = {"source A": 190.0, "sink, 100 Mb/s": 460.0, "source B (new)": 740.0}
    for name, x in columns.items():
        fill, edge = (AMBER_FILL, AMBER) if name.startswith("sink") else (TEAL_FILL, TEAL)
        p.box(x - 85, 22, 170, 36, [name], fill, edge)
        p.line(x, 58, x, 488)
    a, sink, b = columns.values()

    def message(x0: float, y0: float, x1: float, y1: float, words: str, colour: str = INK) -> None:
        p.arrow([(x0, y0), (x1, y1)], colour)
        p.text(x0 + 0.42 * (x1 - x0), y0 + 0.42 * (y1 - y0) - 17, words, "middle", size=13, colour=colour)

    def note(y: float, words: str, detail: str) -> None:
        p.shapes.append(
            f'<rect x="{sink - 118:g}" y="{y - 20:g}" width="236" height="42" rx="4" fill="#ffffff" stroke="{AMBER}"/>'
        )
        p.text(sink, y - 9, words, "middle", size=12.5, weight="bold")
        p.text(sink, y + 9, detail, "middle", size=12.5, colour=GREY)

    p.text(20, 86, "sends 100 Mb/s", size=12.5, colour=TEAL, weight="bold")
    note(90, "A is granted 100", "reserved: A 100")
    message(b, 100, sink + 2, 150, "claim 100")
    note(172, "fair share is 50 each", "A is cut, B waits: 100 reserved for A")
    message(sink, 200, a, 250, "grant 2: 50", ROSE)
    p.text(20, 254, "obeys at once:", size=12.5, colour=TEAL, weight="bold")
    p.text(20, 271, "sends 50 Mb/s", size=12.5, colour=TEAL, weight="bold")
    message(a, 276, sink - 2, 326, "confirms grant 2", BLUE)
    note(346, "50 is free again", "reserved: A 50, and 50 for B")
    message(sink, 374, b, 424, "grant 1: 50", ROSE)
    p.text(752, 430, "sends 50 Mb/s", "start", size=12.5, colour=TEAL, weight="bold")
    message(b, 446, sink + 2, 484, "confirms grant 1", BLUE)
    # Reserved capacity over time: 120 units are the whole.
    x, w = 910.0, 120.0
    p.text(x + w / 2, 40, "reserved", "middle", size=14, weight="bold")
    p.bar(x, 62, w, 284, TEAL_FILL, TEAL)
    p.bar(x, 346, w / 2, 142, TEAL_FILL, TEAL)
    p.bar(x + w / 2, 374, w / 2, 114, AMBER_FILL, AMBER)
    p.text(x + w / 2, 200, "A: 100", "middle")
    p.text(x + w / 4, 430, "A: 50", "middle")
    p.text(x + 3 * w / 4, 430, "B: 50", "middle")
    p.text(x + 3 * w / 4, 360, "free", "middle", size=12, colour=GREY)
    p.line(x + w, 58, x + w, 488, GREY, "5 4")
    p.text(
        460,
        504,
        "At most 1.02 of the capacity is reserved at any time, whatever is late or lost.",
        "middle",
        size=12.5,
        colour=GREY,
    )
    p.arrow([(40, 116), (40, 226)], LINE)
    p.text(50, 172, "time", colour=GREY, size=12.5)
    return p


PICTURES: dict[str, Callable[[], Picture]] = {
    "architecture": architecture,
    "packet-walk": packet_walk,
    "end-node": end_node,
    "tally-exchange": tally_exchange,
}


def main() -> int:
    """Writes or checks the files."""
    stale = []
    for name, draw in PICTURES.items():
        path, text = HERE / f"{name}.svg", draw().svg()
        if "--check" not in sys.argv:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(path.name)
    if stale:
        print(f"run python docs/pictures/teach.py: {', '.join(stale)} differ", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
