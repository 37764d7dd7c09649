//! Runs of the same sessions in two models, on top of each other.

use fairwave_scenario::Run;

use super::canvas::Canvas;
use super::request::{Caption, FEW_SESSIONS, PictureError};
use super::{axis, rates};

/// A run, and another one that is drawn below it, thick and pale.
#[derive(Clone, Debug)]
pub struct BesideCurve<'a> {
    /// Its name: a variant.
    pub label: String,
    /// The run that counts.
    pub run: &'a Run,
    /// The run that it is compared with; `None` if there is none.
    pub under: Option<&'a Run>,
}

/// The rates of runs over time on top of those of others: one sheet for a single run, panels with the same axes for
/// several. With more than [`FEW_SESSIONS`] sessions every run has a separate panel, with the spread of their rates.
pub fn rates_beside(caption: &Caption, curves: &[BesideCurve<'_>]) -> Result<String, PictureError> {
    let is_many = |curve: &BesideCurve<'_>| curve.run.summary.sessions.len() > FEW_SESSIONS;
    if let [one] = curves
        && !is_many(one)
    {
        let canvas = Canvas::new(960, 540, caption);
        return canvas.draw(|frame| rates::draw_over(&frame.plot, one.under, one.run, rates::Style::Full));
    }
    let mut panels: Vec<BesideCurve<'_>> = Vec::new();
    for curve in curves {
        match curve.under.filter(|_| is_many(curve)) {
            None => panels.push(curve.clone()),
            Some(under) => {
                let named = |run: &Run| format!("{} {}", curve.label, run.summary.model).trim_start().to_owned();
                let panel = |run| BesideCurve { label: named(run), run, under: None };
                panels.extend([panel(curve.run), panel(under)]);
            }
        }
    }
    let (columns, height) = if panels.iter().any(is_many) { (1, 260) } else { (2.min(panels.len().max(1)), 230) };
    let rows = panels.len().div_ceil(columns);
    let height = i32::try_from(rows).ok().and_then(|rows| rows.checked_mul(height)).filter(|height| *height < 1 << 20);
    let Some(height) = height else { return Err(PictureError::TooMany(panels.len())) };
    if panels.is_empty() {
        return Err(PictureError::Empty);
    }
    let rate_limit = axis::rate_limit(panels.iter().flat_map(|panel| std::iter::once(panel.run).chain(panel.under)));
    let canvas = Canvas::new(960, 110 + height, caption);
    canvas.draw(|frame| {
        for (panel, area) in panels.iter().zip(frame.plot.grid(rows, columns)) {
            let style = rates::Style::Panel { label: &panel.label, rate_limit };
            rates::draw_over(&area, panel.under, panel.run, style)?;
        }
        Ok(())
    })
}
