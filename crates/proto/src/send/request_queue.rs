//! Requests to a source that it has not sent yet.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use fairwave_units::Bytes;

use crate::receive::byte_ranges::ByteRanges;
use crate::receive::requests::MAX_OPEN;
use crate::wire::packet_runs::PieceAt;

/// The ranges that a sink has requested, in the order of its requests, and before them those lost in transit.
///
/// Requests may come twice, and overlap: a range that waits here is not added again. A range requested again after it
/// was sent is sent again, at the session's own rate. All memory that a sink can make a source use is bounded; a
/// request beyond the bounds is dropped, and its sink will ask again.
#[derive(Clone, Debug, Default)]
pub struct RequestQueue {
    /// Apart from each other. A lost piece may lie within one of them, and is then sent once more.
    open: VecDeque<(u32, Range<u64>)>,
    open_bytes: u64,
    lost: BTreeMap<u32, ByteRanges>,
}

/// Bytes that may wait, of all requests.
pub const MAX_OPEN_BYTES: Bytes = Bytes::new(4 << 30);

impl RequestQueue {
    /// Whether there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty() && self.lost.is_empty()
    }

    /// Bytes to send.
    pub fn bytes(&self) -> Bytes {
        Bytes::new(self.open_bytes + self.lost.values().map(ByteRanges::bytes).sum::<u64>())
    }

    /// A request came. Returns whether all of it is remembered; otherwise none is.
    pub fn on_request(&mut self, stream: u32, range: Range<u64>) -> bool {
        let mut parts = ByteRanges::from(range.clone());
        for (_, known) in self.open.iter().filter(|(other, _)| *other == stream) {
            parts.remove(known);
        }
        // Lost data is sent again in any case.
        if let Some(lost) = self.lost.get(&stream)
            && without(&mut parts, lost).is_none()
        {
            return false;
        }
        let bytes = self.open_bytes.saturating_add(parts.bytes());
        // A packet does not end where a request does: what goes on from the last one is joined to it.
        let joined = parts
            .first()
            .filter(|first| self.open.back().is_some_and(|(s, last)| (*s, last.end) == (stream, first.start)));
        let more = parts.len() - usize::from(joined.is_some());
        if self.open.len() + more > MAX_OPEN || bytes > MAX_OPEN_BYTES.get() {
            return false;
        }
        self.open_bytes = bytes;
        if let (Some(first), Some((_, last))) = (&joined, self.open.back_mut()) {
            last.end = first.end;
        }
        self.open.extend(parts.iter().skip(usize::from(joined.is_some())).map(|range| (stream, range)));
        true
    }

    /// A piece was lost: it goes again, before everything that was not sent yet.
    pub fn on_lost(&mut self, piece: PieceAt) {
        let lost = piece.offset..piece.offset.saturating_add(u64::from(piece.length));
        // If it was asked for again, once is enough.
        for (stream, open) in &mut self.open {
            if *stream != piece.stream || open.end <= lost.start || lost.end <= open.start {
                continue;
            }
            let before = open.end - open.start;
            if lost.start <= open.start {
                open.start = lost.end.min(open.end);
            } else if open.end <= lost.end {
                open.end = lost.start;
            }
            // From within a range nothing is cut: there would be more of them.
            self.open_bytes -= before - (open.end - open.start);
        }
        self.open.retain(|(_, open)| !open.is_empty());
        self.lost.entry(piece.stream).or_default().insert(lost);
    }

    /// A lost piece has arrived after all: cancels its retransmission, and returns the number of bytes cancelled. Parts
    /// that its sink has requested once more are sent all the same.
    pub fn on_late(&mut self, piece: &PieceAt) -> u64 {
        let Some(lost) = self.lost.get_mut(&piece.stream) else { return 0 };
        let spared = lost.remove(&piece.range());
        if lost.is_empty() {
            self.lost.remove(&piece.stream);
        }
        spared
    }

    /// A range cannot be sent: it waits no more.
    pub fn cancel(&mut self, stream: u32, range: &Range<u64>) {
        for (other, open) in std::mem::take(&mut self.open) {
            let mut rest = ByteRanges::from(open.clone());
            if other == stream {
                self.open_bytes -= rest.remove(range);
            }
            self.open.extend(rest.iter().map(|part| (other, part)));
        }
        if let Some(lost) = self.lost.get_mut(&stream) {
            lost.remove(range);
            if lost.is_empty() {
                self.lost.remove(&stream);
            }
        }
    }

    /// The next piece to send, of at most `most` bytes. Lost ones are cut again.
    pub fn next_piece(&mut self, most: u32) -> Option<PieceAt> {
        let (stream, taken) = match self.lost.first_entry() {
            Some(mut entry) => {
                let (stream, taken) = (*entry.key(), entry.get_mut().take_first(u64::from(most))?);
                if entry.get().is_empty() {
                    entry.remove();
                }
                (stream, taken)
            }
            None => self.take_open(u64::from(most))?,
        };
        let length = u32::try_from(taken.end - taken.start).unwrap_or(most);
        Some(PieceAt { stream, length, offset: taken.start })
    }

    fn take_open(&mut self, most: u64) -> Option<(u32, Range<u64>)> {
        let (stream, open) = self.open.front_mut()?;
        let (stream, end) = (*stream, open.end.min(open.start.saturating_add(most)));
        let taken = open.start..end;
        open.start = end;
        if open.is_empty() {
            self.open.pop_front();
        }
        self.open_bytes -= end - taken.start;
        (!taken.is_empty()).then_some((stream, taken))
    }
}

/// Removes lost ranges from the requested ones; returns how many losses it looked at, or `None` if there would be too
/// many parts.
///
/// It looks only at those within the parts. Each adds a part, so it looks at few before they are too many, whatever
/// number of losses a sink reports.
fn without(parts: &mut ByteRanges, lost: &ByteRanges) -> Option<usize> {
    let (before, mut looks): (Vec<Range<u64>>, _) = (parts.iter().collect(), 0);
    for part in before {
        for known in lost.overlapping(&part) {
            looks += 1;
            parts.remove(&known);
            if parts.len() > MAX_OPEN {
                return None;
            }
        }
    }
    Some(looks)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn piece(stream: u32, range: Range<u64>) -> PieceAt {
        PieceAt { stream, length: u32::try_from(range.end - range.start).unwrap(), offset: range.start }
    }

    fn pieces(queue: &mut RequestQueue, most: u32) -> Vec<PieceAt> {
        std::iter::from_fn(|| queue.next_piece(most)).collect()
    }

    #[test]
    fn next_piece__cuts_requests_in_their_order() {
        let mut queue = RequestQueue::default();
        assert!(queue.on_request(2, 100..350));
        assert!(queue.on_request(1, 0..100));
        assert_eq!(queue.bytes().get(), 350);
        let expected = [piece(2, 100..200), piece(2, 200..300), piece(2, 300..350), piece(1, 0..100)];
        assert_eq!(pieces(&mut queue, 100), expected);
        assert!(queue.is_empty() && queue.next_piece(100).is_none());
    }

    #[test]
    fn next_piece__lost_ones_go_first_and_are_cut_anew() {
        let mut queue = RequestQueue::default();
        queue.on_request(1, 0..1000);
        pieces_of(&mut queue, 4, 100);
        queue.on_lost(piece(1, 100..200));
        queue.on_lost(piece(1, 0..100));
        assert_eq!(queue.bytes().get(), 800);
        assert_eq!(pieces_of(&mut queue, 3, 150), [piece(1, 0..150), piece(1, 150..200), piece(1, 400..550)]);
    }

    fn pieces_of(queue: &mut RequestQueue, count: usize, most: u32) -> Vec<PieceAt> {
        (0..count).filter_map(|_| queue.next_piece(most)).collect()
    }

    #[test]
    fn on_request__what_waits_waits_once() {
        let mut queue = RequestQueue::default();
        assert!(queue.on_request(1, 100..200));
        assert!(queue.on_request(1, 100..200));
        assert!(queue.on_request(1, 50..250));
        assert_eq!(pieces(&mut queue, 1000), [piece(1, 100..200), piece(1, 50..100), piece(1, 200..250)]);
        // Lost, and asked for again before and after.
        queue.on_request(1, 100..200);
        queue.on_lost(piece(1, 50..120));
        queue.on_request(1, 0..150);
        assert_eq!(queue.bytes().get(), 200);
        assert_eq!(pieces(&mut queue, 1000), [piece(1, 50..120), piece(1, 120..200), piece(1, 0..50)]);
    }

    #[test]
    fn on_request__has_bounds() {
        let mut queue = RequestQueue::default();
        for at in 0..256 {
            assert!(queue.on_request(1, at * 10..at * 10 + 5));
        }
        assert!(!queue.on_request(1, 9000..9001));
        assert!(queue.on_request(1, 10..15)); // nothing new
        assert!(!queue.on_request(1, 0..30)); // between them
        let mut large = RequestQueue::default();
        assert!(large.on_request(1, 0..4 << 30));
        assert!(!large.on_request(2, 0..1));
        large.next_piece(1);
        assert!(large.on_request(2, 0..1));
    }

    #[test]
    fn on_request__goes_on_from_the_last_one() {
        let mut queue = RequestQueue::default();
        for at in 0..1000 {
            assert!(queue.on_request(1, at * 70..at * 70 + 70));
        }
        assert_eq!((queue.open.len(), queue.bytes().get()), (1, 70_000));
        assert!(queue.on_request(1, 69_000..70_200)); // 200 B more
        // 70 200 B in 70 full pieces and the rest.
        assert_eq!(pieces(&mut queue, 1000).iter().filter(|piece| piece.length == 1000).count(), 70);
        // Not across another's.
        queue.on_request(1, 0..150);
        queue.on_request(2, 0..10);
        queue.on_request(1, 150..300);
        let expected = [piece(1, 0..100), piece(1, 100..150), piece(2, 0..10), piece(1, 150..250), piece(1, 250..300)];
        assert_eq!(pieces(&mut queue, 100), expected);
    }

    #[test]
    fn on_request__costs_the_same_however_much_is_lost() {
        // Each second piece of 100 000 is reported as lost, and all of it was requested again before that.
        let mut queue = RequestQueue::default();
        let all = 0..10_000_000;
        queue.on_request(1, all.clone());
        while queue.next_piece(100).is_some() {}
        queue.on_request(1, all.clone());
        for at in 0..50_000 {
            queue.on_lost(piece(1, 200 * at + 50..200 * at + 150));
        }
        assert_eq!(queue.lost[&1].len(), 50_000);
        let looks = |range: Range<u64>| {
            let mut parts = ByteRanges::from(range);
            queue.open.iter().for_each(|(_, known)| _ = parts.remove(known));
            without(&mut parts, &queue.lost[&1])
        };
        // Nothing of these is new but the last byte.
        assert_eq!([looks(all.clone()), looks(0..all.end + 1)], [Some(0), Some(0)]);
        assert!(queue.on_request(1, 0..all.end + 1));
        // If nothing else is requested, the bound on parts holds it.
        let mut parts = ByteRanges::from(all);
        assert_eq!(without(&mut parts, &queue.lost[&1]), None);
        assert_eq!(parts.len(), MAX_OPEN + 1);
    }

    #[test]
    fn on_late__what_waits_to_go_again_does_not() {
        let mut queue = RequestQueue::default();
        queue.on_request(1, 0..1000);
        pieces_of(&mut queue, 4, 100);
        queue.on_lost(piece(1, 100..200));
        queue.on_lost(piece(1, 200..300));
        queue.on_request(1, 0..50);
        let late = [piece(1, 150..250), piece(1, 150..250), piece(2, 0..100), piece(1, 0..50)];
        assert_eq!(late.map(|piece| queue.on_late(&piece)), [100, 0, 0, 0]);
        assert_eq!(pieces_of(&mut queue, 2, 100), [piece(1, 100..150), piece(1, 250..300)]);
        assert_eq!(queue.bytes().get(), 650);
        queue.on_lost(piece(1, 0..100));
        assert_eq!(queue.on_late(&piece(1, 0..100)), 100);
        assert_eq!(pieces_of(&mut queue, 1, 100), [piece(1, 400..500)]);
    }

    #[test]
    fn cancel__leaves_the_rest() {
        let mut queue = RequestQueue::default();
        queue.on_request(1, 0..1000);
        queue.next_piece(100);
        queue.on_lost(piece(1, 0..100));
        queue.cancel(1, &(50..500));
        assert_eq!(queue.bytes().get(), 550);
        assert_eq!(pieces(&mut queue, 5000), [piece(1, 0..50), piece(1, 500..1000)]);
    }

    proptest! {
        /// Whatever is asked for comes out, and the counts are true.
        #[test]
        fn request_queue__loses_nothing(
            steps in proptest::collection::vec((0_u8..4, 0_u32..2, 0_u64..300, 1_u64..80), 1..100),
        ) {
            let mut queue = RequestQueue::default();
            let mut owed = BTreeMap::<u32, ByteRanges>::new();
            let settle = |owed: &mut BTreeMap<u32, ByteRanges>, piece: PieceAt| {
                owed.entry(piece.stream).or_default().remove(&(piece.offset..piece.offset + u64::from(piece.length)));
            };
            for (what, stream, start, length) in steps {
                let range = start..start + length;
                match what {
                    0 | 1 => {
                        if queue.on_request(stream, range.clone()) {
                            owed.entry(stream).or_default().insert(range);
                        }
                    }
                    2 => {
                        queue.on_lost(piece(stream, range.clone()));
                        owed.entry(stream).or_default().insert(range);
                    }
                    _ => {
                        for piece in pieces_of(&mut queue, 3, 40) {
                            prop_assert!((1..=40).contains(&piece.length));
                            settle(&mut owed, piece);
                        }
                    }
                }
                let open: u64 = queue.open.iter().map(|(_, range)| range.end - range.start).sum();
                prop_assert_eq!(queue.open_bytes, open);
            }
            for piece in pieces(&mut queue, 1000) {
                settle(&mut owed, piece);
            }
            prop_assert!(owed.values().all(ByteRanges::is_empty), "{owed:?}");
        }
    }
}
