//! A startup that follows the window.

use fairwave_units::{Duration, Rate};

use super::super::bbr::{BbrState, Model, rate_of};
use super::super::rate_sample::RateSample;

/// Gain of the first rate, relative to the initial window per round trip. One: a window spread over the round trip may
/// be larger, at no higher rate (draft-kazuho-ccwg-rapid-start-02 s3.1).
pub(super) const FIRST_PACING_GAIN: f64 = 1.0;
/// Minimum pacing of startup in windows per round trip: 3/2 ln 3. With a window that grows by two bytes for each that
/// arrives, it is the smallest gain that triples the send rate each round trip, as 4 ln 2 doubles it if the rate
/// follows samples (BBR s2.5). Linux paces a slow start at two windows (tcp_pacing_ss_ratio of ip-sysctl).
const PACE: f64 = 1.65;
/// Queueing delay of the newest packet that shows a queue, as a share of the minimum round-trip time
/// (draft-kazuho-ccwg-rapid-start-02 s3.2: a tenth, at most 4 ms).
const QUEUE: f64 = 0.1;
/// Maximum of that delay in nanoseconds.
const MAX_QUEUE_NS: f64 = 4e6;

/// Initial windows of which samples are too low.
const FIRST_WINDOWS: u64 = 3;

/// Startup follows the window, which reacts to arrivals immediately, and not only samples, which follow a round trip
/// later.
///
/// In the draft the initial window is sent in a third of a round trip, and nothing in the rest of it; then the rate is
/// 2.77 times that of the newest sample, and samples of the first round trips include the time before anything was sent:
/// they are half of what the path delivered. On a path of 100 Mb/s and 60 ms that start costs 0.2 s.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start {
    report_every: Duration,
}

impl Start {
    pub(super) fn new(report_every: Duration) -> Self {
        Self { report_every }
    }

    /// Minimum rate of startup, after a sample: the window per round trip, or per report interval if that is longer,
    /// but at most startup's gain times the rate at which the packets of the sample were sent, which no sink can
    /// influence.
    pub(super) fn rate(self, model: &Model, sample: &RateSample) -> Rate {
        let is_start = model.state == BbrState::Startup && !sample.sending.is_zero();
        let Some(rtt) = model.min_rtt.least().filter(|rtt| is_start && !rtt.is_zero()) else { return Rate::ZERO };
        // From the first packet to the newest: one of them was sent when that time started.
        let span = rtt.max(self.report_every);
        let sent = rate_of(sample.delivered.get().saturating_sub(model.packet()), sample.sending);
        (rate_of(model.window.bytes(), span) * PACE).min(sent * model.state.pacing_gain())
    }

    /// Until this many bytes have been delivered, samples do not bound the window (BBR s5.6.4.6): three initial windows,
    /// the first round trip and the one that this triggers, as samples of both are too low. It is zero if a queue shows:
    /// on a slow path three initial windows would wait for seconds.
    pub(super) fn first_bytes(model: &Model, sample: &RateSample) -> u64 {
        let windows = if has_wait(model, sample) { 0 } else { FIRST_WINDOWS };
        model.config.initial_window.get().saturating_mul(windows)
    }

    /// Growth of the window beyond the bytes that arrived: the same again for arrivals of the initial window, if no
    /// queue shows and nothing was lost (draft-kazuho-ccwg-rapid-start-02 s3.2, except that it covers one round trip).
    pub(super) fn growth(model: &Model, sample: &RateSample) -> u64 {
        let is_first = sample.total_delivered <= model.config.initial_window && sample.prior_delivered.get() == 0;
        let is_clean = !model.recovery.is_open() && !has_wait(model, sample);
        if is_first && is_clean { sample.newly_acked.get() } else { 0 }
    }
}

/// Whether the newest packet waited.
fn has_wait(model: &Model, sample: &RateSample) -> bool {
    let Some((rtt, least)) = sample.rtt.zip(model.min_rtt.least()) else { return true };
    let wait_ns = rtt.as_nanos().saturating_sub(least.as_nanos()) as f64;
    wait_ns > (QUEUE * least.as_nanos() as f64).min(MAX_QUEUE_NS)
}

#[cfg(test)]
mod tests {
    use fairwave_units::{Bytes, Duration, Time};

    use super::super::Path;
    use super::super::PathConfig;
    use super::*;

    const RTT: Duration = Duration::from_millis(40);

    fn model_of(report_every: Duration) -> Path {
        let mut config = PathConfig { report_every, ..PathConfig::new(Bytes::new(1000)) };
        (config.model.initial_window, config.model.initial_rtt) = (Bytes::new(32_000), Some(RTT));
        config.path(Time::ZERO)
    }

    fn model() -> Path {
        model_of(Duration::ZERO)
    }

    fn rate(path: &Path, sample: &RateSample) -> Rate {
        path.amendments.start.rate(&path.model, sample)
    }

    /// A quarter of the initial window arrives, `rtt` after it was sent.
    fn first_quarter(rtt: Duration) -> RateSample {
        let arrived = Bytes::new(8000);
        RateSample {
            has_arrivals: true,
            newly_acked: arrived,
            total_delivered: arrived,
            delivered: arrived,
            rtt: Some(rtt),
            // At 6.4 Mb/s, eight packets have seven gaps.
            sending: Duration::from_micros(8750),
            in_flight: Bytes::new(24_000),
            ..RateSample::default()
        }
    }

    #[test]
    fn first_pacing_gain__the_first_window_takes_a_round_trip() {
        // 32 000 B in 40 ms.
        assert_eq!(model().pacing_rate(), Rate::mbps(6.4));
    }

    #[test]
    fn growth__is_twice_the_arrivals_without_a_queue() {
        let window_after = |sample: &RateSample| {
            let mut model = model();
            model.on_sample(Time::ZERO + RTT, sample);
            model.window_bytes().get()
        };
        assert_eq!(window_after(&first_quarter(RTT)), 32_000 + 2 * 8000);
        // 4 ms, or a tenth of the round trip.
        assert_eq!(window_after(&first_quarter(Duration::from_millis(44))), 32_000 + 2 * 8000);
        // A queue shows: the samples bound the window, and there is none; or one of twice 4.8 Mb/s in 40 ms.
        let waits = first_quarter(Duration::from_micros(44_100));
        assert_eq!(window_after(&waits), 32_000);
        let sampled = RateSample { delivery_rate: Some(Rate::mbps(4.8)), ..waits };
        assert_eq!(window_after(&sampled), 32_000 + 8000);
        // A packet was lost.
        let lost = RateSample { newly_lost: Bytes::new(1000), lost_ranges: 1, ..first_quarter(RTT) };
        assert_eq!(window_after(&lost), 32_000 + 8000);
        // Later arrivals bring only their own size.
        let later = RateSample { total_delivered: Bytes::new(33_000), ..first_quarter(RTT) };
        assert_eq!(window_after(&later), 32_000 + 8000);
    }

    #[test]
    fn rate__follows_the_window_during_startup() {
        let mut model = model();
        model.on_sample(Time::ZERO + RTT, &first_quarter(RTT));
        // 1.65 x 32 000 B in 40 ms: the window before this sample.
        assert!((model.pacing_rate().as_mbps() - 10.56).abs() < 1e-6, "{}", model.pacing_rate());
        // Packets sent at 3.2 Mb/s allow at most 2.77 times that.
        let slow = RateSample { sending: Duration::from_micros(17_500), ..first_quarter(RTT) };
        assert!((rate(&model, &slow).as_mbps() - 8.864).abs() < 1e-6, "{}", rate(&model, &slow));
        model.model.start_drain();
        assert_eq!(rate(&model, &first_quarter(RTT)), Rate::ZERO);
    }

    #[test]
    fn rate__uses_the_report_interval_if_above_the_rtt() {
        let mut model = model_of(Duration::from_millis(2));
        let rtt = Duration::from_micros(200);
        model.on_sample(Time::ZERO + rtt, &first_quarter(rtt));
        let sample = RateSample { sending: Duration::from_micros(175), ..first_quarter(rtt) };
        // 1.65 x 48 000 B in 2 ms.
        assert!((rate(&model, &sample).as_mbps() - 316.8).abs() < 1e-6, "{}", rate(&model, &sample));
    }
}
