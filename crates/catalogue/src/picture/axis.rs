//! Axes: from values to positions on the sheet, with ticks, grid lines and units.

use fairwave_scenario::Run;
use plotters::coord::ranged1d::Ranged;
use plotters::coord::types::RangedCoordf64;
use plotters::style::Color;

use super::canvas::{Area, Font, font};
use super::max_min::levels;
use super::palette::{AXIS, FAINT, GRID, INK};
use super::request::PictureError;

/// A rectangle of the sheet with a linear scale in both directions.
pub(super) struct Grid<'a, 's> {
    pub(super) area: &'a Area<'s>,
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
    x: (f64, f64),
    y: (f64, f64),
}

/// Space around a grid, in pixels.
#[derive(Clone, Copy)]
pub(super) struct Margins {
    pub(super) left: i32,
    pub(super) right: i32,
    pub(super) top: i32,
    pub(super) bottom: i32,
}

impl<'a, 's> Grid<'a, 's> {
    /// A grid within margins, for values from the first to the second of `x` and `y`.
    pub(super) fn new(area: &'a Area<'s>, margins: Margins, x: (f64, f64), y: (f64, f64)) -> Self {
        let (width, height) = area.size();
        Self {
            area,
            left: f64::from(margins.left),
            right: f64::from(width - margins.right),
            top: f64::from(margins.top),
            bottom: f64::from(height - margins.bottom),
            x: widen(x),
            y: widen(y),
        }
    }

    /// Horizontal position of a value; values beyond the scale are at its end.
    pub(super) fn x(&self, value: f64) -> f64 {
        self.left + (self.right - self.left) * share(value, self.x)
    }

    /// Vertical position of a value.
    pub(super) fn y(&self, value: f64) -> f64 {
        self.bottom + (self.top - self.bottom) * share(value, self.y)
    }

    /// Position of a point.
    pub(super) fn at(&self, (x, y): (f64, f64)) -> (f64, f64) {
        (self.x(x), self.y(y))
    }

    /// Draws the time axis.
    pub(super) fn time_axis(&self, size: i32) -> Result<(), PictureError> {
        let wanted = ((self.right - self.left) / 45.0).clamp(4.0, 11.0) as usize;
        let ticks = ticks(self.x, wanted);
        self.area.line(&[(self.left, self.bottom), (self.right, self.bottom)], AXIS.to_rgba(), 1.0)?;
        for (place, (value, text)) in ticks.iter().enumerate() {
            let x = self.x(*value);
            self.area.line(&[(x, self.bottom), (x, self.bottom + 4.0)], AXIS.to_rgba(), 1.0)?;
            // Only the last tick has the unit.
            let text = if place + 1 == ticks.len() { format!("{text} s") } else { text.clone() };
            self.area.text_at(x, self.bottom + 8.0 + f64::from(size) / 2.0, &text, font(size, FAINT).centred())?;
        }
        Ok(())
    }

    /// Draws the axis below the grid with its ticks, and its name below them.
    pub(super) fn base_axis(&self, ticks: &[(f64, String)], name: &str, size: i32) -> Result<(), PictureError> {
        self.area.line(&[(self.left, self.bottom), (self.right, self.bottom)], AXIS.to_rgba(), 1.0)?;
        for (value, text) in ticks {
            let x = self.x(*value);
            self.area.line(&[(x, self.bottom), (x, self.bottom + 4.0)], AXIS.to_rgba(), 1.0)?;
            self.area.text_at(x, self.bottom + 8.0 + f64::from(size) / 2.0, text, font(size, FAINT).centred())?;
        }
        let below = self.bottom + 12.0 + f64::from(size) * 1.7;
        self.area.text_at(f64::midpoint(self.left, self.right), below, name, font(size, INK).centred())
    }

    /// Draws the horizontal grid lines with their labels, and the name of the axis above it.
    pub(super) fn value_axis(&self, ticks: &[(f64, String)], name: &str, size: i32) -> Result<(), PictureError> {
        for (value, text) in ticks {
            let y = self.y(*value);
            if (y - self.bottom).abs() > 0.5 {
                self.area.line(&[(self.left, y), (self.right, y)], GRID.to_rgba(), 1.0)?;
            }
            self.area.text_at(self.left - 8.0, y, text, font(size, FAINT).right())?;
        }
        self.area.text_at(0.0, self.top - 8.0 - f64::from(size) / 2.0, name, font(size, INK))
    }

    /// Writes text at a position of the grid.
    pub(super) fn note(&self, x: f64, y: f64, text: &str, font: Font) -> Result<(), PictureError> {
        self.area.text_at(x, y, text, font)
    }
}

/// Ticks of a linear scale at round values, about `wanted` of them, with their texts.
pub(super) fn ticks(range: (f64, f64), wanted: usize) -> Vec<(f64, String)> {
    let range = widen(range);
    let values = RangedCoordf64::from(range.0..range.1).key_points(wanted.max(2));
    let step = values.windows(2).map(|pair| pair[1] - pair[0]).fold(f64::INFINITY, f64::min);
    let places = (0..9).find(|places| is_whole(step * 10f64.powi(*places))).unwrap_or(9) as usize;
    values.into_iter().map(|value| (value, format!("{:.places$}", value + 0.0))).collect()
}

/// Ticks of a scale in exponents of ten, as per cent: powers of ten, and 2 and 5 between them if there are few.
pub(super) fn power_ticks((least, most): (f64, f64)) -> Vec<(f64, String)> {
    let factors: &[f64] = if most - least < 2.5 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let mut ticks = Vec::new();
    for exponent in least.floor() as i32..=most.ceil() as i32 {
        // Per cent have two powers more than shares.
        let places = usize::try_from(-(exponent + 2)).unwrap_or(0);
        for factor in factors {
            let value = f64::from(exponent) + factor.log10();
            if (least..=most).contains(&value) {
                ticks.push((value, format!("{:.places$} %", factor * 10f64.powi(exponent + 2))));
            }
        }
    }
    ticks
}

/// Ticks of a scale in exponents of ten, as pure numbers: the powers of ten, and 2 and 5 between them if there are few.
pub(super) fn decade_ticks((least, most): (f64, f64)) -> Vec<(f64, String)> {
    let factors: &[f64] = if most - least < 2.5 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let every = if most - least > 14.0 { 2 } else { 1 };
    let mut ticks = Vec::new();
    for exponent in (least.floor() as i32..=most.ceil() as i32).filter(|exponent| exponent.rem_euclid(every) == 0) {
        for factor in factors {
            let value = f64::from(exponent) + factor.log10();
            if (least - 1e-9..=most + 1e-9).contains(&value) {
                ticks.push((value, decade(*factor, exponent)));
            }
        }
    }
    ticks
}

/// "0.02", "50", "10\u{2078}": a few digits if they suffice, otherwise a power.
fn decade(factor: f64, exponent: i32) -> String {
    if (-2..=4).contains(&exponent) {
        return format!("{:.*}", usize::try_from(-exponent).unwrap_or(0), factor * 10f64.powi(exponent));
    }
    let raised = |c: char| match c {
        '-' => '\u{207b}',
        '1' => '\u{b9}',
        '2' => '\u{b2}',
        '3' => '\u{b3}',
        digit => char::from_u32(0x2070 + u32::from(digit) - u32::from('0')).unwrap_or(digit),
    };
    let power: String = exponent.to_string().chars().map(raised).collect();
    if factor == 1.0 { format!("10{power}") } else { format!("{factor}\u{b7}10{power}") }
}

/// The unit of a rate axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RateUnit {
    /// Its size in bits per second.
    pub(super) bps: f64,
    /// "Mb/s".
    pub(super) name: &'static str,
}

/// The unit in which the largest rate of an axis has one to three digits before the point.
pub(super) fn rate_unit(largest_bps: f64) -> RateUnit {
    let (bps, name) = match largest_bps {
        bps if bps >= 2e12 => (1e12, "Tb/s"),
        bps if bps >= 2e9 => (1e9, "Gb/s"),
        bps if bps >= 2e6 => (1e6, "Mb/s"),
        bps if bps >= 2e3 => (1e3, "kb/s"),
        _ => (1.0, "b/s"),
    };
    RateUnit { bps, name }
}

/// The upper end of an axis that shows the carried rates of these runs, ignoring their max-min rates.
pub(super) fn rate_limit_of_samples<'a>(all: impl Iterator<Item = &'a Run>) -> f64 {
    let sampled = all.flat_map(|run| run.rates.iter().flat_map(|rates| rates.wire_bps().iter()));
    limit_above(sampled.filter(|rate| rate.is_finite()).fold(0.0_f64, |a, b| a.max(*b)))
}

/// The upper end of an axis that shows the rates of these runs.
pub(super) fn rate_limit<'a>(all: impl Iterator<Item = &'a Run>) -> f64 {
    let mut largest = 0.0_f64;
    for run in all {
        let sampled = run.rates.iter().flat_map(|rates| rates.wire_bps().iter());
        let levels = levels(run);
        largest = sampled
            .chain(levels.iter().map(|level| &level.bps))
            .filter(|rate| rate.is_finite())
            .fold(largest, |a, b| a.max(*b));
    }
    limit_above(largest)
}

/// The upper end of an axis, slightly above the largest rate, and within the range of a scale; no real value is
/// outside.
fn limit_above(largest: f64) -> f64 {
    if largest > 1e-3 { largest.min(1e18) * 1.06 } else { 1.0 }
}

/// A range that is not empty.
fn widen((least, most): (f64, f64)) -> (f64, f64) {
    if most > least { (least, most) } else { (least, least + 1.0) }
}

fn share(value: f64, (least, most): (f64, f64)) -> f64 {
    ((value - least) / (most - least)).clamp(0.0, 1.0)
}

fn is_whole(number: f64) -> bool {
    (number - number.round()).abs() < 1e-6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks__are_round_and_carry_no_more_places_than_needed() {
        let texts = |range, wanted| ticks(range, wanted).into_iter().map(|(_, text)| text).collect::<Vec<_>>();
        assert_eq!(texts((0.0, 1.0), 7), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(texts((0.0, 530.0), 6), ["0", "100", "200", "300", "400", "500"]);
        assert_eq!(texts((0.0, 0.0), 2), ["0", "1"]);
    }

    #[test]
    fn power_ticks__are_per_cent() {
        let texts: Vec<_> = power_ticks((-3.5, 0.2)).into_iter().map(|(_, text)| text).collect();
        assert_eq!(texts, ["0.1 %", "1 %", "10 %", "100 %"]);
        let texts: Vec<_> = power_ticks((-1.8, 0.1)).into_iter().map(|(_, text)| text).collect();
        assert_eq!(texts, ["2 %", "5 %", "10 %", "20 %", "50 %", "100 %"]);
    }

    #[test]
    fn decade_ticks__are_powers_of_ten() {
        let texts = |range| decade_ticks(range).into_iter().map(|(_, text)| text).collect::<Vec<_>>();
        assert_eq!(texts((-5.0, 2.0)), ["10⁻⁵", "10⁻⁴", "10⁻³", "0.01", "0.1", "1", "10", "100"]);
        assert_eq!(texts((4.0, 6.0)), ["10000", "20000", "50000", "10⁵", "2·10⁵", "5·10⁵", "10⁶"]);
        assert_eq!(texts((-20.0, -12.0)).len(), 9);
    }

    #[test]
    fn rate_unit__leaves_one_to_four_digits() {
        assert_eq!(rate_unit(1e9).name, "Mb/s");
        assert_eq!(rate_unit(3.4e9).name, "Gb/s");
        assert_eq!(rate_unit(0.0).name, "b/s");
    }
}
