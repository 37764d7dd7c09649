"""User-defined rules, checked before a run."""

from __future__ import annotations

import hashlib
import inspect
import re
import sys
from collections.abc import Callable, Mapping
from importlib.machinery import EXTENSION_SUFFIXES
from typing import Any

from fairwave import _core

Schemes = Mapping[str, Callable[..., Any]]
"""Names with what makes a rule: a class, or a function that gives an object."""

_NAME = re.compile(r"[a-z][a-z0-9-]{0,49}\Z")


def own_rules(schemes: Schemes | None) -> list[_core._OwnRule]:
    """Look at each rule once: is it a session's or a node's, and which options does it have?"""
    rules: list[_core._OwnRule] = []
    known = _core.schemes()["name"] if schemes else []
    for name, make in (schemes or {}).items():
        if not isinstance(name, str) or not _NAME.match(name):
            raise ValueError(f'schemes: {name!r} is not a valid name\nhint: use a-z, 0-9 and -, such as "mine"')
        if name in known:
            raise ValueError(f'schemes: "{name}" is a built-in scheme\nhint: choose another name, such as "my-{name}"')
        if not callable(make):
            raise TypeError(
                f'schemes: "{name}" is {make!r}\nhint: pass a class, or a function without arguments that returns one'
            )
        options = getattr(make, "options", None)
        options = dict(options) if isinstance(options, Mapping) else {}
        if not all(isinstance(option, str) and _is_number(default) for option, default in options.items()):
            raise TypeError(f'schemes: the options of "{name}" must be names with numbers, such as {{"gain": 1.0}}')
        rule = make()
        is_session, is_node = _has(rule, "on_ack"), _has(rule, "allocate")
        if is_session == is_node:
            what = "both on_ack and allocate" if is_session else "neither on_ack nor allocate"
            raise TypeError(
                f'schemes: "{name}" returns a {type(rule).__name__} with {what}\n'
                "hint: a session's rule has on_ack, a node's has allocate"
            )
        rules.append((name, is_node, make, [(option, float(default)) for option, default in options.items()]))
    return rules


def fingerprint(schemes: Schemes | None) -> bytes:
    """Tell rules apart by their source and that of the classes above, for results that are gone on with later."""
    digest = hashlib.blake2b()
    for name, make in (schemes or {}).items():
        parts = [part for part in make.__mro__ if part is not object] if isinstance(make, type) else [make]
        digest.update(f"{name}\0{len(parts)}\0".encode())
        for part in parts:
            digest.update(f"{_source(part)}\0".encode())
    return digest.digest()[:16] if schemes else b""


def _source(make: Any) -> str:
    if isinstance(make, type) and _is_native(make):
        return f"{make.__module__}.{make.__qualname__}"
    try:
        return inspect.getsource(make)
    except (OSError, TypeError):
        # Without a source, as at a prompt: nothing says that it is the same rule another time.
        return f"{make!r} {id(make)}"


def _is_native(cls: type) -> bool:
    """Is it a class without a source, whose name says all: built in, compiled, or Fairwave's own of this version?"""
    module = cls.__module__
    file = getattr(sys.modules.get(module), "__file__", None) or ""
    is_compiled = module in sys.builtin_module_names or file.endswith(tuple(EXTENSION_SUFFIXES))
    return is_compiled or module.split(".")[0] == "fairwave"


def _has(rule: Any, method: str) -> bool:
    return callable(getattr(rule, method, None))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
