//! Parameters of a sender.

use fairwave_units::Duration;

use crate::rtt::MinRto;

/// Parameters of a sender.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SenderConfig {
    /// Whether acknowledgements carry blocks (RFC 6675) or not (RFC 6582).
    pub(crate) sack: bool,
    /// Maximum packets in flight: the receiver's window.
    pub(crate) max_window_packets: u64,
    /// Minimum retransmission time-out.
    pub(crate) min_rto: MinRto,
    /// Time-out before the first round-trip time is known.
    pub(crate) initial_rto: Duration,
    /// Maximum window, in packets, after an idle time longer than a time-out (RFC 5681 s4.1); `None` keeps the window.
    pub(crate) restart_window_packets: Option<f64>,
    /// Packets to deliver.
    pub(crate) size_packets: u64,
    /// Whether the window is spread over the round-trip time.
    pub(crate) pacing: bool,
    /// Bytes of a data packet on the wire.
    pub(crate) packet_bytes: u32,
    pub(crate) repair: Repair,
    /// Time for which the receiver may hold an acknowledgement back.
    pub(crate) max_ack_delay: Duration,
}

/// Ways of repairing losses beyond the defaults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Repair {
    /// Proportional rate reduction (RFC 9937).
    pub(crate) prr: bool,
    /// Losses by time, and probes (RFC 8985).
    pub(crate) rack: bool,
    /// Cuts for losses that were none are undone.
    pub(crate) undo: bool,
}
