//! Detection of a path that has become slower, which its queue hides.

use fairwave_units::{Duration, Rate};

use super::super::bbr::{BbrState, Model, ShortTerm};
use super::super::rate_sample::RateSample;

/// Detects that a path delivers much less than before. The draft has the maximum delivery rate of two probing
/// cycles, and cuts it by three tenths per round trip with losses; if the queue has room and loses nothing, it
/// continues at the old rate for seconds, with all that the window allows in the queue (a fall from 100 to 20 Mb/s with
/// 60 ms: 4.4 s above twice the round-trip time, measured by `bad_paths` of `fairwave-proto`).
///
/// The link counts as slower if for a round trip all samples were below half of the bandwidth while packets waited for
/// half of the minimum round-trip time. A single new flow that takes its even share leaves half.
///
/// If others fill the queue, the bandwidth estimate is older than their queue, and packets always wait. Then the
/// threshold is two fifths of the arrival rate of the last round trips: shares of competing flows change over tens of
/// them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Slowdown {
    /// Bytes that had been delivered when the suspicion arose.
    suspected: Option<u64>,
    /// The maximum rates of the last rounds, and of those before.
    usual: [Rate; 2],
    usual_until: u64,
    /// Whether earlier packets are still draining.
    is_draining: bool,
}

/// Share of the bandwidth below which the path counts as slower.
const SHARE: f64 = 0.5;
/// Share of recent arrivals below which it does, if others fill the queue.
const SHARE_BESIDE: f64 = 0.4;
/// Round trips that count as recent, in each of two slots.
const ROUNDS: u64 = 8;
/// Queueing delay of a slower path, as a share of the minimum round-trip time.
const QUEUE: f64 = 0.5;

impl Slowdown {
    /// Follows a slower path: packets in flight drain before more is sent, at the current delivery rate. Returns whether
    /// it was found now; `is_beside` if others fill the queue.
    pub(super) fn answer(&mut self, model: &mut Model, is_beside: bool, sample: &RateSample) -> bool {
        self.is_draining &= model.state == BbrState::Drain;
        let least = model.min_rtt.least();
        if self.is_draining {
            if let Some(rate) = Self::rate(sample, least) {
                model.bandwidth.cut_to(rate);
            }
            return false;
        }
        if !model.state.is_probe_bw() {
            self.suspected = None;
            return false;
        }
        let bound = self.bound(model.bandwidth(), is_beside);
        let Some(rate) = self.on_sample(sample, bound, least, model.rounds.count) else { return false };
        model.bandwidth.cut_to(rate);
        model.short_term = ShortTerm::default();
        (self.suspected, self.is_draining) = (None, true);
        model.start_drain();
        true
    }

    /// Bound of the window while it drains: what fills the path.
    pub(super) fn window_cap(&self, model: &Model) -> Option<u64> {
        let is_draining = self.is_draining && model.state == BbrState::Drain;
        is_draining.then(|| model.in_flight_of(1.0, model.bandwidth()))
    }

    /// The rate below which a path of this bandwidth counts as slower; `is_beside` if others fill the queue.
    fn bound(&self, bandwidth: Rate, is_beside: bool) -> Rate {
        if is_beside { self.usual[0].max(self.usual[1]).min(bandwidth) * SHARE_BESIDE } else { bandwidth * SHARE }
    }

    /// Compares the sample with this bound and minimum round-trip time: returns the rate of a slower path, as soon as
    /// that is certain, from this round trip.
    fn on_sample(&mut self, sample: &RateSample, bound: Rate, min_rtt: Option<Duration>, round: u64) -> Option<Rate> {
        let rate = sample.delivery_rate?;
        let is_low = rate < bound && !sample.is_app_limited;
        if round >= self.usual_until {
            (self.usual, self.usual_until) = ([self.usual[1], Rate::ZERO], round.saturating_add(ROUNDS));
        }
        self.usual[1] = self.usual[1].max(rate);
        if !is_low || !has_queue(sample, min_rtt) {
            self.suspected = None;
            return None;
        }
        let since = *self.suspected.get_or_insert(sample.total_delivered.get());
        let is_sure = sample.prior_delivered.get() >= since;
        is_sure.then_some(rate)
    }

    /// The rate while the queue drains: at most that of a sample that found one.
    fn rate(sample: &RateSample, min_rtt: Option<Duration>) -> Option<Rate> {
        sample.delivery_rate.filter(|_| has_queue(sample, min_rtt) && !sample.is_app_limited)
    }
}

/// Whether the newest packet waited.
fn has_queue(sample: &RateSample, min_rtt: Option<Duration>) -> bool {
    let (Some(rtt), Some(min_rtt)) = (sample.rtt, min_rtt) else { return false };
    rtt.as_nanos().saturating_sub(min_rtt.as_nanos()) as f64 > QUEUE * min_rtt.as_nanos() as f64
}

#[cfg(test)]
mod tests {
    use fairwave_units::Bytes;

    use super::*;

    const MIN_RTT: Option<Duration> = Some(Duration::from_millis(40));

    fn sample(prior: u64, total: u64, mbps: f64, rtt_ms: u64) -> RateSample {
        RateSample {
            prior_delivered: Bytes::new(prior),
            total_delivered: Bytes::new(total),
            delivery_rate: Some(Rate::mbps(mbps)),
            rtt: Some(Duration::from_millis(rtt_ms)),
            ..RateSample::default()
        }
    }

    #[test]
    fn on_sample__is_sure_with_a_packet_sent_after_the_first_doubt() {
        let mut slowdown = Slowdown::default();
        let mut hear =
            |prior, total, mbps, rtt| slowdown.on_sample(&sample(prior, total, mbps, rtt), Rate::mbps(5.0), MIN_RTT, 0);
        assert_eq!(hear(0, 100, 4.9, 61), None);
        assert_eq!(hear(99, 150, 3.0, 90), None);
        assert_eq!(hear(100, 160, 2.0, 90), Some(Rate::mbps(2.0)));
        // Half of the rate, or less than half a round trip of queue, ends the suspicion.
        for (mbps, rtt) in [(5.0, 90), (2.0, 60)] {
            assert_eq!(hear(160, 200, mbps, rtt), None);
            assert_eq!(hear(199, 250, 2.0, 90), None);
            assert_eq!(hear(249, 260, 2.0, 90), None);
            assert_eq!(hear(250, 270, 2.0, 90), Some(Rate::mbps(2.0)));
        }
    }

    #[test]
    fn on_sample__application_limit_is_not_a_slowdown() {
        let mut slowdown = Slowdown::default();
        for at in 0..10 {
            let limited = RateSample { is_app_limited: true, ..sample(at * 100, at * 100 + 50, 1.0, 200) };
            assert_eq!(slowdown.on_sample(&limited, Rate::mbps(5.0), MIN_RTT, at), None);
        }
    }

    #[test]
    fn bound__with_others_follows_recent_arrivals() {
        let mut slowdown = Slowdown::default();
        let mut hear = |round: u64, mbps| {
            let bound = slowdown.bound(Rate::mbps(100.0), true);
            let sample = sample(round * 100, round * 100 + 50, mbps, 200);
            (bound, slowdown.on_sample(&sample, bound, MIN_RTT, round))
        };
        // A share that falls slowly is followed, though it is a tenth of the bandwidth in the end.
        for round in 0..100 {
            let (bound, slower) = hear(round, 40.0 * 0.98_f64.powi(round as i32));
            assert!(slower.is_none() && bound < Rate::mbps(17.0), "{round}: {bound}");
        }
        assert_eq!(hear(100, 1.0).1, None);
        assert_eq!(hear(102, 1.0).1, Some(Rate::mbps(1.0)));
    }
}
