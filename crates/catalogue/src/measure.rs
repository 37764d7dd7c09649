//! The measures of claims in a run.

use std::collections::{BTreeMap, BTreeSet};

use fairwave_scenario::{LinkSummary, MaxMinStep, Record, Run, SessionSummary, WindowSamples};
use fairwave_schemes::global::metrics::jain_index;
use fairwave_units::{Duration, Rate};
use serde::Deserialize;

use crate::leximin;
use crate::samples::{Distances, MeasureError, Samples, TimeSpan};
use crate::sharing::{Statistic, slowdown};
use crate::stated_quantity::Quantity;
use crate::unit::Dimension;

/// A number per session, or one per run. Rates are wire rates; times count from the start of the run, and a time that
/// is never reached is infinite. "For good" means until the end of the samples.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Measure {
    /// Per session: mean rate over the last tenth of its active time.
    FinalRate,
    /// Per session: the optimum at the end of its active time, from the global algorithm and not from the run.
    MaxMinRate,
    /// Per session: mean rate over the window of the run's means, its second half.
    Rate,
    /// Per session: mean rate over the same window, relative to the capacity of a link.
    Share { link: String },
    /// Per session: mean rate in a window.
    MeanRate { window: TimeSpan },
    /// Per session: largest sample, in a window if one is given.
    PeakRate { window: Option<TimeSpan> },
    /// Per session: standard deviation of its samples in a window, relative to their mean.
    Swing { window: TimeSpan },
    /// Per session: time from which its samples stay at or above this share of its optimum (or of a rate).
    TimeTo { share: f64, of: Option<Quantity<Rate>> },
    /// Per session: time from its first data until a sample first reaches this share of its rate at the end,
    /// [`Measure::FinalRate`].
    Ramp { share: f64 },
    /// Per session: the end of the first stretch of this width, ending with a sample, over which its mean rate is at
    /// least this share of its optimum, whatever follows. Noise within the width is averaged out.
    Reaches { share: f64, width: Quantity<Duration> },
    /// Per session: an end's grant at an instant.
    ExpectedRate { end: SessionEnd, at: Quantity<Duration> },
    /// Per session: distance from its optimum at an instant, as a share of the optimum.
    Error { at: Quantity<Duration> },
    /// Per session: time at which its last byte was delivered.
    Completed,
    /// Per run: mean or 99th percentile of completion times over that of processor sharing: the same transfers at the
    /// capacity of a link, of whose packets the share `payload` is data, and these round trips more each. Infinite if a
    /// transfer does not complete.
    Slowdown { link: String, payload: f64, round_trips: f64, of: Statistic },
    /// Per run: largest sum of the sessions' rates in a sample, in a window if one is given.
    PeakTotal { window: Option<TimeSpan> },
    /// Per run: longest uninterrupted time for which the sum of the sessions' rates is above a rate.
    TimeAbove { rate: Quantity<Rate> },
    /// Per run: longest uninterrupted time for which every session is within a share of a rate.
    TimeAt { rate: Quantity<Rate>, within: f64 },
    /// Per run: largest offered load of a node over its capacity.
    PeakOverload,
    /// Per run: largest distance of a session's final rate from its optimum, as a share of the optimum.
    GapToMaxMin,
    /// Per run: Jain's index of the sessions' final rates.
    FinalJain,
    /// Per run: Jain's index of the sessions' mean rates in a window.
    Jain { window: TimeSpan },
    /// Per run: the end of the first window of this width, counted from an instant, from which on the index of the
    /// sessions' mean rates in each window is at least a value.
    TimeToJain { index: f64, width: Quantity<Duration>, from: Quantity<Duration> },
    /// Per run: the end of the first of these windows with an index of at least a value, whatever follows.
    FirstJain { index: f64, width: Quantity<Duration>, from: Quantity<Duration> },
    /// Per run: the minimum of these indices, over all windows from an instant on.
    LeastJain { width: Quantity<Duration>, from: Quantity<Duration> },
    /// Per run: wire rate of background traffic relative to the capacity of a link, in that window.
    BackgroundShare { link: String, background: String },
    /// Per run: utilisation of a link, in that window.
    Utilisation { link: String },
    /// Per run: mean queue of a link in full packets, in that window.
    MeanQueue { link: String },
    /// Per run: packets that a link's queue dropped in the whole run.
    Dropped { link: String },
    /// Per run: share of the sessions' packets that were lost, in the whole run or a window.
    LossRatio { window: Option<TimeSpan> },
    /// Per run: of the intervals in which some session loses, the share in which at least a share `threshold` of the
    /// sessions does. An interval is a tenth of the mean time between a session's loss events (Xu, Harfoush & Rhee
    /// 2004, section III). Over the second half of the run, or a window.
    Synchronisation { threshold: f64, window: Option<TimeSpan> },
    /// Per session: mean time between its loss events, in a window if one is given; infinite with fewer than two.
    LossSpacing { window: Option<TimeSpan> },
    /// Per session: mean of its congestion window, in packets, over the samples of a time span.
    MeanWindow { window: TimeSpan },
    /// Per run: 2-norm distance to the optimum relative to the optimum's norm, at an instant.
    Distance { at: Quantity<Duration> },
    /// Per run: time from which on that quotient is below a share.
    TimeToDistance { share: f64 },
    /// Per run: deficit of the sessions from their max-min rates over time, in total and over the whole run, as the
    /// time for which all would lack everything.
    Waste,
    /// Per run: share of the volume of the max-min rates over time that was carried, with no session counting for more
    /// than its own rate.
    Carried,
    /// Per run: claims and grants that the ends exchanged in the whole run, by session.
    Messages,
    /// Per run: samples whose permitted rates are not above the leximin minimum of a time before ([`crate::leximin`]).
    LeximinFalls { within: Quantity<Duration> },
    /// Per run: samples in which fewer of the lowest permitted rates are optimal than in all of a time before.
    SettledFalls { within: Quantity<Duration> },
    /// Per run: maximum rise of the distance above its minimum so far, relative to the distance at the start.
    DistanceRise,
}

/// An end of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SessionEnd {
    /// The source.
    Source,
    /// The sink, as known to the source.
    Sink,
}

impl Measure {
    /// Dimension of the value.
    pub(crate) fn dimension(&self) -> Dimension {
        match self {
            Self::FinalRate
            | Self::MaxMinRate
            | Self::Rate
            | Self::MeanRate { .. }
            | Self::PeakRate { .. }
            | Self::ExpectedRate { .. }
            | Self::PeakTotal { .. } => Dimension::Rate,
            Self::TimeTo { .. }
            | Self::Ramp { .. }
            | Self::Reaches { .. }
            | Self::TimeToJain { .. }
            | Self::FirstJain { .. }
            | Self::Completed
            | Self::LossSpacing { .. }
            | Self::TimeAbove { .. }
            | Self::TimeAt { .. }
            | Self::TimeToDistance { .. }
            | Self::Waste => Dimension::Time,
            Self::Error { .. }
            | Self::PeakOverload
            | Self::GapToMaxMin
            | Self::FinalJain
            | Self::Jain { .. }
            | Self::LeastJain { .. }
            | Self::Share { .. }
            | Self::Swing { .. }
            | Self::BackgroundShare { .. }
            | Self::Utilisation { .. }
            | Self::MeanQueue { .. }
            | Self::MeanWindow { .. }
            | Self::Dropped { .. }
            | Self::LossRatio { .. }
            | Self::Slowdown { .. }
            | Self::Synchronisation { .. }
            | Self::Distance { .. }
            | Self::Carried
            | Self::Messages
            | Self::LeximinFalls { .. }
            | Self::SettledFalls { .. }
            | Self::DistanceRise => Dimension::Number,
        }
    }

    /// The samples it needs.
    pub(crate) fn record(&self) -> Record {
        let rates = matches!(
            self,
            Self::MeanRate { .. }
                | Self::PeakRate { .. }
                | Self::Swing { .. }
                | Self::TimeTo { .. }
                | Self::Ramp { .. }
                | Self::Reaches { .. }
                | Self::ExpectedRate { .. }
                | Self::Error { .. }
                | Self::PeakTotal { .. }
                | Self::TimeAbove { .. }
                | Self::TimeAt { .. }
                | Self::Jain { .. }
                | Self::LeastJain { .. }
                | Self::TimeToJain { .. }
                | Self::FirstJain { .. }
                | Self::Waste
                | Self::Carried
                | Self::LeximinFalls { .. }
                | Self::SettledFalls { .. }
        );
        let distances = matches!(self, Self::Distance { .. } | Self::TimeToDistance { .. } | Self::DistanceRise);
        let windows = matches!(self, Self::MeanWindow { .. } | Self::LossRatio { window: Some(_) });
        Record { rates, distances, windows, ..Record::default() }
    }

    /// The values in one run with samples of `width`: one per named session (all if no names are given), or a single
    /// one.
    #[expect(clippy::too_many_lines, reason = "an arm a measure")]
    pub(crate) fn evaluate(
        &self,
        run: &Run,
        width: Duration,
        names: Option<&[String]>,
    ) -> Result<Vec<f64>, MeasureError> {
        let sessions = sessions(run, names)?;
        let each = |value: &dyn Fn(usize) -> Result<f64, MeasureError>| sessions.iter().map(|&k| value(k)).collect();
        let summary = &run.summary;
        let value = match *self {
            Self::FinalRate => return each(&|k| Ok(summary.sessions[k].final_wire_rate_bps)),
            Self::MaxMinRate => return each(&|k| Ok(summary.sessions[k].max_min_bps)),
            Self::Rate => return each(&|k| Ok(summary.sessions[k].wire_rate_bps)),
            Self::Share { ref link } => {
                let capacity_bps = find_link(run, link)?.capacity_bps;
                return each(&|k| Ok(summary.sessions[k].wire_rate_bps / capacity_bps));
            }
            Self::Completed => return each(&|k| Ok(summary.sessions[k].completed_s.unwrap_or(f64::INFINITY))),
            Self::LossSpacing { window } => {
                let [from, to] = window.map_or([0.0, f64::INFINITY], |window| window.map(|at| at.0.as_secs_f64()));
                return each(&|k| Ok(spacing(&losses_of(run, &[k], from, to)[0]).unwrap_or(f64::INFINITY)));
            }
            Self::MeanRate { window } => {
                let samples = Samples::of(run)?;
                return each(&|k| samples.mean(k, window));
            }
            Self::MeanWindow { window } => return each(&|k| mean_window(run, k, window)),
            Self::PeakRate { window } => {
                let samples = Samples::of(run)?;
                return each(&|k| samples.peak(window, |i| samples.rate(i, k)));
            }
            Self::Swing { window } => {
                let samples = Samples::of(run)?;
                return each(&|k| samples.swing(k, window));
            }
            Self::TimeTo { share, of } => {
                let samples = Samples::of(run)?;
                return each(&|k| {
                    let goal = of.map_or(summary.sessions[k].max_min_bps, |rate| rate.0.as_bps());
                    Ok(samples.for_good(|i| samples.rate(i, k) >= share * goal))
                });
            }
            Self::Ramp { share } => {
                let samples = Samples::of(run)?;
                return each(&|k| Ok(samples.ramp_s(k, share * summary.sessions[k].final_wire_rate_bps)));
            }
            Self::Reaches { share, width } => {
                let samples = Samples::of(run)?;
                return each(&|k| Ok(samples.reaches(k, share * summary.sessions[k].max_min_bps, width.0)));
            }
            Self::ExpectedRate { end, at } => {
                let samples = Samples::of(run)?;
                let rates = match end {
                    SessionEnd::Source => &samples.0.source_expected_bps,
                    SessionEnd::Sink => &samples.0.sink_expected_bps,
                };
                let i = samples.at(at.0)?;
                return each(&|k| rates.get(i * samples.0.sessions + k).copied().ok_or(MeasureError::Samples));
            }
            Self::Error { at } => {
                let samples = Samples::of(run)?;
                let i = samples.at(at.0)?;
                return each(&|k| {
                    let optimum = summary.sessions[k].max_min_bps;
                    Ok((samples.rate(i, k) - optimum).abs() / optimum)
                });
            }
            Self::BackgroundShare { ref link, ref background } => {
                let capacity_bps = find_link(run, link)?.capacity_bps;
                let found = summary.background.iter().find(|traffic| *traffic.name == **background);
                let traffic = found.ok_or_else(|| MeasureError::Background(background.clone()))?;
                traffic.wire_rate_bps / capacity_bps
            }
            Self::Utilisation { ref link } => find_link(run, link)?.utilisation,
            Self::MeanQueue { ref link } => find_link(run, link)?.mean_queue_packets,
            Self::Dropped { ref link } => find_link(run, link)?.dropped_packets as f64,
            Self::Slowdown { ref link, payload, round_trips, of } => {
                let capacity_bps = find_link(run, link)?.capacity_bps;
                slowdown(run, &sessions, capacity_bps, (payload, round_trips), of)
            }
            Self::LossRatio { window: Some(window) } => {
                lost_share(run.windows.as_ref().ok_or(MeasureError::Samples)?, &sessions, window)?
            }
            Self::LossRatio { window: None } => {
                let sum = |count: fn(&SessionSummary) -> u64| {
                    sessions.iter().map(|&k| count(&summary.sessions[k])).sum::<u64>()
                };
                sum(|session| session.lost_packets) as f64 / sum(|session| session.sent_packets) as f64
            }
            Self::PeakTotal { window } => {
                let samples = Samples::of(run)?;
                samples.peak(window, |i| samples.total(i, &sessions))?
            }
            Self::TimeAbove { rate } => {
                let samples = Samples::of(run)?;
                samples.longest(|i| samples.total(i, &sessions) > rate.0.as_bps())
            }
            Self::TimeAt { rate, within } => {
                let (samples, rate) = (Samples::of(run)?, rate.0.as_bps());
                let near = |i| sessions.iter().all(|&k| (samples.rate(i, k) - rate).abs() <= within * rate);
                samples.longest(near)
            }
            Self::PeakOverload => summary.metrics.peak_overload,
            Self::GapToMaxMin => summary.metrics.gap_to_max_min,
            Self::FinalJain => {
                let rates: Vec<f64> = sessions.iter().map(|&k| summary.sessions[k].final_wire_rate_bps).collect();
                jain_index(&rates)
            }
            Self::Jain { window } => Samples::of(run)?.jain(&sessions, window)?,
            Self::TimeToJain { index, width, from } => {
                let windows = Samples::of(run)?.jains(&sessions, width.0, from.0)?;
                stays(&windows, index)
            }
            Self::FirstJain { index, width, from } => {
                let windows = Samples::of(run)?.jains(&sessions, width.0, from.0)?;
                reaches(&windows, index)
            }
            Self::LeastJain { width, from } => {
                let windows = Samples::of(run)?.jains(&sessions, width.0, from.0)?;
                windows.iter().map(|(_, jain)| *jain).fold(f64::INFINITY, f64::min)
            }
            Self::Synchronisation { threshold, window } => {
                let half = [summary.duration_s / 2.0, summary.duration_s];
                let [from, to] = window.map_or(half, |window| window.map(|at| at.0.as_secs_f64()));
                synchronisation(&losses_of(run, &sessions, from, to), from, threshold)
            }
            Self::Distance { at } => {
                let distances = Distances::of(run, width)?;
                let (i, _) = distances
                    .ends_s
                    .iter()
                    .enumerate()
                    .find(|(_, end)| **end >= at.0.as_secs_f64() - 1e-9)
                    .ok_or(MeasureError::Window)?;
                distances.quotient(i)
            }
            Self::TimeToDistance { share } => {
                let distances = Distances::of(run, width)?;
                let far = (0..distances.ends_s.len()).rev().find(|&i| distances.quotient(i) >= share);
                let first = far.map_or(0, |i| i + 1);
                distances.ends_s.get(first).copied().unwrap_or(f64::INFINITY)
            }
            Self::Waste => waste(&lacking(&run.max_min, &Samples::of(run)?)),
            Self::Carried => carried(&lacking(&run.max_min, &Samples::of(run)?)),
            Self::Messages => summary.engine.messages as f64 / summary.sessions.len() as f64,
            Self::LeximinFalls { within } => leximin::falls(Samples::of(run)?.0, &optimum(run), within.0) as f64,
            Self::SettledFalls { within } => {
                leximin::settled_falls(Samples::of(run)?.0, &optimum(run), within.0) as f64
            }
            Self::DistanceRise => {
                let distances = Distances::of(run, width)?;
                let mut least = summary.metrics.distance_start_bps;
                let mut rise = 0.0_f64;
                for &distance in distances.from_optimum_bps {
                    rise = rise.max(distance - least);
                    least = least.min(distance);
                }
                rise / summary.metrics.distance_start_bps
            }
        };
        Ok(vec![value])
    }
}

/// Max-min rates of all sessions at their ends.
fn optimum(run: &Run) -> Vec<f64> {
    run.summary.sessions.iter().map(|session| session.max_min_bps).collect()
}

/// Deficit of the sessions from their max-min rates in one sample.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Lacking {
    width_s: f64,
    /// In total, without balancing one session's surplus against another's deficit.
    missing_bps: f64,
    optimum_bps: f64,
}

/// The deficit in each sample, relative to the max-min rates at its start.
fn lacking(max_min: &[MaxMinStep], samples: &Samples<'_>) -> Vec<Lacking> {
    let of = |i: usize| {
        let start_s = samples.start_s(i);
        let begun = max_min.partition_point(|step| step.from.as_secs_f64() <= start_s + 1e-9);
        let optimum = begun.checked_sub(1).map_or(&[][..], |step| &max_min[step].rates_bps);
        let lacks = optimum.iter().enumerate().map(|(k, rate)| (rate - samples.rate(i, k)).max(0.0));
        Lacking { width_s: samples.width_s(i), missing_bps: lacks.sum(), optimum_bps: optimum.iter().sum() }
    };
    (0..samples.0.ends.len()).map(of).collect()
}

fn waste(lacking: &[Lacking]) -> f64 {
    let wanted = lacking.iter().filter(|here| here.optimum_bps > 0.0);
    wanted.map(|here| here.width_s * here.missing_bps / here.optimum_bps).sum()
}

fn carried(lacking: &[Lacking]) -> f64 {
    let sum = |bps: fn(&Lacking) -> f64| lacking.iter().map(|here| here.width_s * bps(here)).sum::<f64>();
    1.0 - sum(|here| here.missing_bps) / sum(|here| here.optimum_bps)
}

fn find_link<'a>(run: &'a Run, name: &str) -> Result<&'a LinkSummary, MeasureError> {
    let found = run.summary.links.iter().find(|link| *link.name == *name);
    found.ok_or_else(|| MeasureError::Link(name.to_owned()))
}

/// Times of the loss events of each session from one instant up to another, in seconds.
fn losses_of(run: &Run, sessions: &[usize], from_s: f64, to_s: f64) -> Vec<Vec<f64>> {
    let of = |k: &usize| {
        let mine = run.losses.iter().filter(|loss| loss.session as usize == *k);
        mine.map(|loss| loss.time.as_secs_f64()).filter(|at| (from_s..to_s).contains(at)).collect()
    };
    sessions.iter().map(of).collect()
}

/// Mean congestion window of session `k` at the ends of the samples in a time span.
fn mean_window(run: &Run, k: usize, [from, to]: TimeSpan) -> Result<f64, MeasureError> {
    let samples = run.windows.as_ref().ok_or(MeasureError::Samples)?;
    let span = from.0.as_secs_f64()..=to.0.as_secs_f64();
    let within = |i: &usize| span.contains(&samples.ends[*i].as_secs_f64());
    let windows = (0..samples.ends.len()).filter(within).map(|i| samples.cwnd_packets[i * samples.sessions + k]);
    let (sum, count) = windows.fold((0.0, 0), |(sum, count), window| (sum + window, count + 1));
    if count > 0 { Ok(sum / f64::from(count)) } else { Err(MeasureError::Window) }
}

/// Share of the sessions' packets that were lost from the start of a window to its end.
fn lost_share(samples: &WindowSamples, sessions: &[usize], [from, to]: TimeSpan) -> Result<f64, MeasureError> {
    let until = |totals: &[u64], instant: Quantity<Duration>| {
        let ended = samples.ends.partition_point(|end| end.as_secs_f64() <= instant.0.as_secs_f64() + 1e-9);
        let row = ended.checked_sub(1).map_or(&[][..], |sample| &totals[sample * samples.sessions..]);
        sessions.iter().filter_map(|&k| row.get(k)).sum::<u64>()
    };
    let within = |totals: &[u64]| until(totals, to) - until(totals, from);
    match within(&samples.sent_packets) {
        0 => Err(MeasureError::Window),
        sent => Ok(within(&samples.lost_packets) as f64 / sent as f64),
    }
}

/// Mean time between instants; `None` with fewer than two.
fn spacing(times_s: &[f64]) -> Option<f64> {
    match times_s {
        [first, .., last] => Some((last - first) / (times_s.len() - 1) as f64),
        _ => None,
    }
}

/// The synchronisation ratio of sessions with losses at these times; NaN if none loses twice.
fn synchronisation(losses_s: &[Vec<f64>], from_s: f64, threshold: f64) -> f64 {
    let spacings: Vec<f64> = losses_s.iter().filter_map(|times| spacing(times)).collect();
    let interval_s = spacings.iter().sum::<f64>() / spacings.len() as f64 / 10.0;
    let mut losers: BTreeMap<u64, BTreeSet<usize>> = BTreeMap::new();
    for (session, times) in losses_s.iter().enumerate() {
        for at in times {
            losers.entry(((at - from_s) / interval_s) as u64).or_default().insert(session);
        }
    }
    let many = losers.values().filter(|losers| losers.len() as f64 >= threshold * losses_s.len() as f64).count();
    many as f64 / losers.len() as f64
}

/// The end of the first of these windows from which on all have an index of at least a value.
fn stays(windows: &[(f64, f64)], index: f64) -> f64 {
    let bad = windows.iter().rposition(|(_, jain)| *jain < index);
    windows.get(bad.map_or(0, |last| last + 1)).map_or(f64::INFINITY, |(end_s, _)| *end_s)
}

/// The end of the first of these windows with such an index.
fn reaches(windows: &[(f64, f64)], index: f64) -> f64 {
    windows.iter().find(|(_, jain)| *jain >= index).map_or(f64::INFINITY, |(end_s, _)| *end_s)
}

/// The indices of the named sessions, in the order of the names; "high*" selects all with the prefix "high".
pub(crate) fn sessions(run: &Run, names: Option<&[String]>) -> Result<Vec<usize>, MeasureError> {
    let all = &run.summary.sessions;
    match names {
        None => Ok((0..all.len()).collect()),
        Some(names) => {
            let mut found = Vec::new();
            for name in names {
                let before = found.len();
                let matches = |session: &SessionSummary| match name.strip_suffix('*') {
                    Some(begin) => session.name.starts_with(begin),
                    None => *session.name == **name,
                };
                found.extend((0..all.len()).filter(|&k| matches(&all[k])));
                if found.len() == before {
                    return Err(MeasureError::Session(name.clone()));
                }
            }
            Ok(found)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairwave_scenario::RateSamples;

    #[test]
    fn spacing__is_a_mean_and_needs_two() {
        assert_eq!(spacing(&[1.0, 3.0, 8.0]), Some(3.5));
        assert_eq!(spacing(&[1.0]), None);
    }

    #[test]
    fn synchronisation__counts_sessions_once_an_interval() {
        // Loss events 10 s apart: intervals of 1 s. Together at 0 and 10 s, separately at 5 s (twice) and 20 s.
        let losses = [vec![0.1, 10.1, 20.1], vec![0.9, 10.2], vec![0.5, 5.0, 5.1, 20.5 + 2.0]];
        let interval_s: f64 = (10.0 + 9.3 + 22.0 / 3.0) / 3.0 / 10.0;
        assert!((interval_s - 0.888).abs() < 0.001);
        // Intervals with a loser: 0 (two: 0.1, 0.5), 1 (0.9), 5 (5.0, 5.1), 11 (10.1, 10.2), 22 (20.1), 25 (22.5).
        assert!((synchronisation(&losses, 0.0, 0.5) - 2.0 / 6.0).abs() < 1e-12);
        assert!((synchronisation(&losses, 0.0, 0.3) - 1.0).abs() < 1e-12);
        assert!((synchronisation(&losses, 0.0, 1.0)).abs() < 1e-12);
    }

    #[test]
    fn lost_share__counts_from_the_sample_that_a_window_begins_with() {
        let samples = WindowSamples {
            ends: [1, 2, 3].map(fairwave_units::Time::from_secs).to_vec(),
            sessions: 2,
            sent_packets: vec![100, 0, 150, 40, 250, 100],
            lost_packets: vec![50, 0, 50, 1, 60, 2],
            ..WindowSamples::default()
        };
        let of = |from, to, sessions: &[usize]| {
            lost_share(&samples, sessions, [from, to].map(|at| Quantity(Duration::from_secs(at))))
        };
        assert_eq!(of(0, 3, &[0]), Ok(60.0 / 250.0));
        assert_eq!(of(1, 3, &[0]), Ok(10.0 / 150.0));
        assert_eq!(of(1, 2, &[0, 1]), Ok(1.0 / 90.0));
        assert_eq!(of(3, 3, &[0]), Err(MeasureError::Window));
    }

    #[test]
    fn synchronisation__without_losses_is_nan() {
        assert!(synchronisation(&[vec![], vec![]], 0.0, 0.5).is_nan());
    }

    #[test]
    fn lacking__is_the_deficit_from_the_current_optimum() {
        let step = |from_s, rates: [f64; 2]| MaxMinStep {
            from: fairwave_units::Time::from_secs(from_s),
            rates_bps: rates.to_vec(),
        };
        let rates = RateSamples {
            ends: [1, 2, 3].map(fairwave_units::Time::from_secs).to_vec(),
            sessions: 2,
            rate_bps: vec![0.0, 0.0, 30.0, 70.0, 50.0, 50.0],
            ..RateSamples::default()
        };
        let max_min = vec![step(0, [50.0, 50.0]), step(2, [80.0, 20.0])];
        // Nothing of 100; a deficit of 20 of 50 next to one with a surplus; 30 of 80.
        let found = lacking(&max_min, &Samples(&rates));
        let here = |missing_bps| Lacking { width_s: 1.0, missing_bps, optimum_bps: 100.0 };
        assert_eq!(found, [here(100.0), here(20.0), here(30.0)]);
        assert!((waste(&found) - 1.5).abs() < 1e-12);
        assert!((carried(&found) - 0.5).abs() < 1e-12);
    }

    #[test]
    fn reaches__ignores_later_samples() {
        let windows = [(1.0, 0.5), (2.0, 1.0), (3.0, 0.9), (4.0, 0.95)];
        assert_eq!((reaches(&windows, 0.95), stays(&windows, 0.95)), (2.0, 4.0));
        assert_eq!((reaches(&windows, 0.9), stays(&windows, 0.9)), (2.0, 2.0));
        assert_eq!((reaches(&windows[..1], 0.9), stays(&windows, 0.99)), (f64::INFINITY, f64::INFINITY));
    }

    #[test]
    fn evaluate__jain_in_windows_one_behind_the_other() {
        // Two sessions, samples of one second: equal, unequal, equal, equal.
        let rate_bps = vec![1.0, 1.0, 1.0, 0.0, 1.0, 1.0, 2.0, 2.0];
        let ends = (1..=4).map(fairwave_units::Time::from_secs).collect();
        let rates = RateSamples { ends, sessions: 2, rate_bps, ..RateSamples::default() };
        let second = Duration::from_secs(1);
        let jains = |from| Samples(&rates).jains(&[0, 1], second, Duration::from_secs(from));
        assert_eq!(jains(0), Ok(vec![(1.0, 1.0), (2.0, 0.5), (3.0, 1.0), (4.0, 1.0)]));
        assert_eq!(jains(2), Ok(vec![(3.0, 1.0), (4.0, 1.0)]));
        assert_eq!(jains(4), Err(MeasureError::Window));
    }
}
