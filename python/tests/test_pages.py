"""The shell commands of README.md and of docs/ run as the pages show them, and their C compiles.

The `sh` blocks of a page run one after the other in one shell, in an empty directory with an empty home. A comment on
the line before a block changes that:

    <!-- not run: REASON -->        the block is only shown
    <!-- requires: NAMES -->        the block runs if each is a file next to the command or a program in the PATH
    <!-- background: FILE -->       the block runs in the background, until FILE exists
    <!-- fails: STATUS -->          the block's last command exits with STATUS
    <!-- file: NAME -->             the block, in any language, is the content of the file NAME
    <!-- setup: COMMAND -->         the command runs at this place, and the page does not show it
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    str(path.relative_to(ROOT))
    for path in [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
    if "\n```sh\n" in path.read_text(encoding="utf-8")
]
C_PAGES = [
    str(path.relative_to(ROOT))
    for path in sorted(ROOT.glob("docs/**/*.md"))
    if "\n```c\n" in path.read_text(encoding="utf-8")
]
# Builds of a debug command on a busy machine are slow; a page that hangs is ended.
LIMIT_S = 900
MARK = r"<!-- (?P<word>not run|requires|background|fails|file|setup): (?P<value>.*?) -->\n"
BLOCK = re.compile(rf"(?:{MARK})?(?P<fence>```(?P<language>\w*)\n(?P<text>.*?)^```$)?", re.MULTILINE | re.DOTALL)
# Stands in for ssh: the far host is a second home on this machine.
SSH = """#!/bin/sh
case " $* " in *" -G "*) echo hostname 127.0.0.1; exit 0 ;; esac
case " $* " in *" -s "*) mkdir -p "$FAR_HOME" && cd "$FAR_HOME" && exec /usr/lib/openssh/sftp-server ;; esac
while case "$1" in -[Jp]) shift ;; -*) ;; *) false ;; esac; do shift; done
mkdir -p "$FAR_HOME" && cd "$FAR_HOME" && export SSH_CONNECTION='127.0.0.1 1 127.0.0.1 22' && shift && exec sh -c "$*"
"""


@dataclass
class Block:
    """A block of a page, with the mark before it."""

    line: int
    language: str
    text: str
    word: str | None
    value: str


def blocks(page: str) -> list[Block]:
    found = []
    text = (ROOT / page).read_text(encoding="utf-8")
    for match in BLOCK.finditer(text):
        if match[0]:
            line = text.count("\n", 0, match.start()) + 1
            found.append(Block(line, match["language"] or "", match["text"] or "", match["word"], match["value"] or ""))
    return found


def command() -> Path:
    """The command that was built last, or the one that FAIRWAVE names."""
    if named := os.environ.get("FAIRWAVE"):
        return Path(named).resolve()
    built = [ROOT / "target" / kind / "fairwave" for kind in ("debug", "release")]
    built = [path for path in built if path.exists()]
    assert built, "no command was built: cargo build -p fairwave-cli"
    return max(built, key=lambda path: path.stat().st_mtime)


def script(page: str, beside: Path) -> str:
    """What the page's reader types, as one script of bash."""
    lines = ["set -euo pipefail"]
    for block in blocks(page):
        where = f"{page}:{block.line}"
        lines.append(f"step={where!r}")
        if block.word == "setup":
            lines.append(block.value)
            if block.language == "sh":
                lines.append(block.text)
        elif block.word == "file":
            assert "PAGE_END" not in block.text
            lines.append(f"cat > {block.value} << 'PAGE_END'\n{block.text}PAGE_END")
        elif block.language == "sh" and block.word == "background":
            # Not a child of the script: `wait` on a page waits for what the page itself started.
            lines.append(f"({{ {block.text.rstrip()}\n}} 2> said.{block.line} & echo $! > pid.{block.line})")
            lines.append(f"wait_for {block.value} said.{block.line} pid.{block.line}")
        elif block.language == "sh" and block.word == "fails":
            check = f"[ $status = {block.value} ] || {{ echo status $status; exit 1; }}"
            lines.append(f"set +e\n{block.text}status=$?\nset -e\n{check}")
        elif block.word == "requires" and not all(
            (beside / name).exists() or shutil.which(name) for name in block.value.split()
        ):
            continue
        elif block.language == "sh" and block.word != "not run":
            lines.append(block.text)
    return "\n".join(lines) + "\n"


PREAMBLE = r"""
trap 'echo "failed at $step" >&2' ERR
trap 'case $? in 0) ;; *) echo "ended at $step" >&2 ;; esac' EXIT
wait_for() {
  for _ in $(seq 1200); do
    if [ -S "$1" ] || [ -s "$1" ]; then return; fi
    if ! kill -0 "$(cat "$3")" 2> /dev/null; then cat "$2" >&2; return 1; fi
    sleep 0.1
  done
  echo "$1 does not appear" >&2
  return 1
}
"""


RUNNING = [page for page in PAGES if any(block.language == "sh" and block.word != "not run" for block in blocks(page))]


@pytest.mark.parametrize("page", RUNNING)
def test_page__commands_run_as_shown(page: str, tmp_path: Path) -> None:
    binary = command()
    for name in ("bin", "home", "run", "far", "work"):
        (tmp_path / name).mkdir(mode=0o700)
    (tmp_path / "bin" / "fairwave").symlink_to(binary)
    (tmp_path / "bin" / "ssh").write_text(SSH)
    (tmp_path / "bin" / "ssh").chmod(0o755)
    # The pages of the lab name the files that lie in the tree.
    for name in ("scenarios", "examples"):
        (tmp_path / "work" / name).symlink_to(ROOT / name)
    python = Path(sys.executable).parent
    environment = {
        **os.environ,
        "PATH": f"{tmp_path / 'bin'}:{python}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "python"),
        "HOME": str(tmp_path / "home"),
        "FAR_HOME": str(tmp_path / "far"),
        "XDG_STATE_HOME": str(tmp_path / "home" / "state"),
        "XDG_RUNTIME_DIR": str(tmp_path / "run"),
    }
    for name in ("FAIRWAVE_DAEMON", "FAIRWAVE_TICKET", "FAIRWAVE_SSH", "FAIRWAVE_PRELOAD"):
        environment.pop(name, None)
    text = PREAMBLE + script(page, binary.parent)
    bash = shutil.which("bash")
    assert bash
    output = tmp_path / "output"
    with output.open("w") as out:
        process = subprocess.Popen(
            [bash, "-c", text],
            cwd=tmp_path / "work",
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
        try:
            status = process.wait(timeout=LIMIT_S)
        finally:
            # Servers of the page, and what they started.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    assert status == 0, f"{page}: exit status {status}\n{output.read_text()[-4000:]}"


@pytest.mark.parametrize("page", RUNNING)
def test_page__every_block_that_is_not_excluded_is_run(page: str) -> None:
    text = script(page, Path("/nowhere"))
    for block in blocks(page):
        if block.language == "sh" and block.word not in ("not run", "requires"):
            assert block.text.rstrip() in text, f"{page}:{block.line}"


@pytest.mark.parametrize("page", PAGES)
def test_page__marks_are_known_and_have_a_block(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    comments = re.findall(r"<!--.*?-->\n.*", text)
    for comment in comments:
        assert re.match(MARK, comment), f"{page}: {comment}"
        assert "<!-- setup:" in comment or comment.split("\n")[1].startswith("```"), f"{page}: {comment}"
    for block in blocks(page):
        assert block.word in (None, "file", "setup") or block.language == "sh", f"{page}:{block.line}"


def test_pictures__are_what_the_script_draws() -> None:
    done = subprocess.run(
        [sys.executable, "docs/pictures/teach.py", "--check"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", C_PAGES)
def test_page__c_compiles(page: str) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler is here")
    for block in blocks(page):
        if block.language == "c":
            # The client uses a ticket that the server's block declares.
            source = "#include <fairwave.h>\n#include <string.h>\nextern char ticket[1024];\n"
            source += f"void f(void) {{\n{block.text}}}\n"
            done = subprocess.run(
                [compiler, "-fsyntax-only", "-I", "crates/capi/include", "-x", "c", "-"],
                cwd=ROOT,
                input=source,
                capture_output=True,
                text=True,
            )
            assert done.returncode == 0, f"{page}:{block.line}\n{done.stderr}"


def test_pages__are_found() -> None:
    assert {"README.md", "docs/tutorials/move-files.md", "docs/how-to/over-ssh.md"} <= set(RUNNING)
    assert "docs/how-to/libfairwave.md" in C_PAGES
