//! The label in the first words of a memory.

use crate::error::TableError;
use crate::layout::{LABEL_WORDS, ROWS, VERSION};
use crate::word::Load;

/// "fairwave" as bytes.
const MAGIC: u64 = u64::from_be_bytes(*b"fairwave");

/// The label of a memory: what it is, which layout it has, and of which rows.
pub(crate) fn label(row_words: usize) -> [u64; LABEL_WORDS] {
    let mut label = [0; LABEL_WORDS];
    label[..4].copy_from_slice(&[MAGIC, VERSION, ROWS as u64, row_words as u64]);
    label
}

/// Whether a memory has the label of such rows.
pub(crate) fn check<W: Load>(words: &[W], row_words: usize, whose: &'static str) -> Result<(), TableError> {
    let said: Vec<u64> = words.iter().take(LABEL_WORDS).map(Load::load).collect();
    match said[..] {
        [MAGIC, version, ..] if version != VERSION => Err(TableError::Version(version)),
        ref said if said == label(row_words) => Ok(()),
        _ => Err(TableError::Label(whose)),
    }
}
