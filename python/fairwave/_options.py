"""Options of `get`, `put` and `copy`: one table."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypedDict, cast

if TYPE_CHECKING:
    from fairwave import _core

Durable = Literal["each", "group", "none"]
PathKind = Literal["shared", "dedicated"]
PathControl = Literal["bbr", "cubic"]


class TransferOptions(TypedDict, total=False):
    """Options of `get`, `put` and `copy`, named as those of the command, with ``_`` for ``-``.

    Attributes:
        check: Compare the hashes of existing files and transfer what differs.
        dry_run: Write nothing; the result counts what would be transferred. With ``check``, hashes are compared.
        update: Keep existing files that are newer than their sources.
        ignore_existing: Keep existing files.
        existing: Make no new files and directories.
        append: Keep existing files that are not shorter than their sources, such as logs.
        archive: Copy all attributes and hard links; implies ``links``.
        numeric_ids: With ``archive``, keep the numbers of owners and groups; otherwise names decide.
        backup: Keep replaced and deleted files under their names with ``suffix``.
        backup_dir: With ``backup``, keep them with their paths below a directory of the destination.
        suffix: Suffix of backups; default "~", or none with ``backup_dir``.
        delete: When all else is done, delete files that the source lacks from the copied directories.
        max_delete: With ``delete``, delete at most this many files and directories.
        whole_file: Transfer changed files whole, not only what an existing version lacks.
        compress: Compress data on the way: "auto" if it then arrives earlier, "never", or at a zstd level from 1 to 9.
        fuzzy: Search the destination for new files of 512 KiB or more under other names; content found there is not
            transferred.
        links: Keep symbolic links that point outside the tree; without this they fail.
        modify_window: Treat files of the same size as equal if their times differ by at most this many seconds.
        include: Copy files that match one of these patterns of rsync, regardless of ``exclude``.
        exclude: Skip files that match one of these patterns, except those in ``include``. "+ PATTERN" includes.
        min_size: Skip files of fewer bytes.
        max_size: Skip files of more bytes.
        one_file_system: Do not cross file system boundaries: mount points are copied as empty directories.
        gitignore: Skip what the .gitignore files of the copied trees ignore.
        limit: Maximum rate of IP packets, such as "200 Mb/s".
        retry: How long to keep reconnecting after the last byte arrived; "0 s" for never. Default "10 min".
        capacity: Capacity of this machine; by default 95 % of the network card's speed.
        path: "shared", or "dedicated" if no other traffic uses the path (both ends must set it).
        plain: Do not encrypt data; both ends must set it.
        rule: Node rule that shares this end's capacity ("gtp", "abr-charny", ...).
        path_control: Congestion control on a shared path: a model of it ("bbr"), or loss ("cubic").
    """

    check: bool
    dry_run: bool
    update: bool
    ignore_existing: bool
    existing: bool
    append: bool
    archive: bool
    numeric_ids: bool
    backup: bool
    backup_dir: str | os.PathLike[str] | None
    suffix: str | None
    delete: bool
    max_delete: int | None
    whole_file: bool
    compress: str | int
    fuzzy: bool
    links: bool
    modify_window: int
    include: str | Iterable[str]
    exclude: str | Iterable[str]
    min_size: int
    max_size: int | None
    one_file_system: bool
    gitignore: bool
    limit: str | None
    retry: str
    capacity: str | None
    path: PathKind
    plain: bool
    rule: str
    path_control: PathControl


# The default of the others is False.
_DEFAULTS: dict[str, Any] = {
    "backup_dir": None,
    "suffix": None,
    "max_delete": None,
    "compress": "auto",
    "modify_window": 0,
    "include": (),
    "exclude": (),
    "min_size": 0,
    "max_size": None,
    "limit": None,
    "retry": "10 min",
    "capacity": None,
    "path": "shared",
    "rule": "gtp",
    "path_control": "bbr",
}
DEFAULTS = {name: _DEFAULTS.get(name, False) for name in TransferOptions.__annotations__}
# An option, and the one without which it has no effect.
_REQUIRES = {"numeric_ids": "archive", "backup_dir": "backup", "suffix": "backup", "max_delete": "delete"}
_CHOICES = {"path": ("shared", "dedicated"), "path_control": ("bbr", "cubic")}
_OF_LINK = ("capacity", "plain", "rule", "path_control")


def whole(function: str, options: Mapping[str, Any], durable: Durable = "group") -> _core.CopyOptions:
    """Return all options of a call of `function`, checked, in the form of the native module."""
    filled = _filled(function, options)
    filled["durable"] = durable
    filled["link"] = link(filled.pop("path"), **{name: filled.pop(name) for name in _OF_LINK})
    return cast("_core.CopyOptions", filled)


def link(path: PathKind, *, capacity: str | None, plain: bool, rule: str, path_control: PathControl) -> _core.Link:
    """Return the options of this end of a session in the form of the native module."""
    for name, value in (("path", path), ("path_control", path_control)):
        if value not in _CHOICES[name]:
            raise ValueError(f'{name}: "{value}" must be ' + " or ".join(f'"{word}"' for word in _CHOICES[name]))
    return {
        "capacity": capacity,
        "dedicated": path == "dedicated",
        "plain": plain,
        "rule": rule,
        "path_control": path_control,
    }


def words(function: str, options: Mapping[str, Any]) -> Iterator[str]:
    """Yield the options that are not the defaults, as those of the command."""
    for name, value in _filled(function, options).items():
        option = "--" + name.replace("_", "-")
        if isinstance(value, list):
            yield from (f"{option}={one}" for one in value)
        elif value is True:
            yield option
        elif value != DEFAULTS[name]:
            yield f"{option}={value}"


def _filled(function: str, options: Mapping[str, Any]) -> dict[str, Any]:
    for name in options:
        if name not in DEFAULTS:
            near = difflib.get_close_matches(name, DEFAULTS, 1)
            hint = f". Did you mean '{near[0]}'?" if near else ""
            raise TypeError(f"{function}() got an unexpected keyword argument '{name}'{hint}")
    filled = {**DEFAULTS, **options}
    for name, needed in _REQUIRES.items():
        if filled[name] not in (None, False) and not filled[needed]:
            raise ValueError(f"{name}: requires {needed}")
    for name in ("include", "exclude"):
        # A string is also a sequence of strings: its characters.
        patterns = filled[name]
        filled[name] = [patterns] if isinstance(patterns, str) else list(patterns)
    filled["compress"] = str(filled["compress"])
    if filled["backup_dir"] is not None:
        filled["backup_dir"] = os.fspath(filled["backup_dir"])
    return filled
