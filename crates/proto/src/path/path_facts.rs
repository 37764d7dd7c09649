//! Facts about a session's path at one end.

use std::collections::VecDeque;

use fairwave_units::{Duration, Rate, Time};

/// Facts about a session's path at one end, as of now: about the outgoing direction at a source, about the incoming one
/// at an end that is only a sink.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PathFacts {
    /// The least round-trip time since the session started, or since its other end moved.
    pub least_rtt: Option<Duration>,
    /// The smoothed one (RFC 9002 s5.3).
    pub smoothed_rtt: Option<Duration>,
    /// The last sample of it.
    pub latest_rtt: Option<Duration>,
    /// At a sink: for how long packets waited on their way at least in the last control interval, by one-way delays,
    /// above the least of the last five to ten seconds.
    pub waiting: Option<Duration>,
    /// Packets since the session started.
    pub all: PathCounts,
    /// Packets of the last ten seconds.
    pub recent: PathCounts,
    /// Period of [`PathFacts::recent`]: less than ten seconds if the session is younger.
    pub recent_span: Duration,
    /// Packets that came later than one that was sent after them, since the session started; `None` if they are not
    /// counted.
    pub late_packets: Option<u64>,
    /// At a source: how late, of the last ten to twenty seconds. The most that is known for certain.
    pub lateness: Option<Duration>,
    /// Delivery rate of the last second, as IP packets: `None` in a session's first quarter of a second.
    pub delivery_rate: Option<Rate>,
}

/// Counts of a session's packets by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathCounts {
    /// Those that arrived.
    pub arrived: u64,
    /// Those of them that came later than one that was sent after them: at a source those that a report missed.
    pub late: u64,
    /// Those that were lost, and have not come after all: at a source as far as it can tell from its sink's reports, at
    /// a sink those that it misses.
    pub lost: u64,
    /// Those of the first that arrived with a router's mark of congestion (ECN).
    pub marked: u64,
    /// Bytes of IP packets that arrived.
    pub arrived_bytes: u64,
}

/// Counts at moments of the last ten seconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct PathHistory {
    /// At least [`SLICE`] apart, the oldest first.
    moments: VecDeque<(Time, PathCounts)>,
}

/// Min distance of two moments, so that there are at most 40.
const SLICE: Duration = Duration::from_millis(250);
/// How far back recent counts go.
const SPAN: Duration = Duration::from_secs(10);
/// Of the delivery rate.
const SECOND: Duration = Duration::from_secs(1);

impl PathFacts {
    /// For how long packets wait in queues on the way there and back: by how much the round-trip time is above the
    /// least one.
    pub fn queueing(&self) -> Option<Duration> {
        let (smoothed, least) = (self.smoothed_rtt?, self.least_rtt?);
        Some(Duration::from_nanos(smoothed.as_nanos().saturating_sub(least.as_nanos())))
    }
}

impl PathCounts {
    /// The share of packets that were lost, of those whose fate is known.
    pub fn loss(&self) -> Option<f64> {
        let all = self.arrived.saturating_add(self.lost);
        (all > 0).then(|| self.lost as f64 / all as f64)
    }

    /// The share of packets that came late.
    pub fn late_share(&self) -> Option<f64> {
        (self.arrived > 0).then(|| self.late as f64 / self.arrived as f64)
    }

    /// The share of packets that came with a mark.
    pub fn marks(&self) -> Option<f64> {
        (self.arrived > 0).then(|| self.marked as f64 / self.arrived as f64)
    }

    /// The counts since then. Packets that were declared lost may have arrived.
    fn since(self, before: Self) -> Self {
        Self {
            arrived: self.arrived.saturating_sub(before.arrived),
            late: self.late.saturating_sub(before.late),
            lost: self.lost.saturating_sub(before.lost),
            marked: self.marked.saturating_sub(before.marked),
            arrived_bytes: self.arrived_bytes.saturating_sub(before.arrived_bytes),
        }
    }
}

impl PathHistory {
    /// Records the counts of packets so far. Call it more than four times a second while they change.
    #[inline]
    pub(crate) fn note(&mut self, now: Time, all: PathCounts) {
        if self.moments.back().is_none_or(|(at, _)| now.since(*at) >= SLICE) {
            self.push(now, all);
        }
    }

    fn push(&mut self, now: Time, all: PathCounts) {
        while self.moments.get(1).is_some_and(|(at, _)| now.since(*at) >= SPAN) {
            self.moments.pop_front();
        }
        self.moments.push_back((now, all));
    }

    /// Counts of the last ten seconds, and their period.
    pub(crate) fn recent(&self, now: Time, all: PathCounts) -> (PathCounts, Duration) {
        let begin = self.moments.iter().rev().find(|(at, _)| now.since(*at) >= SPAN).or(self.moments.front());
        begin.map_or_else(Default::default, |(at, before)| (all.since(*before), now.since(*at)))
    }

    /// Delivery rate of the last second.
    pub(crate) fn delivery_rate(&self, now: Time, all: PathCounts) -> Option<Rate> {
        let begin = self.moments.iter().rev().find(|(at, _)| now.since(*at) >= SECOND).or(self.moments.front());
        let (at, before) = begin.filter(|(at, _)| now.since(*at) >= SLICE)?;
        let bits = all.since(*before).arrived_bytes as f64 * 8.0;
        Some(Rate::nearest_bps(bits / now.since(*at).as_secs_f64()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    /// Packets of 1250 bytes, `lost` of them lost.
    fn counts(packets: u64, lost: u64) -> PathCounts {
        PathCounts { arrived: packets - lost, late: 0, lost, marked: 0, arrived_bytes: (packets - lost) * 1250 }
    }

    #[test]
    fn recent__is_of_the_last_ten_seconds() {
        let mut history = PathHistory::default();
        // 1000 packets a second for 20 s; in the first 5 s a tenth is lost.
        let at = |time: u64| counts(time, time.min(5000) / 10);
        let mut found = Vec::new();
        for time in (0..=20_000).step_by(50) {
            history.note(ms(time), at(time));
            if [0, 5000, 10_000, 12_500, 15_000, 20_000].contains(&time) {
                found.push(history.recent(ms(time), at(time)));
            }
        }
        let recent = [(0, 0), (5000, 500), (10_000, 500), (10_000, 250), (10_000, 0), (10_000, 0)];
        let span = [0, 5, 10, 10, 10, 10].map(Duration::from_secs);
        let expected: Vec<_> = recent.map(|(packets, lost)| counts(packets, lost)).into_iter().zip(span).collect();
        assert_eq!(found, expected);
        assert_eq!((counts(0, 0).loss(), counts(5000, 500).loss()), (None, Some(0.1)));
        assert!(history.moments.len() <= 42, "{}", history.moments.len());
        // After a rest of a minute there is nothing to tell.
        history.note(ms(80_000), at(20_000));
        assert_eq!(history.recent(ms(80_000), at(20_000)).0, counts(0, 0));
    }

    #[test]
    fn delivery_rate__is_what_arrived_in_the_last_second() {
        let mut history = PathHistory::default();
        let rate = |history: &PathHistory, time, packets| history.delivery_rate(ms(time), counts(packets, 0));
        history.note(ms(0), counts(0, 0));
        assert_eq!(rate(&history, 200, 200), None);
        // 1000 packets a second of 10 000 bits.
        for time in (0..=3000).step_by(50) {
            history.note(ms(time), counts(time, 0));
        }
        assert_eq!(rate(&history, 3000, 3000), Some(Rate::mbps(10.0)));
        // Nothing came for half a second.
        assert_eq!(rate(&history, 3500, 3000), Some(Rate::mbps(5.0)));
        assert_eq!(rate(&history, 5000, 3000), Some(Rate::ZERO));
    }

    #[test]
    fn queueing__is_the_smoothed_above_the_least() {
        let [least, smoothed] = [60, 85].map(Duration::from_millis);
        let facts = PathFacts { least_rtt: Some(least), smoothed_rtt: Some(smoothed), ..PathFacts::default() };
        assert_eq!(facts.queueing(), Some(Duration::from_millis(25)));
        assert_eq!(PathFacts::default().queueing(), None);
    }
}
