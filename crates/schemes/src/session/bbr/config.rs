//! What a model of a path begins with, and its constants.

use fairwave_units::{Bytes, Duration};

/// How [`Bbr`](super::Bbr) begins, and its constants; those of the draft as defaults.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BbrConfig {
    /// A full packet, as the driver counts bytes.
    pub packet: Bytes,
    /// The window before anything is known of the path.
    pub initial_window: Bytes,
    /// Whether the start goes by the window, which knows what arrived at once, and not by samples alone, which know it a
    /// round trip later.
    pub starts_by_window: bool,
    /// Whether news come in reports of many packets, and losses so late that a probe may be over for a round trip.
    pub is_told_late: bool,
    /// The path's round-trip time, if it is known before the first packet.
    pub initial_rtt: Option<Duration>,
    /// Where it is not: in what time the first window goes. A guess, and nothing else is made of it.
    pub guessed_rtt: Option<Duration>,
    /// What arrives is reported no more often than this; zero where each packet is acknowledged at once. On a path with a
    /// shorter round trip the window is at least what the path delivers between two reports: round trips are told without
    /// the time that a packet waits for its report.
    pub report_every: Duration,
    /// Where its random numbers begin: models with one seed draw alike.
    pub seed: u64,
    /// What is kept of the bounds after a round trip with loss, at least (BBR s2.8, Beta).
    pub beta: f64,
    /// Share of the long-term bound that is left to others (BBR s2.8, Headroom).
    pub headroom: f64,
    /// How long a least round-trip time is believed (BBR s2.16.1).
    pub min_rtt_window: Duration,
    /// A model that saw no lower round-trip time for so long sends little for a moment (BBR s2.16.2).
    pub probe_rtt_interval: Duration,
    /// How long that moment lasts at least (BBR s2.16.2).
    pub probe_rtt_duration: Duration,
}

impl BbrConfig {
    /// The draft's constants for packets of so many bytes, ten of which are sent at first (RFC 6928).
    pub fn new(packet: Bytes) -> Self {
        Self {
            packet,
            initial_window: Bytes::new(packet.get().saturating_mul(10)),
            starts_by_window: false,
            is_told_late: false,
            initial_rtt: None,
            guessed_rtt: None,
            report_every: Duration::ZERO,
            seed: 0,
            beta: 0.7,
            headroom: 0.15,
            min_rtt_window: Duration::from_secs(10),
            probe_rtt_interval: Duration::from_secs(5),
            probe_rtt_duration: Duration::from_millis(200),
        }
    }
}
