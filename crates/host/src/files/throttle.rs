//! No faster than a user says, at the end that asks.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::{Duration, Instant};

use fairwave_units::Rate;

use super::TREE;
use crate::session::{Session, SessionStats};

/// Asks for bytes of files as fast as they may come. A source sends what it was asked for and nothing else, so that no more
/// comes, whatever it could do.
#[derive(Debug)]
pub(crate) struct Throttle {
    limit: Option<Rate>,
    waiting: VecDeque<Range<u64>>,
    credit: f64,
    since: Instant,
}

/// So much is asked for at once.
const PART: u64 = 64 << 10;
/// So much may be asked for after nothing was: a part at the least.
const BURST: Duration = Duration::from_millis(50);
/// Of the bytes of packets, as long as there is nothing to measure: 1200 bytes with some 60 of headers.
const SHARE: f64 = 0.95;

impl Throttle {
    pub(crate) fn new(limit: Option<Rate>) -> Self {
        Self { limit, waiting: VecDeque::new(), credit: 0.0, since: Instant::now() }
    }

    /// A range is wanted when it is its turn.
    pub(crate) fn want(&mut self, session: &Session, range: Range<u64>) {
        if self.limit.is_none() {
            session.want(TREE, range);
        } else {
            self.waiting.push_back(range);
        }
    }

    /// Asks for what may come by now. When to come again, if there is more.
    pub(crate) fn ask(&mut self, session: &Session) -> Option<Duration> {
        let limit = self.limit?;
        let bytes_per_s = limit.as_bps() / 8.0 * share(&session.stats());
        for range in self.take(bytes_per_s, self.since.elapsed()) {
            session.want(TREE, range);
        }
        self.since = Instant::now();
        (!self.waiting.is_empty()).then_some(BURST / 5)
    }

    fn take(&mut self, bytes_per_s: f64, elapsed: Duration) -> Vec<Range<u64>> {
        let most = (bytes_per_s * BURST.as_secs_f64()).max(PART as f64);
        self.credit = (self.credit + bytes_per_s * elapsed.as_secs_f64()).min(most);
        let mut taken = Vec::new();
        while let Some(range) = self.waiting.front_mut() {
            let length = (range.end - range.start).min(PART);
            if self.credit < length as f64 {
                break;
            }
            self.credit -= length as f64;
            taken.push(range.start..range.start + length);
            range.start += length;
            if range.is_empty() {
                self.waiting.pop_front();
            }
        }
        taken
    }
}

/// The share of a packet's bytes that are a stream's.
fn share(stats: &SessionStats) -> f64 {
    if stats.received_wire_bytes < 1 << 20 {
        return SHARE;
    }
    (stats.received_bytes as f64 / stats.received_wire_bytes as f64).clamp(0.5, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn take__as_much_as_the_rate_allows() {
        let mut throttle = Throttle::new(Some(Rate::mbps(8.0)));
        throttle.waiting.extend([0..1_000_000, 5_000_000..5_000_010, 6_000_000..7_000_000]);
        // 1 MB/s: 65 536 bytes take 66 ms.
        assert_eq!(throttle.take(1e6, Duration::from_millis(60)), []);
        let first = throttle.take(1e6, Duration::from_millis(6));
        assert!(first.len() == 1 && first[0] == (0..65_536));
        let mut taken = 65_536;
        for _ in 0..100 {
            taken +=
                throttle.take(1e6, Duration::from_millis(10)).iter().map(|range| range.end - range.start).sum::<u64>();
        }
        // One second more brings 10^6 bytes, but for a part that is not full.
        assert!((1_000_000..=1_066_000).contains(&taken), "{taken}");
    }

    #[test]
    fn take__a_pause_is_followed_by_no_burst() {
        let mut throttle = Throttle::new(Some(Rate::mbps(8.0)));
        throttle.waiting.push_back(0..100_000_000);
        let taken: u64 = throttle.take(1e7, Duration::from_secs(30)).iter().map(|range| range.end - range.start).sum();
        // 50 ms of 10 MB/s are 500 000 bytes: seven parts.
        assert_eq!(taken, 7 * PART);
    }
}
