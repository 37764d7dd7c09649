"""Files over the network, by GTP: fetched from whoever serves them, and served."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Literal

from fairwave import _core
from fairwave._lazy import LazyModule

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = LazyModule("pandas")


Durable = Literal["each", "group", "none"]
PathKind = Literal["shared", "dedicated"]
PathControl = Literal["bbr", "cubic"]


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
    """

    files: int
    bytes: int
    resumed_bytes: int
    failed: pd.DataFrame
    skipped: pd.DataFrame
    blake3: str | None


def get(
    ticket: str,
    destination: str | os.PathLike[str] = ".",
    names: Iterable[str] = (),
    *,
    check: bool = False,
    dry_run: bool = False,
    links: bool = False,
    durable: Durable = "group",
    limit: str | None = None,
    retry: str = "10 min",
    capacity: str | None = None,
    path: PathKind = "shared",
    plain: bool = False,
    rule: str = "gtp",
    path_control: PathControl = "bbr",
) -> Transfer:
    """Download files from a machine that serves them.

    Data that is already complete is not transferred again: after an interrupt, repeat the call to resume. If the
    connection or the server is lost, the transfer reconnects by itself. A file appears under its name only when it is
    complete and verified.

    Args:
        ticket: The ticket, "fw1...", from ``fairwave serve`` or `serve`.
        destination: The directory to write into; created if missing.
        names: Paths in the share to fetch; by default all.
        check: Compare the hashes of existing files and transfer what differs.
        dry_run: Write nothing; the result counts what would be transferred. With ``check``, hashes are compared.
        links: Keep symbolic links that point outside the tree; without this they fail.
        durable: When files are flushed to disk before they get their names: "each" separately, in a "group", or "none".
        limit: Maximum rate of IP packets, such as "200 Mb/s".
        retry: How long to keep reconnecting after the last byte arrived; "0 s" for never.
        capacity: Receive capacity of this machine; by default 95 % of the network card's speed.
        path: "shared", or "dedicated" if no other traffic uses the path (both ends must set it).
        plain: Do not encrypt data; both ends must set it.
        rule: Node rule that shares this end's capacity ("gtp", "abr-charny", ...).
        path_control: Congestion control on a shared path: a model of it ("bbr"), or loss ("cubic").

    Returns:
        The `Transfer`; ``failed`` is empty if all files are complete.

    Raises:
        ValueError: The ticket or another argument is invalid.
        TransferError: The transfer failed.
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
    outcome = _core.get(
        ticket,
        os.fspath(destination),
        list(names),
        check,
        dry_run,
        links,
        durable,
        limit,
        retry,
        _link(capacity, path, plain, rule, path_control),
    )
    transfer = Transfer(
        files=outcome["files"],
        bytes=outcome["bytes"],
        resumed_bytes=outcome["resumed_bytes"],
        failed=_entries(outcome["failed"]),
        skipped=_entries(outcome["skipped"]),
        blake3=outcome["blake3"].hex() if outcome["blake3"] is not None else None,
    )
    if outcome["error"] is not None:
        raise TransferError(outcome["error"], transfer)
    return transfer


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
    # A text is a sequence of texts, too: its letters.
    all_paths = [paths] if isinstance(paths, (str, os.PathLike)) else paths
    core = _core.Server(
        [os.fspath(one) for one in all_paths],
        writable,
        readable,
        links,
        quota,
        once,
        expires_s,
        listen,
        _link(capacity, path, plain, rule, path_control),
    )
    return Server(core)


def _link(capacity: str | None, path: PathKind, plain: bool, rule: str, path_control: PathControl) -> _core.Link:
    if path not in ("shared", "dedicated"):
        raise ValueError(f'path: "{path}" must be "shared" or "dedicated"')
    if path_control not in ("bbr", "cubic"):
        raise ValueError(f'path_control: "{path_control}" must be "bbr" or "cubic"')
    return {
        "capacity": capacity,
        "dedicated": path == "dedicated",
        "plain": plain,
        "rule": rule,
        "path_control": path_control,
    }


def _entries(entries: list[tuple[bytes, str]]) -> pd.DataFrame:
    rows = [(os.fsdecode(path), reason) for path, reason in entries]
    return pd.DataFrame(rows, columns=["path", "reason"])
