//! Curves made of block characters.

/// From empty to full.
const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// One row: a curve of values over an even grid, squeezed or stretched to `width` characters. `most` fills a
/// character; what is above zero shows at least an eighth, what is no number shows nothing.
pub(crate) fn row(values: &[f64], most: f64, width: usize) -> String {
    columns(values, width).map(|value| EIGHTHS[eighths(value, most, 8)]).collect()
}

/// Several rows, the top one first: an area below a curve.
pub(crate) fn area(values: &[f64], most: f64, width: usize, height: usize) -> Vec<String> {
    let levels: Vec<usize> = columns(values, width).map(|value| eighths(value, most, 8 * height)).collect();
    (0..height)
        .rev()
        .map(|row| levels.iter().map(|level| EIGHTHS[level.saturating_sub(8 * row).min(8)]).collect())
        .collect()
}

/// The mean of what falls into each of `width` columns.
fn columns(values: &[f64], width: usize) -> impl Iterator<Item = f64> {
    (0..width).map(move |column| {
        let from = column * values.len() / width;
        let to = ((column + 1) * values.len()).div_ceil(width).min(values.len());
        let within = values.get(from..to.max(from)).unwrap_or_default();
        within.iter().sum::<f64>() / within.len() as f64
    })
}

fn eighths(value: f64, most: f64, full: usize) -> usize {
    if value > 0.0 { ((value / most * full as f64).round() as usize).clamp(1, full) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row__means_columns() {
        assert_eq!(row(&[0.0, 0.0, 4.0, 4.0, 8.0, 8.0], 8.0, 3), " ▄█");
        assert_eq!(row(&[8.0], 8.0, 3), "███");
        assert_eq!(row(&[], 8.0, 3), "   ");
    }

    #[test]
    fn row__small_values_still_show() {
        assert_eq!(row(&[1e-9, f64::NAN, 1e9], 8.0, 3), "▁ █");
    }

    #[test]
    fn area__stacks_rows() {
        assert_eq!(area(&[4.0, 12.0, 16.0], 16.0, 3, 2), [" ▄█", "▄██"]);
    }
}
