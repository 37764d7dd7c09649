//! Initial state and constants of a path model.

use fairwave_units::{Bytes, Duration};

/// Initial state and constants of [`Bbr`](super::Bbr); the defaults are the draft's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BbrConfig {
    /// A full packet, in the driver's unit of bytes.
    pub packet: Bytes,
    /// The window before anything is known of the path.
    pub initial_window: Bytes,
    /// Whether startup follows the window, which reacts to arrivals immediately, and not only samples, which follow a
    /// round trip later.
    pub starts_by_window: bool,
    /// Whether feedback comes in reports of many packets, and losses are reported so late that a probe may have ended a
    /// round trip earlier.
    pub is_told_late: bool,
    /// The path's round-trip time, if it is known before the first packet.
    pub initial_rtt: Option<Duration>,
    /// Otherwise the time in which the initial window is sent. A guess, used for nothing else.
    pub guessed_rtt: Option<Duration>,
    /// Minimum time between reports of arrivals; zero if each packet is acknowledged immediately. On a path with a
    /// shorter round trip the window is at least what the path delivers between two reports: reported round-trip times
    /// exclude the time that a packet waits for its report.
    pub report_every: Duration,
    /// Seed of its random numbers: models with equal seeds draw equal numbers.
    pub seed: u64,
    /// Minimum share of the bounds that is kept after a round trip with loss (BBR s2.8, Beta).
    pub beta: f64,
    /// Share of the long-term bound that is left to others (BBR s2.8, Headroom).
    pub headroom: f64,
    /// Lifetime of a minimum round-trip time (BBR s2.16.1).
    pub min_rtt_window: Duration,
    /// Time without a lower round-trip time after which the model sends little for a moment (BBR s2.16.2).
    pub probe_rtt_interval: Duration,
    /// Minimum length of that moment (BBR s2.16.2).
    pub probe_rtt_duration: Duration,
}

impl BbrConfig {
    /// The draft's constants for packets of that size, with an initial window of ten (RFC 6928).
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
