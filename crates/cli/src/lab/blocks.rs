//! Curves made of block characters.

/// From empty to full.
const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// One row: a curve of values over an even grid, resampled to `width` characters. `most` fills a character; values
/// above zero show at least an eighth, NaN is blank.
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

/// Values, each valid until its end, as means over `width` spans of equal length; the last end is the end of the last
/// span. NaN does not count, and a span without numbers is NaN.
pub(crate) fn over_time(ends: &[f64], values: &[f64], width: usize) -> Vec<f64> {
    let whole = ends.last().copied().unwrap_or(0.0);
    let begins = std::iter::once(&0.0).chain(ends);
    let pieces: Vec<(f64, f64, f64)> =
        begins.zip(ends).zip(values).map(|((begin, end), value)| (*begin, *end, *value)).collect();
    let mean = |column: usize| {
        let [from, to] = [column, column + 1].map(|edge| whole * edge as f64 / width as f64);
        let first = pieces.partition_point(|(_, end, _)| *end <= from);
        let within = pieces[first..].iter().take_while(|(begin, ..)| *begin < to);
        let (mut sum, mut span) = (0.0, 0.0);
        for (begin, end, value) in within.filter(|(.., value)| value.is_finite()) {
            let overlap = end.min(to) - begin.max(from);
            sum += value * overlap;
            span += overlap;
        }
        sum / span
    };
    (0..width).map(mean).collect()
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
    fn over_time__stands_where_it_happened() {
        // 4 until 5 s and 8 until 10 s, then one short sample: the columns are 3 s wide.
        let columns = over_time(&[5.0, 10.0, 12.0], &[4.0, 8.0, 1.0], 4);
        let expected = [4.0, (2.0 * 4.0 + 8.0) / 3.0, 8.0, (8.0 + 2.0 * 1.0) / 3.0];
        assert!(columns.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{columns:?}");
        // A gap stays a gap: what comes before it is not stretched over it.
        let columns = over_time(&[1.0, 2.0, 3.0, 4.0], &[1.0, 2.0, f64::NAN, f64::NAN], 4);
        assert_eq!(columns[..2], [1.0, 2.0]);
        assert!(columns[2..].iter().all(|column| column.is_nan()), "{columns:?}");
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
