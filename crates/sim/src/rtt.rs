//! The round-trip time and the retransmission time-out (RFC 6298).

use fairwave_units::Duration;

/// Lower bound of a retransmission time-out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MinRto {
    /// The whole time-out is at least this: RFC 6298 s2.4 (1 s), ns-2's `minrto_` (0.2 s).
    Whole(Duration),
    /// The part beyond the smoothed round-trip time is at least this: Linux, whose 200 ms bound the variation.
    BeyondRtt(Duration),
}

/// Smoothed round-trip time, its variation and the time-out.
///
/// Rules use a mean over acknowledgements. The time-out has a separate mean and variation, which take one sample per
/// round trip, the largest: with a sample per acknowledgement, RFC 6298's gains forget within eight packets (RFC 7323,
/// Appendix G), and in a window of thousands the variation of a queue would decay to the clock granularity.
#[derive(Clone, Debug)]
pub(crate) struct RttEstimator {
    smoothed_ns: u64,
    least: Duration,
    /// SRTT and RTTVAR of RFC 6298.
    mean_ns: u64,
    variation_ns: u64,
    /// The largest sample of this round trip.
    largest_ns: u64,
    min_rto: MinRto,
    initial_rto: Duration,
    backoff: u32,
}

impl RttEstimator {
    /// An estimator without a sample. `min_rto` bounds the time-out from below; `initial_rto` is the time-out before
    /// the first sample.
    pub(crate) fn new(min_rto: MinRto, initial_rto: Duration) -> Self {
        Self {
            smoothed_ns: 0,
            least: Duration::MAX,
            mean_ns: 0,
            variation_ns: 0,
            largest_ns: 0,
            min_rto,
            initial_rto,
            backoff: 0,
        }
    }

    /// Adds a sample of a packet that was sent once, or identified by its stamp; `ends_round` with the last of a round
    /// trip. Ends the back-off.
    pub(crate) fn on_sample(&mut self, sample: Duration, ends_round: bool) {
        let sample_ns = sample.as_nanos();
        self.least = self.least.min(sample);
        self.backoff = 0;
        self.smoothed_ns = match self.smoothed_ns {
            0 => sample_ns,
            before => before - before / 8 + sample_ns / 8,
        };
        self.largest_ns = self.largest_ns.max(sample_ns);
        if ends_round || self.mean_ns == 0 {
            let largest_ns = std::mem::take(&mut self.largest_ns);
            self.end_round(largest_ns);
        }
    }

    fn end_round(&mut self, sample_ns: u64) {
        if self.mean_ns == 0 {
            // RFC 6298 s2.2
            (self.mean_ns, self.variation_ns) = (sample_ns, sample_ns / 2);
        } else {
            // RFC 6298 s2.3: the variation first, with the old mean.
            let error = self.mean_ns.abs_diff(sample_ns);
            self.variation_ns = self.variation_ns - self.variation_ns / 4 + error / 4;
            self.mean_ns = self.mean_ns - self.mean_ns / 8 + sample_ns / 8;
        }
    }

    /// The timer expired: the next time-out is twice as long (RFC 6298 s5.5).
    pub(crate) fn on_timeout(&mut self) {
        self.backoff = (self.backoff + 1).min(16);
    }

    /// Smoothed round-trip time; zero before the first sample.
    pub(crate) fn smoothed(&self) -> Duration {
        Duration::from_nanos(self.smoothed_ns)
    }

    /// Minimum sample; the longest span before the first.
    pub(crate) fn least(&self) -> Duration {
        self.least
    }

    pub(crate) fn timeout(&self) -> Duration {
        // RFC 6298 s2.3: SRTT + max(G, 4 RTTVAR). A bound below the usual clock granularity implies a finer clock.
        let (MinRto::Whole(bound) | MinRto::BeyondRtt(bound)) = self.min_rto;
        let granularity = bound.clamp(FINEST_CLOCK, GRANULARITY);
        let margin_ns = self.variation_ns.saturating_mul(4).max(granularity.as_nanos());
        let base_ns = match (self.mean_ns, self.min_rto) {
            (0, MinRto::BeyondRtt(_)) => self.initial_rto.as_nanos(),
            (0, MinRto::Whole(least)) => self.initial_rto.max(least).as_nanos(),
            (mean_ns, MinRto::Whole(least)) => mean_ns.saturating_add(margin_ns).max(least.as_nanos()),
            (mean_ns, MinRto::BeyondRtt(least)) => mean_ns.saturating_add(margin_ns.max(least.as_nanos())),
        };
        let most = match self.min_rto {
            MinRto::Whole(least) => MAX_TIMEOUT.max(least),
            MinRto::BeyondRtt(_) => MAX_TIMEOUT,
        };
        Duration::from_nanos(base_ns.saturating_mul(1 << self.backoff)).min(most)
    }
}

/// RFC 6298's G. The clock is exact to a nanosecond, but a round-trip time that was constant so far may change: as with
/// ns-2's `tcpTick_`, 10 ms.
const GRANULARITY: Duration = Duration::from_millis(10);
/// The finest clock that a bound can imply: that of Linux's high-resolution timers, which fire within some
/// microseconds.
const FINEST_CLOCK: Duration = Duration::from_micros(1);
/// Maximum time-out: RFC 6298 s2.5 allows no less than 60 s.
const MAX_TIMEOUT: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    const INITIAL_RTO: Duration = Duration::from_secs(1);

    #[test]
    fn timeout__follows_rfc_6298() {
        let mut rtt = RttEstimator::new(MinRto::Whole(Duration::from_millis(200)), INITIAL_RTO);
        assert_eq!(rtt.timeout(), Duration::from_secs(1));
        rtt.on_sample(Duration::from_millis(100), true);
        assert_eq!(rtt.timeout(), Duration::from_millis(300)); // 100 + 4 x 50
        rtt.on_sample(Duration::from_millis(200), true);
        // RTTVAR = 3/4 x 50 + 1/4 x 100 = 62.5; SRTT = 7/8 x 100 + 1/8 x 200 = 112.5
        assert_eq!(rtt.timeout(), Duration::from_micros(362_500));
        rtt.on_timeout();
        rtt.on_timeout();
        assert_eq!(rtt.timeout(), Duration::from_millis(1450));
        for _ in 0..10 {
            rtt.on_timeout();
        }
        assert_eq!(rtt.timeout(), Duration::from_secs(60));
        rtt.on_sample(Duration::from_micros(112_500), true);
        assert!(rtt.timeout() < Duration::from_millis(400));
    }

    #[test]
    fn timeout__of_a_steady_rtt_falls_to_the_granularity() {
        let mut rtt = RttEstimator::new(MinRto::Whole(Duration::from_millis(200)), INITIAL_RTO);
        // R = 1 s repeatedly: RTTVAR = 1/2, 3/8, 9/32, ... s, and SRTT = 1 s.
        for timeout_us in [3_000_000, 2_500_000, 2_125_000, 1_843_750] {
            rtt.on_sample(Duration::from_secs(1), true);
            assert_eq!(rtt.timeout(), Duration::from_micros(timeout_us));
        }
        for _ in 0..100 {
            rtt.on_sample(Duration::from_secs(1), true);
        }
        assert_eq!(rtt.timeout(), Duration::from_millis(1010)); // SRTT + G
    }

    #[test]
    fn timeout__keeps_rtt_variation_with_large_windows() {
        // Rounds of 5000 samples: 600 ms, except that a queue makes it 700 ms for a tenth of every other round.
        let mut rtt = RttEstimator::new(MinRto::Whole(Duration::ZERO), INITIAL_RTO);
        for round in 0..40 {
            for at in 0..5000 {
                let queued = round % 2 == 0 && (1000..1500).contains(&at);
                rtt.on_sample(Duration::from_millis(if queued { 700 } else { 600 }), at == 4999);
            }
        }
        // The mean swings by 6 ms around 650, the variation settles near 50: at least 100 + 4 x 40 above 600.
        assert!(rtt.timeout() > Duration::from_millis(760), "{}", rtt.timeout());
        // The rules' mean is that of the last acknowledgements.
        assert!(rtt.smoothed().as_nanos().abs_diff(600_000_000) < 1000);
    }

    #[test]
    fn timeout__linux_s_floor_is_beyond_the_round_trip() {
        let mut rtt = RttEstimator::new(MinRto::BeyondRtt(Duration::from_millis(200)), INITIAL_RTO);
        for _ in 0..100 {
            rtt.on_sample(Duration::from_millis(600), true);
        }
        assert_eq!(rtt.timeout(), Duration::from_millis(800));
    }

    #[test]
    fn timeout__bound_below_the_clock_takes_effect() {
        // 100 us repeatedly: SRTT + G, where G is the bound.
        let mut rtt = RttEstimator::new(MinRto::Whole(Duration::from_millis(1)), INITIAL_RTO);
        for _ in 0..100 {
            rtt.on_sample(Duration::from_micros(100), true);
        }
        assert_eq!(rtt.timeout(), Duration::from_micros(1100));
    }

    #[test]
    fn timeout__is_bounded_below() {
        let mut rtt = RttEstimator::new(MinRto::Whole(Duration::from_millis(200)), INITIAL_RTO);
        for _ in 0..100 {
            rtt.on_sample(Duration::from_millis(10), true);
        }
        assert_eq!(rtt.timeout(), Duration::from_millis(200));
    }
}
