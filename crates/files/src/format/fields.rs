//! The fields of the entries of the manifest and of the results: paths, reasons, and bytes of a known length.
//!
//! ```text
//! path   = length (varint, 1 to 4096), bytes: the names from the share's root on, with '/' between them
//! reason = length (varint, 1 to 200), UTF-8 without control characters
//! ```

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::panic
)]

use fairwave_proto::codec::{Full, Reader, Writer};

use super::error::FormatError;

/// Max length of a path and of a link's target, bytes.
pub(crate) const MAX_PATH_BYTES: usize = 4096;
/// Max length of a reason, bytes.
pub(super) const MAX_REASON_BYTES: usize = 200;

/// A path that is not taken, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LeftOut<'a> {
    /// The path.
    pub(super) path: &'a [u8],
    /// To be put behind the path and a colon.
    pub(super) reason: &'a str,
}

impl<'a> LeftOut<'a> {
    /// Reads what is behind an entry's kind.
    pub(super) fn read(reader: &mut Reader<'a>) -> Result<Self, FormatError> {
        Ok(Self { path: read_path(reader, "the path")?, reason: read_reason(reader)? })
    }

    /// Writes an entry of this kind.
    pub(super) fn write(self, writer: &mut Writer<'_>, kind: u8) -> Result<(), Full> {
        writer.u8(kind)?;
        write_path(writer, self.path)?;
        write_reason(writer, self.reason)
    }
}

pub(super) fn read_path<'a>(reader: &mut Reader<'a>, what: &'static str) -> Result<&'a [u8], FormatError> {
    let length = usize::try_from(reader.varint(what)?).ok().filter(|length| (1..=MAX_PATH_BYTES).contains(length));
    Ok(reader.bytes(length.ok_or(FormatError::Range(what))?, what)?)
}

pub(super) fn write_path(writer: &mut Writer<'_>, path: &[u8]) -> Result<(), Full> {
    if !(1..=MAX_PATH_BYTES).contains(&path.len()) {
        return Err(Full);
    }
    writer.varint(path.len() as u64)?;
    writer.bytes(path)
}

pub(super) fn read_reason<'a>(reader: &mut Reader<'a>) -> Result<&'a str, FormatError> {
    const WHAT: &str = "the reason";
    let length = usize::try_from(reader.varint(WHAT)?).ok().filter(|length| (1..=MAX_REASON_BYTES).contains(length));
    let text = std::str::from_utf8(reader.bytes(length.ok_or(FormatError::Range(WHAT))?, WHAT)?);
    let text = text.ok().filter(|text| !text.chars().any(char::is_control));
    text.ok_or(FormatError::Range(WHAT))
}

/// Writes as much of a reason as a reader takes.
pub(super) fn write_reason(writer: &mut Writer<'_>, reason: &str) -> Result<(), Full> {
    let mut text = String::new();
    for character in reason.chars().map(|character| if character.is_control() { ' ' } else { character }) {
        if text.len().saturating_add(character.len_utf8()) > MAX_REASON_BYTES {
            break;
        }
        text.push(character);
    }
    if text.is_empty() {
        text.push('?');
    }
    writer.varint(text.len() as u64)?;
    writer.bytes(text.as_bytes())
}

pub(super) fn array<const N: usize>(reader: &mut Reader<'_>, what: &'static str) -> Result<[u8; N], FormatError> {
    reader.bytes(N, what)?.try_into().map_err(|_| FormatError::Short(what))
}
