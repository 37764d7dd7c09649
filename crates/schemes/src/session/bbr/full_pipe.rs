//! Detection of a full path: the delivery rate stops growing.

use fairwave_units::Rate;

/// Looks for a plateau of the delivery rate over round trips with no other limit (BBR s5.3.1.2).
#[derive(Clone, Copy, Debug)]
pub(crate) struct FullPipe {
    /// The rate that growth is compared with.
    base: Rate,
    rounds: u32,
    /// Whether the path was full since the last search started.
    pub(crate) is_now: bool,
    /// Whether it was ever full.
    pub(crate) was_reached: bool,
}

/// A round trip whose rate is below this multiple counts as one without growth.
const GROWTH: f64 = 1.25;
/// Consecutive round trips without growth that show a full path (BBR s5.3.1.2).
const ROUNDS: u32 = 3;

impl FullPipe {
    pub(crate) fn new() -> Self {
        Self { base: Rate::ZERO, rounds: 0, is_now: false, was_reached: false }
    }

    /// Starts a search, from this rate on.
    pub(crate) fn look(&mut self, base: Rate) {
        *self = Self { base, rounds: 0, is_now: false, was_reached: self.was_reached };
    }

    /// The path is full, by other signs than its rate.
    pub(crate) fn reach(&mut self) {
        (self.is_now, self.was_reached) = (true, true);
    }

    /// Ends a round trip with this sample, limited only by the path.
    pub(crate) fn on_round(&mut self, rate: Rate) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_round__three_without_growth_by_a_quarter() {
        let mut pipe = FullPipe::new();
        for mbps in [1.0, 2.0, 2.4, 2.4, 2.5] {
            pipe.on_round(Rate::mbps(mbps)); // 2.5 is a quarter more than 2
        }
        assert!(!pipe.is_now);
        for mbps in [3.0, 3.1, 2.0] {
            assert!(!pipe.is_now);
            pipe.on_round(Rate::mbps(mbps));
        }
        assert!(pipe.is_now && pipe.was_reached);
        pipe.look(Rate::mbps(3.0));
        assert!(!pipe.is_now && pipe.was_reached);
    }
}
