"""Run a command of tests, and fail if it leaves a process, a namespace, a mount or a file behind.

Usage: tests/leftovers.sh [--grace SECONDS] COMMAND...

The command gets a temporary, a state and a runtime directory of its own, which must be empty when it has ended. This
process adopts every descendant whose parent ends, so nothing that the command started escapes, whatever its environment
or session. A network namespace lives in a process, an open file or a mount, or has a name in /run/netns: all four are
looked at. What is left is listed, killed, unmounted and removed.

Exit status: that of the command, or 1 if the command succeeded and something was left.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import FrameType

# prctl(2): adopt descendants whose parent has ended.
PR_SET_CHILD_SUBREAPER = 36
# Seconds that a process has to end after a signal, if `--grace` does not say otherwise: the system kills it when
# its parent dies, or it notices a closed pipe, and a busy machine needs a moment for both.
GRACE_S = 20.0
# Caches of compilers, which outlive builds by design.
BUILD_SERVERS = frozenset({"sccache"})
# pytest keeps the directories of failed tests here, and removes old ones itself.
PYTEST = "pytest-of-"
LISTED = 40
# The identity and the tickets of a host, which it makes once and keeps, and what GLib makes for programs of tests.
STATE = (f"state/fairwave/{name}{end}" for name in ("identity", "keyring") for end in ("", ".lock"))
KEPT = frozenset({*STATE, "run/dconf/user"})


def main() -> int:
    """Run the command that the arguments name."""
    command, grace_s = sys.argv[1:], GRACE_S
    if command[:1] == ["--grace"]:
        grace_s, command = float(command[1]), command[2:]
    if not command:
        print("usage: tests/leftovers.sh [--grace SECONDS] COMMAND...", file=sys.stderr)
        return 2
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    # Short: the path of a Unix socket has at most 107 bytes. Open to all: tests run programs as other users.
    place = Path(tempfile.mkdtemp(prefix="fw-"))
    place.chmod(0o1777)
    names_before = named_namespaces()
    own = {"TMPDIR": "tmp", "XDG_STATE_HOME": "state", "XDG_RUNTIME_DIR": "run"}
    for name in own.values():
        (place / name).mkdir(mode=0o700)
    (place / "tmp").chmod(0o1777)
    code = run(command, os.environ | {key: str(place / name) for key, name in own.items()})

    left = [f"process {pid}: {words}" for pid, words in wait_for_processes(grace_s)]
    kill_all()
    left += [f"network namespace {name}" for name in sorted(named_namespaces() - names_before)]
    for mount in mounts(place):
        left.append(f"mount {mount}")
        subprocess.run(["umount", "--lazy", mount], check=False)
    left += [f"file {path.relative_to(place)}" for path in files(place)]
    shutil.rmtree(place, ignore_errors=True)
    if left:
        print(f"leftovers: {' '.join(command)} left behind:", file=sys.stderr)
        for line in left[:LISTED]:
            print(f"  {line}", file=sys.stderr)
        if len(left) > LISTED:
            print(f"  and {len(left) - LISTED} more", file=sys.stderr)
    return code or int(bool(left))


def run(command: list[str], environment: dict[str, str]) -> int:
    """Run it to its end, and give its exit status as a shell does. Adopted processes are reaped meanwhile."""
    try:
        child = subprocess.Popen(command, env=environment)
    except OSError as error:
        print(f"leftovers: {command[0]}: {error.strerror}", file=sys.stderr)
        return 127

    def forward(number: int, _: FrameType | None) -> None:
        child.send_signal(number)

    # A terminal sends Ctrl-C to the command as well.
    signal.signal(signal.SIGINT, lambda *_: None)
    signal.signal(signal.SIGTERM, forward)
    signal.signal(signal.SIGHUP, forward)
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == child.pid:
            child.returncode = os.waitstatus_to_exitcode(status)
            return child.returncode if child.returncode >= 0 else 128 - child.returncode


def descendants() -> dict[int, str]:
    """The processes below this one that have not ended, and their command lines."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            # The name of a program may have any bytes, and ends with the last parenthesis; state and parent follow.
            with contextlib.suppress(OSError):
                state, parent = (entry / "stat").read_bytes().rpartition(b")")[2].split()[:2]
                if state != b"Z":
                    parents[int(entry.name)] = int(parent)
    below = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in below} - below:
        below |= more
    found = {}
    for pid in below - {os.getpid()}:
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
            if Path(os.fsdecode(words[0])).name not in BUILD_SERVERS:
                found[pid] = os.fsdecode(b" ".join(words))[:300]
    return found


def reap() -> None:
    """Reap the children that have ended."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def wait_for_processes(grace_s: float) -> list[tuple[int, str]]:
    """The processes that are left after a grace period."""
    deadline = time.monotonic() + grace_s
    while True:
        reap()
        left = descendants()
        if not left or time.monotonic() > deadline:
            return sorted(left.items())
        time.sleep(0.05)


def kill_all() -> None:
    """Kill what is left, and what that still started."""
    while left := descendants():
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)
        reap()


def named_namespaces() -> set[str]:
    """Names of network namespaces as scripts of this tree give them."""
    place = Path("/run/netns")
    return {entry.name for entry in place.iterdir() if entry.name.startswith("fw")} if place.is_dir() else set()


def mounts(place: Path) -> list[str]:
    """Mounts in the command's directories, and of images in them, the innermost first."""
    images = set()
    for backing in Path("/sys/block").glob("loop*/loop/backing_file"):
        with contextlib.suppress(OSError):
            if backing.read_text().startswith(f"{place}/"):
                images.add(f"/dev/{backing.parts[3]}")
    found = []
    # mountinfo(5): the mount point is the fifth field; behind a dash come the kind and the source.
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        at, source = before.split()[4].encode().decode("unicode_escape"), after.split()[1]
        if at.startswith(f"{place}/") or source in images:
            found.append(at)
    return found[::-1]


def files(place: Path) -> list[Path]:
    """What lies in the command's directories. Empty directories for state and sockets are no leftovers."""
    found = []
    for top, directories, names in os.walk(place):
        if top == str(place / "tmp"):
            directories[:] = [name for name in directories if not name.startswith(PYTEST)]
        found += [Path(top, name) for name in names if str(Path(top, name).relative_to(place)) not in KEPT]
        if Path(top).is_relative_to(place / "tmp"):
            found += [Path(top, name) for name in directories]
    return sorted(found)


if __name__ == "__main__":
    sys.exit(main())
