//! Makes the picture of an outcome.

use std::fmt::Write as _;
use std::sync::Arc;

use fairwave_scenario::{Run, SessionSummary};
use fairwave_units::{Duration, Time};

use crate::bic_modes::bic_modes;
use crate::formula::Formula;
use crate::measure::sessions;
use crate::outcome::{ExperimentOutcome, Shown};
use crate::picture::{
    Axis, Bar, BarChart, BarGroup, Caption, Curve, CurveWeight, LineKind, Panel, PictureError, PlottedLine, Scale,
    bar_chart, distances, line_panels, lines, of_run, overlay, side_by_side, trajectories,
};
use crate::samples::Samples;
use crate::samples::TimeSpan;
use crate::sketch::{BarsSketch, CurvesSketch, IndexSketch, LinesSketch, PartSketch, Picture, Shot};
use crate::wire::picture_beside;

/// Points of a response function.
const STEPS: u32 = 200;

/// The picture of an experiment as SVG text; `None` if there is nothing to show.
pub fn picture_of(outcome: &ExperimentOutcome) -> Option<Result<String, PictureError>> {
    let (experiment, shown) = (outcome.experiment, &outcome.shown[..]);
    if let Some(sketch) = experiment.wire {
        return if shown.is_empty() { None } else { Some(picture_beside(experiment, sketch, shown)) };
    }
    match &experiment.picture {
        Picture::None {} => None,
        Picture::Curves(sketch) => Some(curves(outcome, sketch)),
        Picture::Bars(_) | Picture::Lines(_) if outcome.heights.is_empty() => None,
        Picture::Bars(sketch) => Some(bars(outcome, sketch)),
        Picture::Lines(sketch) => Some(measured_lines(outcome, sketch)),
        _ if shown.is_empty() => None,
        Picture::Rates(shot) | Picture::Trajectories(shot) | Picture::Overlay(shot) if ends_early(outcome, shot) => {
            None
        }
        Picture::Rates(shot) => Some(rates(outcome, shown, shot)),
        Picture::Trajectories(shot) => {
            Some(with_parts(shown, shot, |shown, curves| trajectories(&caption(outcome, shown), curves)))
        }
        Picture::Overlay(shot) => {
            Some(with_parts(shown, shot, |shown, curves| overlay(&caption(outcome, shown), curves)))
        }
        Picture::Distances {} => {
            let curves: Vec<Curve<'_>> = shown.iter().map(|one| curve(one, shown)).collect();
            Some(distances(&caption(outcome, shown), &curves))
        }
        Picture::Index(sketch) => Some(index(outcome, shown, sketch)),
        Picture::Windows(shot) => Some(windows(outcome, shown, shot)),
    }
}

/// Whether a run was shortened so much that a chosen session does not start: its picture would mislead.
fn ends_early(outcome: &ExperimentOutcome, shot: &Shot) -> bool {
    let starts_late = |one: &Arc<Shown>| {
        let end_s = one.run.summary.duration_s;
        let chosen = sessions(&one.run, shot.sessions.as_deref()).unwrap_or_default();
        chosen.iter().any(|&k| one.scenario.sessions[k].start.as_secs_f64() >= end_s)
    };
    outcome.quick && outcome.shown.iter().any(starts_late)
}

/// Title and footer of the picture of some runs.
fn caption(outcome: &ExperimentOutcome, shown: &[Arc<Shown>]) -> Caption {
    let experiment = outcome.experiment;
    let mut subtitle = String::new();
    if let Some(first) = shown.first() {
        let mut schemes: Vec<&str> = Vec::new();
        for one in shown {
            if !schemes.contains(&one.run.summary.scheme.as_str()) {
                schemes.push(&one.run.summary.scheme);
            }
        }
        let mut models: Vec<&str> = shown.iter().map(|one| one.run.summary.model).collect();
        models.dedup();
        let _ = write!(subtitle, "{} \u{b7} {} model", schemes.join(", "), models.join(", "));
        if shown.iter().filter(|one| variant(one) == variant(first)).count() > 1 {
            let _ = write!(subtitle, " \u{b7} {} runs", shown.len());
        }
    }
    subtitle += quick(outcome);
    let subtitle = subtitle.trim_start_matches(" \u{b7} ").to_owned();
    Caption { title: experiment.title.clone(), subtitle, cites: experiment.cites.clone() }
}

/// Ending of the subtitle of a picture of reduced runs.
fn quick(outcome: &ExperimentOutcome) -> &'static str {
    if outcome.quick { " \u{b7} quick: fewer draws or shorter runs" } else { "" }
}

fn variant(shown: &Shown) -> Option<&str> {
    shown.run.summary.variant.as_deref()
}

/// Name of a run among others.
fn label(shown: &Shown) -> String {
    variant(shown).map_or_else(|| "drawn".to_owned(), str::to_owned)
}

/// One run among others: thin if there are several of its variant.
fn curve<'a>(one: &'a Shown, all: &[Arc<Shown>]) -> Curve<'a> {
    let alike = all.iter().filter(|other| variant(other) == variant(one)).count();
    Curve { label: label(one), run: &one.run, weight: if alike > 1 { CurveWeight::Thin } else { CurveWeight::Thick } }
}

fn rates(outcome: &ExperimentOutcome, shown: &[Arc<Shown>], shot: &Shot) -> Result<String, PictureError> {
    let shown = in_order(shown, shot.variants.as_deref());
    if let ([one], None, None, false) = (&shown[..], &shot.sessions, &shot.window, shot.rates_alone || shot.sum) {
        return of_run(&one.scenario, &one.run);
    }
    with_parts(&shown, shot, |shown, curves| match (shown, curves) {
        ([one], [curve]) => of_run(&one.scenario, curve.run),
        _ => side_by_side(&caption(outcome, shown), curves),
    })
}

/// Draws the visible part of each run.
fn with_parts(
    shown: &[Arc<Shown>],
    shot: &Shot,
    draw: impl FnOnce(&[Arc<Shown>], &[Curve<'_>]) -> Result<String, PictureError>,
) -> Result<String, PictureError> {
    let shown = in_order(shown, shot.variants.as_deref());
    let runs: Vec<Run> = shown.iter().map(|one| part(&one.run, shot)).collect::<Result<_, _>>()?;
    let curve = |(one, run)| Curve { label: label(one), run, weight: CurveWeight::Thick };
    let curves: Vec<Curve<'_>> = shown.iter().map(Arc::as_ref).zip(&runs).map(curve).collect();
    draw(&shown, &curves)
}

fn windows(outcome: &ExperimentOutcome, shown: &[Arc<Shown>], shot: &Shot) -> Result<String, PictureError> {
    let shown = in_order(shown, shot.variants.as_deref());
    let end_s = shown.iter().map(|one| one.run.summary.duration_s).fold(0.0, f64::max);
    let range = shot.window.map_or((0.0, end_s), |[from, to]| (from.0.as_secs_f64(), to.0.as_secs_f64()));
    let mut panels = Vec::with_capacity(shown.len());
    for one in &shown {
        let run = &one.run;
        let Some(samples) = &run.windows else {
            return Err(PictureError::NotRecorded { what: "windows", scenario: run.summary.scenario.clone() });
        };
        let line = |k: usize| {
            let cwnd = |(i, end): (usize, &Time)| (end.as_secs_f64(), samples.cwnd_packets[i * samples.sessions + k]);
            let points = samples.ends.iter().enumerate().map(cwnd).collect();
            PlottedLine::measured(run.summary.sessions[k].name.to_string(), points)
        };
        let lines = sessions(run, shot.sessions.as_deref())?.into_iter().map(line);
        let lines = if shot.bic_modes { lines.flat_map(|line| bic_modes(&line)).collect() } else { lines.collect() };
        // The axis covers only the visible part; the time before the window is needed only for the modes.
        let seen = |mut line: PlottedLine| {
            line.points.retain(|(at_s, _)| (range.0..=range.1).contains(at_s));
            line.points.iter().any(|(_, window)| window.is_finite()).then_some(line)
        };
        let lines = Vec::into_iter(lines).filter_map(seen).collect();
        panels.push(Panel { label: variant(one).unwrap_or_default().to_owned(), lines });
    }
    let x = Axis { name: "time, s".into(), scale: Scale::Linear, range: Some(range) };
    let y = Axis { name: "congestion window, packets".into(), scale: Scale::Linear, range: None };
    line_panels(&caption(outcome, &shown), &x, &y, &panels)
}

/// The runs in the order in which a picture names their variants.
fn in_order(shown: &[Arc<Shown>], variants: Option<&[String]>) -> Vec<Arc<Shown>> {
    let Some(variants) = variants else { return shown.to_vec() };
    let find = |name: &String| shown.iter().find(|one| variant(one) == Some(name)).cloned();
    variants.iter().filter_map(find).collect()
}

/// A run with only the chosen sessions, until the end of the window.
fn part(run: &Run, shot: &Shot) -> Result<Run, PictureError> {
    let chosen = sessions(run, shot.sessions.as_deref())?;
    let of = run.summary.sessions.len();
    let mut part = run.clone();
    part.summary.sessions = chosen.iter().map(|&k| run.summary.sessions[k].clone()).collect();
    let end_s = shot.window.map_or(f64::INFINITY, |[_, to]: TimeSpan| to.0.as_secs_f64());
    part.summary.duration_s = run.summary.duration_s.min(end_s);
    part.summary.metrics.converged_s = None;
    if shot.rates_alone {
        part.max_min.clear();
        for session in &mut part.summary.sessions {
            session.max_min_bps = 0.0;
        }
    }
    for step in &mut part.max_min {
        step.rates_bps = chosen.iter().filter_map(|&k| step.rates_bps.get(k).copied()).collect();
    }
    if let (true, Some(first)) = (shot.sum, part.summary.sessions.first()) {
        part.summary.sessions.push(SessionSummary {
            name: "sum".into(),
            rtt_s: 0.0,
            max_min_bps: 0.0,
            ..first.clone()
        });
    }
    if let Some(rates) = &mut part.rates {
        let kept = rates.ends.iter().filter(|end| end.as_secs_f64() <= end_s + 1e-9).count();
        rates.ends.truncate(kept);
        rates.sessions = part.summary.sessions.len();
        for column in [
            &mut rates.rate_bps,
            &mut rates.wire_rate_bps,
            &mut rates.source_expected_bps,
            &mut rates.sink_expected_bps,
            &mut rates.target_bps,
            &mut rates.measured_bps,
        ] {
            if !column.is_empty() {
                let row = |i: usize| chosen.iter().map(|&k| column[i * of + k]).collect::<Vec<f64>>();
                let with_sum = |mut row: Vec<f64>| {
                    let sum: f64 = row.iter().sum();
                    row.extend(shot.sum.then_some(sum));
                    row
                };
                *column = (0..kept).map(row).flat_map(with_sum).collect();
            }
        }
    }
    Ok(part)
}

fn index(outcome: &ExperimentOutcome, shown: &[Arc<Shown>], sketch: &IndexSketch) -> Result<String, PictureError> {
    let shown = in_order(shown, sketch.variants.as_deref());
    let width_s = sketch.width.0.as_secs_f64();
    let from = sketch.from.map_or(Duration::ZERO, |from| from.0);
    let mut all = Vec::with_capacity(shown.len());
    for one in &shown {
        let chosen = sessions(&one.run, sketch.sessions.as_deref())?;
        all.push(PlottedLine::measured(label(one), Samples::of(&one.run)?.jains(&chosen, sketch.width.0, from)?));
    }
    let end_s = shown.iter().map(|one| one.run.summary.duration_s).fold(0.0, f64::max);
    let x = Axis { name: "time, s".into(), scale: Scale::Linear, range: Some((from.as_secs_f64(), end_s)) };
    let y = Axis {
        name: format!("Jain's fairness index of the mean rates in windows of {width_s} s"),
        scale: Scale::Linear,
        range: Some((sketch.least, 1.0)),
    };
    lines(&caption(outcome, &shown), &x, &y, &all)
}

/// The paper's value of a part in a variant, on the picture's axis.
fn printed(outcome: &ExperimentOutcome, part: &PartSketch, variant: Option<&str>) -> Option<f64> {
    let experiment = outcome.experiment;
    let value = experiment.claims.iter().find_map(|claim| claim.printed(part, variant))?;
    Some(experiment.picture.height(part, value))
}

fn bars(outcome: &ExperimentOutcome, sketch: &BarsSketch) -> Result<String, PictureError> {
    let experiment = outcome.experiment;
    let bar = |(variant, values): &(Option<String>, Vec<f64>), group: &str| {
        let label = variant.as_deref().unwrap_or_default();
        let label = label.strip_prefix(group).or_else(|| label.strip_suffix(group)).unwrap_or(label);
        let label = label.trim_matches([' ', ',']);
        let mut values = values.clone();
        if let (Some(_), Some(limit)) = (&sketch.rest, sketch.limit) {
            values.push((limit - values.iter().sum::<f64>()).max(0.0));
        }
        let printed = sketch.parts.iter().map(|part| printed(outcome, part, variant.as_deref())).collect();
        Bar { label: label.to_owned(), values, printed }
    };
    let all = &outcome.heights;
    let groups = match &sketch.groups {
        None => vec![BarGroup { label: String::new(), bars: all.iter().map(|one| bar(one, "")).collect() }],
        Some(groups) => {
            let mut made = Vec::with_capacity(groups.len());
            for group in groups {
                let mut bars = Vec::with_capacity(group.variants.len());
                for name in &group.variants {
                    let one = all.iter().find(|(variant, _)| variant.as_ref() == Some(name));
                    bars.push(bar(one.ok_or_else(|| PictureError::Variant(name.clone()))?, &group.label));
                }
                made.push(BarGroup { label: group.label.clone(), bars });
            }
            made
        }
    };
    let unit = if sketch.unit.is_empty() { String::new() } else { format!(", {}", sketch.unit) };
    let chart = BarChart {
        axis: format!("{}{unit}", sketch.axis),
        parts: sketch.parts.iter().map(|part| part.label.clone()).chain(sketch.rest.clone()).collect(),
        is_stacked: sketch.stacked,
        has_rest: sketch.rest.is_some(),
        is_log: sketch.log,
        limit: sketch.limit,
        groups,
    };
    let mut caption = caption(outcome, &[]);
    if let Some(model) = experiment.model {
        caption.subtitle = format!("{} model{}", model.name(), quick(outcome));
    }
    bar_chart(&caption, &chart)
}

fn measured_lines(outcome: &ExperimentOutcome, sketch: &LinesSketch) -> Result<String, PictureError> {
    let experiment = outcome.experiment;
    let mut panels = Vec::with_capacity(sketch.parts.len());
    for (number, part) in sketch.parts.iter().enumerate() {
        let mut lines = Vec::with_capacity(sketch.lines.len() + sketch.theory.len());
        for line in &sketch.lines {
            let mut points = Vec::with_capacity(sketch.at.len());
            for (at, name) in sketch.at.iter().zip(&line.variants) {
                let one = outcome.heights.iter().find(|(variant, _)| variant.as_ref() == Some(name));
                let (_, heights) = one.ok_or_else(|| PictureError::Variant(name.clone()))?;
                points.push((*at, heights.get(number).copied().unwrap_or(f64::NAN)));
            }
            lines.push(PlottedLine::measured(line.label.clone(), points));
        }
        for theory in sketch.theory.iter().filter(|theory| theory.part == part.label) {
            let height = |formula: &Formula| experiment.picture.height(part, formula.evaluate());
            let points = sketch.at.iter().copied().zip(theory.formulas.iter().map(height)).collect();
            lines.push(PlottedLine { kind: LineKind::Theory, ..PlottedLine::measured(theory.label.clone(), points) });
        }
        let marks = sketch.lines.iter().flat_map(|line| sketch.at.iter().zip(&line.variants));
        let marks = marks.filter_map(|(at, name)| Some((*at, printed(outcome, part, Some(name))?)));
        let points: Vec<_> = marks.collect();
        if !points.is_empty() {
            lines.push(PlottedLine { kind: LineKind::Printed, ..PlottedLine::measured("printed".to_owned(), points) });
        }
        panels.push(Panel { label: part.label.clone(), lines });
    }
    let unit = if sketch.unit.is_empty() { String::new() } else { format!(", {}", sketch.unit) };
    let scale = if sketch.log { Scale::Log } else { Scale::Linear };
    let ends = sketch.at.first().copied().zip(sketch.at.last().copied());
    let x = Axis { name: sketch.over.clone(), scale, range: ends };
    let y = Axis {
        name: format!("{}{unit}", sketch.axis),
        scale: Scale::Linear,
        range: sketch.limit.map(|limit| (0.0, limit)),
    };
    let mut caption = caption(outcome, &[]);
    if let Some(model) = experiment.model {
        caption.subtitle = format!("{} model{}", model.name(), quick(outcome));
    }
    line_panels(&caption, &x, &y, &panels)
}

fn curves(outcome: &ExperimentOutcome, sketch: &CurvesSketch) -> Result<String, PictureError> {
    let [least, most] = sketch.loss_rate;
    let rate = |step: u32| least * (most / least).powf(f64::from(step) / f64::from(STEPS));
    let line = |response: crate::response_curve::ResponseCurve| {
        (0..=STEPS).map(rate).map(|loss_rate| (loss_rate, response.window(loss_rate))).collect()
    };
    let all: Vec<PlottedLine> =
        (sketch.lines.iter()).map(|one| PlottedLine::measured(one.label.clone(), line(one.response))).collect();
    let mut caption = caption(outcome, &[]);
    caption.subtitle = "response functions".into();
    let x = Axis { name: "loss events per packet".into(), scale: Scale::Log, range: Some((least, most)) };
    let y = Axis { name: "mean window, packets".into(), scale: Scale::Log, range: None };
    lines(&caption, &x, &y, &all)
}

#[cfg(test)]
mod tests {
    use fairwave_scenario::{Document, Record, Selection, Settings};
    use fairwave_schemes::scheme::Model;

    use super::*;
    use crate::data::scenario_text;
    use crate::lab::simulate;
    use crate::samples::MeasureError;
    use crate::stated_quantity::Quantity;

    fn ran() -> Run {
        let text = scenario_text("five-to-one").unwrap();
        let document = Document::parse("five-to-one", text.as_bytes()).unwrap();
        let case = &document.cases(&Selection::default()).unwrap()[0];
        let (scenario, _) = document.build(case).unwrap();
        let record = Record { rates: true, ..Record::default() };
        simulate(&scenario, Some(Model::Fluid), Settings { record, ..Settings::default() }).unwrap()
    }

    #[test]
    fn part__keeps_the_named_sessions_until_the_end_of_the_window() {
        let run = ran();
        let seconds = |s: u64| Quantity(fairwave_units::Duration::from_secs(s));
        let names = vec!["s4-d1".to_owned(), "s2-d1".to_owned()];
        let shot = Shot { sessions: Some(names), window: Some([seconds(0), seconds(3)]), ..Shot::default() };
        let part = part(&run, &shot).unwrap();
        let (all, few) = (run.rates.as_ref().unwrap(), part.rates.as_ref().unwrap());
        assert_eq!((few.ends.len(), few.sessions, part.summary.duration_s), (30, 2, 3.0));
        assert_eq!(few.wire_bps()[29 * 2], all.wire_bps()[29 * 5 + 3]);
        assert_eq!(few.wire_bps()[29 * 2 + 1], all.wire_bps()[29 * 5 + 1]);
        assert_eq!(&*part.summary.sessions[0].name, "s4-d1");
        let summed = super::part(&run, &Shot { sum: true, ..shot }).unwrap();
        let rates = summed.rates.as_ref().unwrap();
        assert_eq!((rates.sessions, &*summed.summary.sessions[2].name), (3, "sum"));
        assert_eq!(rates.wire_bps()[29 * 3 + 2], few.wire_bps()[29 * 2] + few.wire_bps()[29 * 2 + 1]);
        let wrong = Shot { sessions: Some(vec!["nobody".to_owned()]), ..Shot::default() };
        assert_eq!(super::part(&run, &wrong), Err(PictureError::Measure(MeasureError::Session("nobody".into()))));
    }
}
