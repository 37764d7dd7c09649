"""Tables for polars, pyarrow and DuckDB, by the Arrow PyCapsule interface."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from fairwave import _core
from fairwave._lazy import LazyModule

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = LazyModule("pandas")


def arrow(table: pd.DataFrame | Mapping[str, Any]) -> _core.ArrowTable:
    """Pass a table to other libraries without a file, and without pyarrow.

    Args:
        table: A DataFrame, such as ``run.rates()`` or the result of `sweep`, or columns by name: numbers, booleans,
            strings and categories. The index is not included.

    Returns:
        An object with ``__arrow_c_stream__``, which polars, pyarrow, pandas and DuckDB accept as a table:
        ``polars.DataFrame(fw.arrow(run.rates()))``, ``pyarrow.table(fw.arrow(rows))``. NaN and None are nulls there,
        categories dictionaries.

    Raises:
        TypeError: A column has an unsupported type, such as dates.
        ValueError: Columns of unequal length.

    Example:
        >>> import fairwave as fw
        >>> run = fw.simulate("five-to-one", model="fluid")
        >>> table = fw.arrow(run.rates())
        >>> len(table) == len(run.rates()), table.column_names[:3]
        (True, ['time_s', 'session', 'rate_bps'])
    """
    return _core.ArrowTable([(str(name), _column(str(name), values)) for name, values in table.items()])


def frame(rows: Any) -> pd.DataFrame:
    """Take a DataFrame as it is, and any other table by the interface that `arrow` gives one by."""
    if hasattr(rows, "iloc") or not hasattr(rows, "__arrow_c_stream__"):
        return rows  # type: ignore[no-any-return]
    # The stubs of pandas do not know it yet.
    made: pd.DataFrame = pd.DataFrame.from_arrow(rows)  # type: ignore[attr-defined]
    return made


def _column(name: str, values: Any) -> Any:
    categories = getattr(getattr(values, "dtype", None), "categories", None)
    if categories is not None:
        return np.asarray(values.cat.codes, dtype=np.int32), [str(category) for category in categories]
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f'column "{name}": {array.ndim} dimensions, expected one')
    match array.dtype.kind:
        case "f":
            return np.ascontiguousarray(array, dtype=np.float64)
        case "i":
            return np.ascontiguousarray(array, dtype=np.int64)
        case "u":
            if array.size and int(array.max()) >= 2**63:
                raise ValueError(f'column "{name}": {array.max()} does not fit into a signed 64-bit integer')
            return np.ascontiguousarray(array, dtype=np.int64)
        case "b":
            return np.ascontiguousarray(array)
        case "O" | "U" | "T":
            return [_word(name, value) for value in array.tolist()]
        case _:
            raise TypeError(f'column "{name}": {array.dtype} is not supported: use numbers, booleans or strings')


def _word(name: str, value: Any) -> str | None:
    if value is None or value != value or value is getattr(pd, "NA", None):
        return None
    if isinstance(value, str | bool | int | float):
        # Of mixed columns, such as a parameter that is a number or "inf", and of switches with gaps.
        return value if isinstance(value, str) else str(value)
    raise TypeError(f'column "{name}": {value!r} is not a number or a string')
