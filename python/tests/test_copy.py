"""Copies by the command, with a stand-in for ssh."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from test_pages import SSH

import fairwave as fw
from fairwave._options import DEFAULTS

COMMAND = Path(os.environ.get("FAIRWAVE", "target/release/fairwave")).absolute()
LIMIT_S = 120


@pytest.fixture
def far(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The arguments by which `fw.copy` reaches a second home on this machine."""
    if not COMMAND.exists():
        pytest.skip(f"{COMMAND} is not built; make test-python builds it")
    ssh = tmp_path / "ssh"
    ssh.write_text(SSH)
    ssh.chmod(0o755)
    monkeypatch.setenv("FAR_HOME", str(tmp_path / "far"))
    return {"command": str(COMMAND), "remote_command": str(COMMAND), "ssh": str(ssh)}


def test_copy__sends_fetches_and_resumes(tmp_path: Path, far: dict[str, Any]) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "a b").write_bytes(os.urandom(300_000))
    (tmp_path / "tree" / "c.tmp").write_bytes(b"c")
    os.mkfifo(tmp_path / "tree" / "pipe")
    seen: list[fw.Progress] = []
    transfer = fw.copy(tmp_path / "tree", "server:", exclude="*.tmp", progress=seen.append, **far)
    assert (transfer.files, transfer.bytes) == (1, 300_000)
    assert list(transfer.skipped["path"]) == ["tree/pipe"]
    assert seen[-1] == fw.Progress(1, 1, 300_000, 300_000, 0)
    assert [path.name for path in (tmp_path / "far" / "tree").iterdir()] == ["a b"]
    transfer = fw.copy("server:tree/a b", tmp_path / "back", **far)
    assert (tmp_path / "back").read_bytes() == (tmp_path / "tree" / "a b").read_bytes()
    assert transfer.blake3 is not None
    assert fw.copy("server:tree/a b", tmp_path / "back", **far).resumed_bytes == 300_000
    assert asyncio.run(fw.acopy(tmp_path / "tree", "server:", **far)).files == 2


def test_copy__errors_are_those_of_get_and_put(tmp_path: Path, far: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"\A/.*no-such-thing: No such file"):
        fw.copy(tmp_path / "no-such-thing", "server:", **far)
    with pytest.raises(TypeError, match=r"copy\(\) got an unexpected keyword argument 'exclud'"):
        fw.copy(tmp_path, "server:", exclud="a", **far)  # type: ignore[call-arg]
    with pytest.raises(FileNotFoundError, match="no-such-command: no such command"):
        fw.copy(tmp_path, "server:", command="no-such-command")
    with pytest.raises(OSError, match="remote fairwave"):
        fw.copy(tmp_path, "server:", command=far["command"], ssh="false")


def test_copy__cancelled_resumes(tmp_path: Path, far: dict[str, Any]) -> None:
    data, stop = tmp_path / "data.bin", threading.Event()
    data.write_bytes(os.urandom(30_000_000))

    def report(now: fw.Progress) -> None:
        if now.bytes >= 8_000_000:
            stop.set()

    with pytest.raises(fw.TransferError, match="stopped"):
        fw.copy(data, "server:", limit="60 Mb/s", progress=report, cancel=stop, **far)
    assert not (tmp_path / "far" / "data.bin").exists()
    transfer = fw.copy(data, "server:", **far)
    assert transfer.resumed_bytes >= 8_000_000
    assert (tmp_path / "far" / "data.bin").read_bytes() == data.read_bytes()


def test_copy__an_interrupt_of_python_stops_the_command(tmp_path: Path, far: dict[str, Any]) -> None:
    data = tmp_path / "data.bin"
    data.write_bytes(os.urandom(30_000_000))
    call = f"import fairwave as fw; fw.copy({str(data)!r}, 'server:', limit='30 Mb/s', progress=print, **{far!r})"
    script = f"import sys; sys.path.insert(0, 'python'); {call}"
    python = subprocess.Popen([sys.executable, "-u", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert python.stdout is not None
    assert b"Progress" in python.stdout.readline()
    python.send_signal(signal.SIGINT)
    _, errors = python.communicate(timeout=LIMIT_S)
    assert b"KeyboardInterrupt" in errors
    assert not (tmp_path / "far" / "data.bin").exists()
    assert fw.copy(data, "server:", **far).files == 1


def test_options__are_those_of_the_command(far: dict[str, Any]) -> None:
    shown = subprocess.run([far["command"], "cp", "--help-all"], check=True, capture_output=True, text=True).stdout
    for name in DEFAULTS:
        assert f"--{name.replace('_', '-')}" in shown, name
