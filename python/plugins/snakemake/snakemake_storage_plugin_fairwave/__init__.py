"""Snakemake storage plug-in: inputs and outputs on a machine that runs ``fairwave serve``.

A query is ``fairwave://PATH``, a path as ``fairwave ls`` prints it. The ticket is the setting ``ticket``: set
SNAKEMAKE_STORAGE_FAIRWAVE_TICKET rather than ``--storage-fairwave-ticket``, which other users of the machine can see.
Outputs need a ticket of ``fairwave serve DIRECTORY --writable --readable``, with ``--delete`` if they are to be made
again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from snakemake_interface_common.exceptions import WorkflowError
from snakemake_interface_storage_plugins.common import Operation
from snakemake_interface_storage_plugins.io import IOCacheStorageInterface, Mtime, get_constant_prefix
from snakemake_interface_storage_plugins.settings import StorageProviderSettingsBase
from snakemake_interface_storage_plugins.storage_object import (
    StorageObjectGlob,
    StorageObjectRead,
    StorageObjectWrite,
)
from snakemake_interface_storage_plugins.storage_provider import (
    ExampleQuery,
    QueryType,
    StorageProviderBase,
    StorageQueryValidationResult,
)

from fairwave.fsspec import FairwaveFileSystem

_SCHEME = "fairwave://"


@dataclass
class StorageProviderSettings(StorageProviderSettingsBase):
    """Settings of the provider."""

    ticket: str | None = field(
        default=None,
        metadata={"help": "Ticket of the server", "env_var": True, "required": True},
    )


class StorageProvider(StorageProviderBase):
    """The share of a ticket."""

    @classmethod
    def example_queries(cls) -> list[ExampleQuery]:
        """Return a query for people to read."""
        return [ExampleQuery(f"{_SCHEME}data/a.csv", "a path in the share", QueryType.ANY)]

    def rate_limiter_key(self, query: str, operation: Operation) -> Any:
        """Return one key for all: there is one server."""
        return "fairwave"

    def default_max_requests_per_second(self) -> float:
        """Return a rate that is not used."""
        return 100.0

    def use_rate_limiter(self) -> bool:
        """Limit nothing: the server limits its clients."""
        return False

    @classmethod
    def is_valid_query(cls, query: str) -> StorageQueryValidationResult:
        """Check that a query is a path in the share."""
        path = query.removeprefix(_SCHEME)
        if not query.startswith(_SCHEME) or not path.strip("/") or ".." in path.split("/"):
            return StorageQueryValidationResult(query, False, f"expected {_SCHEME}PATH, a path in the share")
        return StorageQueryValidationResult(query, True)

    @cached_property
    def share(self) -> Any:
        """The share of the ticket in the settings."""
        ticket = getattr(self.settings, "ticket", None)
        if not ticket:
            raise WorkflowError("fairwave: no ticket: set SNAKEMAKE_STORAGE_FAIRWAVE_TICKET")
        return FairwaveFileSystem(ticket, cache_dir=self.local_prefix / ".fairwave")


class StorageObject(StorageObjectRead, StorageObjectWrite, StorageObjectGlob):
    """A file or a directory of the share."""

    provider: StorageProvider

    def local_suffix(self) -> str:
        """Return the path below the local prefix: that in the share."""
        return self._path

    @property
    def _path(self) -> str:
        return str(self.query).removeprefix(_SCHEME).strip("/")

    def _files(self) -> list[dict[str, Any]] | None:
        """Return the file, or all files below the directory; `None` if there is neither."""
        try:
            info = self.provider.share.info(self._path)
        except FileNotFoundError:
            return None
        if info["type"] != "directory":
            return [info]
        return list(self.provider.share.find(self._path, detail=True).values())

    async def inventory(self, cache: IOCacheStorageInterface) -> None:
        """Store existence, time and size."""
        key = self.cache_key()
        if key in cache.exists_in_storage:
            return
        found = self._files()
        cache.exists_in_storage[key] = found is not None
        if found is not None:
            cache.mtime[key] = Mtime(storage=_newest(found))
            cache.size[key] = _size(found)

    def get_inventory_parent(self) -> str | None:
        """Return nothing: each path is listed by itself."""
        return None

    def cleanup(self) -> None:
        """Do nothing: the plug-in keeps no other local files."""

    def exists(self) -> bool:
        """Return whether the share has the path."""
        return self._files() is not None

    def mtime(self) -> float:
        """Return the newest modification time."""
        return _newest(self._found())

    def size(self) -> int:
        """Return the bytes of the file, or of all files below the directory."""
        return _size(self._found())

    def _found(self) -> list[dict[str, Any]]:
        found = self._files()
        if found is None:
            raise FileNotFoundError(f"{self._path}: no such file in the share")
        return found

    def retrieve_object(self) -> None:
        """Fetch the file or directory."""
        self.provider.share.get(self._path, str(self.local_path()), recursive=True)

    def store_object(self) -> None:
        """Send the file or directory."""
        self.provider.share.put(str(self.local_path()), self._path, recursive=self.local_path().is_dir())

    def remove(self) -> None:
        """Delete the file, or all files below the directory."""
        for info in self._files() or []:
            self.provider.share.rm_file(info["name"])

    def list_candidate_matches(self) -> Iterable[str]:
        """Return the files below the directory in front of the first wildcard."""
        prefix = get_constant_prefix(self._path, strip_incomplete_parts=True)
        return [_SCHEME + path for path in self.provider.share.find(prefix)]


def _newest(files: list[dict[str, Any]]) -> float:
    return max((float(info["mtime"]) for info in files), default=0.0)


def _size(files: list[dict[str, Any]]) -> int:
    return sum(int(info["size"]) for info in files)
