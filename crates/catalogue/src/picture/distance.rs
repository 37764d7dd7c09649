//! The 2-norm distance to max-min over time.

use fairwave_scenario::Run;
use plotters::style::Color;

use super::axis::{Grid, Margins, power_ticks, rate_unit, ticks};
use super::canvas::Area;
use super::label::{self, CurveSample, Label};
use super::palette::{self, FIRST};
use super::request::{Curve, CurveWeight, PictureError};
use super::{curve, rates, spread};

/// Distances below this share of |x*| are drawn at it: they are indistinguishable, and a logarithm needs a positive
/// number.
const FLOOR: f64 = 1e-4;
/// Maximum share that is drawn.
const CEILING: f64 = 1e4;
const NAME: &str = "2-norm distance to max-min, share of |x*| (log scale)";

/// Unit of a distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Measure {
    /// Bits per second.
    Absolute,
    /// Relative to the norm of the max-min vector, on a logarithmic scale.
    Share,
}

/// Draws the distance of one run.
pub(super) fn draw_one(area: &Area<'_>, run: &Run) -> Result<(), PictureError> {
    let points = shares(run)?;
    let grid = grid(area, run.summary.duration_s, spread::right(), &[&points])?;
    curve::line(&grid, &points, FIRST.to_rgba(), 2.4)?;
    rates::converged(&grid, run.summary.metrics.converged_s)?;
    let Some(last) = points.last() else { return Ok(()) };
    let share = 10f64.powf(last.1) * 100.0;
    let text = match share {
        share if share <= FLOOR * 100.0 => format!("under {} %", FLOOR * 100.0),
        share => format!("{share:.*} % at the end", usize::from(share < 10.0) + usize::from(share < 1.0)),
    };
    let sample = CurveSample::Curve(FIRST, 2.4, None);
    label::draw(&grid, vec![Label { y: grid.at(*last).1, text, sample }], 12)
}

/// Draws the distances of several runs.
pub(super) fn draw_many(area: &Area<'_>, curves: &[Curve<'_>], measure: Measure) -> Result<(), PictureError> {
    let of_run = if measure == Measure::Share { shares } else { absolute };
    let points: Vec<_> = curves.iter().map(|curve| of_run(curve.run)).collect::<Result<_, _>>()?;
    let duration_s = curves.iter().map(|curve| curve.run.summary.duration_s).fold(0.0, f64::max);
    if curves.is_empty() {
        return Err(PictureError::Empty);
    }
    let right = label::room(curves.iter().map(|curve| curve.label.as_str()), 12).max(spread::right());
    let (grid, points) = match measure {
        Measure::Share => {
            (grid(area, duration_s, right, &points.iter().map(Vec::as_slice).collect::<Vec<_>>())?, points)
        }
        Measure::Absolute => absolute_grid(area, duration_s, right, points)?,
    };
    let mut labels: Vec<Label> = Vec::new();
    let mut groups: Vec<(&str, Vec<f64>)> = Vec::new();
    for (curve, points) in curves.iter().zip(&points).filter(|(curve, _)| curve.weight == CurveWeight::Thin) {
        let group = groups.iter().position(|(label, _)| *label == curve.label).unwrap_or_else(|| {
            groups.push((&curve.label, Vec::new()));
            groups.len() - 1
        });
        curve::line(&grid, points, palette::colour(group).mix(0.3), 1.0)?;
        let heights = &mut groups[group].1;
        if heights.is_empty() {
            // The marker is where the curve falls, the subject of the picture.
            if let Some(point) = points.get(points.len() * 3 / 4) {
                curve::marker(&grid, grid.at(*point), palette::marker(group), palette::colour(group), 4.0)?;
            }
        }
        heights.push(points.last().map_or(grid.bottom, |point| grid.at(*point).1));
    }
    let thin_groups = groups.len();
    for (group, (label, heights)) in groups.into_iter().enumerate() {
        let y = heights.iter().sum::<f64>() / heights.len() as f64;
        let sample = CurveSample::Curve(palette::colour(group), 1.0, Some(palette::marker(group)));
        labels.push(Label { y, text: label.to_owned(), sample });
    }
    let thick = curves.iter().zip(&points).filter(|(curve, _)| curve.weight == CurveWeight::Thick);
    let count = curves.iter().filter(|curve| curve.weight == CurveWeight::Thick).count();
    for (n, (curve, points)) in thick.enumerate() {
        // The first colours are those of the thin curves, and the very first one is only theirs.
        let (colour, shape) = (palette::colour(n + thin_groups.max(1)), palette::marker(n + thin_groups));
        curve::line(&grid, points, colour.to_rgba(), 2.4)?;
        for round in 0..3 {
            if let Some(point) = points.get(points.len() * (2 * (round * count + n) + 1) / (6 * count)) {
                curve::marker(&grid, grid.at(*point), shape, colour, 4.0)?;
            }
        }
        let y = points.last().map_or(grid.bottom, |point| grid.at(*point).1);
        labels.push(Label { y, text: curve.label.clone(), sample: CurveSample::Curve(colour, 2.4, Some(shape)) });
    }
    // The shares are at the bottom, with the names of both charts' curves.
    if measure == Measure::Share { label::draw(&grid, labels, 12) } else { Ok(()) }
}

/// A grid with axes: time, and exponents of ten.
fn grid<'a, 's>(
    area: &'a Area<'s>,
    duration_s: f64,
    right: i32,
    all: &[&[(f64, f64)]],
) -> Result<Grid<'a, 's>, PictureError> {
    let exponents = || all.iter().flat_map(|points| points.iter().map(|point| point.1));
    let least = exponents().fold(0.0, f64::min).max(FLOOR.log10()).min(-1.0);
    let most = exponents().fold(0.0, f64::max) + 0.1;
    let margins = Margins { left: 52, right, top: 34, bottom: 28 };
    let grid = Grid::new(area, margins, (0.0, duration_s), (least.floor().max(least - 0.3), most));
    let least = least.floor().max(least - 0.3);
    grid.value_axis(&power_ticks((least, most)), NAME, 12)?;
    grid.time_axis(12)?;
    Ok(grid)
}

/// A grid with axes, time and a linear one of rates, and the points in its unit.
#[expect(clippy::type_complexity, reason = "a grid, and the points of each curve")]
fn absolute_grid<'a, 's>(
    area: &'a Area<'s>,
    duration_s: f64,
    right: i32,
    mut all: Vec<Vec<(f64, f64)>>,
) -> Result<(Grid<'a, 's>, Vec<Vec<(f64, f64)>>), PictureError> {
    let largest = all.iter().flatten().map(|point| point.1).filter(|bps| bps.is_finite()).fold(0.0, f64::max);
    let limit = if largest > 1e-3 { largest.min(1e18) * 1.06 } else { 1.0 };
    let unit = rate_unit(limit);
    for point in all.iter_mut().flatten() {
        point.1 /= unit.bps;
    }
    let margins = Margins { left: 52, right, top: 34, bottom: 28 };
    let grid = Grid::new(area, margins, (0.0, duration_s), (0.0, limit / unit.bps));
    grid.value_axis(&ticks((0.0, limit / unit.bps), 6), &format!("2-norm distance to max-min, {}", unit.name), 12)?;
    grid.time_axis(12)?;
    Ok((grid, all))
}

/// Distance in bit/s over time in seconds, from the start on.
fn absolute(run: &Run) -> Result<Vec<(f64, f64)>, PictureError> {
    Ok(distances(run)?.into_iter().map(|(end_s, distance, _)| (end_s, distance)).collect())
}

/// Distance over norm as exponents of ten, over time in seconds, from the start on.
fn shares(run: &Run) -> Result<Vec<(f64, f64)>, PictureError> {
    let exponent = |distance: f64, norm: f64| (distance / norm).clamp(FLOOR, CEILING).log10();
    // Without active sessions the norm is zero and there is no share to draw.
    let points = distances(run)?.into_iter().filter(|(_, _, norm)| *norm > 0.0);
    let mut points: Vec<_> = points.map(|(end_s, distance, norm)| (end_s, exponent(distance, norm))).collect();
    // A curve that stays at the floor ends there: it has left the picture.
    let seen = points.iter().rposition(|point| point.1 > FLOOR.log10()).map_or(1, |last| last + 2);
    points.truncate(seen);
    Ok(points)
}

/// Time in seconds, distance and norm, from the start on.
fn distances(run: &Run) -> Result<Vec<(f64, f64, f64)>, PictureError> {
    if run.distances_bps.is_empty() {
        return Err(PictureError::NotRecorded { what: "distances", scenario: run.summary.scenario.clone() });
    }
    let width_s = run.summary.duration_s / run.distances_bps.len() as f64;
    let norms = run.max_min_norms_bps.iter().copied();
    let start = (0.0, run.summary.metrics.distance_start_bps, norms.clone().next().unwrap_or(0.0));
    let samples = run.distances_bps.iter().zip(norms).enumerate().map(|(sample, (distance, norm))| {
        let end_s = match run.rates.as_ref().and_then(|rates| rates.ends.get(sample)) {
            Some(end) => end.as_secs_f64(),
            None => (sample + 1) as f64 * width_s,
        };
        (end_s, *distance, norm)
    });
    Ok(std::iter::once(start).chain(samples).collect())
}
