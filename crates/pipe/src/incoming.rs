//! Bytes that arrived for a descriptor, until the descriptor has taken them.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use crate::spares::SPARE_BYTES;

/// The bytes of one direction at its sink, from the first one that its descriptor has not taken.
///
/// Only requested bytes arrive, and requests end `ahead` bytes beyond what was taken: it holds at most that many, in
/// buffers that are at least half full.
#[derive(Debug)]
pub(crate) struct Incoming {
    ahead: u64,
    /// The next bytes, in order, in buffers that are filled in turn: none grows, and none is empty.
    ready: VecDeque<Vec<u8>>,
    /// Offset of the bytes behind `ready`.
    next: u64,
    /// Bytes that arrived behind gaps, by their offset.
    apart: BTreeMap<u64, Vec<u8>>,
    /// Up to here it was wanted.
    wanted: u64,
    /// Bytes that the descriptor has taken; one more after the end was delivered.
    taken: u64,
    /// The value of `taken` last reported to the source.
    reported: u64,
    /// The stream has no byte from here on, as far as is known.
    length: Option<u64>,
}

/// The result of an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Came {
    /// They were kept.
    Kept {
        /// Whether the descriptor has something to take now and had nothing before.
        is_news: bool,
    },
    /// They need a buffer of at least this many bytes.
    NeedsRoom(usize),
}

/// A report to the source.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Word {
    /// So many bytes were taken.
    pub(crate) taken: u64,
    /// This range is wanted from now on.
    pub(crate) want: Option<Range<u64>>,
}

/// The source reports an end before bytes that have arrived.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ShrunkTooMuch;

/// Bytes taken between reports to the source; it also reports after an idle period. Each report is a packet there and
/// one back.
const WORD_EVERY: u64 = 512 << 10;

impl Incoming {
    pub(crate) fn new(ahead: u64) -> Self {
        Self {
            ahead,
            ready: VecDeque::new(),
            next: 0,
            apart: BTreeMap::new(),
            wanted: 0,
            taken: 0,
            reported: 0,
            length: None,
        }
    }

    /// The first range to request.
    pub(crate) fn first(&mut self) -> Range<u64> {
        self.wanted = self.ahead;
        0..self.ahead
    }

    /// Bytes came, each for the first time. `spare` is an empty buffer for those that need one.
    pub(crate) fn on_data(&mut self, offset: u64, bytes: &[u8], spare: Option<Vec<u8>>) -> Came {
        let had_none = self.ready.is_empty();
        if bytes.is_empty() {
            return Came::Kept { is_news: false };
        }
        if offset == self.next {
            match (self.ready.back_mut(), spare) {
                (Some(last), _) if last.capacity() - last.len() >= bytes.len() => last.extend_from_slice(bytes),
                (_, Some(mut buffer)) => {
                    buffer.extend_from_slice(bytes);
                    self.ready.push_back(buffer);
                }
                (_, None) => return Came::NeedsRoom(bytes.len().max(SPARE_BYTES)),
            }
            self.next += bytes.len() as u64;
            while let Some(first) = self.apart.first_entry() {
                if *first.key() > self.next {
                    break;
                }
                // Pieces do not overlap: each byte comes once.
                let piece = first.remove();
                self.next += piece.len() as u64;
                match self.ready.back_mut() {
                    // So no buffer is less than half full, however small the pieces are that a source sends.
                    Some(last) if last.capacity() - last.len() >= piece.len() => last.extend_from_slice(&piece),
                    _ => self.ready.push_back(piece),
                }
            }
        } else if offset > self.next {
            match self.apart.range_mut(..offset).next_back() {
                Some((start, piece)) if start + piece.len() as u64 == offset => piece.extend_from_slice(bytes),
                _ => {
                    self.apart.insert(offset, bytes.to_vec());
                }
            }
        }
        Came::Kept { is_news: had_none && !self.ready.is_empty() }
    }

    /// The source reports that the stream ends here.
    pub(crate) fn on_end(&mut self, at: u64) -> Result<(), ShrunkTooMuch> {
        let came = self.apart.last_key_value().map_or(self.next, |(start, piece)| start + piece.len() as u64);
        if at < came {
            return Err(ShrunkTooMuch);
        }
        // A range behind the last byte may be refused before the one that has it.
        self.length = Some(self.length.map_or(at, |length| length.min(at)));
        Ok(())
    }

    /// Hands over what is next, in order, to `to`, which is empty.
    pub(crate) fn take_ready(&mut self, to: &mut VecDeque<Vec<u8>>) {
        std::mem::swap(&mut self.ready, to);
    }

    /// Whether something is next that was not taken out.
    pub(crate) fn is_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// The descriptor has taken this many bytes.
    pub(crate) fn on_taken(&mut self, bytes: u64) -> Option<Word> {
        self.taken += bytes;
        if self.taken - self.reported < WORD_EVERY.min(self.ahead / 8) {
            return None;
        }
        Some(self.word())
    }

    /// Whether the source does not know of all that was taken.
    pub(crate) fn is_unreported(&self) -> bool {
        self.reported < self.taken
    }

    /// Tells the source of all that was taken, if it does not know.
    pub(crate) fn rest(&mut self) -> Option<Word> {
        self.is_unreported().then(|| self.word())
    }

    /// The end was delivered to the descriptor.
    pub(crate) fn on_over(&mut self) -> Word {
        self.taken = self.next + 1;
        self.word()
    }

    fn word(&mut self) -> Word {
        self.reported = self.taken;
        let end = self.taken.saturating_add(self.ahead);
        let want = (self.length.is_none() && end > self.wanted).then_some(self.wanted..end);
        self.wanted = self.wanted.max(end);
        Word { taken: self.taken, want }
    }

    /// Whether all bytes have come: `ready` has the last of them.
    pub(crate) fn has_all(&self) -> bool {
        self.length == Some(self.next)
    }

    /// Whether the end was delivered to the descriptor.
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

    /// Whether that is news.
    fn put(incoming: &mut Incoming, offset: u64, bytes: &[u8]) -> bool {
        let mut came = incoming.on_data(offset, bytes, None);
        if let Came::NeedsRoom(room) = came {
            came = incoming.on_data(offset, bytes, Some(Vec::with_capacity(room)));
        }
        let Came::Kept { is_news } = came else { panic!("a buffer was there") };
        is_news
    }

    fn take(incoming: &mut Incoming) -> Vec<u8> {
        let mut ready = VecDeque::new();
        incoming.take_ready(&mut ready);
        assert!(ready.iter().all(|buffer| !buffer.is_empty()));
        ready.into_iter().flatten().collect()
    }

    #[test]
    fn on_data__puts_into_order() {
        let mut incoming = Incoming::new(1000);
        assert_eq!(incoming.first(), 0..1000);
        assert!(!put(&mut incoming, 3, b"def"));
        assert!(!put(&mut incoming, 6, b"gh"));
        assert!(!put(&mut incoming, 9, b"j"));
        assert_eq!(incoming.apart.len(), 2);
        assert!(put(&mut incoming, 0, b"abc"));
        assert!(!put(&mut incoming, 8, b"i"));
        assert_eq!(take(&mut incoming), b"abcdefghij");
        assert!(put(&mut incoming, 10, b"k"));
    }

    #[test]
    fn on_taken__tells_now_and_then() {
        let mut incoming = Incoming::new(1000);
        incoming.first();
        put(&mut incoming, 0, &[0; 400]);
        assert_eq!(incoming.on_taken(124), None);
        assert_eq!(incoming.on_taken(1), Some(Word { taken: 125, want: Some(1000..1125) }));
        assert_eq!(incoming.rest(), None);
        assert_eq!(incoming.on_taken(100), None);
        assert_eq!(incoming.rest(), Some(Word { taken: 225, want: Some(1125..1225) }));
        assert!(!incoming.is_unreported());
    }

    #[test]
    fn on_end__the_lowest_counts() {
        let mut incoming = Incoming::new(1000);
        incoming.first();
        put(&mut incoming, 0, b"hello");
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
        put(&mut incoming, 0, b"hello");
        put(&mut incoming, 10, b"there");
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
                put(&mut incoming, *start, bytes);
                all.extend(take(&mut incoming));
            }
            prop_assert_eq!(all, (0..at).map(|byte| (byte * 31) as u8).collect::<Vec<_>>());
            prop_assert!(incoming.apart.is_empty());
            prop_assert_eq!(incoming.came(), at);
        }
    }
}
