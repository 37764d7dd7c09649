//! Detection of a policer.

use fairwave_units::{Bytes, Duration, Rate, Time};

use super::super::rate_sample::RateSample;

/// The rate of a token bucket (bbr_lt_bw_sampling): two consecutive intervals with much loss and about the same
/// throughput show one, and the rate is their mean for the next round trips.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Policer {
    /// Start of the interval: time, and bytes delivered and lost.
    start: Option<(Time, u64, u64)>,
    rounds: u32,
    /// Throughput of the interval before.
    before: Option<Rate>,
    rate: Option<Rate>,
    lost: u64,
}

/// Minimum round trips of an interval (bbr_lt_intvl_min_rtts).
const MIN_ROUNDS: u32 = 4;
/// Maximum round trips of an interval: four times the minimum.
const MAX_ROUNDS: u32 = 4 * MIN_ROUNDS;
/// Lost bytes of an interval relative to its delivered ones (bbr_lt_loss_thresh, 50 of 256).
const LOSS: f64 = 50.0 / 256.0;
/// Maximum difference of two throughputs, as a share of the first (bbr_lt_bw_ratio).
const RATIO: f64 = 1.0 / 8.0;
/// Maximum difference of two throughputs that always counts as none (bbr_lt_bw_diff).
const DIFFERENCE_BPS: f64 = 4000.0;
/// Round trips for which the rate is used (bbr_lt_bw_max_rtts).
const USE_ROUNDS: u32 = 48;
/// Minimum length of an interval.
const MIN_SPAN: Duration = Duration::from_millis(1);

impl Policer {
    /// The policer's rate, if one was found.
    pub(super) fn rate(self) -> Option<Rate> {
        self.rate
    }

    fn begin(&mut self, now: Time, delivered: u64) {
        (self.start, self.rounds) = (Some((now, delivered, self.lost)), 0);
    }

    /// Forgets everything.
    pub(super) fn reset(&mut self) {
        *self = Self { lost: self.lost, ..Self::default() };
    }

    /// Adds a sample; returns whether a rate was used long enough: the cycle starts again. `is_cycling` in the state in
    /// which rounds of use count.
    pub(super) fn on_sample(&mut self, now: Time, sample: &RateSample, is_round_start: bool, is_cycling: bool) -> bool {
        let has_loss = sample.newly_lost > Bytes::ZERO;
        self.lost = self.lost.saturating_add(sample.newly_lost.get());
        let delivered = sample.total_delivered.get();
        self.rounds += u32::from(is_round_start && (self.rate.is_none() || is_cycling));
        if self.rate.is_some() {
            let is_over = self.rounds >= USE_ROUNDS;
            if is_over {
                self.reset();
            }
            return is_over;
        }
        // From the first loss on: until then the bucket had tokens.
        let Some((began, delivered_before, lost_before)) = self.start else {
            if has_loss {
                self.begin(now, delivered);
            }
            return false;
        };
        if sample.is_app_limited || self.rounds > MAX_ROUNDS {
            self.reset();
            return false;
        }
        let (delivered_bytes, lost) = (delivered - delivered_before, self.lost - lost_before);
        let is_lossy = delivered_bytes > 0 && lost as f64 >= LOSS * delivered_bytes as f64;
        let span = now.since(began);
        if self.rounds >= MIN_ROUNDS && has_loss && is_lossy && span >= MIN_SPAN {
            self.on_interval(now, delivered, Rate::nearest_bps(delivered_bytes as f64 * 8.0 / span.as_secs_f64()));
        }
        false
    }

    fn on_interval(&mut self, now: Time, delivered: u64, rate: Rate) {
        let is_same = |before: Rate| {
            let difference = (rate.as_bps() - before.as_bps()).abs();
            difference <= RATIO * before.as_bps() || difference <= DIFFERENCE_BPS
        };
        if let Some(before) = self.before.filter(|before| is_same(*before)) {
            (self.rate, self.rounds) = (Some((before + rate) * 0.5), 0);
        } else {
            self.before = Some(rate);
            self.begin(now, delivered);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A round trip of 100 ms that delivers and loses so many kilobytes.
    fn round(policer: &mut Policer, number: u64, delivered: &mut u64, kilobytes: u64, lost: u64) -> bool {
        *delivered += kilobytes * 1000;
        let sample = RateSample {
            total_delivered: Bytes::new(*delivered),
            newly_lost: Bytes::new(lost * 1000),
            ..RateSample::default()
        };
        policer.on_sample(Time::from_nanos(number * 100_000_000), &sample, true, true)
    }

    #[test]
    fn rate__is_the_mean_of_two_intervals_of_a_lossy_path_for_48_rounds() {
        let (mut policer, mut delivered) = (Policer::default(), 0);
        round(&mut policer, 0, &mut delivered, 100, 1);
        (1..=4).for_each(|number| _ = round(&mut policer, number, &mut delivered, 100, 25));
        assert_eq!(policer.rate(), None);
        (5..=8).for_each(|number| _ = round(&mut policer, number, &mut delivered, 110, 25));
        // 8 and 8.8 Mb/s, less than an eighth apart.
        assert!((policer.rate().unwrap().as_mbps() - 8.4).abs() < 1e-9);
        let over: Vec<_> = (9..=56).map(|number| round(&mut policer, number, &mut delivered, 100, 0)).collect();
        assert_eq!(over.iter().position(|is_over| *is_over), Some(47));
        assert_eq!(policer.rate(), None);
    }

    #[test]
    fn rate__none_with_less_than_a_fifth_lost() {
        let (mut policer, mut delivered) = (Policer::default(), 0);
        (0..40).for_each(|number| _ = round(&mut policer, number, &mut delivered, 100, 19));
        assert_eq!(policer.rate(), None);
    }
}
