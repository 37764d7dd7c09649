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
    integers are read in place; other threads run meanwhile and must leave the arrays alone.

    Args:
        capacity_bps: Capacity of each resource in bit/s, from 0; inf for one that limits nothing.
        sessions: A row a session: positions in `capacity_bps` of the resources that it crosses, no resource twice;
            -1 pads rows of sessions that cross fewer.
        demand_bps: Desired rate of each session in bit/s, from 0; inf for as much as there is, as is the default.
        weights: Weight of each session, above zero, by default one: at a common bottleneck, rates are as the weights.

    Returns:
        The rate of each session in bit/s, in the order of `sessions`.

    Raises:
        ValueError: The argument, the position and what must stand there; or that nothing limits a session.

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
    """A node's rule by itself: what one end node runs once per control interval, measured rates in, expected rates out.

    The order of the sessions is their identity; they may come and go between calls. A subclass that overrides
    ``allocate`` is a rule of your own, to be given to `simulate` and `sweep` (``schemes={"mine": MyRule}``).

    Args:
        rule: "gtp" (the adopted rule), "gtp-printed" (as printed in Wu 2007), "abr-charny" or "abr-hou".
        options: The rule's options, as in a scenario's ``[options]``. gtp takes ``alpha`` (share of the gap to the
            target rate that is closed per interval, 0 < alpha < 1; Wu 2007, Eq. VI.3), ``beta`` (least step, as a share
            of alpha x target rate), ``drain``, ``budget`` and ``exponential_start``. See `schemes` for their defaults.

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
                f'option "{name}": a node by itself has no clock and no handshakes\n'
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
            capacity_bps: What the rule may allocate, in bit/s.
            measured_bps: Mean rate of each session over the interval that just ended, in bit/s.
            weights: Share of each session relative to the others, above zero, by default one.
            demand_bps: Desired rate of each session in bit/s where it declares one, else inf. Only the ATM rules
                ("abr-charny", "abr-hou") look at it.
            elapsed_s: Seconds since the last call; counts for ``drain`` alone. By default 0, as at a node's first tick.

        Returns:
            The expected rate of each session in bit/s: what it may send at until the next interval.

        Raises:
            ValueError: The argument, the position and what must stand there.
        """
        return self._core.allocate(
            float(capacity_bps),
            numbers("measured_bps", measured_bps),
            optional_numbers("weights", weights),
            optional_numbers("demand_bps", demand_bps),
            0.0 if elapsed_s is None else float(elapsed_s),
        )

    def __repr__(self) -> str:
        """Say which rule it is."""
        return f'<Allocator "{self._rule}">'
