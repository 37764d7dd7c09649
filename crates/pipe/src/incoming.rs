//! What came for a descriptor, until the descriptor has taken it.

use std::collections::BTreeMap;
use std::ops::Range;

/// The bytes of one direction at its sink, from the first one that its descriptor has not taken.
///
/// No more comes than was wanted, and that ends `ahead` bytes behind what was taken: so much memory it takes at the most,
/// half as much again while gaps are open.
#[derive(Debug)]
pub(crate) struct Incoming {
    ahead: u64,
    /// What is next, in order.
    ready: Vec<u8>,
    /// Where the bytes behind `ready` begin.
    next: u64,
    /// What came behind gaps, by where it begins.
    apart: BTreeMap<u64, Vec<u8>>,
    /// Up to here it was wanted.
    wanted: u64,
    /// Bytes that the descriptor has taken; one more when it was told of the end.
    taken: u64,
    /// What of that the source was told.
    told: u64,
    /// The stream has no byte from here on, as far as is known.
    length: Option<u64>,
}

/// What to tell the source.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Word {
    /// So many bytes were taken.
    pub(crate) taken: u64,
    /// This range is wanted from now on.
    pub(crate) want: Option<Range<u64>>,
}

/// The source says that the stream ends before bytes of it that have come.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ShrunkTooMuch;

/// The source is told what was taken whenever it is so much more: it keeps no more than that of an idle stream.
const WORD_EVERY: u64 = 128 << 10;

impl Incoming {
    pub(crate) fn new(ahead: u64) -> Self {
        Self { ahead, ready: Vec::new(), next: 0, apart: BTreeMap::new(), wanted: 0, taken: 0, told: 0, length: None }
    }

    /// What to want first.
    pub(crate) fn first(&mut self) -> Range<u64> {
        self.wanted = self.ahead;
        0..self.ahead
    }

    /// Bytes came, each for the first time. Whether the descriptor has something to take now and had nothing before.
    pub(crate) fn on_data(&mut self, offset: u64, bytes: &[u8]) -> bool {
        let had_none = self.ready.is_empty();
        if offset == self.next {
            self.ready.extend_from_slice(bytes);
            self.next += bytes.len() as u64;
            while let Some(first) = self.apart.first_entry() {
                if *first.key() > self.next {
                    break;
                }
                // Pieces do not overlap: each byte comes once.
                let piece = first.remove();
                self.ready.extend_from_slice(&piece);
                self.next += piece.len() as u64;
            }
        } else if offset > self.next {
            match self.apart.range_mut(..offset).next_back() {
                Some((start, piece)) if start + piece.len() as u64 == offset => piece.extend_from_slice(bytes),
                _ => {
                    self.apart.insert(offset, bytes.to_vec());
                }
            }
        }
        had_none && !self.ready.is_empty()
    }

    /// The source says that there is nothing from here on.
    pub(crate) fn on_end(&mut self, at: u64) -> Result<(), ShrunkTooMuch> {
        let came = self.apart.last_key_value().map_or(self.next, |(start, piece)| start + piece.len() as u64);
        if at < came {
            return Err(ShrunkTooMuch);
        }
        // A range behind the last byte may be refused before the one that has it.
        self.length = Some(self.length.map_or(at, |length| length.min(at)));
        Ok(())
    }

    /// What is next, in order; `spare` is filled from now on.
    pub(crate) fn take_ready(&mut self, spare: Vec<u8>) -> Vec<u8> {
        std::mem::replace(&mut self.ready, spare)
    }

    /// Whether something is next that was not taken out.
    pub(crate) fn is_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// The descriptor has taken so many bytes.
    pub(crate) fn on_taken(&mut self, bytes: u64) -> Option<Word> {
        self.taken += bytes;
        if self.taken - self.told < WORD_EVERY.min(self.ahead / 4) {
            return None;
        }
        Some(self.word())
    }

    /// The descriptor was told of the end.
    pub(crate) fn on_over(&mut self) -> Word {
        self.taken = self.next + 1;
        self.word()
    }

    fn word(&mut self) -> Word {
        self.told = self.taken;
        let end = self.taken.saturating_add(self.ahead);
        let want = (self.length.is_none() && end > self.wanted).then_some(self.wanted..end);
        self.wanted = self.wanted.max(end);
        Word { taken: self.taken, want }
    }

    /// Whether all bytes have come: `ready` has the last of them.
    pub(crate) fn has_all(&self) -> bool {
        self.length == Some(self.next)
    }

    /// Whether the descriptor was told of the end.
    pub(crate) fn is_over(&self) -> bool {
        self.has_all() && self.taken > self.next
    }

    /// Bytes that came in order so far.
    pub(crate) fn came(&self) -> u64 {
        self.next
    }

    /// Bytes of them that the descriptor has taken.
    pub(crate) fn taken(&self) -> u64 {
        self.taken.min(self.next)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn on_data__puts_into_order() {
        let mut incoming = Incoming::new(1000);
        assert_eq!(incoming.first(), 0..1000);
        assert!(!incoming.on_data(3, b"def"));
        assert!(!incoming.on_data(6, b"gh"));
        assert!(!incoming.on_data(9, b"j"));
        assert_eq!(incoming.apart.len(), 2);
        assert!(incoming.on_data(0, b"abc"));
        assert!(!incoming.on_data(8, b"i"));
        assert_eq!(incoming.take_ready(Vec::new()), b"abcdefghij");
        assert!(incoming.on_data(10, b"k"));
    }

    #[test]
    fn on_taken__tells_now_and_then() {
        let mut incoming = Incoming::new(1000);
        incoming.first();
        incoming.on_data(0, &[0; 400]);
        assert_eq!(incoming.on_taken(249), None);
        assert_eq!(incoming.on_taken(1), Some(Word { taken: 250, want: Some(1000..1250) }));
        assert_eq!(incoming.on_taken(150), None);
    }

    #[test]
    fn on_end__the_lowest_counts() {
        let mut incoming = Incoming::new(1000);
        incoming.first();
        incoming.on_data(0, b"hello");
        assert_eq!(incoming.on_end(500), Ok(()));
        assert!(!incoming.has_all());
        assert_eq!(incoming.on_end(5), Ok(()));
        assert!(incoming.has_all() && !incoming.is_over());
        assert_eq!(incoming.on_taken(5), None);
        assert_eq!(incoming.on_over(), Word { taken: 6, want: None });
        assert!(incoming.is_over());
    }

    #[test]
    fn on_end__not_before_what_came() {
        let mut incoming = Incoming::new(1000);
        incoming.first();
        incoming.on_data(0, b"hello");
        incoming.on_data(10, b"there");
        assert_eq!(incoming.on_end(4), Err(ShrunkTooMuch));
        assert_eq!(incoming.on_end(14), Err(ShrunkTooMuch));
        assert_eq!(incoming.on_end(15), Ok(()));
    }

    proptest! {
        /// Pieces in any order become the stream.
        #[test]
        fn incoming__any_order(
            sizes in proptest::collection::vec(1_usize..50, 1..60),
            order in proptest::collection::vec(any::<u32>(), 60),
        ) {
            let mut at = 0;
            let mut pieces: Vec<(u64, Vec<u8>, u32)> = sizes.iter().zip(&order).map(|(size, order)| {
                let start = at;
                at += *size as u64;
                (start, (start..at).map(|byte| (byte * 31) as u8).collect(), *order)
            }).collect();
            pieces.sort_by_key(|(_, _, order)| *order);
            let mut incoming = Incoming::new(at);
            incoming.first();
            let mut all = Vec::new();
            for (start, bytes, _) in &pieces {
                incoming.on_data(*start, bytes);
                all.extend(incoming.take_ready(Vec::new()));
            }
            prop_assert_eq!(all, (0..at).map(|byte| (byte * 31) as u8).collect::<Vec<_>>());
            prop_assert!(incoming.apart.is_empty());
            prop_assert_eq!(incoming.came(), at);
        }
    }
}
