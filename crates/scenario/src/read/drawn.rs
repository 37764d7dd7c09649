//! Values that may differ between the sessions or nodes of one table: common, drawn from the seed, or listed.

use fairwave_units::{Duration, Rate, Time};

use super::mistake::ReadResult;
use super::reader::{Field, TableReader};
use super::tree::{TomlTable, TomlValue};
use crate::random;

/// One value for each of several elements.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Drawn<T> {
    /// One value for all.
    Fixed(T),
    /// Drawn for each, uniformly from the first up to the second.
    Uniform(T, T),
    /// One for each, in order.
    Each(Box<[T]>),
}

/// A quantity that can be drawn from a range.
pub(crate) trait Draw: Copy + PartialOrd {
    /// The value at the share `unit`, in [0, 1), of the range from `least` to `most`.
    fn between(least: Self, most: Self, unit: f64) -> Self;
}

impl Draw for f64 {
    fn between(least: Self, most: Self, unit: f64) -> Self {
        least + (most - least) * unit
    }
}

impl Draw for Rate {
    fn between(least: Self, most: Self, unit: f64) -> Self {
        Self::nearest_bps(f64::between(least.as_bps(), most.as_bps(), unit))
    }
}

impl Draw for Duration {
    /// Rounded down to a nanosecond, so that the end is excluded.
    fn between(least: Self, most: Self, unit: f64) -> Self {
        let width = most.as_nanos().saturating_sub(least.as_nanos());
        // The product may round up to the whole width if that is beyond 2^53.
        let part = ((width as f64 * unit) as u64).min(width.saturating_sub(1));
        Self::from_nanos(least.as_nanos() + part)
    }
}

impl Draw for Time {
    fn between(least: Self, most: Self, unit: f64) -> Self {
        Self::ZERO + Duration::between(least.since(Self::ZERO), most.since(Self::ZERO), unit)
    }
}

impl<T: Draw> Drawn<T> {
    /// The value of element number `index` with this name; `key` distinguishes this draw from the element's others.
    pub(crate) fn value(&self, seed: u64, key: &str, name: &str, index: u64) -> T {
        match self {
            Self::Fixed(value) => *value,
            Self::Uniform(least, most) => {
                T::between(*least, *most, random::stream(seed, &format!("{key} {name}")).unit())
            }
            Self::Each(values) => values[index as usize],
        }
    }

    /// The minimum and maximum value of element number `index`.
    pub(crate) fn bounds(&self, index: u64) -> (T, T) {
        match self {
            Self::Fixed(value) => (*value, *value),
            Self::Uniform(least, most) => (*least, *most),
            Self::Each(values) => (values[index as usize], values[index as usize]),
        }
    }

    /// A value, or a range `["1 ms", "100 ms"]`.
    pub(crate) fn value_or_range<'a>(field: Field<'a>, read: impl Fn(Field<'a>) -> ReadResult<T>) -> ReadResult<Self> {
        match &field.item.value {
            TomlValue::List(_) => uniform(field, read),
            _ => read(field).map(Self::Fixed),
        }
    }
}

impl<T: Draw> Drawn<T> {
    /// A value, `{ uniform = [least, most] }`, or `{ each = [..] }` with `count` values.
    pub(crate) fn read<'a>(
        field: Field<'a>,
        count: u64,
        read: impl Fn(Field<'a>) -> ReadResult<T>,
    ) -> ReadResult<Self> {
        let TomlValue::Table(table) = &field.item.value else { return read(field).map(Self::Fixed) };
        let reader = TableReader::new(field.thing, field.item.place, table, &["each", "uniform"])?;
        match (reader.get("uniform"), reader.get("each")) {
            (Some(range), None) => uniform(Field { key: field.key, ..range }, read),
            (None, Some(list)) => each(Field { key: field.key, ..list }, count, read).map(Self::Each),
            _ => Err(field.wrong("needs either uniform or each", "for instance { uniform = [\"0 s\", \"60 s\"] }")),
        }
    }
}

/// In a table that was changed only for element number `index`, replaces every unchanged list with one value per
/// element by that element's own value.
pub(crate) fn keep_own(changed: &mut TomlTable, table: &TomlTable, keys: &[&str], index: u64) {
    for key in keys {
        if let Some(item) = changed.get_mut(key)
            && let TomlValue::Table(lists) = &item.value
            && let Some(TomlValue::List(values)) = lists.get("each").map(|item| &item.value)
            && let Some(own) = values.get(index as usize)
            && table.get(key) == Some(&*item)
        {
            *item = own.clone();
        }
    }
}

/// A list with one value for each of `count` elements.
pub(crate) fn each<'a, T>(
    field: Field<'a>,
    count: u64,
    read: impl Fn(Field<'a>) -> ReadResult<T>,
) -> ReadResult<Box<[T]>> {
    let items = field.list("[\"10 ms\", \"20 ms\"]")?;
    if items.len() as u64 != count {
        return Err(field.wrong(
            format!("lists {} values, but the table makes {count}", items.len()),
            "each takes one value for each session or node of the table, in order",
        ));
    }
    items.iter().map(|item| read(field.entry(item))).collect()
}

fn uniform<'a, T: Draw>(field: Field<'a>, read: impl Fn(Field<'a>) -> ReadResult<T>) -> ReadResult<Drawn<T>> {
    const EXAMPLE: &str = "a range has two ends, for instance [\"1 ms\", \"100 ms\"]";
    let [least, most] = field.list("[\"1 ms\", \"100 ms\"]")? else {
        return Err(field.wrong("needs two values", EXAMPLE));
    };
    let (least, most) = (read(field.entry(least))?, read(field.entry(most))?);
    if most < least {
        return Err(field.wrong("ends before it starts", "write the smaller value first"));
    }
    Ok(Drawn::Uniform(least, most))
}
