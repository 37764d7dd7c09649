"""One window-based session's rule by itself."""

from __future__ import annotations

from fairwave import _core

_OF_THE_SENDER = frozenset({"sack", "delayed_ack", "pacing", "max_burst", "min_rto", "send_jitter"})


class Controller:
    """The window rule of one session without a network, for study and plots.

    It is the rule of the packet model, with its own clock. The window always counts as full, and recovery ends at once,
    so every acknowledgement counts.

    To define your own rule for `simulate` and `sweep` (``schemes={"mine": MyRule}``), override ``on_ack``, ``on_loss``
    or ``on_timeout`` in a subclass and set ``window_packets``; the built-in rule does the rest.

    Args:
        scheme: A window-based scheme ("newreno", the default, "cubic", ...): one of `schemes` with the options
            ``initial_window`` and ``pacing``. Here "sack" equals "newreno", because loss recovery is part of the
            sender.
        initial_window_packets: First window in packets, from 1; by default the option ``initial_window``, 2 packets.
        initial_ssthresh_packets: Slow-start threshold in packets, from 1; by default slow start ends with the first
            loss.
        options: The scheme's options, as in a scenario's ``[options]``: numbers, or strings with a unit
            (``max_window="64 packets"``). See `schemes` for names and defaults. Options of the sender ("sack",
            "delayed_ack", "pacing", "max_burst", "min_rto", "send_jitter") are not supported.

    Raises:
        ValueError: The scheme has no window rule, or an argument or option is invalid.

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
                f'option "{name}": not supported by Controller, which has no sender\nhint: use fairwave.simulate()'
            )
        if initial_window_packets is not None and "initial_window" in options:
            raise ValueError('option "initial_window": same as initial_window_packets\nhint: omit one of them')
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
            now_s: Time in seconds, not earlier than in the previous call; by default the clock advances by
                ``rtt_s * acked_packets / window_packets``, a round trip for a window.

        Raises:
            ValueError: An argument is invalid; the message has its name and limit.
        """
        self._core.on_ack(acked_packets, float(rtt_s), None if now_s is None else float(now_s))

    def on_loss(self, in_flight_packets: int | None = None, now_s: float | None = None) -> None:
        """Detect a loss: one reduction.

        Args:
            in_flight_packets: Packets in flight at that moment, from 0; by default the window rounded down.
            now_s: Time in seconds, not earlier than in the previous call; by default the current time.

        Raises:
            ValueError: An argument is invalid; the message has its name and limit.
        """
        self._core.on_loss(in_flight_packets, None if now_s is None else float(now_s))

    def on_timeout(self) -> None:
        """Expire the retransmission timer now, with a full window in flight."""
        self._core.on_timeout()

    @property
    def window_packets(self) -> float:
        """The window in packets, from 1. It can be set, within the rule's minimum and ``max_window``."""
        return self._core.window_packets

    @window_packets.setter
    def window_packets(self, window_packets: float) -> None:
        self._core.window_packets = float(window_packets)

    @property
    def ssthresh_packets(self) -> float:
        """Slow-start threshold in packets; inf before the first loss."""
        return self._core.ssthresh_packets

    @property
    def now_s(self) -> float:
        """Current time of the clock in seconds."""
        return self._core.now_s

    def __repr__(self) -> str:
        """Return the name of the rule and its window."""
        return f'<Controller "{self._scheme}": {self.window_packets:g} packets>'
