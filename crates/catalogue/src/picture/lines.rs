//! Named lines over two axes of any kind: response functions, windows or an index over time.

use plotters::style::Color;

use super::axis::{Grid, Margins, decade_ticks, ticks};
use super::bars::PRINTED;
use super::canvas::{Area, Canvas, fit, font};
use super::curve;
use super::label::{self, CurveSample, Label};
use super::palette::{self, FAINT, INK};
use super::request::{Caption, PictureError};

/// Maximum points of a line with a marker each; of more, only a few have one.
const FEW_POINTS: usize = 16;

/// Scale of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Linear.
    Linear,
    /// Logarithmic; values up to zero are not drawn.
    Log,
}

/// An axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Name of the quantity, with its unit: "loss events per packet", "time, s".
    pub name: String,
    /// Its scale.
    pub scale: Scale,
    /// Its ends; by default those of the data, and zero at the bottom of a linear scale.
    pub range: Option<(f64, f64)>,
}

/// Points with a name, in order of x. A NaN makes a gap.
#[derive(Clone, Debug, PartialEq)]
pub struct PlottedLine {
    /// Names it.
    pub label: String,
    /// x and y.
    pub points: Vec<(f64, f64)>,
    /// How it is drawn.
    pub kind: LineKind,
}

/// Origin of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineKind {
    /// Measured: coloured, with markers.
    Measured,
    /// Computed: thin and grey, behind the measured ones.
    Theory,
    /// Printed in the paper: only markers.
    Printed,
}

impl PlottedLine {
    /// A line of measured points.
    pub fn measured(label: String, points: Vec<(f64, f64)>) -> Self {
        Self { label, points, kind: LineKind::Measured }
    }
}

/// One of several charts on a sheet.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// Names it.
    pub label: String,
    /// The lines of the chart.
    pub lines: Vec<PlottedLine>,
}

/// Draws lines over two axes, on one sheet.
pub fn lines(caption: &Caption, x: &Axis, y: &Axis, lines: &[PlottedLine]) -> Result<String, PictureError> {
    if lines.is_empty() {
        return Err(PictureError::Empty);
    }
    let canvas = Canvas::new(960, 560, caption);
    let (x, y) = (x.over(lines.iter(), 0), y.over(lines.iter(), 1));
    let right = label::room(lines.iter().map(|line| line.label.as_str()), 12);
    let margins = Margins { left: 58, right, top: 34, bottom: 46 };
    canvas.draw(|frame| draw(&frame.plot, &x, &y, lines, margins, 12))
}

/// Several charts side by side, all with the same axes.
pub fn line_panels(caption: &Caption, x: &Axis, y: &Axis, panels: &[Panel]) -> Result<String, PictureError> {
    let columns = match panels.len() {
        0 => return Err(PictureError::Empty),
        1 => 1,
        2..=4 => 2,
        _ => 3,
    };
    let rows = panels.len().div_ceil(columns);
    let each = if columns == 1 { 430 } else { 250 };
    let height = i32::try_from(rows).ok().and_then(|rows| rows.checked_mul(each)).filter(|height| *height < 1 << 20);
    let Some(height) = height else { return Err(PictureError::TooMany(panels.len())) };
    let all = || panels.iter().flat_map(|panel| &panel.lines);
    let (x, y) = (x.over(all(), 0), y.over(all(), 1));
    let size = if columns == 1 { 12 } else { 10 };
    let right = if columns == 1 { label::room(all().map(|line| line.label.as_str()), size) } else { 92 };
    let margins = Margins { left: 48, right, top: 34, bottom: 42 };
    Canvas::new(960, 110 + height, caption).draw(|frame| {
        for (panel, area) in panels.iter().zip(frame.plot.grid(rows, columns)) {
            let width = area.size().0 - 10;
            area.text(0, 12, &fit(&panel.label, width, 13), font(13, INK).bold())?;
            draw(&area.margins(16, 0, 0, 0), &x, &y, &panel.lines, margins, size)?;
        }
        Ok(())
    })
}

/// An axis whose ends are known.
struct Fitted<'a> {
    axis: &'a Axis,
    /// In values, or in exponents of ten.
    range: (f64, f64),
}

impl Axis {
    fn over<'a>(&self, lines: impl Iterator<Item = &'a PlottedLine>, which: usize) -> Fitted<'_> {
        let value = |point: &(f64, f64)| if which == 0 { point.0 } else { point.1 };
        let placed = |value: f64| self.place(value);
        let of_data = || {
            let values = lines.flat_map(|line| &line.points).map(value).map(placed).filter(|v| v.is_finite());
            let ends = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(v), b.max(v)));
            match self.scale {
                _ if ends.0 > ends.1 => (0.0, 1.0),
                Scale::Log => ends,
                // Some space at the top; an axis of time ends with the data.
                Scale::Linear => (ends.0.min(0.0), if which == 0 { ends.1 } else { ends.1 * 1.05 }),
            }
        };
        let range = self.range.map_or_else(of_data, |(least, most)| (placed(least), placed(most)));
        let sane = range.0.is_finite() && range.1.is_finite() && range.1 > range.0;
        Fitted { axis: self, range: if sane { range } else { (0.0, 1.0) } }
    }

    fn place(&self, value: f64) -> f64 {
        match self.scale {
            Scale::Linear => value,
            Scale::Log if value > 0.0 => value.log10(),
            Scale::Log => f64::NAN,
        }
    }
}

impl Fitted<'_> {
    fn ticks(&self, wanted: usize) -> Vec<(f64, String)> {
        match self.axis.scale {
            Scale::Linear => ticks(self.range, wanted),
            Scale::Log => decade_ticks(self.range),
        }
    }
}

fn draw(
    area: &Area<'_>,
    x: &Fitted<'_>,
    y: &Fitted<'_>,
    lines: &[PlottedLine],
    margins: Margins,
    size: i32,
) -> Result<(), PictureError> {
    let grid = Grid::new(area, margins, x.range, y.range);
    grid.value_axis(&y.ticks(if size > 10 { 7 } else { 5 }), &y.axis.name, size)?;
    let wanted = ((grid.right - grid.left) / 60.0).clamp(3.0, 11.0) as usize;
    grid.base_axis(&x.ticks(wanted), &x.axis.name, size)?;
    let (width, radius) = if size > 10 { (2.2, 4.0) } else { (1.4, 3.0) };
    let mut labels = Vec::new();
    let mut marks = Vec::new();
    // Theory first, so that measured points lie on top of it.
    let is_theory = |(_, line): &(usize, &PlottedLine)| line.kind == LineKind::Theory;
    let (theory, measured): (Vec<_>, Vec<_>) = lines.iter().enumerate().partition(is_theory);
    for (n, line) in theory.into_iter().chain(measured) {
        let style = (palette::colour(n), width, Some(palette::marker(n)));
        let (colour, width, shape) = if line.kind == LineKind::Theory { (FAINT, 1.0, None) } else { style };
        let placed: Vec<_> = line.points.iter().map(|(a, b)| (x.axis.place(*a), y.axis.place(*b))).collect();
        // Points outside the axis would be drawn at its end.
        let is_seen =
            |point: &(f64, f64)| point.1.is_finite() && (x.range.0 - 1e-9..=x.range.1 + 1e-9).contains(&point.0);
        let good: Vec<_> = placed.iter().filter(|point| is_seen(point)).copied().collect();
        if line.kind == LineKind::Printed {
            marks.extend(good.iter().map(|point| (*point, PRINTED, INK)));
            let end = good.last().map_or(grid.bottom, |point| grid.at(*point).1);
            labels.push(Label { y: end, text: line.label.clone(), sample: CurveSample::Mark(INK, PRINTED) });
            continue;
        }
        for piece in placed.split(|point| !is_seen(point)) {
            curve::line(&grid, piece, colour.to_rgba(), width)?;
        }
        if line.kind == LineKind::Theory {
            // A curve has no points to mark.
        } else if good.len() <= FEW_POINTS {
            marks.extend(good.iter().map(|point| (*point, palette::marker(n), palette::colour(n))));
        } else {
            let slots = 4 * lines.len();
            let place = |round: usize| good.get(good.len() * (2 * (round * lines.len() + n) + 1) / (2 * slots));
            marks.extend((0..4).filter_map(place).map(|point| (*point, palette::marker(n), palette::colour(n))));
        }
        let end = good.last().map_or(grid.bottom, |point| grid.at(*point).1);
        labels.push(Label { y: end, text: line.label.clone(), sample: CurveSample::Curve(colour, width, shape) });
    }
    // Markers are drawn on top of all lines.
    for (point, shape, colour) in marks {
        curve::marker(&grid, grid.at(point), shape, colour, radius)?;
    }
    label::draw(&grid, labels, size)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(scale: Scale, range: Option<(f64, f64)>) -> Axis {
        Axis { name: "packets".into(), scale, range }
    }

    fn line(points: &[(f64, f64)]) -> PlottedLine {
        PlottedLine::measured("one".into(), points.to_vec())
    }

    #[test]
    fn lines__carry_names_units_and_ticks() {
        let log = axis(Scale::Log, None);
        let svg = lines(&Caption::default(), &log, &log, &[line(&[(1e-8, 1e8), (1e-1, 1e1)])]).unwrap();
        for word in [">\none\n<", ">\npackets\n<", "10⁻⁸", "10⁸"] {
            assert!(svg.contains(word), "{word} is missing");
        }
    }

    #[test]
    fn lines__empty_or_nan_do_not_panic() {
        let (log, linear) = (axis(Scale::Log, None), axis(Scale::Linear, Some((0.0, 1.0))));
        assert_eq!(lines(&Caption::default(), &log, &log, &[]), Err(PictureError::Empty));
        for points in
            [&[][..], &[(0.0, 0.0)], &[(f64::NAN, 1.0), (1.0, f64::INFINITY)], &[(-1.0, 1e300), (2.0, -1e300)]]
        {
            assert!(lines(&Caption::default(), &log, &linear, &[line(points)]).is_ok());
            assert!(lines(&Caption::default(), &linear, &log, &[line(points)]).is_ok());
        }
    }

    #[test]
    fn lines__printed_are_marks_alone() {
        let linear = axis(Scale::Linear, Some((0.0, 10.0)));
        let draw = |kind| {
            let line = PlottedLine { kind, ..line(&[(1.0, 1.0), (2.0, 2.0), (9.0, 3.0)]) };
            lines(&Caption::default(), &linear, &linear, &[line]).unwrap().matches("<polyline").count()
        };
        // A line and its sample; three crosses of four strokes, and one more in the legend.
        assert_eq!(draw(LineKind::Printed) - draw(LineKind::Theory), 4 * 4 - 2);
    }

    #[test]
    fn lines__end_at_the_axis() {
        let x = axis(Scale::Linear, Some((0.0, 1.0)));
        let y = axis(Scale::Linear, Some((0.0, 10.0)));
        let draw = |points: &[(f64, f64)]| lines(&Caption::default(), &x, &y, &[line(points)]).unwrap();
        assert_eq!(draw(&[(0.0, 1.0), (1.0, 2.0), (2.0, 9.0)]), draw(&[(0.0, 1.0), (1.0, 2.0)]));
    }

    #[test]
    fn line_panels__name_every_panel() {
        let linear = axis(Scale::Linear, None);
        let panel = |label: &str| Panel { label: label.into(), lines: vec![line(&[(0.0, 1.0), (1.0, 2.0)])] };
        let svg = line_panels(&Caption::default(), &linear, &linear, &[panel("aimd"), panel("bic")]).unwrap();
        assert!(svg.contains(">\naimd\n<") && svg.contains(">\nbic\n<"));
    }
}
