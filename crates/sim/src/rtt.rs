//! The round-trip time and the retransmission time-out (RFC 6298).

use fairwave_units::Duration;

/// Smoothed round-trip time, its variation and the time-out.
#[derive(Clone, Debug)]
pub(crate) struct Rtt {
    smoothed_ns: u64,
    variation_ns: u64,
    least: Duration,
    least_timeout: Duration,
    backoff: u32,
}

impl Rtt {
    /// No sample yet; `least_timeout` bounds the time-out from below.
    pub(crate) fn new(least_timeout: Duration) -> Self {
        Self { smoothed_ns: 0, variation_ns: 0, least: Duration::MAX, least_timeout, backoff: 0 }
    }

    /// A sample of a packet that was sent once, or told apart by its stamp. Ends the back-off.
    pub(crate) fn on_sample(&mut self, sample: Duration) {
        let sample_ns = sample.as_nanos();
        self.least = self.least.min(sample);
        self.backoff = 0;
        if self.smoothed_ns == 0 {
            // RFC 6298 s2.2
            self.smoothed_ns = sample_ns;
            self.variation_ns = sample_ns / 2;
        } else {
            // RFC 6298 s2.3: the variation first, with the old mean.
            let error = self.smoothed_ns.abs_diff(sample_ns);
            self.variation_ns = self.variation_ns - self.variation_ns / 4 + error / 4;
            self.smoothed_ns = self.smoothed_ns - self.smoothed_ns / 8 + sample_ns / 8;
        }
    }

    /// The timer ran out: the next one is twice as long (RFC 6298 s5.5).
    pub(crate) fn on_timeout(&mut self) {
        self.backoff = (self.backoff + 1).min(16);
    }

    /// Smoothed round-trip time; zero before the first sample.
    pub(crate) fn smoothed(&self) -> Duration {
        Duration::from_nanos(self.smoothed_ns)
    }

    /// Least sample; the longest span before the first.
    pub(crate) fn least(&self) -> Duration {
        self.least
    }

    /// The retransmission time-out.
    pub(crate) fn timeout(&self) -> Duration {
        let base = if self.smoothed_ns == 0 {
            FIRST_TIMEOUT
        } else {
            // RFC 6298 s2.3: SRTT + max(G, 4 RTTVAR).
            let margin_ns = self.variation_ns.saturating_mul(4).max(GRANULARITY.as_nanos());
            Duration::from_nanos(self.smoothed_ns.saturating_add(margin_ns))
        };
        let nanos = base.max(self.least_timeout).as_nanos().saturating_mul(1 << self.backoff);
        Duration::from_nanos(nanos).min(MOST_TIMEOUT.max(self.least_timeout))
    }
}

/// RFC 6298 s2.1 says one second; RFC 2988 and ns-2 said three.
const FIRST_TIMEOUT: Duration = Duration::from_secs(3);
/// RFC 6298's G. The clock is exact to a nanosecond, but a round-trip time that never varied is no promise: as with ns-2's
/// `tcpTick_`, 10 ms.
const GRANULARITY: Duration = Duration::from_millis(10);
const MOST_TIMEOUT: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeout__follows_rfc_6298() {
        let mut rtt = Rtt::new(Duration::from_millis(200));
        assert_eq!(rtt.timeout(), Duration::from_secs(3));
        rtt.on_sample(Duration::from_millis(100));
        assert_eq!(rtt.timeout(), Duration::from_millis(300)); // 100 + 4 x 50
        rtt.on_sample(Duration::from_millis(200));
        // RTTVAR = 3/4 x 50 + 1/4 x 100 = 62.5; SRTT = 7/8 x 100 + 1/8 x 200 = 112.5
        assert_eq!(rtt.timeout(), Duration::from_micros(362_500));
        rtt.on_timeout();
        rtt.on_timeout();
        assert_eq!(rtt.timeout(), Duration::from_millis(1450));
        for _ in 0..10 {
            rtt.on_timeout();
        }
        assert_eq!(rtt.timeout(), Duration::from_secs(60));
        rtt.on_sample(Duration::from_micros(112_500));
        assert!(rtt.timeout() < Duration::from_millis(400));
    }

    #[test]
    fn timeout__of_a_steady_round_trip_comes_down_to_the_granularity() {
        let mut rtt = Rtt::new(Duration::from_millis(200));
        // R = 1 s again and again: RTTVAR = 1/2, 3/8, 9/32, ... s, and SRTT = 1 s.
        for timeout_us in [3_000_000, 2_500_000, 2_125_000, 1_843_750] {
            rtt.on_sample(Duration::from_secs(1));
            assert_eq!(rtt.timeout(), Duration::from_micros(timeout_us));
        }
        for _ in 0..100 {
            rtt.on_sample(Duration::from_secs(1));
        }
        assert_eq!(rtt.timeout(), Duration::from_millis(1010)); // SRTT + G
    }

    #[test]
    fn timeout__is_bounded_below() {
        let mut rtt = Rtt::new(Duration::from_millis(200));
        for _ in 0..100 {
            rtt.on_sample(Duration::from_millis(10));
        }
        assert_eq!(rtt.timeout(), Duration::from_millis(200));
    }
}
