//! The spread of many sessions' rates around their max-min rates.

use fairwave_scenario::Run;
use plotters::style::Color;

use super::axis::{Grid, Margins, ticks};
use super::canvas::Area;
use super::label::{self, CurveSample, Label};
use super::palette::{FIRST, INK};
use super::request::PictureError;
use super::{curve, max_min};

/// The percentiles that bound the bands, from the outermost to the median.
const PERCENTILES: [f64; 7] = [0.0, 5.0, 25.0, 50.0, 75.0, 95.0, 100.0];

/// Labels of the grid: the bands from the outermost inwards, the line within them, the dashed one.
const BANDS: [&str; 3] = ["all sessions", "middle 90 %", "middle 50 %"];
const MEDIAN: &str = "median";
const FAIR: &str = "max-min fair rate";

/// Width of the labels in pixels; pictures above it leave the same space, so that their time axes are aligned.
pub(super) fn right() -> i32 {
    label::room(BANDS.into_iter().chain([MEDIAN, FAIR]), 12)
}

/// Draws bands between percentiles of rate over max-min rate, over time.
pub(super) fn draw(area: &Area<'_>, run: &Run) -> Result<(), PictureError> {
    let Some(rates) = run.rates.as_ref().filter(|rates| !rates.ends.is_empty()) else {
        return Err(PictureError::NotRecorded { what: "rates", scenario: run.summary.scenario.clone() });
    };
    let mut curves: [Vec<(f64, f64)>; PERCENTILES.len()] = Default::default();
    let mut begin_s = 0.0;
    for (sample, end) in rates.ends.iter().enumerate() {
        let end_s = end.as_secs_f64();
        let row = &rates.wire_bps()[sample * rates.sessions..][..rates.sessions];
        let fair = max_min::at(run, end_s);
        let mut relative: Vec<_> =
            row.iter().zip(&fair).map(|(rate, fair)| rate / fair).filter(|share| share.is_finite()).collect();
        relative.sort_unstable_by(f64::total_cmp);
        if !relative.is_empty() {
            for (curve, percent) in curves.iter_mut().zip(PERCENTILES) {
                let rank = (percent / 100.0 * (relative.len() - 1) as f64).round() as usize;
                curve.push((f64::midpoint(begin_s, end_s), relative[rank] * 100.0));
            }
        }
        begin_s = end_s;
    }
    // A few sessions far above would flatten all others.
    let highest = |curve: usize| curves[curve].iter().map(|point| point.1).fold(0.0, f64::max);
    let limit = highest(6).min(highest(5) * 1.5).clamp(120.0, 1e6);
    let margins = Margins { left: 52, right: right(), top: 34, bottom: 28 };
    let grid = Grid::new(area, margins, (0.0, run.summary.duration_s), (0.0, limit));
    let labelled: Vec<_> =
        ticks((0.0, limit), 5).into_iter().map(|(value, text)| (value, format!("{text} %"))).collect();
    grid.value_axis(&labelled, "session rates, share of their max-min rates", 12)?;
    grid.time_axis(12)?;
    let opacities = [0.14, 0.24, 0.38];
    for (outer, opacity) in opacities.into_iter().enumerate() {
        curve::band(&grid, &curves[outer], &curves[6 - outer], FIRST.mix(opacity))?;
    }
    curve::line(&grid, &curves[3], FIRST.to_rgba(), 2.2)?;
    let y = grid.y(100.0);
    curve::dashed(&grid, (grid.left, y), (grid.right, y), INK, (6.0, 4.0))?;
    // Nested bands darken each other; the samples show the sum.
    let mut labels: Vec<_> = (BANDS.into_iter().zip([0.14, 0.35, 0.6]).enumerate())
        .map(|(n, (text, opacity))| Label {
            y: grid.top + 10.0 + 20.0 * n as f64,
            text: text.into(),
            sample: CurveSample::Band(FIRST, opacity),
        })
        .collect();
    labels.push(Label { y: grid.top + 70.0, text: MEDIAN.into(), sample: CurveSample::Curve(FIRST, 2.2, None) });
    labels.push(Label { y: grid.top + 90.0, text: FAIR.into(), sample: CurveSample::Dashed(INK) });
    label::draw(&grid, labels, 12)
}
