//! The congestion window.

/// The window in bytes, its last good value, and whether it limits sending.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    bytes: u64,
    /// The value before recovery or a probe for the round-trip time (BBR s2.6, prior_cwnd).
    prior: u64,
    /// Whether it was full in this round trip, and in the previous one.
    is_full: bool,
    was_full: bool,
}

impl Window {
    pub(super) fn new(bytes: u64) -> Self {
        Self { bytes, prior: 0, is_full: false, was_full: false }
    }

    pub(crate) fn bytes(self) -> u64 {
        self.bytes
    }

    pub(crate) fn set(&mut self, bytes: u64) {
        self.bytes = bytes;
    }

    /// A packet is sent: whether another one of its size would not have fitted.
    pub(super) fn on_sent(&mut self, in_flight: u64, packet: u64) {
        self.is_full |= in_flight.saturating_add(packet) > self.bytes;
    }

    /// A round trip starts.
    pub(super) fn on_round(&mut self) {
        (self.was_full, self.is_full) = (self.is_full, false);
    }

    /// BBR s2.2, C.is_cwnd_limited.
    pub(crate) fn is_limit(self) -> bool {
        self.is_full || self.was_full
    }

    /// BBR s5.6.4.4, SaveCwnd; `is_reduced` in recovery and in a probe for the round-trip time.
    pub(super) fn save(&mut self, is_reduced: bool) {
        self.prior = if is_reduced { self.prior.max(self.bytes) } else { self.bytes };
    }

    /// BBR s5.6.4.4, RestoreCwnd.
    pub(super) fn restore(&mut self) {
        self.bytes = self.bytes.max(self.prior);
    }
}
