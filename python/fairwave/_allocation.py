"""Rates by themselves: the global optimum, and one end node's rule."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fairwave import _core
from fairwave._arrays import numbers, optional_numbers, rows_of_indices


def max_min(
    capacity_bps: npt.ArrayLike,
    sessions: npt.ArrayLike,
    demand_bps: npt.ArrayLike | None = None,
    weights: npt.ArrayLike | None = None,
) -> npt.NDArray[np.float64]:
    """Max-min fair rates of sessions over any resources (Wu 2007, Algorithm 1).

    No session's rate can rise without lowering that of a session which has no more. A resource is anything with a
    capacity: the sending side of a source, the receiving side of a sink, a link. Arrays of float64 and of 32-bit
    integers are read in place without the GIL, so other threads must not change them during the call.

    Args:
        capacity_bps: Capacity of each resource in bit/s, from 0; inf if unlimited.
        sessions: One row per session: indices into `capacity_bps` of the resources that it crosses, each at most once;
            -1 pads shorter rows.
        demand_bps: Desired rate of each session in bit/s, from 0; inf (the default) if unlimited.
        weights: Weight of each session, above zero, by default 1: rates at a common bottleneck are proportional to the
            weights.

    Returns:
        The rate of each session in bit/s, in the order of `sessions`.

    Raises:
        ValueError: An argument is invalid; the message has its name, position and limit. Or a session is unlimited.

    Example:
        Two sources of 600 and 500 Mb/s, one sink of 900 Mb/s; the first session wants 200 Mb/s.

        >>> import fairwave as fw
        >>> fw.max_min([600e6, 500e6, 900e6], [[0, 2], [1, 2]], demand_bps=[200e6, float("inf")]) / 1e6
        array([200., 500.])
        >>> fw.max_min([900e6], [[0], [0]], weights=[1, 2]) / 1e6
        array([300., 600.])
    """
    return _core.max_min(
        numbers("capacity_bps", capacity_bps),
        rows_of_indices("sessions", sessions),
        optional_numbers("demand_bps", demand_bps),
        optional_numbers("weights", weights),
    )


_OF_THE_CLOCK = frozenset({"interval", "phase", "fair_start"})


class Allocator:
    """The rule of one end node, run once per control interval: measured rates in, expected rates out.

    Sessions are identified by their order and may change between calls. To define your own rule for `simulate` and
    `sweep`, override ``allocate`` in a subclass (``schemes={"mine": MyRule}``).

    Args:
        rule: "gtp" (the adopted rule), "gtp-printed" (as printed in Wu 2007), "abr-charny" or "abr-hou".
        options: The rule's options, as in a scenario's ``[options]``. gtp takes ``alpha`` (share of the gap to the
            target rate that is closed per interval, 0 < alpha < 1; Wu 2007, Eq. VI.3), ``beta`` (minimum step, as a
            share of alpha x target rate), ``drain``, ``budget`` and ``exponential_start``. `schemes` has the defaults.

    Example:
        A sink of 500 Mb/s; the first session has a demand of 100 Mb/s somewhere, the other two nothing yet. The target
        rate is 500 / 3; sessions below it move by alpha of the gap, and those above share what is left.

        >>> import fairwave as fw
        >>> node = fw.Allocator("gtp", alpha=0.1, beta=0.2)
        >>> node.allocate(500e6, measured_bps=[100e6, 400e6]) / 1e6
        array([115., 400.])
    """

    def __init__(self, rule: str = "gtp", **options: float | bool | str) -> None:
        """Make a node without sessions."""
        for name in _OF_THE_CLOCK & options.keys():
            raise ValueError(
                f'option "{name}": not supported by Allocator, which has no clock and no handshakes\n'
                "hint: call allocate() once per control interval"
            )
        self._core = _core.Allocator(rule, options)
        self._rule = rule

    def allocate(
        self,
        capacity_bps: float,
        measured_bps: npt.ArrayLike,
        weights: npt.ArrayLike | None = None,
        demand_bps: npt.ArrayLike | None = None,
        elapsed_s: float | None = None,
    ) -> npt.NDArray[np.float64]:
        """Run one control interval.

        Args:
            capacity_bps: Capacity that the rule may allocate, in bit/s.
            measured_bps: Mean rate of each session over the interval that just ended, in bit/s.
            weights: Weight of each session relative to the others, above zero, by default 1.
            demand_bps: Desired rate of each session in bit/s, inf if it declares none. Only the ATM rules
                ("abr-charny", "abr-hou") use it.
            elapsed_s: Seconds since the last call, used only by ``drain``. By default 0, as at a node's first tick.

        Returns:
            The expected rate of each session in bit/s: its maximum send rate until the next interval.

        Raises:
            ValueError: An argument is invalid; the message has its name, position and limit.
        """
        return self._core.allocate(
            float(capacity_bps),
            numbers("measured_bps", measured_bps),
            optional_numbers("weights", weights),
            optional_numbers("demand_bps", demand_bps),
            0.0 if elapsed_s is None else float(elapsed_s),
        )

    def __repr__(self) -> str:
        """Return the name of the rule."""
        return f'<Allocator "{self._rule}">'
