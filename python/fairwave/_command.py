"""Copies by the command ``fairwave cp``: it starts the other end through ssh."""

from __future__ import annotations

import base64
import json
import os
import select
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Unpack

from fairwave._options import Durable, TransferOptions, words
from fairwave._transfer import Cancel, Progress, Transfer, as_paths, observer, transferred

if TYPE_CHECKING:
    from fairwave import _core

# How often a call that waits looks at its event.
_LOOK_S = 0.05
# Grace period of the command after its output is closed, and again after an interrupt.
_STOP_TAKES_S = 5.0
_USAGE = 2


def copy(
    sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    destination: str | os.PathLike[str],
    *,
    port: str | None = None,
    ssh: str | None = None,
    remote_command: str | None = None,
    command: str = "fairwave",
    durable: Durable = "group",
    progress: Callable[[Progress], object] | None = None,
    cancel: Cancel | None = None,
    **options: Unpack[TransferOptions],
) -> Transfer:
    """Copy files to, from or between machines that ssh reaches, as ``fairwave cp`` does.

    The call runs that command, which starts the other end through ssh. Data that is already complete is not
    transferred again: after an interrupt, repeat the call to resume.

    Args:
        sources: Files and directories of one machine, "PATH" or "HOST:PATH": one or several.
        destination: A directory, or the new name of a single source; "PATH" or "HOST:PATH".
        port: UDP ports, one of which the other machine listens on, such as "50000-50010".
        ssh: Command to run instead of ssh.
        remote_command: The other machine's ``fairwave`` command.
        command: This machine's ``fairwave`` command: a path, or a name in the PATH.
        durable: When files are flushed to disk before they get their names: "each" separately, in a "group", or "none".
        progress: Called with a `Progress` about once a second. If it raises an exception, the transfer stops.
        cancel: A `threading.Event` that stops the transfer.
        options: See `TransferOptions`.

    Returns:
        The `Transfer`; ``failed`` is empty if all files are complete.

    Raises:
        ValueError: An argument is invalid, or a source does not exist.
        TransferError: The transfer failed or was cancelled.
        OSError: The command is not installed, or the other machine cannot be reached.

    Example:
        >>> import fairwave as fw
        >>> fw.copy("cluster:run7", "runs/", exclude=["*.tmp"], limit="2 Gb/s")  # doctest: +SKIP
    """
    call = [command, "cp", "--json", *words("copy", options)]
    named = (("durable", durable), ("port", port), ("ssh", ssh), ("remote-command", remote_command))
    call += [f"--{name}={value}" for name, value in named if value is not None]
    return _run([*call, "--", *as_paths(sources), os.fspath(destination)], observer(progress, cancel))


def _run(call: list[str], look: _core._Look) -> Transfer:
    failed: list[tuple[bytes, str]] = []
    skipped: list[tuple[bytes, str]] = []
    warned: list[tuple[bytes, str]] = []
    lists = {"file_failed": failed, "file_skipped": skipped, "file_warned": warned}
    end: dict[str, Any] | None = None
    with tempfile.TemporaryFile() as messages:
        try:
            process = subprocess.Popen(call, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=messages)
        except FileNotFoundError as error:
            hint = "pip installs only the Python package: install the command, or pass its path as command="
            raise FileNotFoundError(f"{call[0]}: no such command\nhint: {hint}") from error
        try:
            for event in _events(process, look):
                kind = event.get("event")
                if kind in lists:
                    lists[kind].append((_name(event), event["reason"]))
                elif kind in ("done", "stopped", "failed"):
                    end = event
        finally:
            _end(process)
        messages.seek(0)
        said = messages.read().decode(errors="replace").strip()
    if end is None and process.returncode != 0:
        lines = [line for line in said.splitlines() if not line.startswith("note: ")]
        last = "\n".join(lines) or f"{call[0]} ended with {process.returncode}"
        if process.returncode == _USAGE:
            raise ValueError(last)
        if process.returncode not in (128 + signal.SIGINT, -signal.SIGINT):
            raise OSError(last)
        end = {"event": "stopped"}
    end = end or {"event": "done"}
    reason = {"done": None, "stopped": "the transfer was stopped"}.get(end["event"], end.get("reason"))
    return transferred(
        {
            "files": end.get("files", 0),
            "bytes": end.get("bytes", 0),
            "resumed_bytes": end.get("bytes_resumed", 0),
            "deleted": end.get("files_deleted", 0),
            "failed": failed,
            "skipped": skipped,
            "warned": warned,
            "blake3": bytes.fromhex(end["blake3"]) if end.get("blake3") else None,
            "error": reason,
        }
    )


def _events(process: subprocess.Popen[bytes], look: _core._Look) -> Iterator[dict[str, Any]]:
    """Yield the command's events; interrupt it once if `look` returns true."""
    assert process.stdout is not None
    names = ("files_done", "files_total", "bytes_done", "bytes_total", "bytes_resumed")
    counts: tuple[int | None, ...] = (0, None, 0, None, 0)
    is_stopping, rest = False, b""
    while True:
        if not is_stopping and look(*counts):
            is_stopping = True
            process.send_signal(signal.SIGINT)
        if not select.select([process.stdout], [], [], _LOOK_S)[0]:
            continue
        some = os.read(process.stdout.fileno(), 1 << 16)
        if not some:
            return
        *lines, rest = (rest + some).split(b"\n")
        for line in lines:
            event = json.loads(line)
            if "bytes_done" in event and "files_done" in event:
                counts = tuple(event.get(name) for name in names)
            elif event.get("event") == "done":
                counts = (event["files"], event["files"], event["bytes"], event["bytes"], event["bytes_resumed"])
            yield event


def _end(process: subprocess.Popen[bytes]) -> None:
    """Wait for the command. One that still runs, since this process was interrupted, stops."""
    assert process.stdout is not None
    # A command without a reader stops. A terminal has interrupted it as well: a second signal would be one too many.
    process.stdout.close()
    for stop in (process.terminate, process.kill):
        try:
            process.wait(_STOP_TAKES_S)
        except subprocess.TimeoutExpired:
            stop()
    process.wait()


def _name(event: dict[str, Any]) -> bytes:
    """Return the name in an event: bytes that are not text come in another key."""
    if "name_base64" in event:
        return base64.b64decode(event["name_base64"])
    return os.fsencode(event["name"])
