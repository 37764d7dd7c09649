//! The bottleneck of a giver.

use std::time::{Duration, Instant};

/// What a giver waits for at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hold {
    /// The bytes that were read are being sent: the network is the bottleneck.
    Nothing,
    /// The disk here, from which something is read that was asked for.
    Disk,
    /// The taker requests only hashes, and compares.
    Comparing,
    /// The taker requests nothing.
    Peer,
}

/// Time spent in each hold, so that reports do not depend on the moment of the query.
#[derive(Debug)]
pub(crate) struct Holds {
    now: Hold,
    at: Instant,
    /// In the current span, since its start, and in the previous one.
    spans: [[Duration; ALL.len()]; 2],
    from: Instant,
}

const ALL: [Hold; 4] = [Hold::Nothing, Hold::Disk, Hold::Comparing, Hold::Peer];
const SPAN: Duration = Duration::from_millis(500);

impl Holds {
    pub(crate) fn new(now: Instant) -> Self {
        Self { now: Hold::Peer, at: now, spans: [[Duration::ZERO; ALL.len()]; 2], from: now }
    }

    /// From now on it is this.
    pub(crate) fn set(&mut self, now: Instant, hold: Hold) {
        self.count(now);
        self.now = hold;
    }

    /// The hold of most of the last second, or half of one.
    pub(crate) fn most(&mut self, now: Instant) -> Hold {
        self.count(now);
        let [this, before] = &self.spans;
        let held = |hold: Hold| this[hold as usize] + before[hold as usize];
        ALL.into_iter().reduce(|most, hold| if held(hold) > held(most) { hold } else { most }).unwrap_or(self.now)
    }

    fn count(&mut self, now: Instant) {
        self.spans[0][self.now as usize] += now.saturating_duration_since(self.at);
        self.at = self.at.max(now);
        if now.saturating_duration_since(self.from) >= SPAN {
            self.spans = [[Duration::ZERO; ALL.len()], self.spans[0]];
            self.from = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most__is_what_held_for_most_of_the_last_second() {
        let begin = Instant::now();
        let at = |ms: u64| begin + Duration::from_millis(ms);
        let mut holds = Holds::new(begin);
        assert_eq!(holds.most(at(10)), Hold::Peer);
        // Of each 100 ms it reads for 70, and what it read goes in 30.
        for step in 0..20 {
            holds.set(at(10 + 100 * step), Hold::Disk);
            holds.set(at(80 + 100 * step), Hold::Nothing);
            assert_eq!(holds.most(at(81 + 100 * step)), Hold::Disk, "{step}");
        }
        holds.set(at(2000), Hold::Peer);
        assert_eq!(holds.most(at(2100)), Hold::Disk);
        assert_eq!(holds.most(at(3000)), Hold::Peer);
    }
}
