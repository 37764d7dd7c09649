//! The used rows of a segment, one bit per row: a reader of the table skips empty rows.

use crate::layout::{LABEL_WORDS, ROWS, USED_WORDS};
use crate::word::{Load, Store};

/// The rows that are marked as used, in order. The words are another process's: they only tell the reader where to
/// look.
pub(crate) fn used<W: Load>(words: &[W]) -> impl Iterator<Item = usize> {
    let words = words.iter().skip(LABEL_WORDS).take(USED_WORDS).map(Load::load);
    let bits = |(at, word): (usize, u64)| (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| at * 64 + bit);
    words.collect::<Vec<_>>().into_iter().enumerate().flat_map(bits)
}

/// Says of a row whether it is used. There is one writer.
pub(crate) fn set_used<W: Store>(words: &[W], at: usize, is_used: bool) {
    let Some(word) = words.get(LABEL_WORDS + at / 64).filter(|_| at < ROWS) else { return };
    let bit = 1 << (at % 64);
    word.store_release(if is_used { word.load() | bit } else { word.load() & !bit });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn used__is_what_was_set() {
        let words: Vec<AtomicU64> = (0..64).map(|_| AtomicU64::new(0)).collect();
        for at in [0, 63, 64, 200, 255, 256, 5000] {
            set_used(&words, at, true);
        }
        set_used(&words, 64, false);
        assert_eq!(used(&words).collect::<Vec<_>>(), [0, 63, 200, 255]);
        assert_eq!(used(&words[..3]).count(), 0);
    }
}
