#!/usr/bin/env python3
"""Build the paper about Tally.

usage: papers/tally/build.py FAIRWAVE [--out DIR]           write numbers.json, and tally.pdf into DIR (out)
       papers/tally/build.py FAIRWAVE [--out DIR] --check   exit 1 if numbers.json is not what the command gives

`numbers.json` holds what commands print: options of the rules, and the runs that the figures show. The text reads it,
`papers/verdict.json` and the tables of `docs/results/data`. Typed numbers are those of formulas and of networks' names.
"""

import argparse
import csv
import importlib.util
import json
import math
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
NUMBERS = HERE / "numbers.json"
SCHEMES = ["tally", "s-perc", "gtp"]
SCENARIOS = ["referee", "referee-incast", "referee-arrivals"]
RUNS = {
    "beyond-five": ["GTP", "Tally"],
    "beyond-referee-incast": ["GTP", "Tally", "Tally, react", "s-PERC", "ABR-Charny"],
}
RUN_S = 6.0
MAX_PAGES = 12
FONT = "Libertinus Serif"
COLOURS = {
    "Tally": "#0072b2",
    "Tally, react": "#56b4e9",
    "s-PERC": "#d55e00",
    "ABR-Charny": "#cc79a7",
    "GTP": "#009e73",
}
STYLES = {"Tally": "-", "Tally, react": "--", "s-PERC": "-", "ABR-Charny": ":", "GTP": "-."}


def output(program, *arguments):
    """Output of the command."""
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=True, cwd=ROOT).stdout


def simulate(program, scenario, variant, directory):
    """One fluid run: its summary; its samples go to the directory."""
    options = ["--model", "fluid", "--set", "runs=1", "--duration", f"{RUN_S:g} s", "--variant", variant]
    return json.loads(output(program, "simulate", scenario, *options, "--json", "--quiet", "--out", directory))


def samples(directory):
    """Rates by session, in Mb/s, with their times."""
    times, rates = [], {}
    with (Path(directory) / "rates.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if not times or row["time_s"] != times[-1]:
                times.append(row["time_s"])
            rates.setdefault(row["session"], []).append(float(row["rate_bps"]) / 1e6)
    return [float(time) for time in times], rates


def scenario(name):
    """Numbers of a scenario that the text quotes."""
    made = tomllib.loads((ROOT / "scenarios" / f"beyond-{name}.toml").read_text(encoding="utf-8"))
    picked = {key: made[key] for key in ("duration", "runs", "generate", "arrivals") if key in made}
    reacts = {variant.get("options", {}).get("react") for variant in made["variant"]} - {None}
    return {**picked, "react": max(reacts, default=None)}


def distances(rates, optimum):
    """Euclidean distance to the optimum at each sample, over the optimum's length."""
    length = math.dist(optimum, [0.0] * len(optimum))
    return [math.dist(each, optimum) / length for each in zip(*rates.values(), strict=True)]


def numbers(program, directory):
    """All that the text takes from commands."""
    listed = {scheme: json.loads(output(program, "schemes", scheme, "--json"))["schemes"][0] for scheme in SCHEMES}
    runs = {}
    for name, variants in RUNS.items():
        for variant in variants:
            into = Path(directory) / f"{name} {variant}"
            summary = simulate(program, name, variant, str(into))
            times, rates = samples(into)
            away = distances(rates, [session["max_min_bps"] / 1e6 for session in summary["sessions"]])
            capacity = sum(session["max_min_bps"] for session in summary["sessions"]) / 1e6
            idle = [max(0.0, 1 - sum(each) / capacity) for each in zip(*rates.values(), strict=True)]
            runs[f"{name}: {variant}"] = {
                "within_s": next(time for time, far in zip(times[::-1], away[::-1], strict=True) if far > 0.01),
                "idle_s": round(sum(idle) * times[0], 4),
                "peak_overload": summary["metrics"]["peak_overload"],
            }
    return {
        "options": {name: entry["options"] for name, entry in listed.items()},
        "scenarios": {name: scenario(name) for name in SCENARIOS},
        "runs": runs,
    }


def module(path):
    """A script of the tree as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    made = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = made
    spec.loader.exec_module(made)
    return made


def figures(directory):
    """The project's pictures in print: one font, no cards, no dark mode."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"font.family": "serif", "font.size": 8, "svg.fonttype": "path", "axes.linewidth": 0.6})
    plt.rcParams.update({"axes.spines.top": False, "axes.spines.right": False, "lines.linewidth": 1.0})
    into = Path(directory)

    figure, panels = plt.subplots(1, 2, figsize=(7, 2.0), sharey=True, constrained_layout=True)
    for panel, variant, until in zip(panels, ["GTP", "Tally"], [4.0, 1.0], strict=True):
        times, rates = samples(into / f"beyond-five {variant}")
        shown = [time <= until for time in times]
        for index, (name, values) in enumerate(rates.items()):
            curve = [value for value, is_shown in zip(values, shown, strict=True) if is_shown]
            panel.plot(times[: len(curve)], curve, label=name.split("-")[0], color=plt.cm.viridis(index / 5))
        panel.set(title=variant, xlabel="seconds", xlim=(0, until), ylim=(0, None))
    panels[0].set_ylabel("rate, Mb/s")
    panels[1].legend(frameon=False, ncols=5, fontsize=7, loc="upper right")
    figure.savefig(into / "five.svg")

    figure, panel = plt.subplots(figsize=(3.4, 2.2), constrained_layout=True)
    for variant in ["ABR-Charny", "s-PERC", "GTP", "Tally", "Tally, react"]:
        times, rates = samples(into / f"beyond-referee-incast {variant}")
        load = [sum(each) / 100 for each in zip(*rates.values(), strict=True)]
        panel.plot(times, load, STYLES[variant], color=COLOURS[variant], label=variant)
    panel.set(
        xscale="log", yscale="log", xlim=(0.02, RUN_S), ylim=(0.1, 60), xlabel="seconds", ylabel="load / capacity"
    )
    panel.set_xticks([0.03, 0.1, 0.3, 1, 3], ["0.03", "0.1", "0.3", "1", "3"])
    panel.set_yticks([0.1, 1, 10], ["0.1", "1", "10"])
    panel.legend(frameon=False, fontsize=7)
    figure.savefig(into / "incast.svg")

    data = json.loads((ROOT / "docs" / "results" / "data" / "referee.json").read_text(encoding="utf-8"))
    table = data["measurements"][2]
    figure, panel = plt.subplots(figsize=(3.4, 3.6), constrained_layout=True)
    for index, rule in enumerate(COLOURS):
        column = table["columns"].index(rule)
        values = [float(row[column].removesuffix(" s")) for row in table["rows"]]
        places = [row + 0.16 * (index - 2) for row in range(len(values))]
        panel.barh(places, values, 0.15, color=COLOURS[rule], label=rule)
        for place, value in zip(places, values, strict=True):
            panel.text(value * 1.04, place, f"{value:g}", va="center", fontsize=5.5)
    panel.set_yticks(range(len(table["rows"])), [row[0].replace(", ", ",\n") for row in table["rows"]])
    panel.invert_yaxis()
    panel.set(xscale="log", xlim=(0.05, 9), xlabel="seconds")
    panel.set_xticks([0.1, 0.3, 1, 3], ["0.1", "0.3", "1", "3"])
    figure.legend(frameon=False, fontsize=7, ncols=3, loc="outside upper center")
    figure.savefig(into / "networks.svg")

    teach = module(ROOT / "docs" / "pictures" / "teach.py")
    drawn = teach.tally_exchange().svg().replace(teach.FONT, FONT).replace('stroke="#d2d9e0"', 'stroke="none"')
    (into / "exchange.svg").write_text(drawn.replace(f'fill="{teach.CARD}"', 'fill="none"'), encoding="utf-8")


def main():
    """Write or check the numbers, and build the paper."""
    call = argparse.ArgumentParser()
    call.add_argument("program")
    call.add_argument("--check", action="store_true")
    call.add_argument("--out", default="out")
    given = call.parse_args()
    program = str(Path(given.program).resolve())
    # Typst reads only below its root.
    (ROOT / "target").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ROOT / "target") as directory:
        text = json.dumps(numbers(program, directory), indent=1, ensure_ascii=False) + "\n"
        if not given.check:
            NUMBERS.write_text(text, encoding="utf-8")
        elif NUMBERS.read_text(encoding="utf-8") != text:
            sys.exit(f"papers/tally/numbers.json is stale\nhint: run papers/tally/build.py {given.program}")
        figures(directory)
        import typst

        paper = {"root": str(ROOT), "sys_inputs": {"figures": "/" + str(Path(directory).relative_to(ROOT))}}
        pages = json.loads(typst.query(str(HERE / "tally.typ"), "<pages>", field="value", one=True, **paper))
        if pages > MAX_PAGES:
            sys.exit(f"papers/tally/tally.typ: {pages} pages, the limit is {MAX_PAGES}")
        out = Path(given.out)
        out.mkdir(parents=True, exist_ok=True)
        (out / "tally.pdf").write_bytes(typst.compile(str(HERE / "tally.typ"), format="pdf", **paper))
        print(f"wrote {out / 'tally.pdf'}, {pages} pages")


if __name__ == "__main__":
    main()
