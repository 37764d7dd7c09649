//! Lines, markers and bands on a grid.

use plotters::element::{Circle, PathElement, Polygon};
use plotters::style::{Color, RGBAColor, RGBColor};

use super::axis::Grid;
use super::canvas::{drawing, stroke, units};
use super::palette::{Marker, PAPER};
use super::request::PictureError;

/// Draws a line through points of the grid.
pub(super) fn line(
    grid: &Grid<'_, '_>,
    points: &[(f64, f64)],
    colour: RGBAColor,
    width: f64,
) -> Result<(), PictureError> {
    let placed: Vec<_> = points.iter().map(|point| grid.at(*point)).collect();
    let placed = thin(&placed, 0.5);
    if placed.len() < 2 { Ok(()) } else { grid.area.line(&placed, colour, width) }
}

/// Draws a dashed line between two places in pixels.
pub(super) fn dashed(
    grid: &Grid<'_, '_>,
    from: (f64, f64),
    to: (f64, f64),
    colour: RGBColor,
    (dash, gap): (f64, f64),
) -> Result<(), PictureError> {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let length = (dx * dx + dy * dy).sqrt();
    let mut at = 0.0;
    while at < length {
        let end = (at + dash).min(length);
        let place = |along: f64| (from.0 + dx * along / length, from.1 + dy * along / length);
        grid.area.line(&[place(at), place(end)], colour.to_rgba(), 1.2)?;
        at += dash + gap;
    }
    Ok(())
}

/// Fills the space between two curves that share their x values.
pub(super) fn band(
    grid: &Grid<'_, '_>,
    lower: &[(f64, f64)],
    upper: &[(f64, f64)],
    colour: RGBAColor,
) -> Result<(), PictureError> {
    let place = |points: &[(f64, f64)]| points.iter().map(|point| grid.at(*point)).collect::<Vec<_>>();
    let mut outline = thin(&place(upper), 0.5);
    outline.extend(thin(&place(lower), 0.5).into_iter().rev());
    if outline.len() < 3 {
        return Ok(());
    }
    let outline: Vec<_> = outline.into_iter().map(|(x, y)| units(x, y)).collect();
    grid.area.sheet.draw(&Polygon::new(outline, colour.filled())).map_err(drawing)
}

/// Draws a marker with a light rim at a place in pixels.
pub(super) fn marker(
    grid: &Grid<'_, '_>,
    (x, y): (f64, f64),
    shape: Marker,
    colour: RGBColor,
    radius: f64,
) -> Result<(), PictureError> {
    let sheet = &grid.area.sheet;
    if shape == Marker::Circle {
        let circle = |radius: f64, colour: RGBColor| Circle::new(units(x, y), units(radius, 0.0).0, colour.filled());
        sheet.draw(&circle(radius + 1.0, PAPER)).map_err(drawing)?;
        return sheet.draw(&circle(radius, colour)).map_err(drawing);
    }
    if shape == Marker::Cross {
        for (colour, width, reach) in [(PAPER, 4.0, radius + 1.0), (colour, 2.0, radius)] {
            grid.area.line(&[(x - reach, y - reach), (x + reach, y + reach)], colour.to_rgba(), width)?;
            grid.area.line(&[(x - reach, y + reach), (x + reach, y - reach)], colour.to_rgba(), width)?;
        }
        return Ok(());
    }
    let corners: &[(f64, f64)] = match shape {
        Marker::Square => &[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
        Marker::Triangle => &[(0.0, -1.2), (1.1, 0.8), (-1.1, 0.8)],
        _ => &[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)],
    };
    let mut outline: Vec<_> = corners.iter().map(|(dx, dy)| units(x + dx * radius, y + dy * radius)).collect();
    sheet.draw(&Polygon::new(outline.clone(), colour.filled())).map_err(drawing)?;
    outline.extend_from_within(..2);
    sheet.draw(&PathElement::new(outline, stroke(PAPER.to_rgba(), 1.0))).map_err(drawing)
}

/// Drops invisible points: of those that share a column of `width` pixels it keeps the first, the lowest, the highest
/// and the last.
fn thin(points: &[(f64, f64)], width: f64) -> Vec<(f64, f64)> {
    let mut kept = Vec::new();
    let mut start = 0;
    while start < points.len() {
        let column = (points[start].0 / width).floor();
        let end = (start..points.len()).find(|i| (points[*i].0 / width).floor() != column).unwrap_or(points.len());
        let by_height = |a: &usize, b: &usize| points[*a].1.total_cmp(&points[*b].1);
        let lowest = (start..end).min_by(by_height).unwrap_or(start);
        let highest = (start..end).max_by(by_height).unwrap_or(start);
        let mut column = [start, lowest, highest, end - 1];
        column.sort_unstable();
        for (i, point) in column.iter().enumerate() {
            if i == 0 || column[i - 1] != *point {
                kept.push(points[*point]);
            }
        }
        start = end;
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thin__keeps_the_extremes_of_a_column() {
        let points: Vec<_> = (0..1000).map(|i| (f64::from(i) / 1000.0, if i == 500 { 9.0 } else { 1.0 })).collect();
        let kept = thin(&points, 1.0);
        assert!(kept.len() <= 4 && kept.contains(&(0.5, 9.0)), "{kept:?}");
        assert_eq!((kept[0], kept[kept.len() - 1]), (points[0], points[999]));
    }

    #[test]
    fn thin__keeps_all_of_a_few_points() {
        let points = [(0.0, 1.0), (10.0, 2.0), (20.0, 3.0)];
        assert_eq!(thin(&points, 0.5), points);
    }
}
