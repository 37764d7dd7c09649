"""The list of schemes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairwave import _core
from fairwave._lazy import LazyModule

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = LazyModule("pandas")


def schemes() -> pd.DataFrame:
    """All schemes, one row each.

    Returns:
        ``name``; ``kind`` ("session", "node" or "link": what runs the rule); ``models`` (models that support it:
        "fluid", "packet", "testbed"; an empty list if none does); ``needs`` (what it needs from hosts or
        network); ``options`` (a dict from name to default, as written in a scenario file); ``header_bytes`` (bytes
        added to a data packet); ``cites``; ``help``.

    Example:
        >>> import fairwave as fw
        >>> table = fw.schemes().set_index("name")
        >>> table.loc["gtp", "kind"], table.loc["gtp", "options"]["alpha"]
        ('node', '0.1')
    """
    return pd.DataFrame(_core.schemes())
