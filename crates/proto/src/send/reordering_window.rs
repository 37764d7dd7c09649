//! How far packets of a session may overtake each other before one of them counts as lost.

use fairwave_units::{Duration, Time};

use crate::session::rtt::Rtt;

/// The reordering window of a source (RFC 8985 s6.2, whose idea it is): a packet is lost if it has not come and one
/// that was sent later by more than this has.
///
/// It starts small, a quarter of the least round-trip time, and grows at once when a packet comes that was missing for
/// longer. It is a quarter larger than the greatest lateness of the last ten to twenty seconds, but no larger than a
/// smoothed round trip (of 10 ms at least, and 1 s at most). So a sink that reports all packets as late delays its own
/// repairs, each by one round trip.
///
/// Differs from RFC 8985, which steps up by a quarter of the round trip at each repair in vain, and forgets all after
/// 16 recoveries: here it is known by how much a packet was late, and a path whose lateness comes and goes keeps its
/// recent window.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReorderingWindow {
    /// The greatest lateness of this span, and of the one before.
    spans: [Duration; 2],
    since: Time,
}

/// Length of a span: the window follows the lateness of the last ten to twenty seconds.
const SPAN: Duration = Duration::from_secs(10);
/// Clocks and hosts make packets this late even without the network.
const LEAST: Duration = Duration::from_millis(1);
/// Even where the round trip is shorter packets may be this late.
const MIN_BOUND: Duration = Duration::from_millis(10);
/// Packets later than this are lost, however long the round trip is.
const MAX_BOUND: Duration = Duration::from_secs(1);

impl ReorderingWindow {
    /// A packet came that had been missing: one that was sent later by `lateness` was there before it.
    pub(crate) fn on_late(&mut self, now: Time, lateness: Duration) {
        self.turn(now);
        self.spans[0] = self.spans[0].max(lateness);
    }

    /// The window at `now`.
    pub(crate) fn window(&mut self, now: Time, rtt: &Rtt) -> Duration {
        self.turn(now);
        let late = self.lateness().as_nanos();
        let grown = Duration::from_nanos(late.saturating_add(late / 4));
        // RFC 8985 s6.2 step 4: a quarter of the least round trip, and no more than the smoothed one.
        rtt.min().half().half().max(LEAST).max(grown).min(bound(rtt))
    }

    /// The greatest lateness of the last ten to twenty seconds.
    pub(crate) fn lateness(&self) -> Duration {
        self.spans[0].max(self.spans[1])
    }

    fn turn(&mut self, now: Time) {
        let passed = now.since(self.since);
        if passed < SPAN {
            return;
        }
        let is_old = passed.as_nanos() >= 2 * SPAN.as_nanos();
        self.spans = [Duration::ZERO, if is_old { Duration::ZERO } else { self.spans[0] }];
        self.since = now;
    }
}

/// How long after it was sent a lost packet may still turn out to have been late: a round trip, the largest window, and
/// the same again until the report arrives.
pub(crate) fn sight(rtt: &Rtt) -> Duration {
    Duration::from_nanos(rtt.smoothed().as_nanos().saturating_add(2 * bound(rtt).as_nanos()))
}

fn bound(rtt: &Rtt) -> Duration {
    rtt.smoothed().max(MIN_BOUND).min(MAX_BOUND)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    fn rtt(ms: u64) -> Rtt {
        let mut rtt = Rtt::default();
        rtt.on_sample(Time::ZERO, Duration::from_millis(ms));
        rtt
    }

    #[test]
    fn window__is_a_quarter_of_the_round_trip_until_something_is_late() {
        let mut window = ReorderingWindow::default();
        assert_eq!(window.window(at(0), &rtt(60)), ms(15));
        assert_eq!(window.window(at(0), &rtt(2)), ms(1));
        window.on_late(at(1), ms(20));
        assert_eq!(window.window(at(1), &rtt(60)), ms(25)); // 5/4 x 20
        window.on_late(at(2), ms(8));
        assert_eq!((window.window(at(2), &rtt(60)), window.lateness()), (ms(25), ms(20)));
    }

    #[test]
    fn window__is_no_larger_than_a_round_trip() {
        let mut window = ReorderingWindow::default();
        window.on_late(at(0), ms(100_000));
        assert_eq!(window.window(at(0), &rtt(60)), ms(60));
        assert_eq!(window.window(at(0), &rtt(2)), ms(10));
        assert_eq!(window.window(at(0), &rtt(5000)), ms(1000));
    }

    #[test]
    fn window__forgets_after_ten_to_twenty_seconds() {
        let mut window = ReorderingWindow::default();
        window.on_late(at(9_000), ms(20));
        assert_eq!([10_000, 19_999].map(|now| window.window(at(now), &rtt(60))), [ms(25); 2]);
        assert_eq!(window.window(at(20_000), &rtt(60)), ms(15));
        window.on_late(at(20_000), ms(20));
        // Nothing was asked in between.
        assert_eq!(window.window(at(40_000), &rtt(60)), ms(15));
    }

    #[test]
    fn sight__is_three_round_trips_where_they_are_longer_than_10_ms() {
        assert_eq!([2, 60, 5000].map(|of| sight(&rtt(of))), [ms(22), ms(180), ms(7000)]);
    }
}
