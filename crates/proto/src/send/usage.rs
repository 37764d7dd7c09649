//! A source node's input about a session's use of its rate.

use fairwave_units::{Rate, Time};

/// A session's use in a control interval, for a node whose sessions send claims.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Bytes of all packets as IP packets: sent by a source, or come to a sink.
    pub(crate) bytes: u64,
    /// At a source: whether data wait because of a rate that end nodes granted, or that the application set.
    pub(crate) waits: bool,
}

/// For how long data of a session have waited for its rate.
///
/// A packet always waits for its turn: what counts is what waits for longer than two packets take.
#[derive(Clone, Debug)]
pub(crate) struct Backlog {
    since: Option<Time>,
    /// Whether anything was ever asked for.
    was_asked: bool,
    opened: Time,
    seen_bytes: u64,
}

/// A session of which nothing was asked yet is about to be asked: its sink has a round trip to do so. In seconds.
const FIRST_ASK_S: f64 = 1.0;

impl Backlog {
    pub(crate) fn new(now: Time) -> Self {
        Self { since: None, was_asked: false, opened: now, seen_bytes: 0 }
    }

    /// Data wait for a rate from now on, or do not.
    pub(crate) fn set(&mut self, now: Time, waits: bool) {
        self.was_asked |= waits;
        self.since = if waits { self.since.or(Some(now)) } else { None };
    }

    /// Ends a control interval; `all_bytes` is the total sent up to its end.
    pub(crate) fn usage(&mut self, now: Time, all_bytes: u64, rate: Rate, packet_bytes: u64) -> Usage {
        let bytes = all_bytes.saturating_sub(self.seen_bytes);
        self.seen_bytes = all_bytes;
        let is_expected = !self.was_asked && now.since(self.opened).as_secs_f64() < FIRST_ASK_S;
        let turn_bits = 16.0 * packet_bytes as f64;
        let is_late = |since: Time| rate.as_bps() * now.since(since).as_secs_f64() >= turn_bits;
        // Without a rate all that waits does so for one.
        let waits = self.since.is_some_and(|since| rate == Rate::ZERO || is_late(since));
        Usage { bytes, waits: waits || is_expected }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn usage__a_packet_that_waits_for_its_turn_is_no_backlog() {
        let mut backlog = Backlog::new(ms(0));
        // 8 Mb/s: a packet of 1000 B takes 1 ms.
        let mut at = |time, waits, bytes, mbps| {
            backlog.set(ms(time), waits);
            backlog.usage(ms(time), bytes, Rate::mbps(mbps), 1000)
        };
        assert!(at(10, false, 0, 8.0).waits); // nothing was asked for yet
        assert_eq!(at(20, true, 500, 8.0), Usage { bytes: 500, waits: false });
        assert!(!at(21, true, 500, 8.0).waits);
        assert_eq!(at(22, true, 1500, 8.0), Usage { bytes: 1000, waits: true });
        assert!(!at(30, false, 1500, 8.0).waits);
        assert!(at(30, true, 1500, 0.0).waits);
    }

    #[test]
    fn usage__a_session_that_is_asked_for_nothing_wants_nothing() {
        let mut backlog = Backlog::new(ms(0));
        assert!(backlog.usage(ms(999), 0, Rate::ZERO, 1000).waits);
        assert!(!backlog.usage(ms(1000), 0, Rate::ZERO, 1000).waits);
    }
}
