//! Conditions of a link: what changes over time, and what happens to packets besides queueing.

use fairwave_units::{Bytes, Duration, Rate, Time};

/// Conditions of a link; all off by default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conditions {
    /// Capacity over time; overrides that of the link for packets. Zero is an outage.
    pub capacity: Option<Steps<Rate>>,
    /// Propagation delay over time.
    pub delay: Option<Steps<Duration>>,
    /// Probability over time that a packet is lost.
    pub loss: Option<Steps<f64>>,
    /// Losses in bursts (Gilbert 1960): the probabilities with which a packet starts and ends a burst.
    pub burst_loss: Option<[f64; 2]>,
    /// Data packets that are lost, by their number at the link, from one on and in order.
    pub drop: Box<[u64]>,
    /// A token bucket that drops what exceeds its rate: rate and size.
    pub policer: Option<(Rate, Bytes)>,
    /// Random delay of each packet, uniform up to this; packets keep their order.
    pub jitter: Duration,
    /// Probability that a packet is delayed by this much more and overtaken.
    pub reorder: Option<(f64, Duration)>,
    /// Probability that a packet arrives twice.
    pub duplicate: f64,
}

/// A quantity that changes at certain instants.
#[derive(Clone, Debug, PartialEq)]
pub struct Steps<T> {
    steps: Box<[(Time, T)]>,
    /// The time after which the steps repeat; `None` keeps the last.
    period: Option<Duration>,
}

impl<T: Copy> Steps<T> {
    /// Steps in order of time, the first at zero, which repeat after `period`.
    ///
    /// # Panics
    /// Without a step at zero.
    pub fn new(steps: Box<[(Time, T)]>, period: Option<Duration>) -> Self {
        assert!(steps.first().is_some_and(|(at, _)| *at == Time::ZERO), "the first step is at zero");
        Self { steps, period }
    }

    /// The value at an instant, and the instant of the next step, if there is one.
    pub fn at(&self, now: Time) -> (T, Option<Time>) {
        let (mut base, mut within) = (Time::ZERO, now);
        if let Some(period) = self.period {
            within = Time::from_nanos(now.as_nanos() % period.as_nanos());
            base = Time::from_nanos(now.as_nanos() - within.as_nanos());
        }
        let next = self.steps.partition_point(|(at, _)| *at <= within);
        let later = match (self.steps.get(next), self.period) {
            (Some((at, _)), _) => Some(base.saturating_add(at.since(Time::ZERO))),
            (None, Some(period)) => Some(base.saturating_add(period)),
            (None, None) => None,
        };
        (self.steps[next - 1].1, later)
    }
}

impl Steps<Rate> {
    /// Mean over a span of time.
    pub fn mean(&self, (from, to): (Time, Time)) -> Rate {
        let (mut at, mut bits) = (from, 0.0);
        while at < to {
            let (rate, next) = self.at(at);
            let until = next.unwrap_or(to).min(to);
            bits += rate.as_bps() * until.since(at).as_secs_f64();
            at = until;
        }
        let span_s = to.since(from).as_secs_f64();
        if span_s > 0.0 { Rate::nearest_bps(bits / span_s) } else { self.at(from).0 }
    }

    /// When bits that start to leave at an instant have left; they use every step in between. The rate is above zero
    /// at that instant.
    pub fn end_of(&self, start: Time, bits: f64) -> Time {
        let (mut at, mut left_bits) = (start, bits);
        loop {
            let (rate, next) = self.at(at);
            let needed_ns = left_bits / rate.as_bps() * 1e9;
            // Less than a nanosecond beyond the step is a matter of rounding.
            match next {
                Some(next) if needed_ns >= next.since(at).as_nanos() as f64 + 1.0 => {
                    left_bits -= next.since(at).as_secs_f64() * rate.as_bps();
                    at = next;
                }
                // An infinite time saturates.
                _ => return at.saturating_add(Duration::from_nanos(needed_ns as u64)),
            }
        }
    }
}

impl Conditions {
    /// Whether there are any.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at__repeats_after_the_period() {
        let ms = |ms: u64| Time::from_nanos(ms * 1_000_000);
        let steps = |period| Steps::new(Box::new([(Time::ZERO, 1), (ms(10), 2), (ms(30), 3)]), period);
        let once = steps(None);
        assert_eq!([0, 9, 10, 29, 30, 500].map(|at| once.at(ms(at)).0), [1, 1, 2, 2, 3, 3]);
        assert_eq!([0, 10, 30].map(|at| once.at(ms(at)).1), [Some(ms(10)), Some(ms(30)), None]);
        let again = steps(Some(Duration::from_millis(40)));
        assert_eq!([39, 40, 49, 50, 115].map(|at| again.at(ms(at)).0), [3, 1, 1, 2, 3]);
        assert_eq!([30, 45, 110].map(|at| again.at(ms(at)).1), [Some(ms(40)), Some(ms(50)), Some(ms(120))]);
    }

    #[test]
    fn end_of__uses_every_step() {
        let ms = |ms: f64| Time::from_nanos((ms * 1e6) as u64);
        let steps = [(Time::ZERO, Rate::mbps(12.0)), (ms(1.0), Rate::ZERO), (ms(5.0), Rate::mbps(6.0))];
        let steps = |period| Steps::new(Box::new(steps), period);
        // 12 000 bits a millisecond, a gap of four, 6000 a millisecond.
        let again = steps(Some(Duration::from_millis(10)));
        let ends = [(0.0, 12e3), (0.0, 9e3), (0.5, 9e3), (0.5, 36e3), (0.5, 42e3)]
            .map(|(at, bits)| again.end_of(ms(at), bits));
        assert_eq!(ends, [1.0, 0.75, 5.5, 10.0, 10.5].map(ms));
        let outage = Steps::new(Box::new([(Time::ZERO, Rate::mbps(12.0)), (ms(1.0), Rate::ZERO)]), None);
        assert_eq!(outage.end_of(ms(0.5), 9e3), Time::MAX);
    }

    #[test]
    fn mean__is_over_the_span() {
        let second = Time::from_secs(1);
        let steps = [(Time::ZERO, Rate::mbps(10.0)), (second, Rate::mbps(2.0))];
        let steps = Steps::new(Box::new(steps), Some(Duration::from_secs(2)));
        assert_eq!(steps.mean((Time::ZERO, Time::from_secs(4))), Rate::mbps(6.0));
        assert_eq!(steps.mean((second, Time::from_secs(2))), Rate::mbps(2.0));
    }
}
