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
    """A transfer failed. Received data are kept, and the same call resumes it.

    Attributes:
        transfer: What came, and what failed.
    """

    def __init__(self, reason: str, transfer: Transfer) -> None:
        """Say why, and what came."""
        super().__init__(reason)
        self.transfer = transfer


@dataclass(frozen=True)
class Transfer:
    """What became of a transfer.

    Attributes:
        files: Files that are complete at the destination.
        bytes: Their bytes.
        resumed_bytes: Of those, bytes that were there before.
        failed: Files that are not there, a row each: ``path``, ``reason``.
        skipped: What was left out on purpose, such as devices: ``path``, ``reason``.
        blake3: The BLAKE3 hash, in hexadecimal digits, if a single file was fetched.
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
    """Fetch files that somebody serves.

    What is there already is not fetched again. When the connection or the server is lost, the call goes on by itself
    when they are back; after an interrupt, the same call goes on where it was. Files appear whole and verified, or not
    at all.

    Args:
        ticket: What ``fairwave serve`` or `serve` printed, "fw1...".
        destination: The directory to write into; made if it is not there.
        names: Paths in the share to fetch; without any, all of it.
        check: Read what is there already, compare its hashes, and fetch what differs.
        dry_run: Write nothing; the counts say what would be fetched. With ``check``, hashes are compared for it.
        links: Keep symbolic links that lead out of what is fetched as they are; without it each fails, by name.
        durable: When files are safe from a power failure before they get their names: one by one, in groups, or never.
        limit: No faster than this, as IP packets: "200 Mb/s".
        retry: Connect again when the connection or the server is lost, for so long after the last bytes that came;
            "0 s" is not at all.
        capacity: What this end may receive; left out, 95 % of the network card's speed.
        path: Who else uses the path: others ("shared"), or nobody ("dedicated"; both ends must say so).
        plain: No encryption of data; both ends must ask for it.
        rule: The rule by which this end shares its capacity, one that runs on hosts ("gtp", "abr-charny", ...).
        path_control: By what this end sends on a shared path: a model of it ("bbr"), or loss ("cubic").

    Returns:
        The `Transfer`: ``failed`` is empty if all is there.

    Raises:
        ValueError: The ticket, or another argument, is wrong.
        TransferError: The transfer broke off.
        OSError: There is no session: the server is gone, says no, or cannot be reached.

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
    """Files that are offered until it is closed, at the latest when a ``with`` block ends. Made by `serve`."""

    def __init__(self, core: _core.Server) -> None:
        """Wrap a server of the native module; `serve` does."""
        self._core = core

    @property
    def ticket(self) -> str:
        """What lets others in: a key, to be handed over like one."""
        return self._core.ticket

    def transfers(self) -> pd.DataFrame:
        """Who came, a row each: ``peer``, ``direction`` ("get" or "put"), ``is_over``, ``files``, ``bytes``."""
        rows = [
            (peer, "put" if is_put else "get", is_over, files, size)
            for peer, is_put, is_over, files, size in self._core.transfers()
        ]
        return pd.DataFrame(rows, columns=["peer", "direction", "is_over", "files", "bytes"])

    def why(self) -> pd.DataFrame:
        """What limits the open sessions, and what is known of their paths, as in ``fairwave why``.

        It looks twice, a quarter of a second apart.

        Returns:
            A row each: ``peer``, ``direction`` ("get" or "put"), ``carrier`` ("udp" or "tcp"), ``rate_bps`` (IP packets
            that went over the wire), ``limited_by`` (a word) and ``because`` (in words), ``advice``; ``rtt_s``, which
            is smoothed, and ``least_rtt_s``; ``queueing_s``, how long packets wait in queues there and back;
            ``loss_share``, ``late_share`` and ``marked_share`` of the packets of the last ten seconds; ``lateness_s``,
            how late; and ``delivery_rate_bps``, what arrived in the last second. Numbers not known are NaN.
        """
        told = pd.DataFrame(self._core.why(), columns=["sends", *_WHY_WORDS, *_WHY_NUMBERS])
        told.insert(0, "direction", ["get" if sends else "put" for sends in told["sends"]])
        told[_WHY_NUMBERS] = told[_WHY_NUMBERS].astype(float)
        return told[["peer", "direction", *_WHY_WORDS[1:], *_WHY_NUMBERS]]

    def close(self) -> None:
        """End all transfers, and offer nothing any more."""
        self._core.close()

    def __enter__(self) -> Server:
        """Offer until the block ends."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    def __repr__(self) -> str:
        """Say what it is, without the ticket: that is a secret."""
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
    """Offer files to whoever holds the ticket.

    Serving the same paths again honours the tickets of before, at the same UDP port where it is free.

    Args:
        paths: Files and directories: one path, or several.
        writable: Others may put files into the only path, a directory, and get none.
        readable: With ``writable``: they may get what lies there, too.
        links: With ``writable``: symbolic links that lead out of that directory are kept as they are, for who asks.
        quota: What lies below that directory may occupy so much when others have put files there, such as "10 GB"; what
            exceeds it fails. Left out, as much as the disk holds.
        once: The ticket is for a single transfer.
        expires_s: How long the ticket is good, in seconds; ``math.inf`` for ever. Left out, a day: unless ``once`` asks
            for another, a ticket of earlier is then handed out again: the one that lasts longest, if that is an hour or
            more.
        listen: The address to listen at, "192.0.2.7" or "192.0.2.7:9000"; the port is 8642 where none is said, and
            any that is free for port 0. Left out, all addresses.
        capacity: What this end may send; left out, 95 % of the network card's speed.
        path: Who else uses the path: others ("shared"), or nobody ("dedicated"; both ends must say so).
        plain: No encryption of data; both ends must ask for it.
        rule: The rule by which this end shares its capacity, one that runs on hosts ("gtp", "abr-charny", ...).
        path_control: By what this end sends on a shared path: a model of it ("bbr"), or loss ("cubic").

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
        The `Server`; it works in the background until it is closed.

    Raises:
        ValueError: A path is not there, or another argument is wrong.
        OSError: No port can be had, or the state directory cannot be used.
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
        raise ValueError(f'path: "{path}" is neither "shared" nor "dedicated"')
    if path_control not in ("bbr", "cubic"):
        raise ValueError(f'path_control: "{path_control}" is neither "bbr" nor "cubic"')
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
