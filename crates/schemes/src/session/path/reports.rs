//! Feedback in reports, of which a round trip may have less than one.

use fairwave_units::Duration;

use super::super::bbr::{BETA, Model};

/// Minimum time between reports of arrivals; zero if each packet is acknowledged immediately.
///
/// On a path with a shorter round trip the window is at least what the path delivers between two reports: reported
/// round-trip times exclude the time that a packet waits for its report. The draft expects an acknowledgement per packet
/// or two.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reports {
    every: Duration,
}

impl Reports {
    pub(super) fn new(every: Duration) -> Self {
        Self { every }
    }

    /// Minimum round-trip time of a bandwidth-delay product: twice that product is the window.
    pub(super) fn floor_rtt(self) -> Duration {
        Duration::from_nanos(self.every.as_nanos() / 2)
    }

    /// Bytes that the path delivers between two reports, if these take longer than a round trip.
    pub(super) fn between(self, model: &Model) -> u64 {
        let is_long = model.min_rtt.least().is_some_and(|rtt| rtt < self.every);
        // The cast saturates.
        if is_long { (model.bandwidth.max().as_bps() / 8.0 * self.every.as_secs_f64()) as u64 } else { 0 }
    }

    /// A probe lost too much: its bound is at least what the draft keeps of the bytes between two reports.
    pub(super) fn raise(self, model: &mut Model) {
        let least = (self.between(model) as f64 * BETA) as u64;
        model.long_term.set(model.long_term.bytes().map(|bound| bound.max(least)));
    }
}
