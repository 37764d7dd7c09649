//! Quantities computed from the samples of a run.

use fairwave_scenario::{RateSamples, Run};
use fairwave_schemes::global::metrics::jain_index;
use fairwave_units::Duration;
use thiserror::Error;

use crate::stated_quantity::Quantity;

/// Start and end.
pub(crate) type TimeSpan = [Quantity<Duration>; 2];

/// The reason why a measure has no value in a run: the claim does not fit its scenario.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MeasureError {
    /// An unknown session.
    #[error("no session \"{0}\"")]
    Session(String),
    /// An instant or window without samples.
    #[error("no samples in the window of the measure")]
    Window,
    /// Unknown background traffic.
    #[error("no background \"{0}\"")]
    Background(String),
    /// An unknown link.
    #[error("no link \"{0}\"")]
    Link(String),
    /// Samples that the run does not have.
    #[error("the run has no samples of this kind")]
    Samples,
}

/// Rates over time.
pub(crate) struct Samples<'a>(pub(crate) &'a RateSamples);

impl<'a> Samples<'a> {
    pub(crate) fn of(run: &'a Run) -> Result<Self, MeasureError> {
        run.rates.as_ref().map(Self).ok_or(MeasureError::Samples)
    }

    /// Session `k`'s wire rate in sample `i`.
    pub(crate) fn rate(&self, i: usize, k: usize) -> f64 {
        let rates = if self.0.wire_rate_bps.is_empty() { &self.0.rate_bps } else { &self.0.wire_rate_bps };
        rates[i * self.0.sessions + k]
    }

    pub(crate) fn total(&self, i: usize, sessions: &[usize]) -> f64 {
        sessions.iter().map(|&k| self.rate(i, k)).sum()
    }

    pub(crate) fn start_s(&self, i: usize) -> f64 {
        if i == 0 { 0.0 } else { self.0.ends[i - 1].as_secs_f64() }
    }

    pub(crate) fn end_s(&self, i: usize) -> f64 {
        self.0.ends[i].as_secs_f64()
    }

    pub(crate) fn width_s(&self, i: usize) -> f64 {
        self.end_s(i) - self.start_s(i)
    }

    /// The samples that are entirely in a window; all of them without one.
    pub(crate) fn within(&self, window: Option<TimeSpan>) -> impl Iterator<Item = usize> + '_ {
        let (from, to) = window.map_or((0.0, f64::INFINITY), |[from, to]| (from.0.as_secs_f64(), to.0.as_secs_f64()));
        (0..self.0.ends.len()).filter(move |&i| self.start_s(i) >= from - 1e-9 && self.end_s(i) <= to + 1e-9)
    }

    /// The sample that ends at an instant, or the first after it.
    pub(crate) fn at(&self, instant: Duration) -> Result<usize, MeasureError> {
        (0..self.0.ends.len()).find(|&i| self.end_s(i) >= instant.as_secs_f64() - 1e-9).ok_or(MeasureError::Window)
    }

    /// Time of session `k` from the first sample with arrivals to the end of the first one at a rate or above; infinite
    /// if there is none.
    pub(crate) fn ramp_s(&self, k: usize, rate_bps: f64) -> f64 {
        let mut samples = (0..self.0.ends.len()).skip_while(|&i| self.rate(i, k) <= 0.0);
        let Some(first) = samples.clone().next() else { return f64::INFINITY };
        samples.find(|&i| self.rate(i, k) >= rate_bps).map_or(f64::INFINITY, |i| self.end_s(i) - self.start_s(first))
    }

    pub(crate) fn mean(&self, k: usize, window: TimeSpan) -> Result<f64, MeasureError> {
        let (mut sum, mut time) = (0.0, 0.0);
        for i in self.within(Some(window)) {
            sum += self.rate(i, k) * self.width_s(i);
            time += self.width_s(i);
        }
        if time > 0.0 { Ok(sum / time) } else { Err(MeasureError::Window) }
    }

    /// Standard deviation over the mean, of samples weighted by their width; NaN if all rates are zero.
    pub(crate) fn swing(&self, k: usize, window: TimeSpan) -> Result<f64, MeasureError> {
        let mean = self.mean(k, window)?;
        let (mut squares, mut time) = (0.0, 0.0);
        for i in self.within(Some(window)) {
            squares += (self.rate(i, k) - mean).powi(2) * self.width_s(i);
            time += self.width_s(i);
        }
        Ok((squares / time).sqrt() / mean)
    }

    pub(crate) fn jain(&self, sessions: &[usize], window: TimeSpan) -> Result<f64, MeasureError> {
        let rates: Result<Vec<f64>, _> = sessions.iter().map(|&k| self.mean(k, window)).collect();
        Ok(jain_index(&rates?))
    }

    /// Ends and indices of the consecutive windows of a width from an instant on.
    pub(crate) fn jains(
        &self,
        sessions: &[usize],
        width: Duration,
        from: Duration,
    ) -> Result<Vec<(f64, f64)>, MeasureError> {
        let end_s = self.0.ends.last().map_or(0.0, |end| end.as_secs_f64());
        let mut windows = Vec::new();
        let mut begin = from;
        while (begin + width).as_secs_f64() <= end_s + 1e-9 {
            let end = begin + width;
            windows.push((end.as_secs_f64(), self.jain(sessions, [Quantity(begin), Quantity(end)])?));
            begin = end;
        }
        if windows.is_empty() { Err(MeasureError::Window) } else { Ok(windows) }
    }

    pub(crate) fn peak(&self, window: Option<TimeSpan>, value: impl Fn(usize) -> f64) -> Result<f64, MeasureError> {
        self.within(window).map(value).reduce(f64::max).ok_or(MeasureError::Window)
    }

    /// Start of the first sample from which on all samples are good.
    pub(crate) fn for_good(&self, good: impl Fn(usize) -> bool) -> f64 {
        let bad = (0..self.0.ends.len()).rev().find(|&i| !good(i));
        let first = bad.map_or(0, |i| i + 1);
        if first < self.0.ends.len() { self.start_s(first) } else { f64::INFINITY }
    }

    /// End of the first stretch of samples of this width over which session `k` has at least a rate on average.
    pub(crate) fn reaches(&self, k: usize, bps: f64, width: Duration) -> f64 {
        let width_s = width.as_secs_f64() - 1e-9;
        let (mut begin, mut bits) = (0, 0.0);
        for end in 0..self.0.ends.len() {
            bits += self.rate(end, k) * self.width_s(end);
            // The shortest stretch that is at least as wide.
            while begin < end && self.end_s(end) - self.start_s(begin + 1) >= width_s {
                bits -= self.rate(begin, k) * self.width_s(begin);
                begin += 1;
            }
            let span_s = self.end_s(end) - self.start_s(begin);
            if span_s >= width_s && bits >= bps * span_s {
                return self.end_s(end);
            }
        }
        f64::INFINITY
    }

    /// The longest time over which all samples are good.
    pub(crate) fn longest(&self, good: impl Fn(usize) -> bool) -> f64 {
        let (mut longest, mut current) = (0.0_f64, 0.0);
        for i in 0..self.0.ends.len() {
            current = if good(i) { current + self.width_s(i) } else { 0.0 };
            longest = longest.max(current);
        }
        longest
    }
}

/// Distances over time.
pub(crate) struct Distances<'a> {
    pub(crate) ends_s: Vec<f64>,
    pub(crate) from_optimum_bps: &'a [f64],
    pub(crate) norms_bps: &'a [f64],
}

impl<'a> Distances<'a> {
    pub(crate) fn of(run: &'a Run, width: Duration) -> Result<Self, MeasureError> {
        if run.distances_bps.is_empty() || run.distances_bps.len() != run.max_min_norms_bps.len() {
            return Err(MeasureError::Samples);
        }
        let end_s = |i: usize| (i as f64 * width.as_secs_f64()).min(run.summary.duration_s);
        let ends_s = (1..=run.distances_bps.len()).map(end_s).collect();
        Ok(Self { ends_s, from_optimum_bps: &run.distances_bps, norms_bps: &run.max_min_norms_bps })
    }

    pub(crate) fn quotient(&self, i: usize) -> f64 {
        self.from_optimum_bps[i] / self.norms_bps[i]
    }
}
