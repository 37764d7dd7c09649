//! A startup that follows the window.

use fairwave_units::Rate;

use super::super::rate_sample::RateSample;
use super::model::{Bbr, rate_of};
use super::state::BbrState;

/// Minimum pacing of startup in windows per round trip: 3/2 ln 3. With a window that grows by two bytes for each that
/// arrives, it is the smallest gain that triples the send rate each round trip, as 4 ln 2 doubles it if the rate
/// follows samples (BBR s2.5). Linux paces a slow start at two windows (tcp_pacing_ss_ratio of ip-sysctl).
const PACE: f64 = 1.65;
/// Queueing delay of the newest packet that shows a queue, as a share of the minimum round-trip time
/// (draft-kazuho-ccwg-rapid-start-02 s3.2: a tenth, at most 4 ms).
const QUEUE: f64 = 0.1;
/// Maximum of that delay in nanoseconds.
const MAX_QUEUE_NS: f64 = 4e6;

/// Ours. In the draft the initial window is sent in a third of a round trip, and nothing in the rest of it; then the
/// rate is 2.77 times that of the newest sample, and samples of the first round trips include the time before anything
/// was sent: they are half of what the path delivered. On a path of 100 Mb/s and 60 ms that start costs 0.2 s.
impl Bbr {
    /// Gain of the first rate, relative to the initial window per round trip. One: a window spread over the round trip
    /// may be larger, at no higher rate (draft-kazuho-ccwg-rapid-start-02 s3.1).
    pub(in super::super) fn first_pacing_gain(&self) -> f64 {
        if self.config.starts_by_window { 1.0 } else { self.state.pacing_gain() }
    }

    /// Minimum rate of startup, after a sample: the window per round trip, or per report interval if that is longer,
    /// but at most startup's gain times the rate at which the packets of the sample were sent, which no sink can
    /// influence.
    pub(in super::super) fn pace_of_start(&self, sample: &RateSample) -> Rate {
        let is_start = self.config.starts_by_window && self.state == BbrState::Startup && !sample.sending.is_zero();
        let Some(rtt) = self.min_rtt.least().filter(|rtt| is_start && !rtt.is_zero()) else { return Rate::ZERO };
        // From the first packet to the newest: one of them was sent when that time started.
        let span = rtt.max(self.config.report_every);
        let sent = rate_of(sample.delivered.get().saturating_sub(self.packet()), sample.sending);
        (rate_of(self.window, span) * PACE).min(sent * self.state.pacing_gain())
    }

    /// Until this many bytes have been delivered, samples do not bound the window (BBR s5.6.4.6). If startup follows
    /// the window it is three initial windows, the first round trip and the one that this triggers: samples of both are
    /// too low. It is zero if a queue shows: on a slow path three initial windows would wait for seconds.
    pub(in super::super) fn first_bytes(&self, sample: &RateSample) -> u64 {
        let windows = match self.config.starts_by_window {
            true if self.has_wait(sample) => 0,
            true => 3,
            false => 1,
        };
        self.config.initial_window.get().saturating_mul(windows)
    }

    /// Growth of the window beyond the bytes that arrived: the same again for arrivals of the initial window, if no
    /// queue shows and nothing was lost (draft-kazuho-ccwg-rapid-start-02 s3.2, except that it covers one round trip).
    pub(in super::super) fn growth_of_start(&self, sample: &RateSample) -> u64 {
        let is_first = sample.total_delivered <= self.config.initial_window && sample.prior_delivered.get() == 0;
        let is_clean = self.recovery_until.is_none() && !self.has_wait(sample);
        if self.config.starts_by_window && is_first && is_clean { sample.newly_acked.get() } else { 0 }
    }

    /// Whether the newest packet waited.
    fn has_wait(&self, sample: &RateSample) -> bool {
        let Some((rtt, least)) = sample.rtt.zip(self.min_rtt.least()) else { return true };
        let wait_ns = rtt.as_nanos().saturating_sub(least.as_nanos()) as f64;
        wait_ns > (QUEUE * least.as_nanos() as f64).min(MAX_QUEUE_NS)
    }
}
