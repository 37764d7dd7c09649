"""One window-based session's rule by itself."""

from __future__ import annotations

from fairwave import _core

_OF_THE_SENDER = frozenset({"sack", "delayed_ack", "pacing", "max_burst", "min_rto", "send_jitter"})


class Controller:
    """A session's window rule by itself, without a network: for study and for plots.

    It is the very rule that the packet model runs, with a clock. The window counts as full all the time, and recovery
    is over as soon as it begins, so that every acknowledgement counts.

    A subclass is a rule of your own, to be given to `simulate` and `sweep` (``schemes={"mine": MyRule}``): override
    ``on_ack``, ``on_loss`` or ``on_timeout``, and set ``window_packets``; the rest is the built-in rule's.

    Args:
        scheme: A window-based scheme ("newreno", the default, "cubic", ...): one of `schemes` with the options
            ``initial_window`` and ``pacing``. By itself, "sack" is "newreno": what was lost is the sender's business.
        initial_window_packets: First window in packets, from 1; by default the option ``initial_window``, 2 packets.
        initial_ssthresh_packets: Where slow start ends, in packets, from 1; by default with the first loss.
        options: The scheme's options, as in a scenario's ``[options]``: numbers, or texts with a unit
            (``max_window="64 packets"``). See `schemes` for names and defaults. Those of the sender ("sack",
            "delayed_ack", "pacing", "max_burst", "min_rto", "send_jitter") have nothing to act on here.

    Raises:
        ValueError: The scheme has no window rule, or an argument or option is not what it must be.

    Example:
        A loss at 1000 packets: BIC keeps 7/8, then adds 32 packets a round trip until 1000 is near.

        >>> import fairwave as fw
        >>> bic = fw.Controller("bic", initial_window_packets=1000, s_max=32)
        >>> bic.on_loss()
        >>> bic.window_packets
        875.0
        >>> bic.on_ack(acked_packets=875)
        >>> bic.window_packets
        907.0
    """

    def __init__(
        self,
        scheme: str = "newreno",
        initial_window_packets: float | None = None,
        initial_ssthresh_packets: float = float("inf"),
        **options: float | bool | str,
    ) -> None:
        """Make a session at time zero."""
        for name in sorted(_OF_THE_SENDER & options.keys()):
            raise ValueError(
                f'option "{name}": a rule by itself has no sender\nhint: fairwave.simulate() runs it with one'
            )
        if initial_window_packets is not None and "initial_window" in options:
            raise ValueError(
                'option "initial_window": initial_window_packets says the same\nhint: leave one of them out'
            )
        self._core = _core.Controller(
            scheme,
            None if initial_window_packets is None else float(initial_window_packets),
            float(initial_ssthresh_packets),
            options,
        )
        self._scheme = scheme

    def on_ack(self, acked_packets: int = 1, rtt_s: float = 0.05, now_s: float | None = None) -> None:
        """Acknowledge packets.

        Args:
            acked_packets: Packets newly acknowledged by this one acknowledgement, from 1.
            rtt_s: Their round-trip time in seconds, above zero.
            now_s: When, in seconds, not before the call before; by default the clock advances by
                ``rtt_s * acked_packets / window_packets``, a round trip for a window.

        Raises:
            ValueError: The argument and what must stand there.
        """
        self._core.on_ack(acked_packets, float(rtt_s), None if now_s is None else float(now_s))

    def on_loss(self, in_flight_packets: int | None = None, now_s: float | None = None) -> None:
        """Detect a loss: one reduction.

        Args:
            in_flight_packets: Packets in flight at that moment, from 0; by default, the whole packets of the window.
            now_s: When, in seconds, not before the call before; by default now, by the clock.

        Raises:
            ValueError: The argument and what must stand there.
        """
        self._core.on_loss(in_flight_packets, None if now_s is None else float(now_s))

    def on_timeout(self) -> None:
        """Let the retransmission timer run out now, with a full window in flight."""
        self._core.on_timeout()

    @property
    def window_packets(self) -> float:
        """The window in packets, from 1. May be set; the rule keeps it within ``max_window`` and its own least."""
        return self._core.window_packets

    @window_packets.setter
    def window_packets(self, window_packets: float) -> None:
        self._core.window_packets = float(window_packets)

    @property
    def ssthresh_packets(self) -> float:
        """Where slow start ends, in packets; inf before the first loss."""
        return self._core.ssthresh_packets

    @property
    def now_s(self) -> float:
        """Time of the clock in seconds."""
        return self._core.now_s

    def __repr__(self) -> str:
        """Say which rule it is, and its window."""
        return f'<Controller "{self._scheme}": {self.window_packets:g} packets>'
