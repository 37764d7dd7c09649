"""Files over the network, by GTP: fetched, sent, listed and served."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Protocol, Unpack

from fairwave import _core
from fairwave._lazy import LazyModule
from fairwave._options import Durable, PathControl, PathKind, TransferOptions, link, whole

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = LazyModule("pandas")


class TransferError(OSError):
    """A transfer failed. Received data is kept: repeat the call to resume.

    Attributes:
        transfer: The partial result, with failed files.
    """

    def __init__(self, reason: str, transfer: Transfer) -> None:
        """Store the reason and the partial result."""
        super().__init__(reason)
        self.transfer = transfer


@dataclass(frozen=True)
class Transfer:
    """The result of a transfer.

    Attributes:
        files: Files that are complete at the destination.
        bytes: Their bytes.
        resumed_bytes: Of those, bytes that were already complete.
        failed: Files that failed, one row each: ``path``, ``reason``.
        skipped: Entries that cannot be transferred, such as devices: ``path``, ``reason``.
        blake3: The BLAKE3 hash, in hexadecimal digits, if a single file was transferred.
        warned: Files that are complete without an attribute that could not be set: ``path``, ``reason``.
        deleted: Number of entries deleted by the option ``delete``.
    """

    files: int
    bytes: int
    resumed_bytes: int
    failed: pd.DataFrame
    skipped: pd.DataFrame
    blake3: str | None
    warned: pd.DataFrame
    deleted: int


@dataclass(frozen=True)
class Progress:
    """Progress of a transfer, for a callback.

    Attributes:
        files: Files that are complete at the destination.
        files_total: Files to transfer; None until all are known.
        bytes: Bytes that are verified and at the destination.
        bytes_total: Bytes to transfer; None until all are known.
        resumed_bytes: Of ``bytes``, those that were already complete.
    """

    files: int
    files_total: int | None
    bytes: int
    bytes_total: int | None
    resumed_bytes: int


class Cancel(Protocol):
    """Stops a transfer: a `threading.Event`, or any object with its ``is_set``."""

    def is_set(self) -> bool:
        """Return whether the transfer has to stop."""


# Time between two calls of a progress callback, seconds.
_BETWEEN_REPORTS_S = 0.1


def observer(progress: Callable[[Progress], object] | None, cancel: Cancel | None) -> _core._Look:
    """Return what is called while a transfer runs: it reports progress, and returns whether to stop."""
    reported = Progress(0, None, 0, None, 0)
    reported_s = time.monotonic()

    def look(*counts: int | None) -> bool:
        nonlocal reported, reported_s
        files, files_total, size, size_total, resumed = counts
        now = Progress(files or 0, files_total, size or 0, size_total, resumed or 0)
        is_over = (files, size) == (files_total, size_total)
        if progress and now != reported and (is_over or time.monotonic() - reported_s >= _BETWEEN_REPORTS_S):
            reported, reported_s = now, time.monotonic()
            progress(now)
        return cancel is not None and cancel.is_set()

    return look


def get(
    ticket: str,
    destination: str | os.PathLike[str] = ".",
    names: Iterable[str] = (),
    *,
    rename: str | None = None,
    durable: Durable = "group",
    progress: Callable[[Progress], object] | None = None,
    cancel: Cancel | None = None,
    **options: Unpack[TransferOptions],
) -> Transfer:
    """Download files from a machine that serves them.

    Data that is already complete is not transferred again: after an interrupt, repeat the call to resume. If the
    connection or the server is lost, the transfer reconnects by itself. A file appears under its name only when it is
    complete and verified.

    Args:
        ticket: The ticket, "fw1...", from ``fairwave serve`` or `serve`.
        destination: The directory to write into; created if missing.
        names: Paths in the share to fetch; by default all.
        rename: The name at the destination, if there is a single name.
        durable: When files are flushed to disk before they get their names: "each" separately, in a "group", or "none".
        progress: Called with a `Progress` up to ten times a second. If it raises an exception, the transfer stops.
        cancel: A `threading.Event` that stops the transfer.
        options: See `TransferOptions`.

    Returns:
        The `Transfer`; ``failed`` is empty if all files are complete.

    Raises:
        ValueError: The ticket or another argument is invalid.
        TransferError: The transfer failed or was cancelled.
        OSError: No session: the server is not running, refuses, or cannot be reached.

    Example:
        >>> import pathlib, tempfile
        >>> import fairwave as fw
        >>> with tempfile.TemporaryDirectory() as here:
        ...     there = pathlib.Path(here, "there")
        ...     there.mkdir()
        ...     _ = pathlib.Path(here, "data.bin").write_bytes(bytes(100_000))
        ...     with fw.serve([f"{here}/data.bin"], listen="127.0.0.1:0") as server:
        ...         transfer = fw.get(server.ticket, there)
        ...     size = (there / "data.bin").stat().st_size
        >>> transfer.files, size
        (1, 100000)
    """
    request, look = whole("get", options, durable), observer(progress, cancel)
    return transferred(_core.get(ticket, os.fspath(destination), list(names), rename, request, look))


def put(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    ticket: str,
    *,
    progress: Callable[[Progress], object] | None = None,
    cancel: Cancel | None = None,
    **options: Unpack[TransferOptions],
) -> Transfer:
    """Upload files to a machine that serves a directory with ``writable``.

    As with `get`, repeat the call to resume.

    Args:
        paths: Files and directories: one path or several. "DIR/." is what is in a directory.
        ticket: The ticket, "fw1...", from ``fairwave serve --writable`` or ``serve(..., writable=True)``.
        progress: Called with a `Progress` up to ten times a second. If it raises an exception, the transfer stops.
        cancel: A `threading.Event` that stops the transfer.
        options: See `TransferOptions`.

    Returns:
        The `Transfer`; ``failed`` is empty if all files are complete.

    Raises:
        ValueError: The ticket or another argument is invalid.
        TransferError: The transfer failed or was cancelled.
        OSError: A path does not exist, or no session: the server is not running, refuses, or cannot be reached.

    Example:
        >>> import pathlib, tempfile
        >>> import fairwave as fw
        >>> with tempfile.TemporaryDirectory() as here:
        ...     data, inbox = pathlib.Path(here, "data.bin"), pathlib.Path(here, "inbox")
        ...     _ = data.write_bytes(bytes(100_000))
        ...     inbox.mkdir()
        ...     with fw.serve(inbox, writable=True, listen="127.0.0.1:0") as server:
        ...         transfer = fw.put(data, server.ticket)
        ...     size = (inbox / "data.bin").stat().st_size
        >>> transfer.files, size
        (1, 100000)
    """
    look = observer(progress, cancel)
    return transferred(_core.put(as_paths(paths), ticket, whole("put", options), look))


class Entry(NamedTuple):
    """A row of `ls`."""

    path: str
    kind: str
    bytes: int
    mode: int
    modified_s: float
    detail: str


def ls(ticket: str, names: Iterable[str] = (), *, recursive: bool = False) -> pd.DataFrame:
    """List the files of a machine that serves them, without a transfer.

    Args:
        ticket: The ticket, "fw1...", from ``fairwave serve`` or `serve`.
        names: Paths in the share; by default its top. Wildcards match as in a shell.
        recursive: List everything below these paths; without this, what lies directly in directories.

    Returns:
        One row per entry: ``path``, ``kind`` ("file", "directory", "link"; "skipped" for others, "failed" if
        unreadable or missing), ``bytes`` (-1 except for files), ``mode``, ``modified_s`` (seconds since 1970), and
        ``detail``: the target of a link, or the reason.

    Raises:
        ValueError: The ticket is invalid.
        OSError: No session: the server is not running, refuses, or cannot be reached.

    Example:
        >>> import pathlib, tempfile
        >>> import fairwave as fw
        >>> with tempfile.TemporaryDirectory() as here:
        ...     _ = pathlib.Path(here, "data.bin").write_bytes(bytes(1000))
        ...     with fw.serve(f"{here}/data.bin", listen="127.0.0.1:0") as server:
        ...         listed = fw.ls(server.ticket)
        >>> listed[["path", "kind", "bytes"]].values.tolist()
        [['data.bin', 'file', 1000]]
    """
    return pd.DataFrame(entries(ticket, names, recursive=recursive), columns=list(Entry.__annotations__))


def entries(ticket: str, names: Iterable[str], *, recursive: bool) -> list[Entry]:
    """Return the rows of `ls`."""
    of_link = link("shared", capacity=None, plain=False, rule="gtp", path_control="bbr")
    listed = _core.ls(ticket, [os.fsencode(name) for name in names], recursive, of_link, observer(None, None))
    return [
        Entry(
            os.fsdecode(path), kind, -1 if size is None else size, mode, modified_s, os.fsdecode(more) if more else ""
        )
        for path, kind, size, mode, modified_s, more in listed
    ]


def transferred(outcome: _core.Transferred) -> Transfer:
    """Return the result of a transfer, or raise its error."""
    transfer = Transfer(
        files=outcome["files"],
        bytes=outcome["bytes"],
        resumed_bytes=outcome["resumed_bytes"],
        failed=_reasons(outcome["failed"]),
        skipped=_reasons(outcome["skipped"]),
        blake3=outcome["blake3"].hex() if outcome["blake3"] is not None else None,
        warned=_reasons(outcome["warned"]),
        deleted=outcome["deleted"],
    )
    if outcome["error"] is not None:
        raise TransferError(outcome["error"], transfer)
    return transfer


def as_paths(paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[str]:
    """Return one path or several as a list."""
    # A string is also a sequence of strings: its characters.
    all_paths = [paths] if isinstance(paths, (str, os.PathLike)) else paths
    return [os.fspath(one) for one in all_paths]


_WHY_WORDS = ["peer", "carrier", "limited_by", "because", "advice"]
_WHY_NUMBERS = [
    "rate_bps",
    "rtt_s",
    "least_rtt_s",
    "queueing_s",
    "loss_share",
    "late_share",
    "lateness_s",
    "marked_share",
    "delivery_rate_bps",
]


class Server:
    """Files served until `close`, or until the end of a ``with`` block. Returned by `serve`."""

    def __init__(self, core: _core.Server) -> None:
        """Wrap a server of the native module; `serve` does."""
        self._core = core

    @property
    def ticket(self) -> str:
        """The ticket that grants access; treat it as a secret."""
        return self._core.ticket

    def transfers(self) -> pd.DataFrame:
        """Transfers so far, one row each.

        The columns are ``peer``, ``direction`` ("get" or "put"), ``is_over``, ``files`` and ``bytes``.
        """
        rows = [
            (peer, "put" if is_put else "get", is_over, files, size)
            for peer, is_put, is_over, files, size in self._core.transfers()
        ]
        return pd.DataFrame(rows, columns=["peer", "direction", "is_over", "files", "bytes"])

    def why(self) -> pd.DataFrame:
        """Limits of the open sessions and properties of their paths, as in ``fairwave why``.

        The call measures for a quarter of a second.

        Returns:
            One row per session: ``peer``, ``direction`` ("get" or "put"), ``carrier`` ("udp" or "tcp"), ``rate_bps``
            (IP packets on the wire), ``limited_by`` (a keyword), ``because`` (an explanation), ``advice``; ``rtt_s``
            (smoothed) and ``least_rtt_s`` (minimum); ``queueing_s`` (queueing delay in both directions);
            ``loss_share``, ``late_share`` and ``marked_share`` of the packets of the last ten seconds; ``lateness_s``
            of late packets; and ``delivery_rate_bps`` over the last second. Unknown numbers are NaN.
        """
        rows = pd.DataFrame(self._core.why(), columns=["sends", *_WHY_WORDS, *_WHY_NUMBERS])
        rows.insert(0, "direction", ["get" if sends else "put" for sends in rows["sends"]])
        rows[_WHY_NUMBERS] = rows[_WHY_NUMBERS].astype(float)
        return rows[["peer", "direction", *_WHY_WORDS[1:], *_WHY_NUMBERS]]

    def close(self) -> None:
        """Stop all transfers and the server."""
        self._core.close()

    def __enter__(self) -> Server:
        """Serve until the block ends."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    def __repr__(self) -> str:
        """Return a description without the ticket, which is secret."""
        return f"<Server: {len(self._core.transfers())} transfers>"


def serve(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    writable: bool = False,
    readable: bool = False,
    links: bool = False,
    delete: bool = False,
    archive: bool = False,
    quota: str | None = None,
    once: bool = False,
    expires_s: float | None = None,
    listen: str | None = None,
    capacity: str | None = None,
    path: PathKind = "shared",
    plain: bool = False,
    rule: str = "gtp",
    path_control: PathControl = "bbr",
) -> Server:
    """Serve files to the holders of a ticket.

    Serving the same paths again accepts earlier tickets, and uses the same UDP port if it is free.

    Args:
        paths: Files and directories: one path or several.
        writable: Accept uploads into the only path, a directory; downloads are refused.
        readable: With ``writable``, allow downloads as well.
        links: With ``writable``, accept symbolic links that point outside the directory if the client keeps them.
        delete: With ``writable``, let clients delete (the option ``delete`` of `put`).
        archive: With ``writable``, let clients set owners, set-user-ID bits, extended attributes and devices.
        quota: Maximum size of that directory, such as "10 GB"; uploads beyond it fail. By default unlimited.
        once: Accept the ticket for a single transfer.
        expires_s: Validity of the ticket in seconds; ``math.inf`` for no expiry. By default a day; then, unless
            ``once`` is set, the earlier ticket with the longest validity is returned again if it is valid for at least
            an hour.
        listen: The address to listen on, "192.0.2.7" or "192.0.2.7:9000"; the default port is 8642, and port 0 is any
            free port. By default all addresses.
        capacity: Send capacity of this machine; by default 95 % of the network card's speed.
        path: "shared", or "dedicated" if no other traffic uses the path (both ends must set it).
        plain: Do not encrypt data; both ends must set it.
        rule: Node rule that shares this end's capacity ("gtp", "abr-charny", ...).
        path_control: Congestion control on a shared path: a model of it ("bbr"), or loss ("cubic").

    Example:
        >>> import pathlib, tempfile
        >>> import fairwave as fw
        >>> with tempfile.TemporaryDirectory() as here:
        ...     path = pathlib.Path(here, "data.bin")
        ...     _ = path.write_bytes(bytes(1000))
        ...     with fw.serve(path, listen="127.0.0.1:0") as server:
        ...         begin = server.ticket[:3]
        >>> begin
        'fw1'

    Returns:
        The `Server`, which runs in the background until it is closed.

    Raises:
        ValueError: A path does not exist, or another argument is invalid.
        OSError: No port is available, or the state directory is unusable.
    """
    core = _core.Server(
        as_paths(paths),
        writable,
        readable,
        links,
        delete,
        archive,
        quota,
        once,
        expires_s,
        listen,
        link(path, capacity=capacity, plain=plain, rule=rule, path_control=path_control),
    )
    return Server(core)


def _reasons(entries: list[tuple[bytes, str]]) -> pd.DataFrame:
    rows = [(os.fsdecode(path), reason) for path, reason in entries]
    return pd.DataFrame(rows, columns=["path", "reason"])
