//! A start that goes by the window.

use fairwave_units::Rate;

use super::super::rate_sample::RateSample;
use super::model::{Bbr, rate_of};
use super::state::BbrState;

/// Windows a round trip at which startup sends at the least: 3/2 ln 3. With a window that grows by two bytes for each that
/// arrives, it is the least with which what is sent is three times as much each round trip, as 4 ln 2 doubles it where a
/// rate goes by samples (BBR s2.5). Linux paces a slow start at two windows (tcp_pacing_ss_ratio of ip-sysctl).
const PACE: f64 = 1.65;
/// A newest packet that waited for longer than this share of the least round-trip time shows a queue
/// (draft-kazuho-ccwg-rapid-start-02 s3.2: a tenth, at most 4 ms).
const QUEUE: f64 = 0.1;
const MOST_QUEUE_NS: f64 = 4e6;

/// Ours. By the draft the first window goes in a third of a round trip, and nothing in the rest of it; then the rate is
/// 2.77 times what the newest sample says, and samples of the first round trips span the time in which nothing had been
/// sent yet: they are half of what the path delivered. On a path of 100 Mb/s and 60 ms that start costs 0.2 s.
impl Bbr {
    /// What the first window in a round trip is multiplied by to give the first rate. One: a window that takes all of the
    /// round trip may be larger, at no higher rate (draft-kazuho-ccwg-rapid-start-02 s3.1).
    pub(super) fn first_pacing_gain(&self) -> f64 {
        if self.config.starts_by_window { 1.0 } else { self.state.pacing_gain() }
    }

    /// The least rate of startup, after a sample: by the window, which is what goes in a round trip, or between two
    /// reports where these take longer, but no more than startup's gain times the rate at which
    /// the packets of the sample were sent, which no sink has a say in.
    pub(super) fn pace_of_start(&self, sample: &RateSample) -> Rate {
        let is_start = self.config.starts_by_window && self.state == BbrState::Startup && !sample.sending.is_zero();
        let Some(rtt) = self.min_rtt.least().filter(|rtt| is_start && !rtt.is_zero()) else { return Rate::ZERO };
        // From the first packet to the newest: one of them was sent when that time began.
        let span = rtt.max(self.config.report_every);
        let sent = rate_of(sample.delivered.get().saturating_sub(self.packet()), sample.sending);
        (rate_of(self.window, span) * PACE).min(sent * self.state.pacing_gain())
    }

    /// As long as less has been delivered, samples do not bound the window (BBR s5.6.4.6). By the window it is three
    /// first windows, the first round trip and the one that this brings: what the samples of both say is too low. Where a
    /// queue shows it is not: on a slow path three first windows would wait for seconds.
    pub(super) fn first_bytes(&self, sample: &RateSample) -> u64 {
        let windows = match self.config.starts_by_window {
            true if self.has_wait(sample) => 0,
            true => 3,
            false => 1,
        };
        self.config.initial_window.get().saturating_mul(windows)
    }

    /// What the window grows by beyond what arrived: as much again for what arrives of the first window, where no queue
    /// shows and nothing was lost (draft-kazuho-ccwg-rapid-start-02 s3.2, but for one round trip).
    pub(super) fn growth_of_start(&self, sample: &RateSample) -> u64 {
        let is_first = sample.total_delivered <= self.config.initial_window && sample.prior_delivered.get() == 0;
        let is_clean = self.recovery_until.is_none() && !self.has_wait(sample);
        if self.config.starts_by_window && is_first && is_clean { sample.newly_acked.get() } else { 0 }
    }

    /// Whether the newest packet waited.
    fn has_wait(&self, sample: &RateSample) -> bool {
        let Some((rtt, least)) = sample.rtt.zip(self.min_rtt.least()) else { return true };
        let wait_ns = rtt.as_nanos().saturating_sub(least.as_nanos()) as f64;
        wait_ns > (QUEUE * least.as_nanos() as f64).min(MOST_QUEUE_NS)
    }
}

#[cfg(test)]
mod tests {
    use fairwave_units::{Bytes, Duration, Time};

    use super::super::config::BbrConfig;
    use super::*;

    const RTT: Duration = Duration::from_millis(40);

    fn model() -> Bbr {
        let initial_window = Bytes::new(32_000);
        let config = BbrConfig { initial_window, starts_by_window: true, ..BbrConfig::new(Bytes::new(1000)) };
        Bbr::new(Time::ZERO, BbrConfig { initial_rtt: Some(RTT), ..config })
    }

    /// A quarter of the first window arrives, so long after it was sent.
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
    fn growth_of_start__what_arrives_of_the_first_window_brings_twice_as_much_where_no_queue_shows() {
        let window_after = |sample: &RateSample| {
            let mut model = model();
            model.on_sample(Time::ZERO + RTT, sample);
            model.window_bytes().get()
        };
        assert_eq!(window_after(&first_quarter(RTT)), 32_000 + 2 * 8000);
        // 4 ms, or a tenth of the round trip.
        assert_eq!(window_after(&first_quarter(Duration::from_millis(44))), 32_000 + 2 * 8000);
        // A queue shows: the samples bound it, of which there is none; or one that says twice 4.8 Mb/s in 40 ms.
        let waits = first_quarter(Duration::from_micros(44_100));
        assert_eq!(window_after(&waits), 32_000);
        let sampled = RateSample { delivery_rate: Some(Rate::mbps(4.8)), ..waits };
        assert_eq!(window_after(&sampled), 32_000 + 8000);
        // Something was lost.
        let lost = RateSample { newly_lost: Bytes::new(1000), lost_ranges: 1, ..first_quarter(RTT) };
        assert_eq!(window_after(&lost), 32_000 + 8000);
        // What arrives later brings as much again.
        let later = RateSample { total_delivered: Bytes::new(33_000), ..first_quarter(RTT) };
        assert_eq!(window_after(&later), 32_000 + 8000);
    }

    #[test]
    fn pace_of_start__goes_by_the_window_until_startup_is_over() {
        let mut model = model();
        model.on_sample(Time::ZERO + RTT, &first_quarter(RTT));
        // 1.65 x 32 000 B in 40 ms: the window of before this sample.
        assert!((model.pacing_rate().as_mbps() - 10.56).abs() < 1e-6, "{}", model.pacing_rate());
        // What was sent at 3.2 Mb/s is no reason for more than 2.77 times that.
        let slow = RateSample { sending: Duration::from_micros(17_500), ..first_quarter(RTT) };
        assert!((model.pace_of_start(&slow).as_mbps() - 8.864).abs() < 1e-6, "{}", model.pace_of_start(&slow));
        model.start_drain();
        assert_eq!(model.pace_of_start(&first_quarter(RTT)), Rate::ZERO);
    }

    #[test]
    fn pace_of_start__takes_the_time_between_two_reports_for_a_shorter_round_trip() {
        let mut model = model();
        let rtt = Duration::from_micros(200);
        model.config.report_every = Duration::from_millis(2);
        model.on_sample(Time::ZERO + rtt, &first_quarter(rtt));
        let sample = RateSample { sending: Duration::from_micros(175), ..first_quarter(rtt) };
        // 1.65 x 48 000 B in 2 ms.
        assert!((model.pace_of_start(&sample).as_mbps() - 316.8).abs() < 1e-6, "{}", model.pace_of_start(&sample));
    }
}
