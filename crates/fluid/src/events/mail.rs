//! Random loss and delay of messages.

use fairwave_scenario::random::RandomStream;
use fairwave_units::Duration;

/// Random loss and delay of messages.
pub(super) struct Mail {
    loss: f64,
    late_ns: f64,
    random: RandomStream,
}

impl Mail {
    pub(super) fn new(loss: f64, late: Duration, random: RandomStream) -> Self {
        Self { loss, late_ns: late.as_nanos() as f64, random }
    }

    /// Delay of a message beyond that of the path; `None` if it is lost.
    pub(super) fn fate(&mut self) -> Option<u64> {
        if self.loss > 0.0 && self.random.unit() < self.loss {
            return None;
        }
        Some(if self.late_ns > 0.0 { (self.random.unit() * self.late_ns) as u64 } else { 0 })
    }
}
