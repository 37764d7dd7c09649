"""Control laws of links with explicit feedback."""

from __future__ import annotations

from fairwave import _core


def xcp_control(
    capacity_bps: float, interval_s: float, input_bytes: float, queue_bytes: float, avg_rtt_s: float
) -> tuple[float, float]:
    """XCP's control law for one interval of a link: the total change of the rates through it.

    The change is 0.4 of the spare bandwidth less 0.226 of the standing queue per round trip; in addition, traffic is
    shuffled (taken from and given to all sessions) up to a tenth of the total (Katabi, Handley & Rohrs 2002, Eqs. 1 and
    4, in bit/s
    as in draft-falk-xcp-spec-03, section 4.2). The links of the packet model run this law.

    Args:
        capacity_bps: Capacity of the link in bit/s.
        interval_s: Length of the interval that ended, in seconds.
        input_bytes: Bytes that arrived in the interval.
        queue_bytes: Persistent queue: bytes that waited during the whole interval.
        avg_rtt_s: Mean round-trip time of the sessions, in seconds.

    Returns:
        The two pools of feedback in bit/s, positive (total increase, in equal parts for all sessions) and negative
        (total decrease, in proportion to their rates). Both are at least zero.

    Raises:
        ValueError: An argument is not above zero, or below zero where zero is allowed (bytes), or beyond 1e18.

    Example:
        80 of 100 Mb/s, and 50 kB waited: 0.4 x 20 - 0.226 x 4 = 7.096 Mb/s more; a tenth of 80 Mb/s is 8, so the
        missing 0.904 are shuffled.

        >>> import fairwave as fw
        >>> positive, negative = fw.xcp_control(
        ...     capacity_bps=100e6, interval_s=0.1, input_bytes=1e6, queue_bytes=50e3, avg_rtt_s=0.1
        ... )
        >>> round(positive), round(negative)
        (8000000, 904000)
    """
    return _core.xcp_control(
        float(capacity_bps), float(interval_s), float(input_bytes), float(queue_bytes), float(avg_rtt_s)
    )


def aecp_control(
    rate_packets_per_s: float,
    capacity_packets_per_s: float,
    arrival_packets_per_s: float,
    queue_packets: float,
    interval_s: float = 0.1,
) -> float:
    """AECP's control law for one interval of a link: its next rate factor.

    r exp(beta T2 (1 - (Y + (q - q0) / T) / C)) with beta 1/s, T 2 s and q0 100 packets (Huang et al. 2010, Eq. 47),
    kept from one packet a second to the capacity. The links of the packet model run this law.

    Args:
        rate_packets_per_s: Rate factor r, in packets a second.
        capacity_packets_per_s: Capacity C of the link, in packets a second, from 1.
        arrival_packets_per_s: Arrival rate Y in the interval, in packets a second.
        queue_packets: Queue q at its end, in packets.
        interval_s: Length T2 of the interval, in seconds.

    Returns:
        The next rate factor, in packets a second.

    Raises:
        ValueError: An argument is not above zero, or below zero where zero is allowed (arrivals, queue), or beyond
            1e18.

    Example:
        A link at rest, then one that four fifths of its capacity reach: e^(0.1 x 0.2) = 1.0202.

        >>> import fairwave as fw
        >>> fw.aecp_control(6250, 62500, arrival_packets_per_s=62500, queue_packets=100)
        6250.0
        >>> round(fw.aecp_control(10000, 62500, arrival_packets_per_s=50000, queue_packets=100), 1)
        10202.0
    """
    return _core.aecp_control(
        float(rate_packets_per_s),
        float(capacity_packets_per_s),
        float(arrival_packets_per_s),
        float(queue_packets),
        float(interval_s),
    )
