"""Python values as the text of TOML values."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any


def to_toml(value: Any) -> str:
    """Give the text that may stand behind the `=` of a key: strings as they are, as on the command line.

    >>> to_toml("25 Mb/s"), to_toml(0.5), to_toml(True)
    ('25 Mb/s', '0.5', 'true')
    >>> to_toml([["0 s", "400 Mb/s"], ["4 s", "inf"]])
    '[["0 s", "400 Mb/s"], ["4 s", "inf"]]'
    >>> to_toml({"uniform": ["0 s", "60 s"]})
    '{"uniform" = ["0 s", "60 s"]}'
    """
    return value if isinstance(value, str) else _nested(value)


def _nested(value: Any) -> str:
    match value:
        case str():
            # JSON's escapes are TOML's, but for DEL, which TOML wants escaped.
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case bool():
            return "true" if value else "false"
        case Integral():
            return str(int(value))
        case Real():
            return repr(float(value))
        case Mapping():
            return "{" + ", ".join(f"{_nested(str(key))} = {_nested(entry)}" for key, entry in value.items()) + "}"
        case Sequence():
            return "[" + ", ".join(map(_nested, value)) + "]"
        case _:
            raise TypeError(f"{value!r} cannot be written to a scenario file: use str, bool, int, float, list or dict")
