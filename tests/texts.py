#!/usr/bin/env python3
"""Print the help pages and errors of the command, and compare them with the snapshot in tests/texts.

usage: texts.py FAIRWAVE            compare; exit status 1 if a text differs, a page is too long or an idiom appears
       texts.py FAIRWAVE --write    renew the snapshot

help.txt has every help page, errors.txt the messages of wrong calls that need no network, and literals.txt every
`#[error("...")]` of the crates. Read the diff of a renewed snapshot as a user would: it is the text that users see.
"""

from __future__ import annotations

import difflib
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SNAPSHOT = ROOT / "tests" / "texts"
MAX_LINES, MAX_COLUMNS = 40, 100
TIME_LIMIT_S = 120

# A valid ticket that never expires, for a port where nothing listens; no call below connects to it.
TICKET = (
    "fw101mcz2th4x0y73vbdt0pwap455qczpbrxk99g4kbp5xgg0bpef01pb2fq7azzp5cnqtde47msnyz3vankk4wvz8"
    "svtyefe4f1gamgcncrm2w6yhzj38cr0000000000003j262ec9y8acng10hzg00019rfppqqzyc"
)

SCENARIO = """\
name = "pair"
title = "Two into one"
duration = "10 s"
scheme = "gtp"
[[node]]
name = "d"
capacity = "100 Mb/s"
[[node]]
name = "s{1..2}"
capacity = "100 Mb/s"
[[session]]
from = "s{1..2}"
to = "d"
rtt = "20 ms"
"""

VARIANTS = f"""{SCENARIO}\
[[variant]]
label = "a"
options.alpha = 0.1
[[variant]]
label = "b"
options.alpha = 0.2
"""

# Each replaces a part of the scenario by another and so makes one mistake.
MISTAKES = [
    ('capacity = "100 Mb/s"', 'capacity = "100 Mbps"'),
    ('capacity = "100 Mb/s"', 'capacity = "0 Mb/s"'),
    ('capacity = "100 Mb/s"', "capacity = 100"),
    ('capacity = "100 Mb/s"', 'capacty = "100 Mb/s"'),
    ('rtt = "20 ms"', 'rtt = "-1 ms"'),
    ('rtt = "20 ms"', "weight = 1"),
    ('to = "d"', 'to = "e"'),
    ('to = "d"', 'to = "s1"'),
    ('scheme = "gtp"', 'scheme = "gpt"'),
    ('duration = "10 s"', 'duration = "10"'),
    ('duration = "10 s"', 'duration = "10 s'),
    ('duration = "10 s"', 'durations = "10 s"'),
    ('name = "pair"', 'name = "Pair!"'),
    ('name = "pair"', ""),
    ('name = "s{1..2}"', 'name = "s{1..}"'),
    ('name = "s{1..2}"', 'name = "s{1..2"'),
    ('name = "s{1..2}"', 'name = "d"'),
    ("[[session]]", "[session]"),
    ("[[session]]", "[[sessions]]"),
]

# Wrong calls; DIR is a directory with the files of `prepare`.
CALLS = """\
fairwave nonsense
fairwave --nonsense
fairwave serve
fairwave serve --nonsense
fairwave serve DIR/missing
fairwave serve /
fairwave serve DIR/a.bin --readable
fairwave serve DIR/a.bin --writable
fairwave serve DIR/a.bin DIR/in --writable
fairwave serve DIR/in --writable --quota 10
fairwave serve DIR/in --writable --quota '0 B'
fairwave serve DIR/a.bin --quota '1 GB'
fairwave serve DIR/a.bin --expires 1y
fairwave serve DIR/a.bin --expires 0s
fairwave serve DIR/a.bin --listen here
fairwave serve DIR/a.bin --port 70000
fairwave serve DIR/a.bin --port 5010-5000
fairwave serve DIR/a.bin --carrier tcp
fairwave serve DIR/a.bin --carrier quic
fairwave serve DIR/a.bin --path private
fairwave serve DIR/a.bin --rule cubic
fairwave serve DIR/a.bin --rule gpt
fairwave serve DIR/a.bin --interval '2 s'
fairwave serve DIR/a.bin --alpha 1
fairwave serve DIR/a.bin --beta 0
fairwave serve DIR/a.bin --weight 0
fairwave serve DIR/a.bin --weight heavy
fairwave serve DIR/a.bin --minimum '0 Mb/s'
fairwave serve DIR/a.bin --capacity '10 Mb/s' --minimum '9.5 Mb/s'
fairwave serve DIR/a.bin --rule abr-charny --minimum '1 Mb/s'
fairwave serve DIR/a.bin --capacity 10
fairwave serve DIR/a.bin --capacity '10 MB'
fairwave serve --revoke xyz
fairwave serve --revoke 0123456789abcdef
fairwave serve --revoke 0123456789abcdef DIR/a.bin
fairwave serve DIR/a.bin -q -v
fairwave serve DIR/state/fairwave
fairwave serve DIR/state --writable
fairwave get
fairwave get TICKET
fairwave get DIR
fairwave get fw1 DIR
fairwave get hello DIR
fairwave get DAMAGED DIR
fairwave get CUT DIR
fairwave get @DIR/missing.ticket DIR
fairwave get @DIR/a.bin DIR
fairwave get DIR/t.ticket DIR
fairwave get DIR TICKET
fairwave get server:a.bin DIR
fairwave get TICKET DIR --carrier ssh
fairwave get TICKET DIR/a.bin
fairwave get TICKET DIR --limit fast
fairwave get TICKET DIR --limit '0 Mb/s'
fairwave get TICKET DIR --retry 5
fairwave get TICKET DIR --durable always
fairwave put
fairwave put DIR/a.bin
fairwave put TICKET
fairwave put DIR/missing TICKET
fairwave put DIR/a.bin hello
fairwave put TICKET DIR/a.bin
fairwave put DIR/a.bin server:in
fairwave cp DIR/a.bin
fairwave cp DIR/missing DIR/in
fairwave cp :a DIR
fairwave cp -- -oProxyCommand=x:y DIR
fairwave cp 'a b:c' DIR
fairwave cp h1:a h2:b DIR
fairwave cp h1:a b h2:c
fairwave cp -HvP DIR/in h:a
fairwave cp --compress 10 DIR/in h:a
fairwave cp --ssh '' h:a DIR
fairwave cp --ssh DIR/missing h:a DIR
fairwave cp --carrier tcp h:a DIR
fairwave bridge
fairwave bridge --to here
fairwave bridge --to here:0
fairwave run
fairwave run --map 10.9.9.9:80 -- true
fairwave run --map 10.9.9.9:0=TICKET -- true
fairwave run --map 10.9.9.9:80=hello -- true
fairwave run --map 10.9.9.9:80=- -- true
fairwave bench
fairwave bench hello
fairwave bench TICKET --time '0 s'
fairwave bench TICKET --sessions 0
fairwave bench TICKET --direction up
fairwave daemon --interval '1 s'
fairwave daemon --share-by group
fairwave daemon --yield 0
fairwave daemon --metrics here
fairwave daemon --socket DIR/a.bin/daemon.sock
fairwave daemon --config DIR/missing.toml
fairwave daemon --config DIR/daemon.toml
fairwave doctor DIR/missing
fairwave doctor --port 70000
fairwave top --every '0 s'
fairwave top --count 0
fairwave why 3f2a
fairwave simulate
fairwave simulate DIR/missing.toml
fairwave simulate DIR/pair
fairwave simulate DIR
fairwave simulate DIR/rubbish.toml
fairwave simulate five-to-on
fairwave simulate DIR/pair.toml --model testbed
fairwave simulate DIR/pair.toml --model packet --scheme s-perc
fairwave simulate DIR/pair.toml --model fluid --scheme cubic
fairwave simulate DIR/pair.toml --scheme gpt
fairwave simulate DIR/pair.toml --duration 5
fairwave simulate DIR/pair.toml --duration '0 s'
fairwave simulate DIR/pair.toml --window '5 s'
fairwave simulate DIR/pair.toml --window 6s..5s
fairwave simulate DIR/pair.toml --window 5s..11s
fairwave simulate DIR/pair.toml --seed -1
fairwave simulate DIR/pair.toml --set options.alpha
fairwave simulate DIR/pair.toml --set options.alhpa=0.1
fairwave simulate DIR/pair.toml --set options.alpha=2
fairwave simulate DIR/pair.toml --set session.x.demand=1
fairwave simulate DIR/pair.toml --set a..b=1
fairwave simulate DIR/pair.toml --variant none
fairwave simulate DIR/variants.toml --variant none
fairwave simulate DIR/variants.toml --trace DIR/x.csv
fairwave simulate DIR/pair.toml --model fluid --trace DIR/x.csv
fairwave simulate DIR/pair.toml --trace DIR/x.txt
fairwave simulate DIR/pair.toml --trace DIR
fairwave simulate DIR/pair.toml --out DIR/a.bin
fairwave simulate DIR/pair.toml --out /dev/null/x
fairwave simulate DIR/pair.toml --memory '1 kB'
fairwave sweep DIR/pair.toml
fairwave sweep DIR/pair.toml --out DIR/out.parquet --set options.alpha
fairwave sweep DIR/pair.toml --out DIR/out.parquet --set options.alpha=
fairwave sweep DIR/pair.toml --out DIR/out.parquet --set options.alpha=0.1,0.1
fairwave sweep DIR/pair.toml --out DIR/out.parquet --set options.alpha=0.1 --set options.alpha=0.2
fairwave sweep DIR/pair.toml --out DIR/out.parquet --set seed=1,2
fairwave sweep DIR/pair.toml --out DIR/out.parquet --grid DIR/pair.toml
fairwave sweep DIR/pair.toml --out DIR/out.parquet --grid DIR/missing.toml
fairwave sweep DIR/pair.toml --out DIR/out.parquet --seeds 0
fairwave sweep DIR/pair.toml --out DIR/out.parquet --seeds 1000000000
fairwave sweep DIR/pair.toml --out DIR/out.parquet --jobs 0
fairwave sweep DIR/pair.toml --out DIR/out.parquet --scheme cubik
fairwave sweep DIR/pair.toml --out DIR/a.bin
fairwave sweep DIR/pair.toml --out DIR/a.bin --resume
fairwave sweep DIR/pair.toml --out DIR/missing/out.parquet
fairwave sweep DIR/pair.toml --out DIR
fairwave league --add DIR/rule.py
fairwave allocate DIR/missing.toml
fairwave allocate DIR/pair.toml --at soon
fairwave allocate DIR/pair.toml --variant none
fairwave schemes gpt
fairwave papers
fairwave papers run 002/fig-vii-1O
fairwave papers run 999
fairwave papers run all --quick --verdict
fairwave testbed
fairwave testbed run DIR/pair.toml --scale big
fairwave testbed run DIR/pair.toml --processes all
fairwave completions dos
fairwave man nonsense
fairwave man --out /dev/null/x
"""

# Idioms that mark text as translated (see CONTRIBUTING.md). Some are fine in other places, none in these texts.
IDIOMS = [
    r"\b(?:is|are|be) no (?!longer|more\b|less\b|such\b|need)\w+",
    r"\b[Ww]hoever\b|(?:^|[.:;] )[Ww]ho\b",
    r"\bat the (?:most|least)\b",
    r"\b(?:beside|anew|meanwhile)\b",
    r"\bfor ever\b",
    r"\bbut for\b",
    r"\b(?:nobody|somebody)\b",
    r", too\b",
    r"\b(?:is|are|was) told\b|\btells\b|\bsays\b",
    r"\bso (?:much|many|long) (?!that|as)",
    r"\bthere is no\b",
]


def environment(place: Path) -> dict[str, str]:
    """Return an environment with an empty state, without a daemon and without colours."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("FAIRWAVE", "XDG_", "CLICOLOR"))}
    for name in ("COLUMNS", "LINES", "RUST_LOG", "RUST_BACKTRACE", "LS_COLORS"):
        kept.pop(name, None)
    kept |= {"COLUMNS": "100", "LINES": "40", "USER": "user", "LOGNAME": "user", "TERM": "dumb", "TZ": "UTC"}
    places = {"HOME": "home", "XDG_STATE_HOME": "state", "XDG_RUNTIME_DIR": "run"}
    return {**kept, **{name: str(place / below) for name, below in places.items()}, "NO_COLOR": "1", "LC_ALL": "C"}


def prepare(place: Path) -> None:
    """Write the files that the calls name."""
    for below in ("home", "state/fairwave", "run", "in"):
        (place / below).mkdir(parents=True)
    (place / "state/fairwave").chmod(0o700)
    (place / "run").chmod(0o700)
    (place / "a.bin").write_bytes(b"a" * 1000)
    (place / "t.ticket").write_text(TICKET + "\n")
    (place / "pair.toml").write_text(SCENARIO)
    (place / "variants.toml").write_text(VARIANTS)
    (place / "rubbish.toml").write_bytes(b"\xff\xfe\x00\x01")
    (place / "daemon.toml").write_text("[[user]]\nweight = 2\n")


class Caller:
    """Runs the command in a prepared directory."""

    def __init__(self, program: str, place: Path) -> None:
        """Take the path of the program and the directory."""
        self.program, self.place, self.environment = program, place, environment(place)

    def run(self, words: list[str], stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run one call to its end."""
        call = [self.program, *words]
        source = {"input": stdin} if stdin is not None else {"stdin": subprocess.DEVNULL}
        return subprocess.run(
            call,
            capture_output=True,
            text=True,
            errors="replace",
            cwd=ROOT,
            env=self.environment,
            timeout=TIME_LIMIT_S,
            check=False,
            **source,
        )

    def shown(self, done: subprocess.CompletedProcess[str]) -> str:
        """Return exit status and output without parts that depend on the place, the machine or the list of schemes."""
        text = (done.stdout + done.stderr).replace(str(self.place), "DIR")
        text = re.sub(r"about [\d.]+ \w+, available [\d.]+ \w+", "about SIZE, available SIZE", text)
        text = text.replace(str(ROOT) + "/", "").replace(self.program, "fairwave")
        # Lists that grow with each new scheme or scenario.
        text = re.sub(r"(the schemes are) .*", r"\1 ...", text)
        text = re.sub(r"(use one of|runs|such as) [\w:-]+(?:, [\w:-]+){4,}", r"\1 ...", text)
        lines = [line.rstrip() for line in text.rstrip().splitlines()]
        return "\n".join([f"[{done.returncode}]", *lines])


def help_pages(caller: Caller) -> tuple[str, list[str]]:
    """Return every help page, and what is wrong with them."""
    pages: list[str] = []
    wrong: list[str] = []
    waiting: list[list[str]] = [[]]
    while waiting:
        command = waiting.pop(0)
        name = " ".join(["fairwave", *command])
        short = caller.run([*command, "--help"]).stdout
        every = caller.run([*command, "--help-all"]).stdout
        lines = short.splitlines()
        if len(lines) > MAX_LINES:
            wrong.append(f"{name} --help: {len(lines)} lines, the maximum is {MAX_LINES}")
        if (widest := max(map(len, lines))) > MAX_COLUMNS:
            wrong.append(f"{name} --help: {widest} columns, the maximum is {MAX_COLUMNS}")
        if "Examples:" not in short:
            wrong.append(f"{name} --help: no example")
        for option, text in (("--help", short), ("--help-all", every)):
            body = "\n".join(line.rstrip() for line in text.rstrip().splitlines())
            pages.append(f"$ {name} {option}\n{body}\n")
        section = re.search(r"^Commands:\n((?:  .*\n)+)", short, re.MULTILINE)
        found = re.findall(r"^  ([a-z]+) ", section.group(1), re.MULTILINE) if section else []
        waiting[:0] = [[*command, below] for below in found if below != "help"]
    return "\n".join(pages), wrong


def errors(caller: Caller) -> str:
    """Return the messages of all wrong calls."""
    damaged = TICKET[:20] + ("A" if TICKET[20] != "A" else "B") + TICKET[21:]
    names = {"TICKET": TICKET, "DAMAGED": damaged, "CUT": TICKET[:20]}
    texts = []
    for line in CALLS.splitlines():
        words = [word.replace("DIR", str(caller.place)) for word in shlex.split(line)[1:]]
        words = [re.sub(r"^(.*=)?(TICKET|DAMAGED|CUT)$", lambda m: (m[1] or "") + names[m[2]], word) for word in words]
        texts.append(f"$ {line}\n{caller.shown(caller.run(words)).replace(TICKET, 'TICKET')}\n")
    for old, new in MISTAKES:
        assert old in SCENARIO, old
        done = caller.run(["allocate", "-"], SCENARIO.replace(old, new))
        texts.append(f"# {old} -> {new}\n{caller.shown(done)}\n")
    return "\n".join(texts)


def literals() -> str:
    """Return every `#[error("...")]` of the crates, by crate: an error may move between files."""
    texts = []
    for crate in sorted((ROOT / "crates").iterdir()):
        sources = [path.read_text(encoding="utf-8") for path in crate.glob("src/**/*.rs")]
        error = re.compile(r'#\[error\(\s*"((?:[^"\\]|\\.)*)"', re.DOTALL)
        found = [text for source in sources for text in error.findall(source)]
        found = sorted({re.sub(r"\\\n\s*", "", text) for text in found})
        if found:
            texts.append("\n".join([f"# {crate.name}", *found]) + "\n")
    return "\n".join(texts)


def main(arguments: list[str]) -> int:
    """Compare or write the snapshot."""
    options = [word for word in arguments if word.startswith("--")]
    programs = [word for word in arguments if not word.startswith("--")]
    if len(programs) != 1 or any(option != "--write" for option in options):
        print(__doc__, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="fairwave-texts-") as made:
        place = Path(made).resolve()
        prepare(place)
        caller = Caller(str(Path(programs[0]).resolve()), place)
        pages, wrong = help_pages(caller)
        texts = {"help.txt": pages, "errors.txt": errors(caller), "literals.txt": literals()}
    for name, text in texts.items():
        for line in text.splitlines():
            for idiom in IDIOMS:
                if not line.startswith(("$ ", "# ")) and (hit := re.search(idiom, line)):
                    wrong.append(f'{name}: idiom "{hit.group(0)}": {line.strip()}')
        path = SNAPSHOT / name
        if "--write" in options:
            path.write_text(text, encoding="utf-8")
        elif (before := path.read_text(encoding="utf-8")) != text:
            lines = (before.splitlines(), text.splitlines())
            difference = difflib.unified_diff(*lines, f"tests/texts/{name}", "now", n=2, lineterm="")
            wrong.append("\n".join(difference) + "\nhint: tests/texts.py FAIRWAVE --write renews it")
    print("\n".join(wrong) or "texts: all as in tests/texts")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
