//! The rates of all sessions over time, however many: a thin line each.

use fairwave_scenario::Run;
use plotters::style::Color;

use super::axis::{Grid, Margins, rate_unit, ticks};
use super::canvas::{Area, fit, font};
use super::palette::{self, FAINT, INK};
use super::{PictureError, curve, rates};

/// Draws every session's rate, up to `rate_limit` in bit/s; above it the name of the run, where there are several.
pub(super) fn draw(area: &Area<'_>, run: &Run, label: Option<&str>, rate_limit: f64) -> Result<(), PictureError> {
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
        let points = rates::points_of(run, session, unit.bps)?;
        curve::line(&grid, &points, palette::colour(session).mix(0.7), 1.1)?;
    }
    let count = format!("{sessions} sessions");
    grid.note(grid.right, grid.top - 8.0 - f64::from(size) / 2.0, &count, font(size, FAINT).right())
}
