r"""A file system for fsspec: ``fairwave://TICKET/PATH``. It needs the extra ``fairwave[fsspec]``.

Example:
    >>> import pathlib, tempfile
    >>> import fairwave as fw, fairwave.fsspec, pandas as pd
    >>> with tempfile.TemporaryDirectory() as here:
    ...     data = pathlib.Path(here, "data.csv")
    ...     _ = data.write_text("a,b\n1,2\n")
    ...     with fw.serve(data, listen="127.0.0.1:0") as server:
    ...         table = pd.read_csv(f"fairwave://{server.ticket}/data.csv")
    >>> table.to_dict("records")
    [{'a': 1, 'b': 2}]
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

import fsspec
from fsspec.callbacks import DEFAULT_CALLBACK

from fairwave._transfer import Entry, Progress, entries, get, put


class FairwaveFileSystem(fsspec.AbstractFileSystem):  # type: ignore[misc]
    """The share of a ticket.

    A file that is opened is first fetched whole, to a cache, and verified; then ranges are read from there. It is
    fetched again only if it has changed. Paths are those of `fairwave.ls`: they start with the name of the served file
    or directory.

    Args:
        ticket: The ticket; in a URL it is the first part, as in "fairwave://fw1.../data/a.csv".
        cache_dir: Directory for opened files, which are kept there; by default temporary.
        options: See `fairwave.TransferOptions`.
    """

    protocol = "fairwave"
    root_marker = ""

    def __init__(
        self,
        ticket: str,
        cache_dir: str | os.PathLike[str] | None = None,
        options: dict[str, Any] | None = None,
        **storage_options: Any,
    ) -> None:
        """Store the ticket; the first call that needs the server opens a session."""
        super().__init__(**storage_options)
        self._ticket, self._options = ticket, dict(options or {})
        self._temporary = None if cache_dir else tempfile.TemporaryDirectory(prefix="fairwave-")
        self._opening = threading.Lock()
        self._cache = Path(cache_dir or self._temporary.name)  # type: ignore[union-attr]

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        """Return the path in the share: a URL's without the ticket."""
        if isinstance(path, list):
            return [cls._strip_protocol(one) for one in path]
        text = os.fspath(path)
        if text.startswith("fairwave://"):
            first, _, rest = text.removeprefix("fairwave://").partition("/")
            text = rest if not first or first.startswith("fw1") else f"{first}/{rest}"
        return text.strip("/")

    @staticmethod
    def _get_kwargs_from_urls(path: str) -> dict[str, str]:
        """Return the ticket of a URL."""
        first = path.removeprefix("fairwave://").partition("/")[0]
        return {"ticket": first} if first.startswith("fw1") and path.startswith("fairwave://") else {}

    def __repr__(self) -> str:
        """Return a description without the ticket, which is secret."""
        return "<FairwaveFileSystem>"

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        """List a directory, or a file."""
        path = self._strip_protocol(path)
        found = [entry for entry in self._entries(path) if entry.path == path or self._parent(entry.path) == path]
        return [_info(entry) if detail else entry.path for entry in found]

    def find(
        self, path: str, maxdepth: int | None = None, withdirs: bool = False, detail: bool = False, **_: Any
    ) -> Any:
        """List all files below a path, by one list of the server."""
        path = self._strip_protocol(path)
        depth = path.count("/") + 1 if path else 0
        try:
            listed = self._entries(path, recursive=maxdepth != 1)
        except FileNotFoundError:
            return {} if detail else []
        found = {
            entry.path: _info(entry)
            for entry in listed
            if (withdirs or entry.kind != "directory")
            and (entry.path == path or not path or entry.path.startswith(f"{path}/"))
            and (maxdepth is None or entry.path.count("/") + 1 - depth <= maxdepth)
        }
        if withdirs and path and path not in found:
            found[path] = {"name": path, "size": 0, "type": "directory"}
        return dict(sorted(found.items())) if detail else sorted(found)

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """Return name, size, type and modification time of an entry."""
        path = self._strip_protocol(path)
        for entry in self._entries(path):
            if entry.path == path:
                return _info(entry)
        return {"name": path, "size": 0, "type": "directory"}

    def modified(self, path: str) -> datetime:
        """Return the modification time of a file."""
        info = self.info(path)
        if "mtime" not in info:
            raise IsADirectoryError(path)
        return datetime.fromtimestamp(info["mtime"], UTC)

    def _entries(self, path: str, *, recursive: bool = False) -> list[Entry]:
        found = entries(self._ticket, [path] if path else [], recursive=recursive)
        failed = next((entry for entry in found if entry.kind == "failed" and entry.path == path), None)
        if failed:
            raise FileNotFoundError(f"{path}: {failed.detail}")
        for entry in found:
            # fsspec joins these names to local paths.
            if not {"", ".", ".."}.isdisjoint(entry.path.split("/")):
                raise ValueError(f"the server lists an invalid name: {entry.path!r}")
        return [entry for entry in found if entry.kind not in ("failed", "skipped")]

    def _open(self, path: str, mode: str = "rb", **_: Any) -> BinaryIO:
        """Open a file for reading."""
        if mode != "rb":
            raise NotImplementedError(f'mode "{mode}": a share is read with "rb" or "r"; put() uploads files')
        path = self._strip_protocol(path)
        place = self._cache / _digest(path)
        with self._opening:
            self._fetch(path, place, None)
        return (place / path).open("rb")

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:
        """Return the bytes of a file, or a range of them."""
        with self._open(path) as file:
            size = os.fstat(file.fileno()).st_size
            first, last, _step = slice(start, end).indices(size)
            file.seek(first)
            return file.read(max(0, last - first))

    def get_file(self, rpath: str, lpath: Any, callback: Any = DEFAULT_CALLBACK, **_: Any) -> None:
        """Download a file, or make a directory."""
        rpath = self._strip_protocol(rpath)
        if self.isdir(rpath):
            Path(lpath).mkdir(parents=True, exist_ok=True)
            return
        # Only one transfer of a ticket at a time writes to a directory: each file has its own until it is complete.
        place = Path(lpath).parent / f".fairwave-{_digest(f'{rpath}:{Path(lpath).name}')}"
        self._fetch(rpath, place, Path(lpath).name, callback)
        (place / Path(lpath).name).replace(lpath)
        place.rmdir()

    def put_file(self, lpath: Any, rpath: str, callback: Any = DEFAULT_CALLBACK, **_: Any) -> None:
        """Upload a file, if the ticket allows it. Directories are made with their files."""
        if Path(lpath).is_dir():
            return
        source = Path(lpath).resolve(strict=True)
        with self._directory_near(source) as here:
            place = self._place(here, rpath)
            try:
                place.hardlink_to(source)
            except OSError:
                shutil.copy2(source, place)
            self._put(here, _report(callback), self._options)

    def _rm(self, path: str) -> None:
        """Delete a file, if the server was started with ``--delete``."""
        if self.info(path)["type"] == "directory":
            raise IsADirectoryError(path)
        # A mirror of an empty tree, of which all but this path is excluded.
        with tempfile.TemporaryDirectory(prefix="fairwave-") as here:
            parts = self._place(here, path).relative_to(here).parts
            include = ["/" + _literal("/".join(parts[:end])) for end in range(1, len(parts) + 1)]
            self._put(here, None, {"delete": True, "max_delete": 1, "include": include, "exclude": "*"})

    def _directory_near(self, source: Path) -> tempfile.TemporaryDirectory[str]:
        """Make a directory on the file system of a file, if possible: a link is enough there, and no copy is made."""
        if self._temporary:
            with contextlib.suppress(OSError):
                return tempfile.TemporaryDirectory(prefix=".fairwave-", dir=source.parent)
        self._cache.mkdir(parents=True, exist_ok=True)
        return tempfile.TemporaryDirectory(prefix=".fairwave-", dir=self._cache)

    def _place(self, here: str, path: str) -> Path:
        """Return the place of an upload in the directory `here`, which stands for the served one."""
        top, _, below = self._strip_protocol(path).partition("/")
        if not below:
            raise ValueError(f'"{path}": an upload goes below the served directory: use the form NAME/{top}')
        if ".." in below.split("/"):
            raise ValueError(f'"{path}": path with a component ".."')
        place = Path(here, below)
        place.parent.mkdir(parents=True, exist_ok=True)
        return place

    def _put(self, here: str, progress: Any, options: dict[str, Any]) -> None:
        _raise_failure(put(f"{here}/.", self._ticket, progress=progress, **options).failed)

    def _fetch(self, path: str, directory: Path, rename: str | None, callback: Any = DEFAULT_CALLBACK) -> None:
        report = _report(callback)
        transfer = get(self._ticket, directory, [path], rename=rename, progress=report, **self._options)
        _raise_failure(transfer.failed)
        if transfer.files == 0:
            raise IsADirectoryError(path)


def _info(entry: Entry) -> dict[str, Any]:
    info: dict[str, Any] = {
        "name": entry.path,
        "size": max(0, entry.bytes),
        "type": entry.kind,
        "mode": entry.mode,
        "mtime": entry.modified_s,
    }
    if entry.kind == "link":
        info["destination"] = entry.detail
    return info


def _report(callback: Any) -> Any:
    if callback is DEFAULT_CALLBACK:
        return None

    def report(now: Progress) -> None:
        if now.bytes_total is not None:
            callback.set_size(now.bytes_total)
        callback.absolute_update(now.bytes)

    return report


def _raise_failure(failed: Any) -> None:
    for path, reason in failed.itertuples(index=False):
        is_missing = reason == "no such file in the share"
        raise (FileNotFoundError if is_missing else OSError)(f"{path}: {reason}")


def _digest(path: str) -> str:
    """Return a short name for a path."""
    return hashlib.blake2b(os.fsencode(path), digest_size=8).hexdigest()


def _literal(path: str) -> str:
    """Return the pattern of one path."""
    return "".join(f"[{letter}]" if letter in "*?[\\" else letter for letter in path)


fsspec.register_implementation("fairwave", FairwaveFileSystem, clobber=True)
