//! Pictures as SVG text: the rates of a run over time, its distance to max-min, several runs in one picture, lines over
//! any pair of axes, and bars.
//!
//! Colours are those of Okabe and Ito (2008), which colour-blind people can distinguish as well; every curve also has a
//! label and a marker. The same run gives the same bytes.

mod axis;
mod bars;
mod beside;
mod canvas;
mod curve;
mod distance;
mod label;
mod lines;
mod max_min;
mod palette;
mod rates;
mod request;
mod spread;
#[cfg(test)]
mod tests;

use fairwave_scenario::{Run, Scenario};

use canvas::Canvas;

pub use bars::{Bar, BarChart, BarGroup, bar_chart};
pub use beside::{BesideCurve, rates_beside};
pub use lines::{Axis, LineKind, Panel, PlottedLine, Scale, line_panels, lines};
pub use request::{Caption, Curve, CurveWeight, FEW_SESSIONS, PictureError};

/// The picture of one run: up to [`FEW_SESSIONS`] sessions as rates over time with the max-min rates, more as distance
/// to max-min over time and the spread of their rates.
pub fn of_run(scenario: &Scenario, run: &Run) -> Result<String, PictureError> {
    let caption = Caption::of(scenario, run);
    if run.summary.sessions.len() <= FEW_SESSIONS {
        rates_over_time(&caption, run)
    } else {
        distance_and_spread(&caption, run)
    }
}

/// The rate of each session over time; dashed lines are the max-min rates.
pub fn rates_over_time(caption: &Caption, run: &Run) -> Result<String, PictureError> {
    let canvas = Canvas::new(960, 540, caption);
    canvas.draw(|frame| rates::draw(&frame.plot, run, rates::Style::Full))
}

/// The 2-norm distance to max-min over time as a share of the max-min vector's norm (Wu 2007, VII.1.C), above the
/// spread of the sessions' rates relative to their max-min rates.
pub fn distance_and_spread(caption: &Caption, run: &Run) -> Result<String, PictureError> {
    let canvas = Canvas::new(960, 640, caption);
    canvas.draw(|frame| {
        let (upper, lower) = frame.plot.split_rows(0.56);
        distance::draw_one(&upper, run)?;
        spread::draw(&lower, run)
    })
}

/// The distances to max-min of several runs over time, in bits per second above and as shares of the max-min vector's
/// norm below: many draws as thin curves, single cases as thick ones.
pub fn distances(caption: &Caption, curves: &[Curve<'_>]) -> Result<String, PictureError> {
    let canvas = Canvas::new(960, 860, caption);
    canvas.draw(|frame| {
        let (upper, lower) = frame.plot.split_rows(0.46);
        distance::draw_many(&upper, curves, distance::Measure::Absolute)?;
        distance::draw_many(&lower, curves, distance::Measure::Share)
    })
}

/// The rate of every session of several runs over time, a thin line each, a panel per run.
pub fn trajectories(caption: &Caption, panels: &[Curve<'_>]) -> Result<String, PictureError> {
    let (rows, columns, each) = match panels.len() {
        0 => return Err(PictureError::Empty),
        1 => (1, 1, 430),
        count => (count.div_ceil(2), 2, 270),
    };
    let height = i32::try_from(rows).ok().and_then(|rows| rows.checked_mul(each)).filter(|height| *height < 1 << 20);
    let Some(height) = height else { return Err(PictureError::TooMany(panels.len())) };
    let rate_limit = axis::rate_limit_of_samples(panels.iter().map(|panel| panel.run));
    Canvas::new(960, 110 + height, caption).draw(|frame| {
        for (panel, area) in panels.iter().zip(frame.plot.grid(rows, columns)) {
            let label = (columns > 1).then_some(panel.label.as_str());
            rates::draw_all(&area, panel.run, label, rate_limit)?;
        }
        Ok(())
    })
}

/// The rates of several runs over time in one chart: a line per run and session.
pub fn overlay(caption: &Caption, curves: &[Curve<'_>]) -> Result<String, PictureError> {
    let limit = axis::rate_limit_of_samples(curves.iter().map(|curve| curve.run));
    let unit = axis::rate_unit(limit);
    let mut all = Vec::new();
    for curve in curves {
        let sessions = &curve.run.summary.sessions;
        for (number, session) in sessions.iter().enumerate() {
            let points = rates::points_of(curve.run, number, unit.bps)?;
            // One session per run: the lines have the runs' names.
            let label =
                if sessions.len() == 1 { curve.label.clone() } else { format!("{}, {}", curve.label, session.name) };
            all.push(PlottedLine::measured(label, points));
        }
    }
    let end_s = curves.iter().map(|curve| curve.run.summary.duration_s).fold(0.0, f64::max);
    let x = Axis { name: "time, s".into(), scale: Scale::Linear, range: Some((0.0, end_s)) };
    let y = Axis { name: format!("rate, {}", unit.name), scale: Scale::Linear, range: Some((0.0, limit / unit.bps)) };
    lines(caption, &x, &y, &all)
}

/// The rates of several runs side by side with the same axes, for example variants of a scenario. Runs of many sessions
/// show the spread of their rates.
pub fn side_by_side(caption: &Caption, panels: &[Curve<'_>]) -> Result<String, PictureError> {
    let columns = match panels.len() {
        0 => return Err(PictureError::Empty),
        1..=4 => 2.min(panels.len()),
        _ => 3,
    };
    let rows = panels.len().div_ceil(columns);
    let height = i32::try_from(rows).ok().and_then(|rows| rows.checked_mul(230)).filter(|height| *height < 1 << 20);
    let Some(height) = height else { return Err(PictureError::TooMany(panels.len())) };
    let canvas = Canvas::new(960, 110 + height, caption);
    let rate_limit = axis::rate_limit(panels.iter().map(|panel| panel.run));
    canvas.draw(|frame| {
        for (panel, area) in panels.iter().zip(frame.plot.grid(rows, columns)) {
            let style = rates::Style::Panel { label: &panel.label, rate_limit };
            rates::draw(&area, panel.run, style)?;
        }
        Ok(())
    })
}
