//! Losses of the path itself, independent of the send rate.

use fairwave_units::{Bytes, Duration};

use super::super::rate_sample::RateSample;

/// Distinguishes losses of a full queue from those of the path. The draft treats every loss beyond 2 % as
/// congestion while it probes, and every loss at all while it does not, and comes to a standstill on paths that lose a
/// few packets in a hundred at random (5 %: 2 of 100 Mb/s).
///
/// In a round trip in which the model sends no more than the path takes, and no queue shows, the losses are those of
/// the path: the floor is a mean of such round trips. The tolerance is 2 % plus twice the floor. A round trip with a
/// queue tolerates nothing while the model does not probe, as in the draft. The floor follows slowly, so that the model
/// first responds to a path that starts to lose.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LossFloor {
    floor: f64,
    acked: u64,
    lost: u64,
    /// The minimum round-trip time of this round, and of the previous one.
    rtt: Option<Duration>,
    rtt_before: Option<Duration>,
    /// Sum and number of the round's round-trip times.
    rtt_sum_ns: u64,
    rtts: u64,
}

/// A finished round trip.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "four marks of one round trip, each seen apart")]
pub(super) struct LossRound {
    /// Share of the sent bytes that was lost.
    pub(super) share: f64,
    pub(super) has_queue: bool,
    /// Whether there was any queue, of others if the model made none.
    pub(super) is_shared: bool,
    /// Whether every packet waited, and longer than in the model's own queue.
    pub(super) is_filled: bool,
    /// Whether every packet waited longer than in a queue of models.
    pub(super) is_overfilled: bool,
}

/// Tolerated loss beyond the floor, as a share of the bytes in flight: LossThresh of BBR s2.8.
pub(super) const THRESHOLD: f64 = 0.02;
/// Weight of a round trip in the floor.
const GAIN: f64 = 1.0 / 8.0;
/// Maximum of the floor: no path loses more at random.
const MAX_SHARE: f64 = 0.35;
/// A queue shows if the round-trip time exceeds its minimum by this share, and by a fixed time.
const QUEUE: f64 = 1.0 / 16.0;
/// Models keep at most two bandwidth-delay products in flight, which is a queue of one, and a little more while they
/// probe and while several of them overestimate the path: twice that belongs to others.
const DEEP: f64 = 2.0;
/// Fixed time by which the round-trip time must exceed its minimum for a queue to show.
const MIN_QUEUE: Duration = Duration::from_micros(250);
/// A trace of a queue, in the mean of a round trip's times: an unpaced flow comes in bursts. The time of a packet is
/// added: the minimum round-trip time may be that of a handshake, whose packets are small.
const TRACE: f64 = 1.0 / 64.0;
/// Fixed time by which the mean must exceed the minimum for a trace to show.
const MIN_TRACE: Duration = Duration::from_micros(100);
/// Upper bound of round-trip times.
const MAX_RTT: Duration = Duration::from_secs(3600);

impl LossFloor {
    /// Adds a sample; `of_probe` bytes of its losses do not count towards the path's losses.
    pub(super) fn on_sample(&mut self, sample: &RateSample, of_probe: Bytes) {
        self.acked = self.acked.saturating_add(sample.newly_acked.get());
        let lost = sample.newly_lost.get().saturating_sub(of_probe.get());
        // Late arrivals were lost in this round or an earlier one.
        self.lost = self.lost.saturating_add(lost).saturating_sub(sample.newly_late.get());
        if let Some(rtt) = sample.rtt {
            self.rtt = Some(self.rtt.map_or(rtt, |least| least.min(rtt)));
            self.rtt_sum_ns = self.rtt_sum_ns.saturating_add(rtt.as_nanos());
            self.rtts += 1;
        }
    }

    /// Ends a round trip on a path with this minimum round-trip time and time per packet `a_packet`, in which packets
    /// wait at most `own` in the model's own queue.
    pub(super) fn on_round(&mut self, min_rtt: Option<Duration>, a_packet: Duration, own: Duration) -> LossRound {
        let [a_packet, own] = [a_packet, own].map(|span| span.min(MAX_RTT));
        let sent = self.acked.saturating_add(self.lost);
        let share = if self.lost == 0 { 0.0 } else { self.lost as f64 / sent as f64 };
        let has_queue = self.has_queue(min_rtt);
        let mean = self.rtt_sum_ns.checked_div(self.rtts).map(Duration::from_nanos);
        let round = LossRound {
            share,
            has_queue,
            is_shared: queued(min_rtt, mean, TRACE, MIN_TRACE + a_packet + own),
            is_filled: queued(min_rtt, self.rtt.max(self.rtt_before), QUEUE, MIN_QUEUE + own),
            is_overfilled: queued(min_rtt, self.rtt.max(self.rtt_before), DEEP, MIN_QUEUE + own),
        };
        *self = Self { floor: self.floor, rtt_before: self.rtt, ..Self::default() };
        round
    }

    /// The round sent no more than the path takes, and had no queue: its losses are the path's.
    pub(super) fn learn(&mut self, share: f64) {
        self.floor = (self.floor + GAIN * (share - self.floor)).min(MAX_SHARE);
    }

    /// The path's own loss, as a share of the sent bytes.
    pub(super) fn share(&self) -> f64 {
        self.floor
    }

    /// Loss that is not a sign of congestion, as a share of the bytes in flight.
    pub(super) fn tolerated(&self) -> f64 {
        THRESHOLD + 2.0 * self.floor
    }

    /// Whether there was a queue in this round or the previous one: losses are reported a round later than they happen.
    pub(super) fn has_queue(&self, min_rtt: Option<Duration>) -> bool {
        queued(min_rtt, self.rtt.max(self.rtt_before), QUEUE, MIN_QUEUE)
    }
}

/// Whether packets waited longer than this share of the minimum round-trip time plus `least`.
fn queued(min_rtt: Option<Duration>, rtt: Option<Duration>, share: f64, least: Duration) -> bool {
    let (Some(min_rtt), Some(rtt)) = (min_rtt, rtt) else { return false };
    let queue = rtt.as_nanos().saturating_sub(min_rtt.as_nanos());
    queue as f64 > share * min_rtt.as_nanos() as f64 + least.as_nanos() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIN_RTT: Duration = Duration::from_millis(40);

    fn round(floor: &mut LossFloor, lost: u64, rtt_ms: u64) -> LossRound {
        floor.on_sample(
            &RateSample {
                newly_acked: Bytes::new(1000 - lost),
                newly_lost: Bytes::new(lost),
                rtt: Some(Duration::from_millis(rtt_ms)),
                ..RateSample::default()
            },
            Bytes::ZERO,
        );
        floor.on_round(Some(MIN_RTT), Duration::ZERO, Duration::ZERO)
    }

    #[test]
    fn on_round__sees_a_queue_in_this_round_or_the_one_before() {
        let mut floor = LossFloor::default();
        // 40 ms and a sixteenth are 42.5 ms, and 0.25 ms more.
        for (rtt, has_queue) in [(42, false), (43, true), (41, true), (41, false)] {
            assert_eq!(round(&mut floor, 0, rtt).has_queue, has_queue);
        }
    }

    #[test]
    fn tolerated__is_two_per_cent_plus_twice_the_path_loss() {
        let mut floor = LossFloor::default();
        assert_eq!(floor.tolerated(), 0.02);
        for _ in 0..100 {
            let round = round(&mut floor, 50, 40);
            assert_eq!(round.share, 0.05);
            floor.learn(round.share);
        }
        assert!((floor.tolerated() - 0.12).abs() < 1e-6);
        // Late packets were not lost.
        floor.on_sample(&RateSample { newly_lost: Bytes::new(50), ..RateSample::default() }, Bytes::ZERO);
        floor.on_sample(
            &RateSample { newly_acked: Bytes::new(1000), newly_late: Bytes::new(50), ..RateSample::default() },
            Bytes::ZERO,
        );
        assert_eq!(floor.on_round(Some(MIN_RTT), Duration::ZERO, Duration::ZERO).share, 0.0);
        // Losses of a probe are not losses of the path.
        let of_probe = Bytes::new(50);
        floor.on_sample(
            &RateSample { newly_acked: Bytes::new(950), newly_lost: of_probe, ..RateSample::default() },
            of_probe,
        );
        assert_eq!(floor.on_round(Some(MIN_RTT), Duration::ZERO, Duration::ZERO).share, 0.0);
        (0..100).for_each(|_| floor.learn(1.0));
        assert!(floor.tolerated() <= 0.72);
    }
}
