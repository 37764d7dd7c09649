//! Whether the window limits a sender.

/// Use of the window by round trips: Linux's `tcp_cwnd_validate`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WindowUsage {
    /// Whether the window stopped an attempt to send in this round trip.
    pub(super) is_limited: bool,
    /// Maximum packets outstanding in this round trip.
    pub(super) most_packets: u64,
    /// The first number of the next round trip.
    pub(super) round_end: u64,
}

impl WindowUsage {
    /// Records the end of an attempt to send: `next` is the next new number and `outstanding` the packets in flight.
    pub(super) fn note(&mut self, is_limited: bool, una: u64, next: u64, outstanding: u64) {
        if una >= self.round_end || is_limited || (!self.is_limited && outstanding > self.most_packets) {
            *self = Self { is_limited, most_packets: outstanding, round_end: next };
        }
    }

    /// Whether the window may grow: it limits the session, or slow start has not yet reached twice its use, so that an
    /// application with a steady rate gets it within some round trips.
    pub(super) fn lets_grow(&self, window_packets: f64, is_slow_start: bool) -> bool {
        self.is_limited || (is_slow_start && window_packets < 2.0 * self.most_packets as f64)
    }
}
