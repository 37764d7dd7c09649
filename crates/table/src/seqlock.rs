//! A row that is read while it may be written.

use crate::word::{Load, Store};

/// So often a reader tries before it leaves a row for the next time.
const TRIES: usize = 3;

/// Writes a row: its first word is its sequence, odd while the others change. There is one writer a row.
///
/// A sequence that is odd already is of a writer that died in the middle, or is rubbish; the row is whole after this.
pub(crate) fn write<W: Store>(words: &[W], values: &[u64]) {
    debug_assert_eq!(words.len(), values.len() + 1, "a row is its sequence and its values");
    let Some((sequence, words)) = words.split_first() else { return };
    let odd = sequence.load() | 1;
    sequence.store(odd);
    // A reader that loads a new value before its fence sees the odd sequence, or a later one.
    W::fence_release();
    for (word, &value) in words.iter().zip(values) {
        word.store(value);
    }
    // A reader that loads the even sequence and then fences sees these values, or later ones.
    sequence.store_release(odd.wrapping_add(1));
}

/// Reads a row of `N` values: its sequence and the values of one write, or `None` if it was being written at each of
/// three tries. It never waits: a writer that died in the middle leaves an odd sequence forever.
pub(crate) fn read<const N: usize, W: Load>(words: &[W]) -> Option<(u64, [u64; N])> {
    let (sequence, words) = words.split_first()?;
    for _ in 0..TRIES {
        let before = sequence.load();
        if before & 1 == 1 {
            continue;
        }
        W::fence_acquire();
        let mut values = [0; N];
        for (value, word) in values.iter_mut().zip(words) {
            *value = word.load();
        }
        W::fence_acquire();
        if sequence.load() == before {
            return Some((before, values));
        }
    }
    None
}

#[cfg(test)]
mod loom_tests;

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    fn row(sequence: u64) -> [AtomicU64; 4] {
        [sequence, 7, 8, 9].map(AtomicU64::new)
    }

    #[test]
    fn read__is_what_was_written() {
        let row = row(0);
        assert_eq!(read(&row), Some((0, [7, 8, 9])));
        write(&row, &[1, 2, 3]);
        assert_eq!(read(&row), Some((2, [1, 2, 3])));
    }

    #[test]
    fn read__of_a_row_whose_writer_died_in_the_middle_is_nothing_and_does_not_wait() {
        assert_eq!(read::<3, _>(&row(5)), None);
        assert_eq!(read::<3, AtomicU64>(&[]), None);
    }

    #[test]
    fn write__makes_a_row_whole_that_was_left_in_the_middle() {
        let broken = row(5);
        write(&broken, &[1, 2, 3]);
        assert_eq!(read(&broken), Some((6, [1, 2, 3])));
        // The sequence of a row full of ones is odd, and wraps.
        let rubbish = row(u64::MAX);
        write(&rubbish, &[1, 2, 3]);
        assert_eq!(read(&rubbish), Some((0, [1, 2, 3])));
    }

    #[test]
    fn read__beside_a_writer_is_never_a_mixture() {
        let row = row(0);
        write(&row, &[0, 0, 0]);
        let rounds = if cfg!(miri) { 200 } else { 100_000 };
        std::thread::scope(|scope| {
            scope.spawn(|| (1..=rounds).for_each(|round| write(&row, &[round, round * 3, !round])));
            let mut last = 0;
            while last < rounds {
                if let Some((_, [first, second, third])) = read(&row) {
                    assert!(second == first * 3 && (third == !first || first == 0), "{first} {second} {third}");
                    assert!(first >= last, "an older value came back");
                    last = first;
                }
            }
        });
    }
}
