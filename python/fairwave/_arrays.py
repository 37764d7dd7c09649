"""Arguments that are arrays: what they may be, and errors that name them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def numbers(name: str, values: npt.ArrayLike) -> Floats:
    """Give a list or array of real numbers as a one-dimensional array; no copy if it is one of float64."""
    array = _array(name, values)
    if array.ndim != 1:
        raise ValueError(f"{name}: {array.ndim} dimensions, expected one: a list of numbers")
    if array.dtype.kind not in "iuf" and array.size:
        raise ValueError(f"{name}: {array.dtype}, expected numbers")
    return np.ascontiguousarray(array, dtype=np.float64)


def optional_numbers(name: str, values: npt.ArrayLike | None) -> Floats | None:
    """Give a list or array of real numbers as a one-dimensional array, or None for None."""
    return None if values is None else numbers(name, values)


def rows_of_indices(name: str, values: npt.ArrayLike) -> npt.NDArray[np.uint32]:
    """Give rows of whole numbers from -1 as 32 bits each, -1 as 2^32 - 1; no copy if they have 32 bits already."""
    array = _array(name, values)
    if array.shape[:1] == (0,):
        return np.empty((0, 0), dtype=np.uint32)
    if array.ndim != 2:
        raise ValueError(f"{name}: {array.ndim} dimensions, expected two: one row of resources per session")
    if array.shape[1] == 0:
        raise ValueError(f"{name}: {array.shape[0]} sessions without resources")
    if array.dtype.kind not in "iu":
        raise ValueError(f"{name}: {array.dtype}, expected integers: resource indices, or -1 for none")
    if array.dtype.kind == "i" and (least := int(array.min())) < -1:
        raise ValueError(f"{name}: {least} is not a resource index: indices start at 0, and -1 is padding")
    if array.dtype.itemsize > 4 and (most := int(array.max())) >= 2**32 - 1:
        raise ValueError(f"{name}: {most} is not a resource index: the maximum is 2^32 - 2")
    if array.dtype in (np.int32, np.uint32):
        return np.ascontiguousarray(array).view(np.uint32)
    return array.astype(np.uint32, order="C")


def _array(name: str, values: npt.ArrayLike) -> npt.NDArray[np.generic]:
    try:
        return np.asarray(values)
    except ValueError as error:  # rows of unequal length
        raise ValueError(f"{name}: {error}") from None
