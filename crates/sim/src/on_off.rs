//! A source that sends at a constant rate while it is on, and nothing while it is off.

use fairwave_scenario::random::RandomStream;
use fairwave_units::{Duration, Time};

use crate::web::exponential;

/// Draws the departures of a source's packets. On and off periods are exponential. The time left to the next packet
/// when a period ends carries over to the next one, so that the mean rate is exactly that of the on-time.
#[derive(Clone, Debug)]
pub(crate) struct OnOff {
    stream: RandomStream,
    /// On-time between packets.
    interval_ns: f64,
    /// Remainder of rounding to whole nanoseconds.
    rest_ns: f64,
    on_ns: f64,
    /// Mean off period; zero sends without pauses.
    off_ns: f64,
    /// End of the on-period.
    on_until: Time,
    next: Option<Time>,
    /// Packets leave only before this time.
    end: Time,
    number: u64,
}

impl OnOff {
    /// A source whose packets leave every `interval_s` while it is on, from `start` on. It starts in the stationary
    /// state: on with a probability of on / (on + off), anywhere between two packets.
    pub(crate) fn new(
        interval_s: f64,
        on: Duration,
        off: Duration,
        (start, end): (Time, Time),
        stream: RandomStream,
    ) -> Self {
        let (on_ns, off_ns) = (on.as_nanos() as f64, off.as_nanos() as f64);
        let (interval_ns, rest_ns, number) = (interval_s * 1e9, 0.0, 0);
        let mut source = Self { stream, interval_ns, rest_ns, on_ns, off_ns, on_until: start, next: None, end, number };
        let is_on = source.stream.uniform(0.0, on_ns + off_ns) < on_ns;
        let mut from = start;
        if off.is_zero() {
            source.on_until = Time::MAX;
        } else {
            // The rest of an exponential period is exponential as well.
            if !is_on {
                from = from.saturating_add(exponential(&mut source.stream, off_ns));
            }
            source.on_until = from.saturating_add(exponential(&mut source.stream, on_ns));
        }
        let wait_ns = source.stream.uniform(0.0, interval_ns);
        source.wait(from, wait_ns);
        source
    }

    /// Departure of the next packet; `None` if there are no more.
    pub(crate) fn next(&self) -> Option<Time> {
        self.next
    }

    /// Sends the packet of [`OnOff::next`], and returns its number.
    pub(crate) fn send(&mut self) -> u64 {
        if let Some(now) = self.next {
            self.wait(now, self.interval_ns);
        }
        self.number += 1;
        self.number - 1
    }

    /// Advances by `on_time_ns` of on-time from an instant within an on period.
    fn wait(&mut self, from: Time, on_time_ns: f64) {
        let exact_ns = on_time_ns + self.rest_ns;
        let whole_ns = exact_ns as u64;
        self.rest_ns = exact_ns - whole_ns as f64;
        let mut at = from.saturating_add(Duration::from_nanos(whole_ns));
        while at >= self.on_until && self.on_until < self.end {
            let left = at.since(self.on_until);
            let on_from = self.on_until.saturating_add(exponential(&mut self.stream, self.off_ns));
            self.on_until = on_from.saturating_add(exponential(&mut self.stream, self.on_ns));
            at = on_from.saturating_add(left);
        }
        self.next = (at < self.end).then_some(at);
    }
}

#[cfg(test)]
mod tests {
    use fairwave_scenario::random;

    use super::*;

    fn times_s(on_ms: u64, off_ms: u64, span: (u64, u64), name: &str) -> Vec<f64> {
        let (on, off) = (Duration::from_millis(on_ms), Duration::from_millis(off_ms));
        let span = (Time::from_secs(span.0), Time::from_secs(span.1));
        let mut source = OnOff::new(0.001, on, off, span, random::stream(1, name));
        let mut times_s = Vec::new();
        while let Some(next) = source.next() {
            assert_eq!(source.send(), times_s.len() as u64);
            times_s.push(next.as_secs_f64());
        }
        times_s
    }

    #[test]
    fn send__without_off_periods_is_a_constant_rate() {
        let times_s = times_s(500, 0, (2, 12), "cbr");
        assert_eq!(times_s.len(), 10_000);
        assert!(times_s.windows(2).all(|pair| (pair[1] - pair[0] - 0.001).abs() < 2e-9));
        assert!(times_s[0] >= 2.0 && times_s[9_999] < 12.0);
    }

    #[test]
    fn send__is_on_for_its_share_in_bursts_of_its_mean_length() {
        // On for 50 ms, off for 150 ms: a quarter of the time; periods of 0.2 s, 5000 in 1000 s.
        let times_s = times_s(50, 150, (0, 1000), "bursts");
        // The share of on-time of an alternating process over T: sd of about sqrt(2 (on off)^2 / ((on + off)^3 T)) =
        // sqrt(2 x 0.0075^2 / (0.008 x 1000)) = 0.0037 of 0.25, hence 3750 of 250 000 packets.
        assert!((times_s.len() as f64 - 250_000.0).abs() < 4.0 * 3750.0, "{}", times_s.len());
        // Bursts end at gaps longer than a packet's; a packet's time in an on period of 50 ms is cut by its end with a
        // probability of about 1/50, and 5000 periods minus those without a packet leave about 4950 bursts, sd 70.
        let bursts = 1 + times_s.windows(2).filter(|pair| pair[1] - pair[0] > 0.001_000_01).count();
        assert!((4600..5250).contains(&bursts), "{bursts}");
    }

    #[test]
    fn send__starts_at_any_point_of_a_period() {
        // Of 2000 sources a quarter is on initially: the first packet within 1 ms of on-time.
        let first = |n| times_s(50, 150, (0, 10), &format!("source {n}")).first().copied().unwrap_or(f64::MAX);
        let early = (0..2000).filter(|n| first(*n) < 0.001).count();
        // 500 minus the 1 % whose period ends before the packet, plus the 0.7 % x 1500 / 2 that turn on; sd 19.
        assert!((420..580).contains(&early), "{early}");
    }

    #[test]
    fn send__of_packets_that_are_longer_than_periods_keeps_the_rate() {
        // 1 ms of on-time per packet in periods of 0.1 ms on and 0.1 ms off (in whole ms it would be zero).
        let (on, off) = (Duration::from_micros(100), Duration::from_micros(100));
        let span = (Time::ZERO, Time::from_secs(100));
        let mut source = OnOff::new(0.001, on, off, span, random::stream(1, "long"));
        let mut packets = 0_u32;
        while source.next().is_some() {
            source.send();
            packets += 1;
        }
        // Half of 100 s; sd sqrt(2 x 1e-16 / (8e-12 x 100)) = 5e-4 of 0.5.
        assert!(packets.abs_diff(50_000) < 200, "{packets}");
    }
}
