//! Whether to make files durable one by one, or with all that their file system holds.

use std::time::Duration;

/// Chooses the cheaper way to sync by the recent cost of each.
///
/// For many small files one `syncfs` is cheaper by an order of magnitude; but it also waits for the writes of other
/// processes, which can be any amount.
#[derive(Debug, Default)]
pub(crate) struct SyncChoice {
    /// Recent seconds per file: one by one, and together.
    costs: [Option<f64>; 2],
}

/// Ways to sync files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SyncWay {
    OneByOne,
    Together,
}

/// Initial cost of a file one by one, seconds: measured with ext4 on a fast disk.
const ONE_BY_ONE_S: f64 = 0.000_25;
/// An expensive way is tried again when its cost has decayed to this share.
const FORGETS: f64 = 0.95;

impl SyncChoice {
    /// The cheaper way.
    pub(crate) fn way(&self) -> SyncWay {
        let one_by_one = self.costs[0].unwrap_or(ONE_BY_ONE_S);
        if self.costs[1].is_some_and(|together| together > one_by_one) { SyncWay::OneByOne } else { SyncWay::Together }
    }

    /// Records the duration of syncing this many files.
    pub(crate) fn on_done(&mut self, way: SyncWay, files: usize, took: Duration) {
        let [this, other] = if way == SyncWay::OneByOne { [0, 1] } else { [1, 0] };
        self.costs[this] = Some(took.as_secs_f64() / files.max(1) as f64);
        self.costs[other] = self.costs[other].map(|cost| cost * FORGETS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn way__is_the_cheaper_one_and_the_other_is_tried_again() {
        let mut choice = SyncChoice::default();
        assert_eq!(choice.way(), SyncWay::Together);
        choice.on_done(SyncWay::Together, 2000, Duration::from_millis(30));
        assert_eq!(choice.way(), SyncWay::Together);
        // Somebody else writes gigabytes: 5 s are more than 2000 x 0.25 ms.
        choice.on_done(SyncWay::Together, 2000, Duration::from_secs(5));
        assert_eq!(choice.way(), SyncWay::OneByOne);
        let mut turns = 0;
        while choice.way() == SyncWay::OneByOne {
            choice.on_done(SyncWay::OneByOne, 2000, Duration::from_millis(500));
            turns += 1;
        }
        // 0.95^45 = 0.0994 < 0.1 = 500 ms / 5 s < 0.95^44.
        assert_eq!(turns, 45);
    }
}
