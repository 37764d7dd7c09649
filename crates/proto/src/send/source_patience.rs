//! Whether what a source sends gets anywhere, by the word of its sink.

use fairwave_units::{Duration, Time};

/// A source's patience with a sink that speaks and has nothing good to say of data.
///
/// As long as a silence that is the end of a session it waits for the oldest packet's fate, and for one packet that
/// arrived among all that are lost. Then the session is to be closed: the path takes no data, or the sink does not say
/// the truth. A sink that never reports would make its source remember packet after packet, and one that reports all of
/// them lost would have them sent again, for as long as keys last.
#[derive(Clone, Debug)]
pub(crate) struct SourcePatience {
    lasts: Duration,
    una: u64,
    /// Time since which the packet `una` is the oldest whose fate is unknown; `None` without such a packet.
    oldest: Option<Time>,
    /// The first report of losses since a packet arrived, and how many were lost since then.
    lost: Option<(Time, u64)>,
}

/// Fewer packets in a row may all be lost.
const MIN_LOST: u64 = 100;

impl SourcePatience {
    pub(crate) fn new(lasts: Duration) -> Self {
        Self { lasts, una: 0, oldest: None, lost: None }
    }

    /// A packet is sent.
    #[inline]
    pub(crate) fn on_sent(&mut self, now: Time) {
        self.oldest.get_or_insert(now);
    }

    /// A report settled packets as `arrived` and `lost`; `una` is the oldest open one now, if there is one. Returns
    /// whether losses without arrivals have lasted too long.
    pub(crate) fn on_report(&mut self, now: Time, (una, is_any): (u64, bool), arrived: u64, lost: u64) -> bool {
        if una > self.una {
            (self.una, self.oldest) = (una, is_any.then_some(now));
        }
        if arrived > 0 {
            self.lost = None;
        }
        if lost == 0 || arrived > 0 {
            return false;
        }
        let (since, count) = self.lost.get_or_insert((now, 0));
        *count = count.saturating_add(lost);
        *count >= MIN_LOST && now.since(*since) >= self.lasts
    }

    /// Whether the oldest packet's fate is open for too long.
    pub(crate) fn is_stuck(&self, now: Time) -> bool {
        self.oldest.is_some_and(|since| now.since(since) >= self.lasts)
    }

    /// The sink is heard again after a silence, which is not evidence about later packets.
    pub(crate) fn on_return(&mut self, now: Time) {
        self.oldest = self.oldest.map(|_| now);
        self.lost = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn s(s: u64) -> Time {
        Time::from_secs(s)
    }

    fn progress() -> SourcePatience {
        SourcePatience::new(Duration::from_secs(30))
    }

    #[test]
    fn is_stuck__where_the_oldest_packet_is_never_settled() {
        let mut progress = progress();
        assert!(!progress.is_stuck(s(100)));
        progress.on_sent(s(100));
        // Later ones arrive; the first stays open.
        assert!(!progress.on_report(s(120), (0, true), 5, 0));
        assert!(!progress.is_stuck(s(129)) && progress.is_stuck(s(130)));
        progress.on_return(s(131));
        assert!(!progress.is_stuck(s(160)) && progress.is_stuck(s(161)));
        progress.on_report(s(161), (7, true), 1, 1);
        assert!(!progress.is_stuck(s(190)));
        // All is settled.
        progress.on_report(s(190), (9, false), 2, 0);
        assert!(!progress.is_stuck(s(1000)));
        progress.on_sent(s(2000));
        assert!(!progress.is_stuck(s(2029)));
    }

    #[test]
    fn on_report__ends_what_loses_all_for_too_long() {
        let mut progress = progress();
        let mut una = 0;
        let mut report = |at, arrived, lost| {
            una += arrived + lost;
            progress.on_report(s(at), (una, true), arrived, lost)
        };
        assert!(!report(0, 0, 99) && !report(29, 0, 1) && report(30, 0, 1));
        // One that arrives starts it again; so few that are lost say nothing.
        assert!(!report(31, 1, 1000) && !report(40, 0, 1) && !report(1000, 0, 98) && report(1001, 0, 1));
    }
}
