"""Records a transfer that is killed and resumed, as an animated SVG.

usage: python docs/recording/record.py [FAIRWAVE [FILE.svg]]

A shell in a pseudo-terminal serves a file and fetches it. The client is killed with signal 9 halfway, and the same
command runs again. The terminal's output becomes docs/recording/transfer.svg. Needs pexpect.
"""

from __future__ import annotations

import contextlib
import html
import itertools
import os
import re
import signal
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import pexpect

ROOT = Path(__file__).resolve().parents[2]
COLUMNS, ROWS = 88, 12
SIZE = "192M"
RATE = '"400 Mb/s"'
PROMPT = "$ "
# Seconds per typed character, and for the last picture.
KEY_S, END_S = 0.035, 4.0
# Minimum time between two pictures, in seconds.
FRAME_S = 0.2
# One character, and one line, in units of the picture.
WIDTH, HEIGHT, MARGIN = 8.4, 19.0, 16.0


@dataclass
class Terminal:
    """The part of a terminal that the command and the shell use."""

    lines: list[str] = field(default_factory=lambda: [""])
    column: int = 0

    def feed(self, text: str) -> None:
        """Takes output of a program."""
        for token in re.findall(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|.", text, flags=re.DOTALL):
            if token == "\n":
                self.lines.append("")
            elif token == "\r":
                self.column = 0
            elif token == "\b":
                self.column = max(self.column - 1, 0)
            elif token.endswith("K") and token.startswith("\x1b["):
                self.lines[-1] = "" if token[2:-1] == "2" else self.lines[-1][: self.column]
            elif token >= " ":
                if self.column >= COLUMNS:
                    self.lines.append("")
                    self.column = 0
                line = self.lines[-1].ljust(self.column)
                self.lines[-1] = line[: self.column] + token + line[self.column + 1 :]
                self.column += 1

    def picture(self) -> tuple[str, ...]:
        """The last lines."""
        return tuple(line.rstrip()[:COLUMNS] for line in self.lines[-ROWS:])


class Recorder:
    """A shell and the pictures of its terminal."""

    def __init__(self, environment: dict[str, str], place: str) -> None:
        """Starts the shell."""
        self.terminal = Terminal()
        self.frames: list[tuple[float, tuple[str, ...]]] = []
        self.started = time.monotonic()
        self.shell = pexpect.spawn(
            "bash",
            ["--norc", "--noprofile", "--noediting"],
            cwd=place,
            env=environment,
            dimensions=(ROWS, COLUMNS),
            encoding="utf-8",
        )

    def look(self, for_s: float, until: str | None = None) -> str:
        """Records for some time, or until the last line matches."""
        ends = time.monotonic() + for_s
        while time.monotonic() < ends:
            with contextlib.suppress(pexpect.TIMEOUT):
                self.terminal.feed(self.shell.read_nonblocking(4096, timeout=0.03))
            now, picture = time.monotonic() - self.started, self.terminal.picture()
            if not self.frames or self.frames[-1][1] != picture:
                if self.frames and now - self.frames[-1][0] < FRAME_S:
                    self.frames[-1] = (self.frames[-1][0], picture)
                else:
                    self.frames.append((now, picture))
            if until is not None and re.search(until, self.terminal.lines[-1]):
                return self.terminal.lines[-1]
        if until is not None:
            raise SystemExit(f"record: {until!r} did not appear in {for_s} s:\n" + "\n".join(self.terminal.lines))
        return self.terminal.lines[-1]

    def type(self, command: str) -> None:
        """Types a command, word by word."""
        for word in re.findall(r"\S+\s*", command):
            self.shell.send(word)
            self.look(KEY_S * len(word))
        self.look(0.3)
        self.shell.send("\n")

    def run(self, command: str, pause_s: float = 1.0) -> None:
        """Types a command and waits for the next prompt."""
        self.type(command)
        self.look(0.2)
        self.look(120.0, rf"^{re.escape(PROMPT)}?$")
        self.look(pause_s)

    def kill_child(self) -> None:
        """Kills the command that runs in the foreground."""
        children = Path(f"/proc/{self.shell.pid}/task/{self.shell.pid}/children").read_text().split()
        os.kill(int(children[-1]), signal.SIGKILL)


def record(fairwave: Path) -> list[tuple[float, tuple[str, ...]]]:
    """Plays the scene."""
    with tempfile.TemporaryDirectory() as place:
        for name in ("bin", "run", "work"):
            Path(place, name).mkdir(mode=0o700)
        Path(place, "bin", "fairwave").symlink_to(fairwave)
        environment = {
            "PATH": f"{place}/bin:{os.environ['PATH']}",
            "HOME": place,
            "PS1": PROMPT,
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "XDG_STATE_HOME": f"{place}/state",
            "XDG_RUNTIME_DIR": f"{place}/run",
            "BASH_SILENCE_DEPRECATION_WARNING": "1",
        }
        recorder = Recorder(environment, f"{place}/work")
        recorder.shell.sendline(f"head -c {SIZE} /dev/urandom > big.bin; expr 40 + 2")
        recorder.shell.expect(rf"42\r\n{re.escape(PROMPT)}", timeout=120)
        recorder.terminal, recorder.frames, recorder.started = Terminal([PROMPT], len(PROMPT)), [], time.monotonic()
        recorder.run("fairwave serve big.bin --ticket big.ticket --quiet &", 1.2)
        recorder.type(f"fairwave get @big.ticket there --limit {RATE}")
        recorder.look(120.0, r"\b(4[5-9]|5\d) ?%")
        recorder.kill_child()
        recorder.look(120.0, rf"^{re.escape(PROMPT)}?$")
        recorder.look(1.5)
        recorder.run(f"fairwave get @big.ticket there --limit {RATE}")
        recorder.run("cmp big.bin there/big.bin && echo identical", 0.5)
        recorder.shell.close(force=True)
        return recorder.frames


def drawn(frames: list[tuple[float, tuple[str, ...]]]) -> str:
    """The pictures as one animated SVG: each text of a row is shown for its time."""
    # A pause is never longer than this, and the first picture comes at once.
    moments, now = [0.0], 0.0
    for (before, _), (after, _) in itertools.pairwise(frames):
        now += min(after - before, 1.5)
        moments.append(now)
    total = now + END_S
    shown: list[tuple[int, str, float, float]] = []
    open_rows: dict[int, tuple[str, float]] = {}
    for moment, (_, picture) in zip(moments, frames, strict=True):
        for row in range(ROWS):
            text = picture[row] if row < len(picture) else ""
            if row in open_rows and open_rows[row][0] != text:
                before, since = open_rows.pop(row)
                shown.append((row, before, since, moment))
            if text and row not in open_rows:
                open_rows[row] = (text, moment)
    shown += [(row, text, since, total) for row, (text, since) in open_rows.items()]
    width, height = COLUMNS * WIDTH + 2 * MARGIN, ROWS * HEIGHT + 2 * MARGIN + 24
    styles, texts = [], []
    for number, (row, text, since, until) in enumerate(sorted(shown, key=lambda entry: (entry[2], entry[0]))):
        y = MARGIN + 24 + row * HEIGHT + 14
        kind = "p" if text.startswith(PROMPT) else "o"
        if re.search(r"\bKilled\b", text):
            kind = "k"
        start, end = 100 * since / total, 100 * until / total
        if since > 0 or until < total:
            steps = "" if since == 0 else "0%{visibility:hidden}"
            steps += f"{start:.2f}%{{visibility:visible}}"
            steps += "" if until >= total else f"{end:.2f}%{{visibility:hidden}}"
            styles.append(f"@keyframes a{number}{{{steps}}}#t{number}{{animation-name:a{number}}}")
        # Without animation the last picture is shown.
        hidden = "" if until >= total else ' visibility="hidden"'
        body = html.escape(text).replace(" ", "\u00a0")
        texts.append(f'<text id="t{number}" class="{kind}" x="{MARGIN}" y="{y:g}"{hidden}>{body}</text>')
    style = (
        "text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#c9d1d9;"
        f"animation-duration:{total:.2f}s;animation-timing-function:step-end;animation-iteration-count:infinite}}"
        ".p{fill:#7ee787}.k{fill:#ff7b72}"
        + "".join(styles)
        + "@media (prefers-reduced-motion:reduce){text{animation-name:none!important}}"
    )
    dots = "".join(
        f'<circle cx="{20 + 18 * n}" cy="18" r="5.5" fill="{c}"/>'
        for n, c in enumerate(("#ff7b72", "#e3b341", "#7ee787"))
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" role="img">'
        "<title>A transfer is killed in the middle and resumed by the same command</title>"
        f"<style>{style}</style>"
        f'<rect width="{width:g}" height="{height:g}" rx="8" fill="#161b22" stroke="#444c56"/>{dots}'
        + "\n".join(texts)
        + "</svg>\n"
    )


def main() -> None:
    """Records with the command that was built."""
    built = [ROOT / "target" / kind / "fairwave" for kind in ("release", "debug")]
    fairwave = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else next(path for path in built if path.exists())
    picture = Path(sys.argv[2]) if len(sys.argv) > 2 else ROOT / "docs" / "recording" / "transfer.svg"
    picture.write_text(drawn(record(fairwave)), encoding="utf-8")


if __name__ == "__main__":
    main()
