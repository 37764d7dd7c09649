//! Detection of a path that has become slower, which its queue hides.

use fairwave_units::{Duration, Rate};

use super::super::rate_sample::RateSample;

/// Detects that a path delivers much less than before. Ours: the draft has the maximum delivery rate of two probing
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
pub(in super::super) struct Slowdown {
    /// Bytes that had been delivered when the suspicion arose.
    suspected: Option<u64>,
    /// The maximum rates of the last rounds, and of those before.
    usual: [Rate; 2],
    usual_until: u64,
    /// Whether earlier packets are still draining.
    pub(in super::super) is_draining: bool,
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
    /// The rate below which a path of this bandwidth counts as slower; `is_beside` if others fill the queue.
    pub(in super::super) fn bound(&self, bandwidth: Rate, is_beside: bool) -> Rate {
        if is_beside { self.usual[0].max(self.usual[1]).min(bandwidth) * SHARE_BESIDE } else { bandwidth * SHARE }
    }

    /// Compares the sample with this bound and minimum round-trip time: returns the rate of a slower path, as soon as
    /// that is certain, from this round trip.
    pub(in super::super) fn on_sample(
        &mut self,
        sample: &RateSample,
        bound: Rate,
        min_rtt: Option<Duration>,
        round: u64,
    ) -> Option<Rate> {
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
    pub(in super::super) fn rate(sample: &RateSample, min_rtt: Option<Duration>) -> Option<Rate> {
        sample.delivery_rate.filter(|_| has_queue(sample, min_rtt) && !sample.is_app_limited)
    }

    /// Resets the suspicion: the model's state is void, or does not allow a judgement.
    pub(in super::super) fn forget(&mut self) {
        self.suspected = None;
    }
}

/// Whether the newest packet waited.
fn has_queue(sample: &RateSample, min_rtt: Option<Duration>) -> bool {
    let (Some(rtt), Some(min_rtt)) = (sample.rtt, min_rtt) else { return false };
    rtt.as_nanos().saturating_sub(min_rtt.as_nanos()) as f64 > QUEUE * min_rtt.as_nanos() as f64
}
