//! Bytes that a descriptor gave, until the other end has taken them.

use std::collections::VecDeque;
use std::ops::Range;

/// The bytes of one direction at its source, from the first one that its sink has not taken.
///
/// Memory: at most `most` bytes and a chunk. Bytes that the sink has taken are freed chunk by chunk.
#[derive(Debug)]
pub(crate) struct Outgoing {
    chunks: VecDeque<Chunk>,
    /// Bytes that the descriptor gave so far.
    written: u64,
    /// Bytes that the sink has taken; one more when its application has read the end.
    taken: u64,
    /// One above the highest byte that the sink asked for.
    asked: u64,
    /// How long the stream is, once its end was seen.
    end: Option<u64>,
    /// Max bytes to keep.
    most: u64,
}

#[derive(Debug)]
struct Chunk {
    start: u64,
    bytes: Vec<u8>,
}

/// The answer to requested ranges.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    /// To be served.
    pub(crate) serve: Option<Range<u64>>,
    /// To be refused: it is beyond the end.
    pub(crate) refuse: Option<Range<u64>>,
}

/// The sink reports having taken bytes that it was never given.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TakenTooMuch;

/// Capacity of the chunks that join small writes, bytes: the max, and the first.
pub(crate) const SMALL_CHUNK: usize = 16 << 10;
const MIN_CHUNK: usize = 64;
/// Goes in the place of what the sink has.
const ANYTHING: [u8; 2048] = [0; 2048];

impl Outgoing {
    pub(crate) fn new(most: u64) -> Self {
        Self { chunks: VecDeque::new(), written: 0, taken: 0, asked: 0, end: None, most }
    }

    /// Bytes that may be read from the descriptor now.
    pub(crate) fn room(&self) -> usize {
        let kept = self.written.saturating_sub(self.taken);
        usize::try_from(self.most.saturating_sub(kept)).unwrap_or(usize::MAX)
    }

    /// The descriptor gave a little more, which is copied: what of it is to be served.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Option<Range<u64>> {
        let before = self.chunks.back().map_or(0, |last| last.bytes.capacity());
        match self.chunks.back_mut() {
            Some(last) if before - last.bytes.len() >= bytes.len() => last.bytes.extend_from_slice(bytes),
            _ => {
                // The next small pieces go into the same chunk: each has twice the capacity of the previous one.
                let room = before.saturating_mul(2).clamp(MIN_CHUNK, SMALL_CHUNK);
                let mut joined = Vec::with_capacity(room.max(bytes.len()));
                joined.extend_from_slice(bytes);
                self.chunks.push_back(Chunk { start: self.written, bytes: joined });
            }
        }
        self.on_written(bytes.len())
    }

    /// Adds a large piece, which is kept as it is.
    pub(crate) fn push_chunk(&mut self, bytes: Vec<u8>) -> Option<Range<u64>> {
        let written = bytes.len();
        self.chunks.push_back(Chunk { start: self.written, bytes });
        self.on_written(written)
    }

    fn on_written(&mut self, bytes: usize) -> Option<Range<u64>> {
        let start = self.written;
        self.written = start.saturating_add(bytes as u64);
        let serve = start..self.written.min(self.asked);
        (!serve.is_empty()).then_some(serve)
    }

    /// The descriptor gives no more: what of that is to be refused.
    pub(crate) fn finish(&mut self) -> Option<Range<u64>> {
        if self.end.is_some() {
            return None;
        }
        self.end = Some(self.written);
        let beyond = self.written..self.asked;
        (!beyond.is_empty()).then_some(beyond)
    }

    /// The range that the sink has requested beyond the end, if it may not know the end: it has not delivered it to its
    /// application.
    pub(crate) fn unheard_end(&self) -> Option<Range<u64>> {
        self.end.filter(|end| self.taken <= *end).map(|end| end..self.asked.max(end))
    }

    /// The sink requests a range. It does not need what it has taken, even if a late request includes it.
    pub(crate) fn on_request(&mut self, range: &Range<u64>) -> Answer {
        self.asked = self.asked.max(range.end);
        let serve = range.start.max(self.taken)..range.end.min(self.written);
        let refuse = self.end.map(|end| range.start.max(end)..range.end);
        Answer {
            serve: Some(serve).filter(|serve| !serve.is_empty()),
            refuse: refuse.filter(|refuse| !refuse.is_empty()),
        }
    }

    /// The sink reports the number of bytes that it has taken; one more if that is all. Chunks no longer needed go into
    /// `free`.
    pub(crate) fn on_taken(&mut self, taken: u64, free: &mut Vec<Vec<u8>>) -> Result<(), TakenTooMuch> {
        let most = self.written.saturating_add(u64::from(self.end.is_some()));
        if taken > most {
            return Err(TakenTooMuch);
        }
        self.taken = self.taken.max(taken);
        while self.chunks.front().is_some_and(|chunk| chunk.end() <= self.taken) {
            free.extend(self.chunks.pop_front().map(|chunk| chunk.bytes));
        }
        Ok(())
    }

    /// The sink has taken all, and has reported it in another way.
    pub(crate) fn on_all_taken(&mut self) {
        self.taken = self.written.saturating_add(u64::from(self.end.is_some()));
        self.chunks.clear();
    }

    /// Lends bytes in pieces. Returns whether any of them are needed, and all needed ones are available. Bytes that the
    /// sink has taken were freed, and may have any value: it ignores them.
    pub(crate) fn lend(&self, range: &Range<u64>, take: &mut dyn FnMut(&[u8])) -> bool {
        let Some(first) = self.chunks.front().filter(|first| first.start < range.end && range.end <= self.written)
        else {
            return range.is_empty();
        };
        let mut gone = first.start.saturating_sub(range.start) as usize;
        while gone > 0 {
            let some = gone.min(ANYTHING.len());
            take(&ANYTHING[..some]);
            gone -= some;
        }
        let first = self.chunks.partition_point(|chunk| chunk.end() <= range.start);
        for chunk in self.chunks.range(first..) {
            let (start, end) = (range.start.max(chunk.start), range.end.min(chunk.end()));
            if start >= end {
                break;
            }
            take(&chunk.bytes[(start - chunk.start) as usize..(end - chunk.start) as usize]);
        }
        true
    }

    /// Bytes that the descriptor gave.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// Bytes of them that the sink has taken.
    pub(crate) fn taken(&self) -> u64 {
        self.taken.min(self.written)
    }

    /// Whether the sink has taken all bytes so far.
    pub(crate) fn is_taken(&self) -> bool {
        self.taken >= self.written
    }

    /// Whether the stream is over, and the sink has taken all of it and reported the end to its application.
    pub(crate) fn is_over(&self) -> bool {
        self.end.is_some_and(|end| self.taken > end)
    }
}

impl Chunk {
    fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lent(outgoing: &Outgoing, range: Range<u64>) -> Option<Vec<u8>> {
        let mut all = Vec::new();
        outgoing.lend(&range, &mut |bytes| all.extend_from_slice(bytes)).then_some(all)
    }

    #[test]
    fn push__serves_what_was_asked_for() {
        let mut outgoing = Outgoing::new(1000);
        assert_eq!(outgoing.push(b"hello"), None);
        assert_eq!(outgoing.on_request(&(0..8)), Answer { serve: Some(0..5), refuse: None });
        assert_eq!(outgoing.push(b" world"), Some(5..8));
        assert_eq!(outgoing.on_request(&(8..20)), Answer { serve: Some(8..11), refuse: None });
        assert_eq!(lent(&outgoing, 3..8).unwrap(), b"lo wo");
        assert_eq!(lent(&outgoing, 3..12), None);
    }

    #[test]
    fn finish__refuses_what_is_beyond() {
        let mut outgoing = Outgoing::new(1000);
        outgoing.on_request(&(0..100));
        outgoing.push(b"hello");
        assert_eq!(outgoing.finish(), Some(5..100));
        assert_eq!(outgoing.finish(), None);
        assert_eq!(outgoing.on_request(&(0..200)), Answer { serve: Some(0..5), refuse: Some(5..200) });
        assert_eq!(outgoing.on_request(&(100..200)), Answer { serve: None, refuse: Some(100..200) });
        assert!(!outgoing.is_over());
        assert_eq!(outgoing.on_taken(5, &mut Vec::new()), Ok(()));
        assert_eq!(outgoing.unheard_end(), Some(5..200));
        assert_eq!(outgoing.on_taken(6, &mut Vec::new()), Ok(()));
        assert!(outgoing.is_over() && outgoing.is_taken());
        assert_eq!(outgoing.unheard_end(), None);
    }

    #[test]
    fn on_taken__frees_and_gives_room() {
        let mut outgoing = Outgoing::new(100_000);
        outgoing.push_chunk(vec![1; 60_000]);
        outgoing.push_chunk(vec![2; 40_000]);
        assert_eq!(outgoing.room(), 0);
        assert_eq!(outgoing.on_taken(70_000, &mut Vec::new()), Ok(()));
        assert_eq!((outgoing.room(), outgoing.chunks.len()), (70_000, 1));
        // A packet may end where another request started: freed bytes are not read.
        assert_eq!([0..10, 50_000..60_000].map(|range| lent(&outgoing, range)), [None, None]);
        assert_eq!(lent(&outgoing, 55_000..60_003).unwrap(), [&[0; 5000][..], &[2; 3]].concat());
        assert_eq!(lent(&outgoing, 70_000..70_002).unwrap(), [2, 2]);
        // A late word changes nothing, and a late request is not served.
        assert_eq!(outgoing.on_taken(10, &mut Vec::new()), Ok(()));
        assert_eq!(outgoing.on_request(&(0..50_000)), Answer::default());
    }

    #[test]
    fn on_taken__what_was_never_given_is_a_lie() {
        let mut outgoing = Outgoing::new(100);
        outgoing.push(&[0; 10]);
        assert_eq!(outgoing.on_taken(11, &mut Vec::new()), Err(TakenTooMuch));
        outgoing.finish();
        assert_eq!(outgoing.on_taken(11, &mut Vec::new()), Ok(()));
        assert_eq!(outgoing.on_taken(12, &mut Vec::new()), Err(TakenTooMuch));
    }

    proptest! {
        /// Whatever the sizes: what is lent is what was pushed, and small pieces do not take much memory.
        #[test]
        fn outgoing__lends_what_was_pushed(sizes in proptest::collection::vec(1_usize..20_000, 1..40), taken in 0_u64..100) {
            let mut outgoing = Outgoing::new(u64::MAX);
            let mut all = Vec::new();
            for (index, size) in sizes.iter().enumerate() {
                let bytes: Vec<u8> = (0..*size).map(|at| (at * 7 + index) as u8).collect();
                all.extend_from_slice(&bytes);
                if bytes.len() < SMALL_CHUNK {
                    outgoing.push(&bytes);
                } else {
                    outgoing.push_chunk(bytes);
                }
            }
            let length = all.len() as u64;
            let taken = length * taken / 100;
            outgoing.on_taken(taken, &mut Vec::new()).unwrap();
            prop_assert_eq!(lent(&outgoing, taken..length).unwrap(), &all[taken as usize..]);
            let middle = taken + (length - taken) / 2;
            prop_assert_eq!(lent(&outgoing, middle..length).unwrap(), &all[middle as usize..]);
            let room: usize = outgoing.chunks.iter().map(|chunk| chunk.bytes.capacity()).sum();
            prop_assert!(room as u64 <= 2 * (length - taken) + 2 * 20_000 + 2 * SMALL_CHUNK as u64);
        }
    }
}
