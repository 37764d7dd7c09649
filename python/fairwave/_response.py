"""Response functions of loss-based schemes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fairwave import _core
from fairwave._arrays import numbers


def response(
    scheme: str,
    loss_rate: npt.ArrayLike,
    rtt_s: float | None = None,
    form: str | None = None,
    **options: float | str,
) -> npt.NDArray[np.float64]:
    """Mean window of a loss-based scheme at a loss rate, by its response function.

    Args:
        scheme: "newreno", "sack", "hstcp", "htcp", "stcp", "aimd", "bic" or "cubic". The windows of "vegas" and "fast"
            depend on the delay, not on the loss rate.
        loss_rate: Loss events per packet, 0 < p < 1: a number, or a list of them.
        rtt_s: Round-trip time in seconds. "cubic" and "htcp" grow with time and need it; the others ignore it.
        form: For "bic". "paper", the default: the whole analysis (Xu et al. 2004, Eqs. 2 and 3); "search": small
            windows, before Eq. 7; "large": Eq. 5; "asymptote": Eq. 6; "rule": the rule as it runs, one acknowledgement
            at a time, up to 17 % below the analysis.
        options: The options that change the curve, as in a scenario's ``[options]``, by default those of the scheme's
            paper: aimd ``increase``, ``decrease``; stcp the same and ``low_window``; hstcp ``low_window``,
            ``high_window``, ``high_p``, ``high_decrease``; bic ``s_max``, ``s_min``, ``beta``, ``low_window``; cubic
            ``c``, ``beta``.

    Returns:
        Window in packets, one for each loss rate.

    Raises:
        ValueError: The scheme has no response function, a loss rate is not between 0 and 1, or an option is unknown,
            out of range, or without effect on the curve.

    Example:
        Reno keeps sqrt(1.5 / p) packets (Wu 2007, Eq. II.2); CUBIC 1.054 (RTT / p)^(3/4) (RFC 9438, section 5).

        >>> import fairwave as fw
        >>> fw.response("newreno", [1.5e-2, 1.5e-4]).round(9)
        array([ 10., 100.])
        >>> fw.response("cubic", 1e-5, rtt_s=0.1).round()
        array([1054.])
        >>> fw.response("aimd", 1e-4, increase=1, decrease=0.5).round(1)
        array([122.5])
    """
    rates = numbers("loss_rate", np.atleast_1d(np.asarray(loss_rate)))
    return _core.response(scheme, rates, None if rtt_s is None else float(rtt_s), form, options)
