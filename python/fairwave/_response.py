"""Response functions of loss-based schemes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fairwave import _core
from fairwave._arrays import numbers


def response(scheme: str, loss_rate: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Mean window of a loss-based scheme at a loss rate, by its response function.

    Args:
        scheme: "newreno", "sack", "hstcp", "stcp", "bic" or "aimd", with the defaults of its paper.
        loss_rate: Loss events per packet, 0 < p < 1: a number, or a list of them.

    Returns:
        Window in packets, one for each loss rate.

    Raises:
        ValueError: The scheme has no response function, or a loss rate is not between 0 and 1.

    Example:
        Reno keeps sqrt(1.5 / p) packets (Wu 2007, Eq. II.2).

        >>> import fairwave as fw
        >>> fw.response("newreno", [1.5e-2, 1.5e-4]).round(9)
        array([ 10., 100.])
    """
    return _core.response(scheme, numbers("loss_rate", np.atleast_1d(np.asarray(loss_rate))))
