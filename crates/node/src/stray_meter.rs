//! Traffic of sessions that this host no longer knows after a restart.

use fairwave_units::{Duration, Rate, Time};

/// Measures the data of sessions that are unknown here.
///
/// A host that was restarted has forgotten its grants; sources use those until they hear of it, and for at most a
/// lease. Their rate is not available for new grants. Later than two leases after the host started no honest source
/// sends any of it, and such data is ignored: flooding a host does not reduce its grants.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StrayMeter {
    until: Time,
    /// A window, what came in it, and the rate of the one before.
    since: Time,
    bytes: u64,
    before_bps: f64,
}

/// Length of a window: a few control intervals of 20 ms.
const WINDOW: Duration = Duration::from_millis(100);
/// Min length of a part of a window, in seconds: a single packet gives no rate.
const MIN_PART_S: f64 = 0.01;

impl StrayMeter {
    /// The host starts, and had leases of such a length before.
    pub(crate) fn new(now: Time, lease: Duration) -> Self {
        let until = now.saturating_add(lease).saturating_add(lease);
        Self { until, since: now, bytes: 0, before_bps: 0.0 }
    }

    /// A data packet of `wire_bytes` on the wire came for an unknown session.
    pub(crate) fn on_packet(&mut self, now: Time, wire_bytes: u32) {
        if now < self.until {
            self.turn(now);
            self.bytes = self.bytes.saturating_add(u64::from(wire_bytes));
        }
    }

    /// The larger of what comes now and of what came in the window before.
    pub(crate) fn rate(&mut self, now: Time) -> Rate {
        if now >= self.until {
            return Rate::ZERO;
        }
        self.turn(now);
        let secs = now.since(self.since).as_secs_f64().max(MIN_PART_S);
        Rate::nearest_bps((self.bytes as f64 * 8.0 / secs).max(self.before_bps))
    }

    fn turn(&mut self, now: Time) {
        let span = now.since(self.since);
        if span >= WINDOW {
            self.before_bps = self.bytes as f64 * 8.0 / span.as_secs_f64();
            (self.since, self.bytes) = (now, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn rate__is_what_comes_or_came_a_window_ago_and_nothing_after_two_leases() {
        let mut meter = StrayMeter::new(ms(0), Duration::from_secs(4));
        assert_eq!(meter.rate(ms(5)), Rate::ZERO);
        // 1000 B each millisecond: 8 Mb/s, from the first 20 ms on.
        for at in 0..20 {
            meter.on_packet(ms(at), 1000);
        }
        assert_eq!(meter.rate(ms(20)), Rate::mbps(8.0));
        for at in 20..200 {
            meter.on_packet(ms(at), 1000);
        }
        assert!((meter.rate(ms(200)).as_mbps() - 8.0).abs() < 0.1);
        // They have stopped: that counts for a window more.
        assert!(meter.rate(ms(250)).as_mbps() > 7.9);
        assert_eq!(meter.rate(ms(420)), Rate::ZERO);
        for at in 7990..8100 {
            meter.on_packet(ms(at), 9000);
        }
        assert_eq!(meter.rate(ms(8100)), Rate::ZERO);
    }
}
