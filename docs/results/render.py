#!/usr/bin/env python3
"""Write the pages of docs/results from the recorded measurements in docs/results/data.

usage: docs/results/render.py                write every page and its plot
       docs/results/render.py --check        exit 1 if a page or plot differs from its data
       docs/results/render.py --league FILE  record the output of `fairwave league --json` of this commit, then write

A file of data holds the title and text of a page, its plots, and its measurements: each has columns, rows, the machine,
the day and commit of the record, the command, and the spread. Measurements with "show": false are only counted.
A measurement with "shown" has only the rows of these names in its table. With "keys", which name its columns,
`{row.key}` in the text is a cell.
"""

import json
import re
import subprocess
import sys
import textwrap
from datetime import date
from pathlib import Path

HERE = Path(__file__).resolve().parent
USUAL = "virtual machine, 2 cores (Intel Xeon)"
COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9"]
STYLE = (
    "text{font-family:sans-serif;font-size:13px;fill:#222}.t{font-size:15px;font-weight:bold}.g{stroke:#bbb;stroke-width:1}"
    ".n{font-size:11px}@media(prefers-color-scheme:dark){text{fill:#ddd}.g{stroke:#555}}"
)
WIDTH, LEFT, RIGHT = 760, 230, 80


def number(cell):
    """The first number of a cell, or None."""
    found = re.match(r"\s*(-?\d+(?:\.\d+)?)", cell.replace("\u2212", "-"))
    return float(found.group(1)) if found else None


def escape(text):
    """Text for SVG."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def text(x, y, words, kind="", anchor="start"):
    """A text of SVG."""
    kind = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{kind}>{escape(words)}</text>'


def svg(height, parts):
    """A whole picture."""
    box = f'viewBox="0 0 {WIDTH} {height:.0f}" role="img"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {box}><style>{STYLE}</style>'
    return "\n".join([head, *parts, "</svg>"]) + "\n"


def bars(plot, measurement):
    """Horizontal bars: a group a row, a bar a chosen column. Cells without a number have a dash."""
    import math

    columns, rows = measurement["columns"], measurement["rows"]
    labels = plot.get("label", [0])
    values = plot["values"]
    numbers = [[number(row[column]) for column in values] for row in rows]
    known = [value for row in numbers for value in row if value is not None]
    most, least = max(known), min(value for value in known if value > 0 or not plot.get("log"))

    def length(value):
        share = math.log(value / (least / 2)) / math.log(most / (least / 2)) if plot.get("log") else value / most
        return (WIDTH - LEFT - RIGHT) * share

    parts, y = [text(10, 20, plot["title"], "t")], 34.0
    if len(values) > 1:
        x = 10.0
        for index, column in enumerate(values):
            parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="12" height="12" fill="{COLOURS[index % 6]}"/>')
            parts.append(text(x + 17, y + 11, columns[column]))
            x += 30 + 7.2 * len(columns[column])
        y += 26
    top = y
    for row, cells in zip(rows, numbers, strict=True):
        name = ", ".join(row[column].replace("`", "") for column in labels)
        middle = y + 8 * len(cells) + 4
        lines = [name] if len(name) < 33 else textwrap.wrap(name, 36)
        for index, line in enumerate(lines):
            place = middle + 12 * (index - (len(lines) - 1) / 2)
            parts.append(text(LEFT - 8, place, line, "n" if len(lines) > 1 else "", "end"))
        for index, value in enumerate(cells):
            if value is None:
                parts.append(text(LEFT + 5, y + 11, "\u2013", "n"))
            else:
                size = f'width="{length(value):.1f}" height="13"'
                parts.append(f'<rect x="{LEFT}" y="{y:.1f}" {size} fill="{COLOURS[index % 6]}"/>')
                parts.append(text(LEFT + length(value) + 5, y + 11, f"{value:g}", "n"))
            y += 16
        y += 8
    parts.append(f'<line class="g" x1="{LEFT}" y1="{top:.1f}" x2="{LEFT}" y2="{y - 6:.1f}"/>')
    scale = " (logarithmic)" if plot.get("log") else ""
    parts.append(text(LEFT, y + 10, plot["unit"] + scale, "n"))
    return svg(y + 22, parts)


def heat(plot, measurement):
    """A cell a round-trip time, queue and neighbour: the share, darker the farther from the even share."""
    # Cells with two round-trip times stay in the data.
    rows = [row for row in measurement["rows"] if " and " not in row[0]]
    order = list(dict.fromkeys(row[2] for row in rows))
    columns = list(dict.fromkeys((row[0], row[1]) for row in rows))
    cells = {(row[0], row[1], row[2]): row for row in rows}
    left, wide, high = 150, (WIDTH - 160) / len(columns), 30
    parts = [text(10, 20, plot["title"], "t n")]
    for index, (rtt, queue) in enumerate(columns):
        x = left + wide * index + wide / 2
        parts.append(text(x, 44, f"{rtt} ms", "n", "middle"))
        parts.append(text(x, 58, queue, "n", "middle"))
    for line, name in enumerate(order):
        y = 66 + high * line
        parts.append(text(left - 8, y + 19, name.replace("TCP (", "").replace(")", ""), "", "end"))
        for index, (rtt, queue) in enumerate(columns):
            row = cells.get((rtt, queue, name))
            if not row:
                continue
            share, even = number(row[3]), number(row[4])
            away = min(abs(share - even) / even, 1.0)
            colour = COLOURS[0] if share >= even else COLOURS[4]
            x = left + wide * index
            place = f'x="{x:.1f}" y="{y}" width="{wide - 2:.1f}" height="{high - 2}"'
            parts.append(f'<rect {place} fill="{colour}" fill-opacity="{0.12 + 0.8 * away:.2f}"/>')
            parts.append(text(x + wide / 2, y + 19, row[3], "n", "middle"))
    y = 66 + high * len(order) + 16
    legend = "Columns: round-trip time, queue in BDP. Blue: more than the even share; orange: less."
    parts.append(text(10, y, legend, "n"))
    return svg(y + 12, parts)


def table(measurement):
    """The Markdown table of a measurement."""
    lines = ["| " + " | ".join(measurement["columns"]) + " |", "|" + "---|" * len(measurement["columns"])]
    shown = measurement.get("shown")
    rows = [row for row in measurement["rows"] if not shown or row[0].strip("`") in shown]
    lines += ["| " + " | ".join(cell or " " for cell in row) + " |" for row in rows]
    return [re.sub(r"\|  +\|", "| |", line) for line in lines]


def origin(measurement):
    """When, where and how a measurement was made; the index names the usual machine."""
    machine = measurement["machine"].removeprefix(USUAL)
    machine = machine if not machine or machine[0] in ",;" else f", {machine}"
    return (
        f"Recorded {measurement['recorded']} at commit {measurement['commit']}{machine}, {measurement['spread']}: "
        f"`{measurement['command']}`."
    )


def filled(line, measurements):
    """A line of text with the cells that it names."""
    cells = {
        f"{{{row[0].strip('`')}.{key}}}": cell
        for measurement in measurements
        for row in measurement["rows"]
        for key, cell in zip(measurement.get("keys", []), row, strict=False)
    }
    return re.sub(r"\{[\w-]+\.\w+\}", lambda name: cells[name[0]], line)


def page(name, data):
    """A page of results."""
    words = [filled(line, data["measurements"]) for line in data["text"]]
    lines = [f"# {data['title']}", "", f"![{data['plots'][0]['title']}]({name}.svg)", "", *words]
    hidden = []
    for measurement in data["measurements"]:
        if measurement.get("show", True):
            lines += ["", f"## {measurement['title']}", "", *table(measurement), "", origin(measurement)]
            if measurement.get("note"):
                lines += ["", measurement["note"]]
        elif measurement.get("list", True):
            hidden.append(measurement)
    if hidden:
        more = "one more table" if len(hidden) == 1 else f"{len(hidden)} more tables"
        lines += ["", f"[{name}.json](data/{name}.json) has {more}."]
    return "\n".join(lines) + "\n"


def index(pages):
    """The list of pages."""
    lines = [
        "# Results",
        "",
        "Each page starts with a plot and names the day, commit, command and spread of every measurement.",
        "The numbers are in `docs/results/data` as JSON.",
        "Unless another machine is named, it was a virtual one with 2 cores (Intel Xeon).",
        "Traffic went between network namespaces or over loopback.",
        "None was measured on a physical 100G card or on the public internet.",
        "",
    ]
    lines += [f"- [{data['title']}]({name}.md)" for name, data in pages]
    return "\n".join(lines) + "\n"


def record_league(scores):
    """Write the scores, one JSON object per scheme and scenario, into the data of the league."""
    path = HERE / "data" / "league.json"
    data = json.loads(path.read_text(encoding="utf-8"))
    measurement = data["measurements"][0]
    by_scheme = {}
    for line in scores.read_text(encoding="utf-8").splitlines():
        score = json.loads(line)
        by_scheme.setdefault(score["scheme"], {})[score["scenario"]] = score

    def cell(scenario, name, factor, decimals):
        mean, half = scenario.get(name), scenario.get(f"{name}_ci95")
        if mean is None or half is None:
            return "-"
        half = f"{half * factor:.{decimals}f}"
        return f"{mean * factor:.{decimals}f}" + (f" \u00b1{half}" if float(half) else "")

    measurement["rows"] = [
        [f"`{scheme}`", *(cell(of[scenario], *score) for scenario, *score in measurement["scores"])]
        for scheme, of in by_scheme.items()
    ]
    head = ["git", "-C", str(HERE), "rev-parse", "--short=8", "HEAD"]
    measurement["commit"] = subprocess.run(head, check=True, capture_output=True, text=True).stdout.strip()
    measurement["recorded"] = date.today().isoformat()
    path.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def main():
    """Write pages and plots, or check them."""
    if "--league" in sys.argv:
        record_league(Path(sys.argv[sys.argv.index("--league") + 1]))
    paths = sorted((HERE / "data").glob("*.json"))
    pages = [(path.stem, json.loads(path.read_text(encoding="utf-8"))) for path in paths]
    files = {"index.md": index(pages)}
    for name, data in pages:
        plot = data["plots"][0]
        draw = {"bars": bars, "heat": heat}[plot["kind"]]
        files[f"{name}.md"] = page(name, data)
        files[f"{name}.svg"] = draw(plot, data["measurements"][plot["measurement"]])
    stale = []
    for name, content in files.items():
        path = HERE / name
        if "--check" not in sys.argv:
            path.write_text(content, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != content:
            stale.append(name)
    if stale:
        sys.exit(f"docs/results: not what the data say: {', '.join(stale)}\nhint: run docs/results/render.py")


if __name__ == "__main__":
    main()
