//! Random sizes of transfers.

use fairwave_units::Bytes;

use super::mistake::ReadResult;
use super::reader::{Field, TableReader};
use super::tree::TomlValue;
use crate::limits;

/// The distribution of sizes.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Sizes {
    Equal(Bytes),
    /// With this mean.
    Exponential(Bytes),
    /// Points of the distribution function, joined by lines: probability and size.
    Quantiles(Box<[(f64, Bytes)]>),
}

impl Sizes {
    /// A size, `{ exponential = MEAN }`, or `{ quantiles = [[0, SIZE], .., [1, SIZE]] }`.
    pub(super) fn read(field: Field<'_>) -> ReadResult<Self> {
        let TomlValue::Table(table) = &field.item.value else { return size(field).map(Self::Equal) };
        let reader = TableReader::new(field.thing, field.item.place, table, &["exponential", "quantiles"])?;
        match (reader.get("exponential"), reader.get("quantiles")) {
            (Some(mean), None) => size(Field { key: field.key, ..mean }).map(Self::Exponential),
            (None, Some(points)) => quantiles(Field { key: field.key, ..points }).map(Self::Quantiles),
            _ => {
                Err(field
                    .wrong("needs either exponential or quantiles", "for instance sizes = { exponential = \"1 MB\" }"))
            }
        }
    }

    pub(super) fn mean_bytes(&self) -> f64 {
        match self {
            Self::Equal(size) | Self::Exponential(size) => size.get() as f64,
            Self::Quantiles(points) => {
                let part = |pair: &[(f64, Bytes)]| {
                    (pair[1].0 - pair[0].0) * (pair[0].1.get() as f64 + pair[1].1.get() as f64) / 2.0
                };
                points.windows(2).map(part).sum()
            }
        }
    }

    /// The size at the share `unit`, in [0, 1), of the distribution.
    pub(super) fn at(&self, unit: f64) -> Bytes {
        let bytes = match self {
            Self::Equal(size) => return *size,
            Self::Exponential(mean) => -libm::log(1.0 - unit) * mean.get() as f64,
            Self::Quantiles(points) => {
                let at = points.partition_point(|(share, _)| *share <= unit).clamp(1, points.len() - 1);
                let ((low, least), (high, most)) = (points[at - 1], points[at]);
                least.get() as f64 + (most.get() as f64 - least.get() as f64) * (unit - low) / (high - low)
            }
        };
        Bytes::new((bytes.round() as u64).max(1))
    }
}

fn size(field: Field<'_>) -> ReadResult<Bytes> {
    field.size(Bytes::new(1), limits::SIZE)
}

fn quantiles(field: Field<'_>) -> ReadResult<Box<[(f64, Bytes)]>> {
    const EXAMPLE: &str = "[[0, \"1 kB\"], [0.5, \"30 kB\"], [1, \"20 MB\"]]";
    let wrong = |field: Field<'_>, what: String| field.wrong(what, format!("write it like {EXAMPLE}"));
    let items = field.list(EXAMPLE)?;
    if items.len() > limits::SCHEDULE_STEPS {
        return Err(wrong(field, format!("has {} points, the limit is {}", items.len(), limits::SCHEDULE_STEPS)));
    }
    let mut points: Vec<(f64, Bytes)> = Vec::with_capacity(items.len());
    for item in items {
        let field = field.entry(item);
        let [share, bytes] = field.list(EXAMPLE)? else {
            return Err(wrong(field, "has a point that is not a probability and a size".to_owned()));
        };
        let share = field.entry(share);
        let unit = share.number(0.0, 1.0, false).map_err(|_| wrong(share, "is not a probability".to_owned()))?;
        let point = (unit, size(field.entry(bytes))?);
        if let Some(before) = points.last()
            && (point.0 <= before.0 || point.1 < before.1)
        {
            return Err(wrong(field, "has a point that is not after the one before it".to_owned()));
        }
        points.push(point);
    }
    match (points.first(), points.last()) {
        (Some((0.0, _)), Some((1.0, _))) => Ok(points.into()),
        _ => Err(wrong(field, "must start at probability 0 and end at 1".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mean of `sizes` at 10 000 equal steps of the distribution.
    fn drawn_mean(sizes: &Sizes) -> f64 {
        (0..10_000).map(|step| sizes.at((f64::from(step) + 0.5) / 1e4).get() as f64).sum::<f64>() / 1e4
    }

    #[test]
    fn at__has_the_stated_mean() {
        let sizes = Sizes::Equal(Bytes::new(5));
        assert_eq!((sizes.mean_bytes(), drawn_mean(&sizes)), (5.0, 5.0));
        let sizes = Sizes::Exponential(Bytes::new(1_000_000));
        assert!((drawn_mean(&sizes) / sizes.mean_bytes() - 1.0).abs() < 1e-3);
        // 350 = half of the mean of 100 and 300, and half of the mean of 300 and 700.
        let points = [(0.0, 100), (0.5, 300), (1.0, 700)].map(|(share, size)| (share, Bytes::new(size)));
        let sizes = Sizes::Quantiles(points.into());
        assert_eq!(sizes.mean_bytes(), 350.0);
        assert!((drawn_mean(&sizes) - 350.0).abs() < 0.01);
        assert_eq!([0.0, 0.25, 0.5, 0.75].map(|unit| sizes.at(unit).get()), [100, 200, 300, 500]);
    }

    #[test]
    fn at__is_a_byte_or_more() {
        assert_eq!(Sizes::Exponential(Bytes::new(1)).at(0.0), Bytes::new(1));
    }
}
