//! The differential equations of AECP (Huang et al. 2010, Eq. 6), in logarithms as in the paper's Eq. (7), and their
//! steps.
//!
//! Heun's method: an explicit step, then one with the mean of the slopes at both its ends; the error falls with the
//! square of the step. Rates and rate factors are logarithms, so neither can fall to zero or below.

use std::collections::VecDeque;

use fairwave_schemes::link::AecpConfig;

/// Maximum rate factor, as a share of the capacity.
const MAX_SHARE: f64 = 2.0;

/// One session's source.
#[derive(Clone, Debug)]
pub(crate) struct AecpSource {
    /// Gain in 1/s.
    pub(crate) alpha_per_s: f64,
    /// Age of the links' values when they reach it.
    pub(crate) rtt_ns: u64,
    /// The finite capacities on its path, as indices into the lines.
    pub(crate) lines: Vec<u32>,
    /// Those of them that run the rule.
    pub(crate) tellers: Vec<u32>,
    /// Logarithm of its permitted rate in bit/s.
    pub(crate) ln_rate: f64,
    /// Its demand, in bit/s; zero while it is not active.
    pub(crate) demand_bps: f64,
    /// Whether it is active and a round trip has passed, so that it follows the links.
    pub(crate) hears: bool,
    /// The entry of the history that it read last.
    heard: usize,
    /// Mean rate over the last step, as sent and as delivered.
    pub(crate) sent_bps: f64,
    pub(crate) passed_bps: f64,
}

/// One finite capacity, with its queue.
#[derive(Clone, Debug)]
pub(crate) struct AecpResource {
    /// The rule's constants; `None` if no rule runs.
    pub(crate) rule: Option<AecpConfig>,
    pub(crate) capacity_bps: f64,
    pub(crate) packet_bits: f64,
    /// Limit of the queue.
    pub(crate) limit_bits: f64,
    /// Logarithm of the rate factor in bit/s.
    pub(crate) ln_factor: f64,
    pub(crate) queue_bits: f64,
    /// Mean rate that arrived over the last step.
    pub(crate) load_bps: f64,
    /// Bits that did not fit in the last step.
    pub(crate) dropped_bits: f64,
}

/// The whole state, at an instant.
#[derive(Clone, Debug)]
pub(crate) struct Dynamics {
    pub(crate) sources: Vec<AecpSource>,
    pub(crate) lines: Vec<AecpResource>,
    history: History,
    /// Scratch space of a step.
    slopes: [Slopes; 2],
}

/// Derivatives of the state.
#[derive(Clone, Debug, Default)]
struct Slopes {
    ln_rates: Vec<f64>,
    ln_factors: Vec<f64>,
    rates_bps: Vec<f64>,
    loads_bps: Vec<f64>,
}

/// The past logarithms of the rate factors, linear between the entries.
#[derive(Clone, Debug, Default)]
struct History {
    /// Number of entries that were dropped.
    gone: usize,
    times: VecDeque<u64>,
    /// A row of all lines for each time.
    values: VecDeque<f64>,
    width: usize,
    keep_ns: u64,
}

impl AecpSource {
    pub(crate) fn new(alpha_per_s: f64, rtt_ns: u64, lines: Vec<u32>, tellers: Vec<u32>) -> Self {
        Self {
            alpha_per_s,
            rtt_ns,
            lines,
            tellers,
            ln_rate: 0.0,
            demand_bps: 0.0,
            hears: false,
            heard: 0,
            sent_bps: 0.0,
            passed_bps: 0.0,
        }
    }

    /// Its current send rate.
    pub(crate) fn rate_bps(&self) -> f64 {
        libm::exp(self.ln_rate).min(self.demand_bps)
    }
}

impl AecpResource {
    /// A line without a queue, with the rule's first rate factor.
    pub(crate) fn new(rule: Option<AecpConfig>, capacity_bps: f64, packet_bits: f64, limit_bits: f64) -> Self {
        let first = rule.as_ref().map_or(1.0, |config| config.first_share);
        let mut line = Self {
            rule,
            capacity_bps,
            packet_bits,
            limit_bits,
            ln_factor: 0.0,
            queue_bits: 0.0,
            load_bps: 0.0,
            dropped_bits: 0.0,
        };
        line.ln_factor = line.within(libm::log(capacity_bps * first));
        line
    }

    /// Limits a factor to between one packet per second and [`MAX_SHARE`] of the capacity.
    fn within(&self, ln_factor: f64) -> f64 {
        ln_factor.min(libm::log(self.capacity_bps * MAX_SHARE)).max(libm::log(self.packet_bits))
    }

    /// Eq. 2 over r: the growth of the logarithm of the rate factor, in 1/s.
    fn growth_per_s(&self, load_bps: f64, queue_bits: f64) -> f64 {
        let packets = |bits: f64| bits / self.packet_bits;
        self.rule.as_ref().map_or(0.0, |config| {
            config.growth_per_s(packets(self.capacity_bps), packets(load_bps), packets(queue_bits))
        })
    }
}

impl Dynamics {
    pub(crate) fn new(sources: Vec<AecpSource>, lines: Vec<AecpResource>) -> Self {
        let (width, keep_ns) = (lines.len(), sources.iter().map(|source| source.rtt_ns).max().unwrap_or(0));
        let history = History { width, keep_ns, ..History::default() };
        let slopes = || Slopes {
            ln_rates: vec![0.0; sources.len()],
            ln_factors: vec![0.0; lines.len()],
            rates_bps: vec![0.0; sources.len()],
            loads_bps: vec![0.0; lines.len()],
        };
        let mut dynamics = Self { slopes: [slopes(), slopes()], sources, lines, history };
        dynamics.history.push(0, dynamics.lines.iter().map(|line| line.ln_factor));
        dynamics
    }

    /// Advances the state from `now` by `span_ns`.
    pub(crate) fn step(&mut self, now: u64, span_ns: u64) {
        let (then, span_s) = (now + span_ns, span_ns as f64 / 1e9);
        let Self { sources, lines, history, slopes: [first, second] } = self;
        for source in sources.iter_mut().filter(|source| source.hears) {
            source.heard = history.seek(source.heard, now.saturating_sub(source.rtt_ns));
        }
        first.rates(sources, |_, source| source.ln_rate);
        first.loads(sources);
        for ((slope, line), load_bps) in first.ln_factors.iter_mut().zip(&*lines).zip(&first.loads_bps) {
            *slope = line.growth_per_s(*load_bps, line.queue_bits);
        }
        for (slope, source) in first.ln_rates.iter_mut().zip(&*sources) {
            let at = now.saturating_sub(source.rtt_ns);
            *slope = source.growth_per_s(source.ln_rate, |line| history.value(source.heard, at, line));
        }
        // The second slopes are those at the result of the explicit step. Its factors are in the history for the
        // duration of the step, for sources with shorter delays.
        let explicit = |line: &AecpResource, slope: f64| line.within(line.ln_factor + span_s * slope);
        history.push(then, lines.iter().zip(&first.ln_factors).map(|(line, slope)| explicit(line, *slope)));
        second.rates(sources, |k, source| source.ln_rate + span_s * first.ln_rates[k]);
        second.loads(sources);
        for (l, line) in lines.iter().enumerate() {
            let queue_bits = line.queue_bits + span_s * (first.loads_bps[l] - line.capacity_bps);
            second.ln_factors[l] = line.growth_per_s(second.loads_bps[l], queue_bits.clamp(0.0, line.limit_bits));
        }
        for (k, source) in sources.iter().enumerate() {
            let at = then.saturating_sub(source.rtt_ns);
            let heard = history.seek(source.heard, at);
            let ln_rate = source.ln_rate + span_s * first.ln_rates[k];
            second.ln_rates[k] = source.growth_per_s(ln_rate, |line| history.value(heard, at, line));
        }
        history.pop();
        for (l, line) in lines.iter_mut().enumerate() {
            let slope = f64::midpoint(first.ln_factors[l], second.ln_factors[l]);
            line.ln_factor = line.within(line.ln_factor + span_s * slope);
            line.load_bps = f64::midpoint(first.loads_bps[l], second.loads_bps[l]);
            // Eq. 5, between an empty queue and a full one.
            let queue_bits = line.queue_bits + span_s * (line.load_bps - line.capacity_bps);
            line.dropped_bits = (queue_bits - line.limit_bits).max(0.0);
            line.queue_bits = queue_bits.clamp(0.0, line.limit_bits);
        }
        for (k, source) in sources.iter_mut().enumerate() {
            source.ln_rate += span_s * f64::midpoint(first.ln_rates[k], second.ln_rates[k]);
            source.sent_bps = f64::midpoint(first.rates_bps[k], second.rates_bps[k]);
            let passes = source.lines.iter().map(|line| lines[*line as usize].passes(span_s));
            source.passed_bps = source.sent_bps * passes.fold(1.0, f64::min);
        }
        history.push(then, lines.iter().map(|line| line.ln_factor));
        history.forget_before(then);
    }
}

impl AecpSource {
    /// Eqs. 3 and 4 over x: the growth of the logarithm of the rate, in 1/s, by the smallest rate factor on the path.
    fn growth_per_s(&self, ln_rate: f64, ln_factor: impl Fn(usize) -> Option<f64>) -> f64 {
        if !self.hears {
            return 0.0;
        }
        let least = self.tellers.iter().filter_map(|line| ln_factor(*line as usize)).reduce(f64::min);
        // Without a rule on the path the rate is constant.
        least.map_or(0.0, |ln_factor| self.alpha_per_s * (ln_factor - ln_rate))
    }
}

impl AecpResource {
    /// The share of the arrivals of the last step that was not dropped.
    fn passes(&self, span_s: f64) -> f64 {
        if self.dropped_bits > 0.0 { 1.0 - (self.dropped_bits / (self.load_bps * span_s)).min(1.0) } else { 1.0 }
    }
}

impl Slopes {
    fn rates(&mut self, sources: &[AecpSource], ln_rate: impl Fn(usize, &AecpSource) -> f64) {
        for (k, (rate_bps, source)) in self.rates_bps.iter_mut().zip(sources).enumerate() {
            let active = source.demand_bps > 0.0;
            *rate_bps = if active { libm::exp(ln_rate(k, source)).min(source.demand_bps) } else { 0.0 };
        }
    }

    fn loads(&mut self, sources: &[AecpSource]) {
        self.loads_bps.fill(0.0);
        for (source, rate_bps) in sources.iter().zip(&self.rates_bps) {
            for line in &source.lines {
                self.loads_bps[*line as usize] += rate_bps;
            }
        }
    }
}

impl History {
    fn push(&mut self, at: u64, ln_factors: impl Iterator<Item = f64>) {
        self.times.push_back(at);
        self.values.extend(ln_factors);
    }

    fn pop(&mut self) {
        self.times.pop_back();
        self.values.truncate(self.times.len() * self.width);
    }

    /// Drops entries that no source will read from `now` on.
    fn forget_before(&mut self, now: u64) {
        let from = now.saturating_sub(self.keep_ns);
        while self.times.get(1).is_some_and(|next| *next <= from) {
            self.times.pop_front();
            self.values.drain(..self.width);
            self.gone += 1;
        }
    }

    /// The entry at or before `at`, starting from `from`.
    fn seek(&self, from: usize, at: u64) -> usize {
        let mut entry = from.max(self.gone);
        while self.times.get(entry + 1 - self.gone).is_some_and(|next| *next <= at) {
            entry += 1;
        }
        entry
    }

    /// The logarithm of a line's factor at an instant between an entry and the next.
    fn value(&self, entry: usize, at: u64, line: usize) -> Option<f64> {
        let entry = entry - self.gone;
        let here = *self.values.get(entry * self.width + line)?;
        let (Some(begin), Some(end)) = (self.times.get(entry), self.times.get(entry + 1)) else { return Some(here) };
        let there = *self.values.get((entry + 1) * self.width + line)?;
        let share = at.saturating_sub(*begin) as f64 / (end - begin) as f64;
        Some(here + share * (there - here))
    }
}
