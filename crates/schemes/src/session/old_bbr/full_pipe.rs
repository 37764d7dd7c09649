//! Detection of a full path: the delivery rate stops growing.

use fairwave_units::Rate;

/// Looks for a plateau of the delivery rate over round trips with no other limit (BBR s5.3.1.2).
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct FullPipe {
    /// The rate that growth is compared with.
    base: Rate,
    rounds: u32,
    /// Whether the path was full since the last search started.
    pub(in super::super) is_now: bool,
    /// Whether it was ever full.
    pub(in super::super) was_reached: bool,
}

/// A round trip whose rate is below this multiple counts as one without growth.
const GROWTH: f64 = 1.25;
/// Consecutive round trips without growth that show a full path (BBR s5.3.1.2).
const ROUNDS: u32 = 3;

impl FullPipe {
    pub(in super::super) fn new() -> Self {
        Self { base: Rate::ZERO, rounds: 0, is_now: false, was_reached: false }
    }

    /// Starts a search, from this rate on.
    pub(in super::super) fn look(&mut self, base: Rate) {
        *self = Self { base, rounds: 0, is_now: false, was_reached: self.was_reached };
    }

    /// Ends a round trip with this sample, limited only by the path.
    pub(in super::super) fn on_round(&mut self, rate: Rate) {
        if self.is_now {
            return;
        }
        if rate >= self.base * GROWTH {
            self.look(rate);
            return;
        }
        self.rounds += 1;
        self.is_now = self.rounds >= ROUNDS;
        self.was_reached |= self.is_now;
    }
}
