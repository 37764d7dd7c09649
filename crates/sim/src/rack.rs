//! Loss detection by time (RFC 8985): a packet is lost if one that was sent later arrived, and a reordering window has
//! passed.

use std::collections::VecDeque;

use fairwave_units::{Duration, Time};

/// Order of a sender's transmissions and of their arrivals. The scoreboard has the fates of the packets.
#[derive(Clone, Debug)]
pub(crate) struct Rack {
    /// Transmissions in the order of time, each with its number. Those that are not in flight any more are removed late.
    pub(crate) sent: VecDeque<(Time, u64)>,
    /// RACK.xmit_ts and RACK.end_seq: the packet sent last of all that arrived, by time and number.
    newest: Option<(Time, u64)>,
    /// RACK.rtt: its round-trip time.
    rtt: Duration,
    /// RACK.fack: one more than the highest number that arrived.
    highest: u64,
    /// RACK.reordering_seen.
    is_reordered: bool,
    /// RACK.reo_wnd_mult: quarters of the minimum round-trip time in the reordering window.
    quarters: u64,
    /// RACK.reo_wnd_persist: recoveries until the window is a quarter again.
    persists: u32,
    /// RACK.dsack_round: duplicates change the window again when this number is acknowledged.
    next_duplicate: Option<u64>,
    min_rtt: Duration,
    ack: AckEvent,
}

/// News of the current acknowledgement so far.
#[derive(Clone, Copy, Debug)]
struct AckEvent {
    now: Time,
    /// The time stamp that it echoes.
    stamp: Time,
    newest: Option<(Time, u64)>,
    highest: u64,
}

/// Recoveries for which an enlarged reordering window lasts (RFC 8985 s6.2 step 4).
const PERSISTS: u32 = 16;

impl Default for Rack {
    fn default() -> Self {
        Self {
            sent: VecDeque::new(),
            newest: None,
            rtt: Duration::ZERO,
            highest: 0,
            is_reordered: false,
            quarters: 1,
            persists: 0,
            next_duplicate: None,
            min_rtt: Duration::MAX,
            ack: AckEvent { now: Time::ZERO, stamp: Time::ZERO, newest: None, highest: 0 },
        }
    }
}

impl Rack {
    /// An acknowledgement arrives that echoes the send time `stamp`; `min_rtt` is the minimum before it.
    pub(crate) fn begin_ack(&mut self, now: Time, stamp: Time, min_rtt: Duration) {
        // RFC 8985 s6.2 step 1.
        self.min_rtt = min_rtt.min(now.since(stamp));
        self.ack = AckEvent { now, stamp, newest: None, highest: self.highest };
    }

    /// The acknowledgement shows that a packet arrived, whose last copy was sent at `sent`. `is_repeated`: it was sent
    /// more than once.
    pub(crate) fn on_arrived(&mut self, number: u64, sent: Time, is_repeated: bool) {
        // RFC 8985 s6.2 step 3, in any order of the packets of one acknowledgement.
        if number < self.highest && !is_repeated {
            self.is_reordered = true;
        }
        self.ack.highest = self.ack.highest.max(number + 1);
        // Step 2: an earlier copy may be the one that arrived.
        if is_repeated && (self.ack.stamp < sent || self.ack.now.since(sent) < self.min_rtt) {
            return;
        }
        self.ack.newest = self.ack.newest.max(Some((sent, number)));
    }

    /// The end of the acknowledgement's news.
    pub(crate) fn end_ack(&mut self) {
        self.highest = self.ack.highest;
        if let Some((sent, _)) = self.ack.newest {
            self.rtt = self.ack.now.since(sent);
            self.newest = self.newest.max(self.ack.newest);
        }
    }

    /// A duplicate arrived at the receiver (a DSACK): the reordering window may be too small (RFC 8985 s6.2 step 4).
    pub(crate) fn on_duplicate(&mut self, una: u64, next: u64) {
        if self.next_duplicate.is_none_or(|round| una >= round) {
            self.next_duplicate = Some(next);
            self.quarters += 1;
            self.persists = PERSISTS;
        }
    }

    /// A recovery, or one after a time-out, is over.
    pub(crate) fn end_recovery(&mut self) {
        self.persists = self.persists.saturating_sub(1);
        if self.persists == 0 {
            self.quarters = 1;
        }
    }

    /// RACK_update_reo_wnd. `is_certain`: a recovery is under way, or three packets above a hole have arrived.
    pub(crate) fn reordering_window(&self, smoothed: Duration, is_certain: bool) -> Duration {
        if !self.is_reordered && is_certain {
            return Duration::ZERO;
        }
        let window_ns = (self.min_rtt.as_nanos() / 4).saturating_mul(self.quarters);
        Duration::from_nanos(window_ns).min(smoothed)
    }

    /// Whether a packet that was sent later than this one arrived.
    pub(crate) fn is_overtaken(&self, sent: Time, number: u64) -> bool {
        self.newest.is_some_and(|newest| newest > (sent, number))
    }

    /// Time from which a packet sent at `sent` is lost.
    pub(crate) fn due(&self, sent: Time, window: Duration) -> Time {
        sent.saturating_add(self.rtt).saturating_add(window)
    }

    /// Packets sent by this time would have been answered (RFC 8985 s6.3).
    pub(crate) fn answered_by(&self, now: Time, window: Duration) -> Time {
        let span_ns = self.rtt.as_nanos().saturating_add(window.as_nanos());
        Time::from_nanos(now.as_nanos().saturating_sub(span_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn reordering_window__grows_by_a_quarter_per_round_with_duplicates() {
        let mut rack = Rack::default();
        rack.begin_ack(at(100), at(0), Duration::MAX);
        rack.on_arrived(0, at(0), false);
        rack.end_ack();
        let window = |rack: &Rack| rack.reordering_window(ms(110), false);
        assert_eq!((window(&rack), rack.reordering_window(ms(110), true)), (ms(25), Duration::ZERO));
        // After N round trips with duplicates (N + 1) min_RTT / 4, at most SRTT; once per round trip.
        for (una, next, expected) in [(10, 30, 50), (20, 40, 50), (30, 50, 75), (50, 70, 100), (70, 90, 110)] {
            rack.on_duplicate(una, next);
            assert_eq!(window(&rack), ms(expected), "at {una}");
        }
        for _ in 0..15 {
            rack.end_recovery();
        }
        assert_eq!(window(&rack), ms(110));
        rack.end_recovery();
        assert_eq!(window(&rack), ms(25));
    }

    #[test]
    fn on_arrived__below_an_earlier_acknowledgement_is_reordering() {
        let mut rack = Rack::default();
        rack.begin_ack(at(100), at(3), Duration::MAX);
        rack.on_arrived(3, at(3), false);
        // Of the same acknowledgement, newest block first.
        rack.on_arrived(1, at(1), false);
        rack.end_ack();
        assert!(!rack.is_reordered);
        rack.begin_ack(at(101), at(0), ms(97));
        rack.on_arrived(0, at(90), true);
        rack.end_ack();
        assert!(!rack.is_reordered && rack.newest == Some((at(3), 3)), "a copy may be the one that arrived");
        rack.begin_ack(at(102), at(2), ms(97));
        rack.on_arrived(2, at(2), false);
        rack.end_ack();
        assert!(rack.is_reordered);
        assert!(rack.is_overtaken(at(3), 2) && !rack.is_overtaken(at(3), 3) && !rack.is_overtaken(at(4), 0));
        // The reordered packet's round-trip time: 100 ms.
        assert_eq!((rack.due(at(2), ms(24)), rack.answered_by(at(200), ms(24))), (at(126), at(76)));
    }
}
