"""Modules that take long to load, loaded when they are first used: importing fairwave stays quick."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class LazyModule:
    """A module by its name, with the attributes that it has once it is loaded.

    Example:
        >>> json = LazyModule("json")
        >>> json.dumps([1])
        '[1]'
    """

    def __init__(self, name: str) -> None:
        """Say which module it is, without loading it."""
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        """Load the module if it is not yet there."""
        return getattr(import_module(self._name), attribute)
