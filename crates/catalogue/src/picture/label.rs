//! Labels next to the ends of curves.

use plotters::style::{Color, RGBColor};

use super::axis::Grid;
use super::canvas::{fit, font, text_width};
use super::curve;
use super::palette::{INK, Marker};
use super::request::PictureError;

/// Room for the line sample before a label.
const SAMPLE_ROOM: i32 = 38;

/// The label at a curve's end.
pub(super) struct Label {
    /// Its preferred position, in pixels from the top.
    pub(super) y: f64,
    /// Its words.
    pub(super) text: String,
    /// The line sample before the text.
    pub(super) sample: CurveSample,
}

/// A sample of the line that a label names.
#[derive(Clone, Copy)]
pub(super) enum CurveSample {
    /// A curve, with its marker if it has one.
    Curve(RGBColor, f64, Option<Marker>),
    /// A dashed line.
    Dashed(RGBColor),
    /// A band of this colour and opacity.
    Band(RGBColor, f64),
    /// A marker without a line.
    Mark(RGBColor, Marker),
}

/// Draws labels to the right of a grid, as near to their curves as possible.
pub(super) fn draw(grid: &Grid<'_, '_>, mut labels: Vec<Label>, size: i32) -> Result<(), PictureError> {
    let pitch = f64::from(size) * 1.5;
    // Curves that end at about the same height keep their order, which is then that of other panels.
    labels.sort_by(|a, b| (a.y / pitch).round().total_cmp(&(b.y / pitch).round()));
    let wanted: Vec<_> = labels.iter().map(|label| label.y).collect();
    let heights = spread(&wanted, pitch, grid.top, grid.bottom);
    let (from, to) = (grid.right + 10.0, grid.right + 30.0);
    let room = grid.area.size().0 - grid.right as i32 - SAMPLE_ROOM;
    for (label, y) in labels.iter().zip(heights) {
        match label.sample {
            CurveSample::Curve(colour, width, shape) => {
                grid.area.line(&[(from, y), (to, y)], colour.to_rgba(), width)?;
                if let Some(shape) = shape {
                    curve::marker(grid, (f64::midpoint(from, to), y), shape, colour, 3.5)?;
                }
            }
            CurveSample::Dashed(colour) => curve::dashed(grid, (from, y), (to, y), colour, (5.0, 3.0))?,
            CurveSample::Band(colour, opacity) => {
                grid.area.line(&[(from, y), (to, y)], colour.mix(opacity), 8.0)?;
            }
            CurveSample::Mark(colour, shape) => curve::marker(grid, (f64::midpoint(from, to), y), shape, colour, 5.0)?,
        }
        grid.note(to + 6.0, y, &fit(&label.text, room, size), font(size, INK))?;
    }
    Ok(())
}

/// Width in pixels of labels with these texts to the right of a grid.
pub(super) fn room<'t>(texts: impl Iterator<Item = &'t str>, size: i32) -> i32 {
    let widest = texts.map(|text| text_width(text, size)).max().unwrap_or(0);
    (widest + SAMPLE_ROOM).clamp(100, 280)
}

/// Heights at least `pitch` apart, in the given order, between `top` and `bottom` if possible, each near the wanted
/// one: neighbours that are too close form a block around the mean of their wanted heights.
fn spread(wanted: &[f64], pitch: f64, top: f64, bottom: f64) -> Vec<f64> {
    // A block: sum of the wanted first heights, number of labels.
    let mut blocks: Vec<(f64, usize)> = Vec::new();
    let place = |(sum, count): (f64, usize)| {
        let last = bottom - pitch * (count - 1) as f64;
        (sum / count as f64).min(last).max(top)
    };
    for y in wanted {
        let mut block = (*y, 1);
        while let Some(previous) = blocks.last().copied() {
            if place(previous) + pitch * previous.1 as f64 <= place(block) {
                break;
            }
            blocks.pop();
            let shift = pitch * previous.1 as f64 * block.1 as f64;
            block = (previous.0 + block.0 - shift, previous.1 + block.1);
        }
        blocks.push(block);
    }
    blocks.into_iter().flat_map(|block| (0..block.1).map(move |i| place(block) + pitch * i as f64)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread__leaves_labels_that_do_not_touch() {
        assert_eq!(spread(&[10.0, 50.0, 90.0], 15.0, 0.0, 100.0), [10.0, 50.0, 90.0]);
    }

    #[test]
    fn spread__parts_labels_around_their_mean() {
        assert_eq!(spread(&[50.0, 50.0, 50.0], 10.0, 0.0, 100.0), [40.0, 50.0, 60.0]);
    }

    #[test]
    fn spread__stays_on_the_sheet() {
        assert_eq!(spread(&[0.0, 0.0], 10.0, 0.0, 100.0), [0.0, 10.0]);
        assert_eq!(spread(&[99.0, 100.0], 10.0, 0.0, 100.0), [90.0, 100.0]);
    }

    #[test]
    fn spread__never_overlaps() {
        let heights = spread(&[5.0, 5.0, 20.0, 21.0, 22.0, 95.0, 99.0], 10.0, 0.0, 100.0);
        assert!(heights.windows(2).all(|pair| pair[1] - pair[0] >= 10.0 - 1e-9), "{heights:?}");
    }
}
