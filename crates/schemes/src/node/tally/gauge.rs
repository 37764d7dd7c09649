//! Estimates an application's demand from what it sends.

use fairwave_units::{Duration, Time};

use super::options::TallyOptions;

/// A source's observations of one session between two ticks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub(super) elapsed: Duration,
    pub(super) bits: f64,
    /// Whether data were waiting at any moment.
    pub(super) waited: bool,
    /// Smallest rate that was allowed at any moment.
    pub(super) least_allowed_bps: f64,
}

/// Bits over a span.
#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    bits: f64,
    secs: f64,
}

/// The demand of one session: infinity while data wait, else the measured send rate. No other value is possible, so a
/// rising rate is never mistaken for a demand.
#[derive(Clone, Debug)]
pub(super) struct DemandGauge {
    demand_bps: f64,
    /// Exists from the first moment at which no data waited until data wait.
    measuring: Option<Box<Measuring>>,
}

/// The measurement of a demand.
#[derive(Clone, Debug)]
struct Measuring {
    set_at: Time,
    /// Since the demand was last set.
    since_set: Mean,
    /// Since the last whole window, which holds a hundred packets.
    window: Mean,
    window_least_bps: f64,
}

impl DemandGauge {
    pub(super) fn new() -> Self {
        Self { demand_bps: f64::INFINITY, measuring: None }
    }

    fn measuring(&mut self) -> &mut Measuring {
        self.measuring.get_or_insert_with(|| {
            Box::new(Measuring {
                set_at: Time::ZERO,
                since_set: Mean::default(),
                window: Mean::default(),
                window_least_bps: f64::INFINITY,
            })
        })
    }

    /// The demand; infinity if unlimited.
    pub(super) fn demand_bps(&self) -> f64 {
        self.demand_bps
    }

    pub(super) fn on_tick(&mut self, now: Time, sent: &Sent, options: &TallyOptions) {
        if sent.elapsed.is_zero() {
            return;
        }
        let mean = Mean { bits: sent.bits, secs: sent.elapsed.as_secs_f64() };
        if options.knows_backlog {
            self.on_backlog(now, mean, sent, options);
        } else {
            self.on_rates(now, mean, sent, options);
        }
    }

    fn on_backlog(&mut self, now: Time, mean: Mean, sent: &Sent, options: &TallyOptions) {
        if sent.waited {
            *self = Self::new();
            return;
        }
        let here = self.measuring();
        here.window.add(mean);
        here.window_least_bps = here.window_least_bps.min(sent.least_allowed_bps);
        let window = here.window;
        let packet_bits = options.packet.get() as f64 * 8.0;
        if here.window_least_bps * window.secs >= 100.0 * packet_bits {
            here.empty_window();
            self.settle(now, window, options);
        } else {
            // Too few packets for a measurement: the upper bound may only lower the demand.
            let most = (window.bits + packet_bits) / window.secs;
            if most < self.demand_bps {
                self.set(now, most);
            }
        }
    }

    fn on_rates(&mut self, now: Time, mean: Mean, sent: &Sent, options: &TallyOptions) {
        let measured = mean.bps();
        let slack = 2.0 * options.packet.get() as f64 * 8.0 / mean.secs;
        let is_below = measured + slack < (1.0 - options.tolerance) * sent.least_allowed_bps;
        // Hysteresis: a finite demand stays finite until the rate is halfway to the allowed rate.
        let stays =
            self.demand_bps < f64::INFINITY && measured < f64::midpoint(self.demand_bps, sent.least_allowed_bps);
        if is_below || stays {
            self.settle(now, mean, options);
        } else {
            *self = Self::new();
        }
    }

    /// Takes over a measured demand if it moved. A change within the deadband is taken over after a lease.
    fn settle(&mut self, now: Time, mean: Mean, options: &TallyOptions) {
        let measured = mean.bps();
        let is_within = (measured - self.demand_bps).abs() <= options.deadband * self.demand_bps.max(measured);
        if !(self.demand_bps < f64::INFINITY && is_within) {
            self.set(now, measured);
            return;
        }
        let here = self.measuring();
        here.since_set.add(mean);
        if now.since(here.set_at) >= options.lease {
            let mean = here.since_set.bps();
            // Rounding error of f64 sums: an unchanged demand is not sent again.
            let is_same = (mean - self.demand_bps).abs() <= 1e-12 * mean;
            self.set(now, if is_same { self.demand_bps } else { mean });
        }
    }

    fn set(&mut self, now: Time, bps: f64) {
        self.demand_bps = bps;
        let here = self.measuring();
        (here.set_at, here.since_set) = (now, Mean::default());
    }
}

impl Measuring {
    fn empty_window(&mut self) {
        self.window = Mean::default();
        self.window_least_bps = f64::INFINITY;
    }
}

impl Mean {
    fn add(&mut self, other: Self) {
        self.bits += other.bits;
        self.secs += other.secs;
    }

    fn bps(self) -> f64 {
        self.bits / self.secs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairwave_units::Bytes;

    const TICK: Duration = Duration::from_millis(20);

    /// Ticks of 20 ms, each (mean rate, whether data waited, least allowed rate); the demand after each.
    fn demands(options: &TallyOptions, ticks: &[(f64, bool, f64)]) -> Vec<f64> {
        let mut gauge = DemandGauge::new();
        let at = |tick: usize| Time::from_nanos((tick as u64 + 1) * TICK.as_nanos());
        let tick = |(number, &(bps, waited, least_allowed_bps))| {
            let sent = Sent { elapsed: TICK, bits: bps * 0.02, waited, least_allowed_bps };
            gauge.on_tick(at(number), &sent, options);
            gauge.demand_bps()
        };
        ticks.iter().enumerate().map(tick).collect()
    }

    #[test]
    fn on_tick__data_that_wait_are_a_demand_without_limit() {
        let options = TallyOptions::default();
        let found = demands(&options, &[(500.0, false, 1000.0), (1000.0, true, 1000.0), (300.0, false, 1000.0)]);
        assert_eq!(found, [500.0, f64::INFINITY, 300.0]);
    }

    #[test]
    fn on_tick__small_change_takes_effect_after_a_lease() {
        let options = TallyOptions::default();
        let mut ticks = vec![(505.0, false, 1000.0)];
        ticks.resize(220, (500.0, false, 1000.0));
        let found = demands(&options, &ticks);
        // 1 % is within the deadband of 2 %. 4 s are 200 ticks.
        assert_eq!((found[1], found[199]), (505.0, 505.0));
        assert!((found[200] - 500.0).abs() < 1e-9, "{}", found[200]);
    }

    #[test]
    fn on_tick__few_packets_lower_a_demand_and_do_not_raise_it() {
        // 1250 bytes are 10 000 bits; 100 of them at 10 Mb/s take 100 ms: five ticks.
        let options = TallyOptions { packet: Bytes::new(1250), ..TallyOptions::default() };
        let found = demands(&options, &[(1e6, false, 1e7); 6]);
        // (20 000 + 10 000) bits in 20 ms, (40 000 + 10 000) in 40 ms, and so on; then 100 000 bits in 100 ms.
        let expected = [1.5e6, 1.25e6, 70e3 / 0.06, 90e3 / 0.08, 1e6, 1e6];
        assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-3), "{found:?}");
    }

    /// The mean over an interval that contains a raise is not a demand: the smallest allowed rate of the interval
    /// counts.
    #[test]
    fn on_tick__a_raise_within_the_interval_is_no_demand() {
        let options = TallyOptions { knows_backlog: false, ..TallyOptions::default() };
        // Greedy: 400 for half of the interval, then 800: the mean is 600, the least allowed rate 400.
        assert_eq!(demands(&options, &[(600.0, true, 400.0)]), [f64::INFINITY]);
        assert_eq!(demands(&options, &[(600.0, true, 800.0)]), [600.0]);
        // Halfway between a demand and the allowed rate it stops being one: (600 + 800) / 2 = 700.
        let found = demands(&options, &[(600.0, true, 800.0), (690.0, true, 690.0), (760.0, true, 800.0)]);
        assert_eq!(found, [600.0, f64::INFINITY, 760.0]);
        let found = demands(&options, &[(600.0, true, 800.0), (600.0, true, 602.0)]);
        assert_eq!(found, [600.0, 600.0]);
    }
}
