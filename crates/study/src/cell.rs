//! Cells and rows of results, and their form in the journal.

/// One value of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// No value: a time that was not reached, a session that this run does not have.
    Null,
    /// A number.
    Float(f64),
    /// A count, or a seed: at most 2^63 - 1, which every reader of tables accepts.
    Count(u64),
    /// A switch.
    Flag(bool),
    /// A word, or a quantity with its unit as written in the call.
    Text(String),
}

/// The result of one run: names of columns with their values, in the order of columns.
pub type Row = Vec<(String, Cell)>;

impl Cell {
    /// A count; as text if it is too large for readers of tables.
    pub fn of_count(count: u64) -> Self {
        if i64::try_from(count).is_ok() { Self::Count(count) } else { Self::Text(count.to_string()) }
    }

    /// The value of a TOML text of the call, as shown in results.
    pub fn of_toml(text: &str) -> Self {
        let text = text.trim();
        let inner = |quote: char| text.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
        match text {
            "true" => Self::Flag(true),
            "false" => Self::Flag(false),
            _ => match (text.parse::<u64>(), text.parse::<f64>()) {
                (Ok(count), _) => Self::of_count(count),
                (_, Ok(number)) => Self::Float(number),
                _ => Self::Text(inner('"').or_else(|| inner('\'')).unwrap_or(text).to_owned()),
            },
        }
    }

    /// The value as text, for a column of mixed values.
    pub fn text(&self) -> String {
        match self {
            Self::Null => String::new(),
            Self::Float(number) => number.to_string(),
            Self::Count(count) => count.to_string(),
            Self::Flag(flag) => flag.to_string(),
            Self::Text(text) => text.clone(),
        }
    }

    /// The value as a number, if it is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Float(number) => Some(*number),
            Self::Count(count) => Some(*count as f64),
            _ => None,
        }
    }
}

/// Encodes a row as bytes; [`decode`] reverses it.
pub fn encode(row: &Row, into: &mut Vec<u8>) {
    into.extend_from_slice(&(row.len() as u32).to_le_bytes());
    for (name, cell) in row {
        put_text(name, into);
        match cell {
            Cell::Null => into.push(0),
            Cell::Float(number) => {
                into.push(1);
                into.extend_from_slice(&number.to_bits().to_le_bytes());
            }
            Cell::Count(count) => {
                into.push(2);
                into.extend_from_slice(&count.to_le_bytes());
            }
            Cell::Flag(flag) => into.push(3 + u8::from(*flag)),
            Cell::Text(text) => {
                into.push(5);
                put_text(text, into);
            }
        }
    }
}

fn put_text(text: &str, into: &mut Vec<u8>) {
    into.extend_from_slice(&(text.len() as u32).to_le_bytes());
    into.extend_from_slice(text.as_bytes());
}

/// Decodes a row; `None` if the bytes are not a row. A claimed length never allocates more than the input's size.
pub fn decode(bytes: &[u8]) -> Option<Row> {
    let mut rest = bytes;
    let count = take_u32(&mut rest)?;
    let mut row = Row::new();
    for _ in 0..count {
        let name = take_text(&mut rest)?;
        let (tag, after) = rest.split_first()?;
        rest = after;
        row.push((
            name,
            match tag {
                0 => Cell::Null,
                1 => Cell::Float(f64::from_bits(take_u64(&mut rest)?)),
                2 => Cell::Count(take_u64(&mut rest)?),
                3 => Cell::Flag(false),
                4 => Cell::Flag(true),
                5 => Cell::Text(take_text(&mut rest)?),
                _ => return None,
            },
        ));
    }
    rest.is_empty().then_some(row)
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(taken)
}

fn take_u32(rest: &mut &[u8]) -> Option<u32> {
    Some(u32::from_le_bytes(take(rest, 4)?.try_into().ok()?))
}

fn take_u64(rest: &mut &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(take(rest, 8)?.try_into().ok()?))
}

fn take_text(rest: &mut &[u8]) -> Option<String> {
    let length = take_u32(rest)? as usize;
    String::from_utf8(take(rest, length)?.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn of_toml__reads_numbers_switches_and_words() {
        for (text, cell) in [
            ("0.05", Cell::Float(0.05)),
            ("3", Cell::Count(3)),
            (" true", Cell::Flag(true)),
            ("\"20 Mb/s\"", Cell::Text("20 Mb/s".into())),
            ("20 Mb/s", Cell::Text("20 Mb/s".into())),
            ("gtp", Cell::Text("gtp".into())),
            ("\"", Cell::Text("\"".into())),
        ] {
            assert_eq!(Cell::of_toml(text), cell, "{text}");
        }
    }

    fn cells() -> impl Strategy<Value = Cell> {
        prop_oneof![
            Just(Cell::Null),
            any::<u64>().prop_map(|bits| Cell::Float(f64::from_bits(bits))),
            any::<u64>().prop_map(Cell::Count),
            any::<bool>().prop_map(Cell::Flag),
            ".{0,8}".prop_map(Cell::Text),
        ]
    }

    proptest! {
        #[test]
        fn decode__reverses_encode(row in proptest::collection::vec((".{0,8}", cells()), 0..8)) {
            let mut bytes = Vec::new();
            encode(&row, &mut bytes);
            let mut again = Vec::new();
            encode(&decode(&bytes).unwrap(), &mut again);
            prop_assert_eq!(&bytes, &again);
            for end in 0..bytes.len() {
                prop_assert_eq!(decode(&bytes[..end]), None);
            }
        }

        #[test]
        fn decode__never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = decode(&bytes);
        }
    }
}
