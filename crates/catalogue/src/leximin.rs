//! The leximin order of rate vectors over time (Wu 2007, Definitions 5 and 6), and the lemmas about it.
//!
//! Rates are those at which sources may send, so that the lemmas hold for sessions without demands.

use std::cmp::Ordering;

use fairwave_scenario::RateSamples;
use fairwave_units::Duration;

/// Rates are equal if they differ by at most this share.
const TIE: f64 = 1e-9;

/// Number of samples whose rates are not above the leximin minimum of the time `within` before them, although that
/// minimum is below the optimum: violations of Wu 2007, Lemma 3.
pub(crate) fn falls(samples: &RateSamples, optimum_bps: &[f64], within: Duration) -> usize {
    let rows: Vec<_> = rows(samples).map(|row| ranked(&row).into_iter().map(|k| row[k]).collect::<Vec<_>>()).collect();
    let optimum: Vec<_> = ranked(optimum_bps).into_iter().map(|k| optimum_bps[k]).collect();
    let least = least_before(samples, within, |a, b| compare(&rows[a], &rows[b]));
    let is_fall = |(row, least): &(&Vec<f64>, Option<usize>)| {
        let Some(least) = least.map(|sample| &rows[sample]) else { return false };
        compare(least, &optimum).is_lt() && compare(row, least).is_le()
    };
    rows.iter().zip(least).filter(is_fall).count()
}

/// Number of samples in which fewer of the lowest rates are optimal than in the whole time `within` before them:
/// violations of Wu 2007, Lemma 2.
pub(crate) fn settled_falls(samples: &RateSamples, optimum_bps: &[f64], within: Duration) -> usize {
    let lowest = ranked(optimum_bps);
    let settled: Vec<usize> = rows(samples)
        .map(|row| {
            let is_settled = |(k, rank): &(usize, usize)| {
                let optimal = |optimum: usize| tie(row[*k], optimum_bps[optimum]).is_eq();
                optimal(*k) && optimal(lowest[*rank])
            };
            ranked(&row).into_iter().zip(0..).take_while(is_settled).count()
        })
        .collect();
    let least = least_before(samples, within, |a, b| settled[a].cmp(&settled[b]));
    settled.iter().zip(least).filter(|(now, least)| least.is_some_and(|sample| **now < settled[sample])).count()
}

/// The rates at which sources may send, sample by sample.
fn rows(samples: &RateSamples) -> impl Iterator<Item = Vec<f64>> + '_ {
    let row = |sample| (0..samples.sessions).map(|k| samples.expected_bps(sample, k)).collect();
    (0..samples.ends.len()).map(row)
}

/// Sessions from the lowest rate to the highest, and then by their index.
fn ranked(rates_bps: &[f64]) -> Vec<usize> {
    let mut sessions: Vec<usize> = (0..rates_bps.len()).collect();
    sessions.sort_by(|&a, &b| rates_bps[a].total_cmp(&rates_bps[b]));
    sessions
}

/// For each sample the least of those that end in the time `within` before it; `None` for samples without all of that
/// time before them.
fn least_before(
    samples: &RateSamples,
    within: Duration,
    compare: impl Fn(usize, usize) -> Ordering,
) -> Vec<Option<usize>> {
    let least = |sample: usize| {
        let last = samples.ends[..sample].last()?;
        let begin = last.as_nanos().checked_sub(within.as_nanos())?;
        let first = samples.ends.partition_point(|end| end.as_nanos() <= begin);
        (first..sample).min_by(|&a, &b| compare(a, b))
    };
    (0..samples.ends.len()).map(least).collect()
}

fn compare(a: &[f64], b: &[f64]) -> Ordering {
    a.iter().zip(b).map(|(&a, &b)| tie(a, b)).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

fn tie(a: f64, b: f64) -> Ordering {
    if (a - b).abs() <= TIE * a.max(b) { Ordering::Equal } else { a.total_cmp(&b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairwave_units::Time;

    /// Samples of a second with these rates.
    fn samples(rows: &[[f64; 3]]) -> RateSamples {
        let rates: Vec<f64> = rows.concat();
        RateSamples {
            ends: (1..).map(Time::from_secs).take(rows.len()).collect(),
            sessions: 3,
            source_expected_bps: rates.clone(),
            sink_expected_bps: rates,
            ..RateSamples::default()
        }
    }

    #[test]
    fn falls__count_rates_not_above_the_minimum_of_the_time_before() {
        let optimum = [5.0, 5.0, 8.0];
        let of = |rows: &[[f64; 3]]| falls(&samples(rows), &optimum, Duration::from_secs(2));
        // The lowest rate rises, whatever the others do.
        assert_eq!(of(&[[1.0, 9.0, 9.0], [9.0, 2.0, 2.0], [3.0, 3.0, 1.5], [4.0, 3.0, 3.0]]), 0);
        // Equal to the minimum of the two samples before, and below it.
        assert_eq!(of(&[[1.0, 9.0, 9.0], [1.0, 9.0, 9.0], [9.0, 1.0, 9.0], [1.0, 8.0, 9.0]]), 2);
        // At the optimum the rates may stay.
        assert_eq!(of(&[optimum, optimum, optimum, optimum]), 0);
    }

    #[test]
    fn settled_falls__count_lowest_rates_that_leave_the_optimum() {
        let of = |rows: &[[f64; 3]]| settled_falls(&samples(rows), &[4.0, 5.0, 8.0], Duration::from_secs(2));
        assert_eq!(of(&[[4.0, 4.5, 9.0], [4.0, 6.0, 9.0], [4.0, 7.0, 7.0], [4.0, 5.0, 8.0]]), 0);
        assert_eq!(of(&[[4.0, 5.0, 9.0], [4.0, 5.0, 7.0], [4.0, 6.0, 8.0]]), 1);
        // The lowest rate is optimal, but it is another session's.
        assert_eq!(of(&[[4.0, 5.0, 8.0], [4.0, 5.0, 8.0], [5.0, 4.0, 8.0]]), 1);
    }
}
