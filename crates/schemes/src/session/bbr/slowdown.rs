//! A path that has become slower, and whose queue hides that.

use fairwave_units::{Duration, Rate};

use super::super::rate_sample::RateSample;

/// Sees that a path delivers much less than it did. Ours: the draft has the largest delivery rate of two probing cycles,
/// and cuts it by three tenths a round trip with losses; where the queue has room and loses nothing, it goes on at the
/// old rate for seconds, with all that the window allows in the queue (a fall from 100 to 20 Mb/s with 60 ms: 4.4 s above
/// twice the round-trip time, measured by `bad_paths` of `fairwave-proto`).
///
/// The link is taken for slower where for a round trip all samples were below half of the bandwidth while packets waited
/// for half of the least round-trip time. One flow that comes and takes its even share leaves half.
///
/// Where others fill the queue, the bandwidth is what was found before they did, and packets always wait. There it is
/// less than two fifths of what came in the last round trips: shares beside others change in tens of them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Slowdown {
    /// The path is suspected since so much had been delivered.
    suspected: Option<u64>,
    /// The largest rates of the last rounds, and of those before.
    usual: [Rate; 2],
    usual_until: u64,
    /// What it sent before is being let go.
    pub(super) is_draining: bool,
}

/// Of the bandwidth: less is a slower path.
const SHARE: f64 = 0.5;
/// The same of what came lately, where others fill the queue.
const SHARE_BESIDE: f64 = 0.4;
/// Lately: in so many round trips, and as many before.
const ROUNDS: u64 = 8;
/// A queue of so much of the least round-trip time stands, beside that time.
const QUEUE: f64 = 0.5;

impl Slowdown {
    /// A path of this bandwidth that delivers less than this is slower than it was; likewise where others fill the queue.
    pub(super) fn bound(&self, bandwidth: Rate, is_beside: bool) -> Rate {
        if is_beside { self.usual[0].max(self.usual[1]).min(bandwidth) * SHARE_BESIDE } else { bandwidth * SHARE }
    }

    /// What the sample says against this bound and least round-trip time: the rate of a path that has become slower, as
    /// soon as that is sure. It came in this round trip.
    pub(super) fn on_sample(
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

    /// While the queue goes: the path delivers no more than a sample that found one.
    pub(super) fn rate(sample: &RateSample, min_rtt: Option<Duration>) -> Option<Rate> {
        sample.delivery_rate.filter(|_| has_queue(sample, min_rtt) && !sample.is_app_limited)
    }

    /// What the model knew is void, or it is in no state to judge.
    pub(super) fn forget(&mut self) {
        self.suspected = None;
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
        // Half, or without a queue of half a round trip: the doubt is over.
        for (mbps, rtt) in [(5.0, 90), (2.0, 60)] {
            assert_eq!(hear(160, 200, mbps, rtt), None);
            assert_eq!(hear(199, 250, 2.0, 90), None);
            assert_eq!(hear(249, 260, 2.0, 90), None);
            assert_eq!(hear(250, 270, 2.0, 90), Some(Rate::mbps(2.0)));
        }
    }

    #[test]
    fn on_sample__what_the_application_holds_back_is_no_slower_path() {
        let mut slowdown = Slowdown::default();
        for at in 0..10 {
            let limited = RateSample { is_app_limited: true, ..sample(at * 100, at * 100 + 50, 1.0, 200) };
            assert_eq!(slowdown.on_sample(&limited, Rate::mbps(5.0), MIN_RTT, at), None);
        }
    }

    #[test]
    fn bound__beside_others_is_of_what_came_in_the_last_rounds() {
        let mut slowdown = Slowdown::default();
        let mut hear = |round: u64, mbps| {
            let bound = slowdown.bound(Rate::mbps(100.0), true);
            let sample = sample(round * 100, round * 100 + 50, mbps, 200);
            (bound, slowdown.on_sample(&sample, bound, MIN_RTT, round))
        };
        // A share that falls slowly is followed, though it is a tenth of the bandwidth at last.
        for round in 0..100 {
            let (bound, slower) = hear(round, 40.0 * 0.98_f64.powi(round as i32));
            assert!(slower.is_none() && bound < Rate::mbps(17.0), "{round}: {bound}");
        }
        assert_eq!(hear(100, 1.0).1, None);
        assert_eq!(hear(102, 1.0).1, Some(Rate::mbps(1.0)));
    }
}
