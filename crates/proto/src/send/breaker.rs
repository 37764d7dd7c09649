//! A source's reaction to far too many losses on a dedicated path.

use fairwave_units::{Duration, Rate, Time};

use crate::wire::codec::CloseReason;

/// A circuit breaker (RFC 8084) for a path whose rate only end nodes govern: if the allocated rate does not get
/// through, the path is not dedicated as declared.
///
/// Losses are counted over seconds, each longer if 100 packets take longer to settle. A second with more than 20 % lost
/// halves the rate; so does the next one. Once ten seconds have been such, the session is closed. A second with less
/// doubles the rate again, until nothing is left of the halvings.
///
/// It needs no timer: it looks at the time when packets are settled. When none are, it is
/// [`Silence`](crate::send::silence::Silence) that acts.
#[derive(Clone, Debug)]
pub(crate) struct Breaker {
    /// When the second started.
    since: Time,
    settled: u64,
    lost: u64,
    /// When the first of the bad seconds in a row started.
    bad_since: Option<Time>,
    halvings: u32,
    /// The rate before the first halving.
    before: Rate,
}

/// Packets that tell a share of losses.
const MIN_PACKETS: u64 = 100;

/// Length of a period in which losses are counted.
const SECOND: Duration = Duration::from_secs(1);
/// Bad periods in a row for this long close the session.
const CLOSES_AFTER: Duration = Duration::from_secs(10);
/// Share of lost packets above which a period is bad. Paths that are not overloaded lose far less.
const MAX_LOSS: f64 = 0.2;
/// More would make the rate negligible.
const MAX_HALVINGS: u32 = 20;

impl Breaker {
    /// A session starts.
    pub(crate) fn new(now: Time) -> Self {
        Self { since: now, settled: 0, lost: 0, bad_since: None, halvings: 0, before: Rate::ZERO }
    }

    /// `settled` packets are settled, `lost` of them lost, at a session that has had `rate`: returns a reason to close
    /// it, if any.
    pub(crate) fn on_settled(&mut self, now: Time, settled: u64, lost: u64, rate: Rate) -> Option<CloseReason> {
        self.settled = self.settled.saturating_add(settled);
        self.lost = self.lost.saturating_add(lost);
        if now.since(self.since) < SECOND || self.settled < MIN_PACKETS {
            return None;
        }
        let is_bad = self.lost as f64 > MAX_LOSS * self.settled as f64;
        if is_bad {
            self.bad_since.get_or_insert(self.since);
            if self.halvings == 0 {
                self.before = rate;
            }
            self.halvings = (self.halvings + 1).min(MAX_HALVINGS);
        } else {
            self.bad_since = None;
            self.halvings = self.halvings.saturating_sub(1);
        }
        (self.since, self.settled, self.lost) = (now, 0, 0);
        self.bad_since.filter(|since| now.since(*since) >= CLOSES_AFTER).map(|_| CloseReason::Path)
    }

    /// `packets` that were judged lost arrived after all.
    pub(crate) fn on_late(&mut self, packets: u64) {
        self.lost = self.lost.saturating_sub(packets);
    }

    /// Packets settled now were lost in a silence, which has had its own answer: the second starts again, and so does
    /// the row.
    pub(crate) fn pass_over(&mut self, now: Time) {
        (self.since, self.settled, self.lost, self.bad_since) = (now, 0, 0, None);
    }

    /// The most that may be sent because of it.
    pub(crate) fn cap(&self) -> Option<Rate> {
        (self.halvings > 0).then(|| self.before * libm::scalbn(1.0, -self.halvings.cast_signed()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    /// Reports each 10 ms about 10 packets from `from` to `to`, of which `lost` were lost.
    fn reports(breaker: &mut Breaker, from: u64, to: u64, lost: u64) -> Option<CloseReason> {
        (from + 10..=to).step_by(10).find_map(|at| breaker.on_settled(ms(at), 10, lost, Rate::mbps(80.0)))
    }

    #[test]
    fn cap__halves_each_bad_second_and_doubles_each_good_one() {
        let mut breaker = Breaker::new(ms(0));
        let mut cap = |from, to, lost| {
            assert_eq!(reports(&mut breaker, from, to, lost), None);
            breaker.cap().map(Rate::as_mbps)
        };
        assert_eq!(cap(0, 3000, 2), None); // 20 % are not over 20 %
        assert_eq!(cap(3000, 3990, 3), None);
        assert_eq!(cap(3990, 4000, 3), Some(40.0));
        assert_eq!(cap(4000, 5000, 3), Some(20.0));
        assert_eq!(cap(5000, 6000, 0), Some(40.0));
        assert_eq!(cap(6000, 7000, 0), None);
    }

    #[test]
    fn on_settled__closes_after_ten_bad_seconds_in_a_row() {
        let mut breaker = Breaker::new(ms(0));
        assert_eq!(reports(&mut breaker, 0, 9000, 3), None);
        assert_eq!(reports(&mut breaker, 9000, 10_000, 0), None);
        assert_eq!(reports(&mut breaker, 10_000, 19_990, 3), None);
        assert_eq!(reports(&mut breaker, 19_990, 20_000, 3), Some(CloseReason::Path));
    }

    #[test]
    fn pass_over__forgets_what_a_silence_lost() {
        let mut breaker = Breaker::new(ms(0));
        assert_eq!(reports(&mut breaker, 0, 9000, 3), None);
        // Two seconds of it, settled in one report.
        assert_eq!(breaker.on_settled(ms(9900), 1000, 1000, Rate::mbps(80.0)), None);
        breaker.pass_over(ms(9900));
        let cap = breaker.cap();
        assert_eq!(reports(&mut breaker, 9900, 10_890, 0), None);
        assert_eq!(breaker.cap(), cap);
        // A row of ten starts.
        assert_eq!(reports(&mut breaker, 10_890, 20_880, 3), None);
    }

    #[test]
    fn on_late__what_came_after_all_was_not_lost() {
        let mut breaker = Breaker::new(ms(0));
        assert_eq!(reports(&mut breaker, 0, 990, 3), None); // 297 of 990
        breaker.on_late(100);
        assert_eq!(reports(&mut breaker, 990, 1000, 3), None);
        assert_eq!(breaker.cap(), None); // 200 of 1000 are 20 %
        // It takes nothing back of a second that is over.
        breaker.on_late(100);
        assert_eq!(reports(&mut breaker, 1000, 2000, 3), None);
        assert_eq!(breaker.cap(), Some(Rate::mbps(40.0)));
    }

    #[test]
    fn on_settled__few_packets_tell_nothing() {
        let mut breaker = Breaker::new(ms(0));
        for at in 1..100 {
            assert_eq!(breaker.on_settled(ms(at * 1000), 1, 1, Rate::mbps(1.0)), None);
            assert_eq!(breaker.cap(), None);
        }
        // The hundredth: one bad "second" of 100 s, which is more than ten.
        assert_eq!(breaker.on_settled(ms(100_000), 1, 1, Rate::mbps(1.0)), Some(CloseReason::Path));
    }
}
