//! The rates of sessions over time: a few named ones, or many, a thin line each.

use fairwave_scenario::{Run, SessionSummary};
use plotters::style::Color;

use super::axis::{Grid, Margins, rate_limit, rate_unit, ticks};
use super::canvas::{Area, fit, font};
use super::label::{self, CurveSample, Label};
use super::palette::{self, FAINT, INK};
use super::request::{FEW_SESSIONS, PictureError};
use super::{curve, max_min, spread};
use crate::judged::digits;

/// Available space.
#[derive(Clone, Copy)]
pub(super) enum Style<'a> {
    /// A whole sheet.
    Full,
    /// One of several panels that share a rate axis.
    Panel {
        /// Its name.
        label: &'a str,
        /// Upper end of the axis in bit/s.
        rate_limit: f64,
    },
}

/// Draws the rate of each session, with the max-min rates as dashed lines.
pub(super) fn draw(area: &Area<'_>, run: &Run, style: Style<'_>) -> Result<(), PictureError> {
    draw_over(area, None, run, style)
}

/// Draws the rates of a run on top of thin and pale curves of another run of the same sessions.
pub(super) fn draw_over(area: &Area<'_>, under: Option<&Run>, run: &Run, style: Style<'_>) -> Result<(), PictureError> {
    let sessions = run.summary.sessions.len();
    let (size, limit) = match style {
        Style::Full => (12, rate_limit(std::iter::once(run))),
        Style::Panel { rate_limit, .. } => (10, rate_limit),
    };
    let names: Vec<String> = (0..sessions).map(|session| name(run, session)).collect();
    let right = label::room(names.iter().map(String::as_str), size);
    let inset = match style {
        Style::Full => Margins { left: 52, right, top: 34, bottom: 28 },
        Style::Panel { .. } => Margins { left: 38, right, top: 50, bottom: 26 },
    };
    if let Style::Panel { label, .. } = style {
        let width = area.size().0 - 10;
        area.text(0, 12, &fit(label, width, 13), font(13, INK).bold())?;
        if sessions > FEW_SESSIONS {
            return spread::draw(&area.margins(14, 0, 0, 0), run);
        }
    }
    if run.rates.as_ref().is_none_or(|rates| rates.ends.is_empty()) {
        return Err(not_recorded(run));
    }
    let unit = rate_unit(limit);
    let grid = Grid::new(area, inset, (0.0, run.summary.duration_s), (0.0, limit / unit.bps));
    let wanted = if matches!(style, Style::Full) { 7 } else { 5 };
    grid.value_axis(&ticks((0.0, limit / unit.bps), wanted), &format!("rate, {}", unit.name), size)?;
    grid.time_axis(size)?;

    if let Some(under) = under {
        for session in 0..sessions.min(under.summary.sessions.len()) {
            let points = points_of(under, session, unit.bps)?;
            curve::line(&grid, &points, palette::colour(session).mix(0.45), 5.0)?;
        }
    }
    let width = if matches!(style, Style::Full) { 2.4 } else { 1.8 };
    let mut labels = Vec::new();
    let mut marks = Vec::new();
    for (session, name) in names.iter().enumerate() {
        let points = points_of(run, session, unit.bps)?;
        let (colour, shape) = (palette::colour(session), palette::marker(session));
        curve::line(&grid, &points, colour.to_rgba(), width)?;
        marks.extend(mark_places(&points, session, sessions).into_iter().map(|point| (point, session)));
        let last = points.last().map_or(grid.bottom, |point| grid.at(*point).1);
        labels.push(Label { y: last, text: name.clone(), sample: CurveSample::Curve(colour, width, Some(shape)) });
    }
    let levels = max_min::levels(run);
    for level in &levels {
        let y = grid.y(level.bps / unit.bps);
        curve::dashed(&grid, (grid.x(level.from_s), y), (grid.x(level.to_s), y), INK, (6.0, 4.0))?;
    }
    // Markers are drawn on top of all lines.
    for (point, session) in marks {
        let radius = if matches!(style, Style::Full) { 4.0 } else { 3.0 };
        curve::marker(&grid, grid.at(point), palette::marker(session), palette::colour(session), radius)?;
    }
    if matches!(style, Style::Full) {
        converged(&grid, run.summary.metrics.converged_s)?;
    }
    label::draw(&grid, labels, size)?;
    if levels.is_empty() { Ok(()) } else { max_min_key(&grid, size) }
}

/// Name of a session, with its round-trip time if those of the sessions differ.
fn name(run: &Run, session: usize) -> String {
    let all = &run.summary.sessions;
    let one = &all[session];
    // Zero for a sum.
    let is_alike = |other: &SessionSummary| other.rtt_s == 0.0 || other.rtt_s == one.rtt_s;
    if one.rtt_s == 0.0 || all.iter().all(is_alike) {
        return one.name.to_string();
    }
    format!("{}, {} ms", one.name, digits(one.rtt_s * 1e3))
}

/// Draws every session's rate, up to `rate_limit` in bit/s; with the name of the run at the top, if there are several.
pub(super) fn draw_all(area: &Area<'_>, run: &Run, label: Option<&str>, rate_limit: f64) -> Result<(), PictureError> {
    let size = if label.is_some() { 10 } else { 12 };
    let margins = Margins { left: 52, right: 24, top: if label.is_some() { 50 } else { 34 }, bottom: 28 };
    if let Some(label) = label {
        area.text(0, 12, &fit(label, area.size().0 - 10, 13), font(13, INK).bold())?;
    }
    let unit = rate_unit(rate_limit);
    let grid = Grid::new(area, margins, (0.0, run.summary.duration_s), (0.0, rate_limit / unit.bps));
    let sessions = run.summary.sessions.len();
    grid.value_axis(&ticks((0.0, rate_limit / unit.bps), 6), &format!("rate, {}", unit.name), size)?;
    grid.time_axis(size)?;
    for session in 0..sessions {
        let points = points_of(run, session, unit.bps)?;
        curve::line(&grid, &points, palette::colour(session).mix(0.7), 1.1)?;
    }
    let count = format!("{sessions} sessions");
    grid.note(grid.right, grid.top - 8.0 - f64::from(size) / 2.0, &count, font(size, FAINT).right())
}

/// The rate of a session over time, in units of a rate.
pub(super) fn points_of(run: &Run, session: usize, unit_bps: f64) -> Result<Vec<(f64, f64)>, PictureError> {
    let rates = run.rates.as_ref().filter(|rates| !rates.ends.is_empty()).ok_or_else(|| not_recorded(run))?;
    let (from_s, to_s) = max_min::active_s(run, session);
    let mut points = Vec::new();
    let mut begin_s = 0.0;
    for (sample, end) in rates.ends.iter().enumerate() {
        // A sample's mean is drawn at its middle. Samples outside the session's active time are skipped.
        let end_s = end.as_secs_f64();
        if end_s > from_s && begin_s < to_s {
            let bps = rates.wire_bps()[sample * rates.sessions + session];
            points.push((f64::midpoint(begin_s, end_s), bps / unit_bps));
        }
        begin_s = end_s;
    }
    Ok(points)
}

fn not_recorded(run: &Run) -> PictureError {
    PictureError::NotRecorded { what: "rates", scenario: run.summary.scenario.clone() }
}

/// Writes the meaning of dashed lines above the right end of the grid.
fn max_min_key(grid: &Grid<'_, '_>, size: i32) -> Result<(), PictureError> {
    let y = grid.top - 8.0 - f64::from(size) / 2.0;
    let text = "max-min fair rate";
    let from = grid.right - f64::from(size) * 0.56 * text.len() as f64 - 34.0;
    curve::dashed(grid, (from, y), (from + 26.0, y), INK, (6.0, 4.0))?;
    grid.note(from + 32.0, y, text, font(size, INK))
}

/// Marks the instant from which every session stays within 5 % of its max-min rate.
pub(super) fn converged(grid: &Grid<'_, '_>, at_s: Option<f64>) -> Result<(), PictureError> {
    let Some(at_s) = at_s else { return Ok(()) };
    let x = grid.x(at_s);
    curve::dashed(grid, (x, grid.top), (x, grid.bottom), FAINT, (1.5, 3.5))?;
    let text = format!("all within 5 % from {at_s:.2} s");
    let font = font(11, FAINT);
    let fits_right = x + 6.0 + 6.2 * (text.len() as f64) < grid.right;
    let (x, font) = if fits_right { (x + 6.0, font) } else { (x - 6.0, font.right()) };
    grid.note(x, grid.top + 8.0, &text, font)
}

/// Positions of a curve's markers: a few, staggered so that curves on top of each other show theirs in turn.
fn mark_places(points: &[(f64, f64)], session: usize, sessions: usize) -> Vec<(f64, f64)> {
    let rounds = if sessions > 6 { 3 } else { 4 };
    let slots = rounds * sessions;
    (0..rounds)
        .filter_map(|round| points.get(points.len() * (2 * (round * sessions + session) + 1) / (2 * slots)))
        .copied()
        .collect()
}
