//! Colours and markers that distinguish curves.

use plotters::style::RGBColor;

/// The background of a picture.
pub(super) const PAPER: RGBColor = RGBColor(255, 255, 255);
/// Text and dashed reference lines.
pub(super) const INK: RGBColor = RGBColor(34, 34, 34);
/// Secondary text.
pub(super) const FAINT: RGBColor = RGBColor(102, 102, 102);
/// Axes and ticks.
pub(super) const AXIS: RGBColor = RGBColor(153, 153, 153);
/// Grid lines.
pub(super) const GRID: RGBColor = RGBColor(232, 232, 232);

/// Blue, vermillion, bluish green, reddish purple, orange, sky blue, black: the colours of Okabe and Ito (2008) without
/// yellow, which is hard to see on light paper.
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 0, 0),
];

/// The colour of a picture's only curve.
pub(super) const FIRST: RGBColor = COLOURS[0];

/// The colour of the n-th curve.
pub(super) fn colour(n: usize) -> RGBColor {
    COLOURS[n % COLOURS.len()]
}

/// The shape of a curve's marker, which identifies the curve like its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Marker {
    Circle,
    Square,
    Triangle,
    Diamond,
    Cross,
}

/// The marker of the n-th curve. Five shapes and seven colours: the first 35 curves all differ.
pub(super) fn marker(n: usize) -> Marker {
    [Marker::Circle, Marker::Square, Marker::Triangle, Marker::Diamond, Marker::Cross][n % 5]
}
