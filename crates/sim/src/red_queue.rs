//! Random early detection (Floyd & Jacobson 1993) and its adaptive form (Floyd, Gummadi & Shenker 2001).

use fairwave_scenario::Red as RedConfig;
use fairwave_scenario::random::RandomStream;
use fairwave_units::{Duration, Time};

/// Drops arrivals at random, with a probability that grows with the average queue. The queue is counted in packets, or
/// in bytes as mean packets.
#[derive(Clone, Debug)]
pub(crate) struct RedQueue {
    stream: RandomStream,
    /// Weight of a new sample in the average.
    weight: f64,
    min_th_packets: f64,
    max_th_packets: f64,
    max_p: f64,
    pub(crate) config: RedConfig,
    packets_per_s: f64,
    average_packets: f64,
    /// Arrivals since the last drop.
    count: f64,
    next_adaption: Time,
}

impl RedQueue {
    /// The rule of a queue at a link that sends `packets_per_s` full packets per second.
    pub(crate) fn new(config: RedConfig, packets_per_s: f64, stream: RandomStream) -> Self {
        let weight = if config.q_weight > 0.0 { config.q_weight } else { 1.0 - libm::exp(-1.0 / packets_per_s) };
        let min_th_packets = match config.min_th_packets {
            // Floyd, Gummadi & Shenker 2001: half of the target delay, at least five packets.
            0 => (packets_per_s * config.target_delay.as_secs_f64() / 2.0).max(5.0),
            packets => packets as f64,
        };
        let max_th_packets =
            if config.max_th_packets == 0 { 3.0 * min_th_packets } else { config.max_th_packets as f64 };
        Self {
            stream,
            weight,
            min_th_packets,
            max_th_packets: max_th_packets.max(min_th_packets + 1.0),
            max_p: if config.max_p > 0.0 { config.max_p } else { USUAL_MAX_P },
            config,
            packets_per_s,
            average_packets: 0.0,
            count: -1.0,
            next_adaption: Time::ZERO + ADAPTION_PERIOD,
        }
    }

    /// Whether the average queue exceeds the upper threshold.
    pub(crate) fn is_beyond_thresholds(&self) -> bool {
        self.average_packets >= self.max_th_packets
    }

    /// A packet arrives at a queue of `queue_packets`, which became empty at `empty_since` if it is empty. Returns
    /// whether it is dropped.
    pub(crate) fn drops(&mut self, now: Time, queue_packets: f64, empty_since: Option<Time>) -> bool {
        if self.config.adaptive {
            while now >= self.next_adaption {
                self.adapt();
                self.next_adaption += ADAPTION_PERIOD;
            }
        }
        if let Some(since) = empty_since {
            // As many samples of an empty queue as packets that could have been sent in that time.
            let missed = now.since(since).as_secs_f64() * self.packets_per_s;
            self.average_packets *= libm::pow(1.0 - self.weight, missed);
        }
        self.average_packets += self.weight * (queue_packets - self.average_packets);
        let p = self.chance();
        if p <= 0.0 {
            self.count = -1.0;
            return false;
        }
        if p >= 1.0 {
            self.count = 0.0;
            return true;
        }
        self.count += 1.0;
        if self.stream.unit() < self.spread(p) {
            self.count = 0.0;
            return true;
        }
        false
    }

    /// The probability of a drop after `count` arrivals since the last: spreads drops uniformly rather than in
    /// clusters.
    fn spread(&self, p: f64) -> f64 {
        let expected = self.count * p;
        if self.config.wait {
            // ns-2's red.cc, modify_p, with `wait_`: over those between 1/p and 2/p, 1.5/p on average.
            match expected {
                ..1.0 => 0.0,
                1.0..2.0 => p / (2.0 - expected),
                _ => 1.0,
            }
        } else if expected < 1.0 {
            // Floyd & Jacobson 1993, section 7: over those up to 1/p.
            p / (1.0 - expected)
        } else {
            1.0
        }
    }

    /// The probability of a drop at the average queue, before it is spread.
    fn chance(&self) -> f64 {
        let Self { average_packets: average, min_th_packets: low, max_th_packets: high, max_p, .. } = *self;
        if average < low {
            0.0
        } else if average < high {
            max_p * (average - low) / (high - low)
        } else if self.config.gentle && average < 2.0 * high {
            max_p + (1.0 - max_p) * (average - high) / high
        } else {
            1.0
        }
    }

    /// Keeps the average in the middle fifth between the thresholds.
    fn adapt(&mut self) {
        let span = self.max_th_packets - self.min_th_packets;
        let (low, high) = (self.min_th_packets + 0.4 * span, self.min_th_packets + 0.6 * span);
        if self.average_packets > high && self.max_p <= 0.5 {
            self.max_p += (self.max_p / 4.0).min(0.01);
        } else if self.average_packets < low && self.max_p >= self.config.bottom {
            self.max_p *= 0.9;
        }
    }
}

/// ns-2: 1 / `linterm_`.
const USUAL_MAX_P: f64 = 0.1;
/// Interval between adaptions of the probability (Floyd, Gummadi & Shenker 2001).
const ADAPTION_PERIOD: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;
    use fairwave_scenario::random::stream;

    fn red(adaptive: bool) -> RedQueue {
        let config = RedConfig { adaptive, ..RedConfig::default() };
        RedQueue::new(config, 10_000.0, stream(1, "red"))
    }

    #[test]
    fn new__automatic_thresholds() {
        let red = red(false);
        // 10 000 packets/s x 5 ms / 2 = 25; three times that; 1 - exp(-1/10000).
        assert_eq!((red.min_th_packets, red.max_th_packets), (25.0, 75.0));
        assert!((red.weight - 9.9995e-5).abs() < 1e-9);
    }

    #[test]
    fn chance__rises_in_three_pieces() {
        let mut red = red(false);
        for (average, chance) in [(24.0, 0.0), (50.0, 0.05), (75.0, 0.1), (112.5, 0.55), (150.0, 1.0)] {
            red.average_packets = average;
            assert!((red.chance() - chance).abs() < 1e-12, "at {average}");
        }
    }

    /// Arrivals between consecutive drops, at an average queue whose probability is 0.05.
    fn gaps(config: RedConfig) -> Vec<usize> {
        let mut red = RedQueue::new(config, 10_000.0, stream(1, "red"));
        red.average_packets = 50.0;
        let at: Vec<_> = (0..100_000).filter(|_| red.drops(Time::ZERO, 50.0, None)).collect();
        at.windows(2).map(|pair| pair[1] - pair[0]).collect()
    }

    #[test]
    fn drops__match_the_probability() {
        let gaps = gaps(RedConfig { adaptive: false, wait: false, ..RedConfig::default() });
        // Spread evenly over 1 ... 1/p - 1 = 19 arrivals: one in ten on average.
        assert!((9_800..=10_200).contains(&gaps.len()), "{}", gaps.len());
        assert_eq!(gaps.iter().min(), Some(&1));
    }

    #[test]
    fn drops__with_wait_keep_their_distance() {
        let gaps = gaps(RedConfig { adaptive: false, ..RedConfig::default() });
        // ns-2: evenly over 1/p = 20 ... 2/p - 1 = 39 arrivals, 29.5 on average: 3390 of 100 000.
        assert_eq!((gaps.iter().min(), gaps.iter().max()), (Some(&20), Some(&39)));
        assert!((3_330..=3_450).contains(&gaps.len()), "{}", gaps.len());
    }

    #[test]
    fn max_p__is_the_probability_at_the_upper_threshold() {
        for (max_p, expected) in [(0.0, 0.1), (0.02, 0.02), (1.0, 1.0)] {
            let config = RedConfig { adaptive: false, max_p, ..RedConfig::default() };
            let mut red = RedQueue::new(config, 10_000.0, stream(1, "red"));
            for (average, share) in [(25.0, 0.0), (50.0, 0.5), (74.999_999, 1.0)] {
                red.average_packets = average;
                assert!((red.chance() - share * expected).abs() < 1e-6, "max_p {max_p} at {average}: {}", red.chance());
            }
        }
    }

    #[test]
    fn adapt__lowers_max_p_while_the_queue_is_short() {
        let mut red = red(true);
        red.drops(Time::from_secs(5), 0.0, Some(Time::ZERO));
        assert!((red.max_p - 0.1 * 0.9_f64.powi(10)).abs() < 1e-12);
        red.drops(Time::from_secs(500), 0.0, Some(Time::ZERO));
        assert!((0.0009..=0.001).contains(&red.max_p), "{}", red.max_p);
    }
}
