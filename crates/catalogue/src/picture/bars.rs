//! Bars in groups: single numbers next to each other, or the parts of a whole on top of each other.

use plotters::element::Rectangle;
use plotters::style::{Color, RGBColor};

use super::axis::{Grid, Margins, decade_ticks, ticks};
use super::canvas::{Area, Canvas, drawing, fit, font, text_width, units};
use super::curve;
use super::label::{self, CurveSample, Label};
use super::palette::{self, FAINT, INK, Marker, PAPER};
use super::request::{Caption, PictureError};

/// Marker of a printed value.
pub(super) const PRINTED: Marker = Marker::Cross;

/// A picture of bars.
#[derive(Clone, Debug, PartialEq)]
pub struct BarChart {
    /// Name of the heights, with their unit.
    pub axis: String,
    /// The names of a bar's values: stacked parts, or separate bars next to each other.
    pub parts: Vec<String>,
    /// Whether the parts of a bar are stacked.
    pub is_stacked: bool,
    /// Whether the last part is the remainder, which is drawn pale.
    pub has_rest: bool,
    /// Whether the scale is logarithmic; not for stacks.
    pub is_log: bool,
    /// Upper end of the axis; that of the data if missing.
    pub limit: Option<f64>,
    /// The groups from left to right.
    pub groups: Vec<BarGroup>,
}

/// Bars that belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct BarGroup {
    /// Its name, below it; may be empty.
    pub label: String,
    /// Its bars from left to right.
    pub bars: Vec<Bar>,
}

/// One bar, or several of one case.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// Its name, below it.
    pub label: String,
    /// A height for each part.
    pub values: Vec<f64>,
    /// The paper's value of each part that has one; not for stacks.
    pub printed: Vec<Option<f64>>,
}

/// Draws bars.
pub fn bar_chart(caption: &Caption, chart: &BarChart) -> Result<String, PictureError> {
    if chart.groups.iter().all(|group| group.bars.is_empty()) || chart.parts.is_empty() {
        return Err(PictureError::Empty);
    }
    Canvas::new(960, 540, caption).draw(|frame| draw(&frame.plot, chart))
}

fn draw(area: &Area<'_>, chart: &BarChart) -> Result<(), PictureError> {
    let is_log = chart.is_log && !chart.is_stacked;
    let has_printed = printed(chart).next().is_some();
    let named = chart.parts.len() > 1 || chart.is_stacked || has_printed;
    let right = if named { label::room(chart.parts.iter().map(String::as_str), 12) } else { 24 };
    let range = range(chart, is_log);
    let grid = Grid::new(area, Margins { left: 58, right, top: 44, bottom: 58 }, (0.0, 1.0), range);
    let lines = if is_log { decade_ticks(range) } else { ticks(range, 6) };
    grid.value_axis(&lines, &chart.axis, 12)?;
    let place = |value: f64| if is_log { value.log10() } else { value };

    // The layout is in slots: one per bar, half of one between bars of several values, one between groups.
    let across = if chart.is_stacked { 1.0 } else { chart.parts.len() as f64 };
    let between = if across > 1.0 { 0.6 } else { 0.35 };
    let width_of = |group: &BarGroup| group.bars.len() as f64 * (across + between) - between;
    let slots: f64 = chart.groups.iter().map(|group| width_of(group) + 1.2).sum();
    let slot = ((grid.right - grid.left) / slots).min(70.0);
    let mut x = grid.left + (grid.right - grid.left - slot * slots) / 2.0;
    // Rows of a bar's label: the group's label is below them.
    let rows = if chart.groups.iter().all(|group| group.label.is_empty()) { 4 } else { 2 };
    for group in &chart.groups {
        x += 0.6 * slot;
        let from = x;
        for bar in &group.bars {
            let middle = x + across * slot / 2.0;
            let mut foot = 0.0;
            for (n, value) in bar.values.iter().copied().enumerate().filter(|(_, value)| value.is_finite()) {
                let (low, high) = if chart.is_stacked { (foot, foot + value) } else { (range.0, place(value)) };
                foot = high;
                let left = if chart.is_stacked { x } else { x + n as f64 * slot };
                if high.is_finite() {
                    rectangle(&grid, (left, low), (left + slot, high), colour(chart, n))?;
                    if !chart.is_stacked && slot > 22.0 {
                        let text = crate::judged::brief(value);
                        grid.note(left + slot / 2.0, grid.y(high) - 8.0, &text, font(10, FAINT).centred())?;
                    }
                }
                if let Some(value) =
                    bar.printed.get(n).copied().flatten().filter(|value| !chart.is_stacked && value.is_finite())
                {
                    let at = (left + slot / 2.0, grid.y(place(value)));
                    curve::marker(&grid, at, PRINTED, INK, 5.0)?;
                }
            }
            let room = ((across + between) * slot) as i32;
            let (size, rows) = if text_width(&bar.label, 11) <= room { (11, 1) } else { (9, rows) };
            for (row, text) in wrapped(&bar.label, room.max(24), size, rows).iter().enumerate() {
                grid.note(middle, grid.bottom + 12.0 + 11.0 * row as f64, text, font(size, INK).centred())?;
            }
            x += (across + between) * slot;
        }
        x -= between * slot;
        let middle = f64::midpoint(from, x);
        let room = (x - from + slot) as i32;
        grid.note(middle, grid.bottom + 42.0, &fit(&group.label, room, 12), font(12, INK).bold().centred())?;
        x += 0.6 * slot;
    }
    grid.area.line(&[(grid.left, grid.bottom), (grid.right, grid.bottom)], palette::AXIS.to_rgba(), 1.0)?;
    if !named {
        return Ok(());
    }
    // The upper part of a stack comes first, as in the picture.
    let count = chart.parts.len();
    let labels = chart.parts.iter().enumerate().map(|(n, part)| {
        let row = if chart.is_stacked { count - 1 - n } else { n };
        let sample = CurveSample::Band(colour(chart, n), 1.0);
        Label { y: grid.top + 10.0 + 20.0 * row as f64, text: part.clone(), sample }
    });
    let y = grid.top + 10.0 + 20.0 * count as f64;
    let marks = has_printed.then(|| Label { y, text: "printed".to_owned(), sample: CurveSample::Mark(INK, PRINTED) });
    label::draw(&grid, labels.chain(marks).collect(), 12)
}

/// The text in at most `rows` lines of `room` pixels; the last is truncated if it is wider.
fn wrapped(text: &str, room: i32, size: i32, rows: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        let is_last = lines.len() == rows;
        match lines.last_mut() {
            Some(line) if is_last || text_width(&format!("{line} {word}"), size) <= room => {
                *line = format!("{line} {word}");
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.iter().map(|line| fit(line, room, size)).collect()
}

/// The paper's values.
fn printed(chart: &BarChart) -> impl Iterator<Item = f64> + '_ {
    let bars = chart.groups.iter().flat_map(|group| &group.bars).filter(|_| !chart.is_stacked);
    bars.flat_map(|bar| &bar.printed).copied().flatten().filter(|value| value.is_finite())
}

/// The ends of the axis: from zero, or from the power of ten below the minimum.
fn range(chart: &BarChart, is_log: bool) -> (f64, f64) {
    let bars = chart.groups.iter().flat_map(|group| &group.bars);
    let heights: Vec<f64> = if chart.is_stacked {
        bars.map(|bar| bar.values.iter().filter(|value| value.is_finite()).sum()).collect()
    } else {
        let values = bars.flat_map(|bar| bar.values.iter().copied()).filter(|value| value.is_finite());
        values.chain(printed(chart)).collect()
    };
    let most = chart.limit.unwrap_or_else(|| heights.iter().copied().fold(0.0, f64::max) * 1.08);
    if is_log {
        let positive = || heights.iter().copied().filter(|height| *height > 0.0);
        let least = positive().fold(f64::INFINITY, f64::min);
        let least = if least.is_finite() { (least.log10() - 0.05).floor() } else { 0.0 };
        return (least, most.max(f64::MIN_POSITIVE).log10().max(least + 1.0));
    }
    (0.0, if most > 0.0 && most.is_finite() { most } else { 1.0 })
}

/// The colour of the n-th part.
fn colour(chart: &BarChart, n: usize) -> RGBColor {
    if chart.has_rest && n + 1 == chart.parts.len() { palette::GRID } else { palette::colour(n) }
}

/// Fills the space between two corners: left in pixels and height in values.
fn rectangle(
    grid: &Grid<'_, '_>,
    (left, low): (f64, f64),
    (right, high): (f64, f64),
    colour: RGBColor,
) -> Result<(), PictureError> {
    let (top, bottom) = (grid.y(high.max(low)), grid.y(low.min(high)));
    let corners = [units(left, top), units(right, bottom)];
    let sheet = &grid.area.sheet;
    sheet.draw(&Rectangle::new(corners, colour.filled())).map_err(drawing)?;
    // A light rim separates adjacent parts.
    sheet.draw(&Rectangle::new(corners, super::canvas::stroke(PAPER.to_rgba(), 0.8))).map_err(drawing)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(is_stacked: bool, is_log: bool, value: f64) -> BarChart {
        let bar =
            |label: &str| Bar { label: label.into(), values: vec![value, 20.0], printed: vec![Some(value), None] };
        let group = |label: &str| BarGroup { label: label.into(), bars: vec![bar("aimd"), bar("bic")] };
        BarChart {
            axis: "share, %".into(),
            parts: vec!["web".into(), "long-lived".into()],
            is_stacked,
            has_rest: is_stacked,
            is_log,
            limit: None,
            groups: vec![group("20 Mb/s"), group("100 Mb/s")],
        }
    }

    #[test]
    fn bar_chart__names_parts_bars_and_groups() {
        for is_stacked in [false, true] {
            let svg = bar_chart(&Caption::default(), &chart(is_stacked, false, 30.0)).unwrap();
            for word in ["share, %", "web", "long-lived", "aimd", "100 Mb/s"] {
                assert!(svg.contains(word), "{word} is missing");
            }
            // The sheet; two parts of four bars, each filled and rimmed.
            assert_eq!(svg.matches("<rect").count(), 1 + 2 * 8);
        }
    }

    #[test]
    fn bar_chart__of_anything_does_not_panic() {
        for value in [0.0, -5.0, f64::NAN, f64::INFINITY, 1e300, 1e-300] {
            for (is_stacked, is_log) in [(false, false), (true, false), (false, true), (true, true)] {
                assert!(bar_chart(&Caption::default(), &chart(is_stacked, is_log, value)).is_ok());
            }
        }
        let empty = BarChart { groups: Vec::new(), ..chart(true, false, 1.0) };
        assert_eq!(bar_chart(&Caption::default(), &empty), Err(PictureError::Empty));
    }

    #[test]
    fn wrapped__breaks_at_spaces_and_truncates_the_last_line() {
        let wide = text_width("told twice", 9) + 1;
        assert_eq!(wrapped("told twice as much", wide, 9, 4), ["told twice", "as much"]);
        assert_eq!(wrapped("path rate", 200, 9, 2), ["path rate"]);
        let cut = wrapped("told twice as much as there is", wide, 9, 2);
        assert!(cut.len() == 2 && cut[1].starts_with("as m") && cut[1] != "as much as there is", "{cut:?}");
    }

    #[test]
    fn bar_chart__marks_printed_values() {
        let plain = |printed: Vec<Option<f64>>| {
            let mut chart = chart(false, false, 30.0);
            chart.groups.iter_mut().flat_map(|group| &mut group.bars).for_each(|bar| bar.printed.clone_from(&printed));
            bar_chart(&Caption::default(), &chart).unwrap()
        };
        let (none, all) = (plain(Vec::new()), plain(vec![Some(25.0), Some(28.0)]));
        assert!(all.contains(">\nprinted\n<") && !none.contains("printed"));
        // A cross has two strokes and their light rim: eight bars and the legend.
        assert_eq!(all.matches("<polyline").count() - none.matches("<polyline").count(), 4 * 9);
    }

    #[test]
    fn range__of_a_stack_is_its_sum() {
        assert_eq!(range(&chart(true, false, 80.0), false), (0.0, 108.0)); // (80 + 20) x 1.08
        assert_eq!(range(&chart(false, true, 250.0), true).0, 1.0); // 20 lies above 10
    }
}
