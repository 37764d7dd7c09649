//! Running totals at the ends of samples.

use fairwave_units::Time;

/// Running totals of several columns (sessions, links) at the ends of samples. The first sample starts at zero.
#[derive(Clone, Copy, Debug)]
pub struct Totals<'a> {
    ends: &'a [Time],
    columns: usize,
    values: &'a [u64],
}

impl<'a> Totals<'a> {
    /// Totals whose entry `sample * columns + column` was read at the end of a sample. The ends are in order.
    pub fn new(ends: &'a [Time], columns: usize, values: &'a [u64]) -> Self {
        Self { ends, columns, values }
    }

    /// The total of a column at the end of a sample; zero if it was not read.
    fn at(&self, column: usize, sample: usize) -> u64 {
        self.values.get(sample * self.columns + column).copied().unwrap_or(0)
    }

    /// Increase of a column in a sample; zero if its total decreased.
    pub fn change(&self, column: usize, sample: usize) -> u64 {
        let before = if sample == 0 { 0 } else { self.at(column, sample - 1) };
        self.at(column, sample).saturating_sub(before)
    }

    /// Increase of a column up to an instant, interpolated between samples.
    pub fn until(&self, column: usize, at: Time) -> f64 {
        self.until_within(column, at, (Time::ZERO, Time::MAX))
    }

    /// [`Self::until`] of a column that increases in this span of time only, as far as the samples agree.
    pub fn until_within(&self, column: usize, at: Time, (first, last): (Time, Time)) -> f64 {
        let sample = self.ends.partition_point(|end| *end <= at);
        let before = if sample == 0 { 0 } else { self.at(column, sample - 1) };
        if sample == self.ends.len() {
            return before as f64;
        }
        let begin = if sample == 0 { Time::ZERO } else { self.ends[sample - 1] };
        let end = self.ends[sample];
        let (from, to) = (begin.max(first), end.min(last));
        let (from, to) = if from < to { (from, to) } else { (begin, end) };
        let share = at.clamp(from, to).since(from).as_secs_f64() / to.since(from).as_secs_f64();
        before as f64 + share * self.change(column, sample) as f64
    }

    /// Length of a sample in seconds.
    pub fn span_s(&self, sample: usize) -> f64 {
        let begin = if sample == 0 { Time::ZERO } else { self.ends[sample - 1] };
        self.ends[sample].since(begin).as_secs_f64()
    }
}
