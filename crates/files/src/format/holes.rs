//! Holes of a file: ranges of zeros that the file system does not store, and that are not sent.
//!
//! The walk finds them and the manifest lists them before their file; their bytes are never requested.

use std::ops::Range;
use std::os::fd::AsFd;

use fairwave_proto::codec::{Reader, Writer};
use rustix::fs::{SeekFrom, seek};

use super::blocks::BLOCK_BYTES;
use super::error::FormatError;
use super::footprint::of_elements;

/// Smaller holes are sent as zeros: each adds a request, of which there are 256 per round trip.
pub(crate) const MIN_HOLE: u64 = 256 << 10;
/// Max holes in the list of a transfer; further holes are sent as data.
pub(crate) const MAX_HOLES: usize = 4 << 20;
/// Holes that are looked for in a file, small ones included: this many take a second or two.
const MAX_LOOKS: usize = 1 << 20;
/// Max bytes of holes in one entry of the list.
pub(crate) const MAX_PAIRS_BYTES: usize = 4096;
/// No file is longer.
const MAX_END: u64 = (1 << 62) - 1;
/// A pair takes no more.
const PAIR_BYTES: usize = 16;

/// Parts of a file, or of a tree, that are zeros: in order, and apart from each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Holes {
    ranges: Vec<Range<u64>>,
    bytes: u64,
}

impl Holes {
    /// Finds the holes of an open file of this size: at most `most`, no small ones. A file system without holes reports
    /// everything as data.
    pub(crate) fn find(file: impl AsFd, bytes: u64, most: usize) -> Self {
        let (mut holes, mut at) = (Self::default(), 0);
        for _ in 0..MAX_LOOKS {
            if at >= bytes || holes.len() >= most {
                break;
            }
            let Ok(start) = seek(&file, SeekFrom::Hole(at)) else { break };
            // Without data behind it, it reaches to the end.
            let end = match seek(&file, SeekFrom::Data(start)) {
                Ok(end) => end.min(bytes),
                Err(rustix::io::Errno::NXIO) => bytes,
                Err(_) => break,
            };
            if start < at || end <= start {
                break;
            }
            if end - start >= MIN_HOLE {
                holes.push(start..end);
            }
            at = end;
        }
        holes
    }

    /// Adds a hole that starts at or after the end of the last.
    pub(crate) fn push(&mut self, range: Range<u64>) {
        debug_assert!(self.end() <= range.start && range.start < range.end);
        self.bytes += range.end - range.start;
        match self.ranges.last_mut().filter(|last| last.end == range.start) {
            Some(last) => last.end = range.end,
            None => self.ranges.push(range),
        }
    }

    /// Number of holes.
    pub(crate) fn len(&self) -> usize {
        self.ranges.len()
    }

    /// End of the data of a range: its end, or the start of the hole that reaches to it.
    pub(crate) fn data_end(&self, range: &Range<u64>) -> u64 {
        let last = self.reaching(range.end.saturating_sub(1)).first().filter(|hole| hole.start < range.end);
        last.map_or(range.end, |hole| hole.start.max(range.start))
    }

    /// Bytes that they take in memory, or will with another one.
    pub(crate) fn memory_bytes(&self) -> usize {
        of_elements(size_of::<Range<u64>>(), self.ranges.len(), self.ranges.capacity()) as usize
    }

    /// No more are added.
    pub(crate) fn shrink(&mut self) {
        self.ranges.shrink_to_fit();
    }

    /// Whether there are no holes.
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Total bytes of the holes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// End of the last hole.
    pub(crate) fn end(&self) -> u64 {
        self.ranges.last().map_or(0, |last| last.end)
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Range<u64>> {
        self.ranges.iter().cloned()
    }

    /// Whether all of a range is in one.
    pub(crate) fn cover(&self, range: &Range<u64>) -> bool {
        self.reaching(range.start).first().is_some_and(|first| first.start <= range.start && range.end <= first.end)
    }

    /// The parts of a range that are in holes.
    pub(crate) fn within<'a>(&'a self, range: &Range<u64>) -> impl Iterator<Item = Range<u64>> + use<'a> {
        let Range { start, end } = *range;
        let ranges = self.reaching(start).iter().take_while(move |hole| hole.start < end);
        ranges.map(move |hole| hole.start.max(start)..hole.end.min(end))
    }

    /// The holes that overlap a range or start at its end.
    pub(crate) fn around(&self, range: &Range<u64>) -> Self {
        let mut around = Self::default();
        let ranges = self.reaching(range.start).iter().take_while(|hole| hole.start <= range.end);
        ranges.for_each(|hole| around.push(hole.clone()));
        around
    }

    /// Blocks without data in a range, by their numbers in a file of this size.
    pub(crate) fn blocks_within<'a>(
        &'a self,
        range: &Range<u64>,
        file_bytes: u64,
    ) -> impl Iterator<Item = Range<u64>> + use<'a> {
        let blocks = self.within(range).map(move |hole| {
            let is_last = hole.end == file_bytes;
            let end = if is_last { hole.end.div_ceil(BLOCK_BYTES) } else { hole.end / BLOCK_BYTES };
            hole.start.div_ceil(BLOCK_BYTES)..end
        });
        blocks.filter(|blocks| blocks.start < blocks.end)
    }

    /// Encodes them as entries of the list, each at most [`MAX_PAIRS_BYTES`] long: the bytes between a hole and the
    /// end of the previous one, and its length.
    pub(crate) fn to_pairs(&self) -> Vec<Vec<u8>> {
        let (mut entries, mut at) = (Vec::<Vec<u8>>::new(), 0);
        for hole in &self.ranges {
            let mut room = [0; PAIR_BYTES];
            let mut writer = Writer::new(&mut room);
            let written = writer.varint(hole.start - at).and_then(|()| writer.varint(hole.end - hole.start));
            debug_assert!(written.is_ok(), "two varints have 16 bytes");
            let used = writer.used();
            match entries.last_mut().filter(|entry| entry.len() + used <= MAX_PAIRS_BYTES) {
                Some(entry) => entry.extend_from_slice(&room[..used]),
                None => entries.push(room[..used].to_vec()),
            }
            at = hole.end;
        }
        entries
    }

    /// Adds the holes of an entry.
    pub(crate) fn read_pairs(&mut self, pairs: &[u8]) -> Result<(), FormatError> {
        const WHAT: &str = "a hole";
        let mut reader = Reader::new(pairs);
        while !reader.is_empty() {
            let (gap, length) = (reader.varint(WHAT)?, reader.varint(WHAT)?);
            let start = self.end().checked_add(gap);
            let range = start.and_then(|start| Some(start..start.checked_add(length)?));
            let range = range.filter(|range| !range.is_empty() && range.end <= MAX_END);
            self.push(range.ok_or(FormatError::Range(WHAT))?);
        }
        Ok(())
    }

    /// The holes that end after an offset.
    fn reaching(&self, offset: u64) -> &[Range<u64>] {
        self.ranges.get(self.ranges.partition_point(|hole| hole.end <= offset)..).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    use proptest::prelude::*;

    use super::*;

    fn holes(ranges: &[Range<u64>]) -> Holes {
        let mut holes = Holes::default();
        for range in ranges {
            holes.push(range.clone());
        }
        holes
    }

    #[test]
    fn find__between_and_behind_islands_of_data() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(10 << 20).unwrap();
        file.write_all_at(&[1; 4096], 3 << 20).unwrap();
        // 128 KiB between two islands are too few.
        file.write_all_at(&[1; 4096], (3 << 20) + (132 << 10)).unwrap();
        let expected = holes(&[0..3 << 20, (3 << 20) + (136 << 10)..10 << 20]);
        assert_eq!(Holes::find(&file, 10 << 20, 100), expected);
        assert_eq!(Holes::find(&file, 10 << 20, 1), holes(std::slice::from_ref(&(0..3 << 20))));
        // As long as it was when it was listed.
        assert_eq!(Holes::find(&file, 9 << 20, 100).end(), 9 << 20);
    }

    #[test]
    fn find__none_in_what_is_no_file_with_holes() {
        let (_reader, writer) = std::io::pipe().unwrap();
        assert!(Holes::find(&writer, 1 << 30, 100).is_empty());
        let file = File::open("/proc/self/status").unwrap();
        assert!(Holes::find(&file, 1 << 30, 100).is_empty());
        assert!(Holes::find(tempfile::tempfile().unwrap(), 0, 100).is_empty());
    }

    #[test]
    fn blocks_within__are_those_without_a_byte_of_data() {
        let file_bytes = 5 * BLOCK_BYTES + 7;
        let holes =
            holes(&[1..2 * BLOCK_BYTES + 5, 3 * BLOCK_BYTES - 1..3 * BLOCK_BYTES + 1, 4 * BLOCK_BYTES..file_bytes]);
        let blocks = |holes: &Holes| holes.blocks_within(&(0..file_bytes), file_bytes).collect::<Vec<_>>();
        assert_eq!(blocks(&holes), [1..2, 4..6]);
        let part = holes.blocks_within(&(4 * BLOCK_BYTES..5 * BLOCK_BYTES), file_bytes);
        assert!(part.eq(std::iter::once(4..5)));
        // Seven bytes of data: the last block is not a hole.
        let holes = self::holes(&[0..BLOCK_BYTES, 4 * BLOCK_BYTES..5 * BLOCK_BYTES + 3]);
        assert_eq!(blocks(&holes), [0..1, 4..5]);
    }

    #[test]
    fn within__a_part_of_a_range() {
        let holes = holes(&[10..20, 30..40]);
        assert_eq!(holes.within(&(15..35)).collect::<Vec<_>>(), [15..20, 30..35]);
        assert!(holes.cover(&(10..20)) && !holes.cover(&(9..11)) && !holes.cover(&(15..31)) && !holes.cover(&(40..41)));
        assert_eq!(holes.around(&(12..30)), holes);
        assert_eq!(holes.around(&(20..29)).len(), 0);
    }

    #[test]
    fn read_pairs__refuses_what_is_empty_or_ends_nowhere() {
        let read = |pairs: &[u8]| Holes::default().read_pairs(pairs);
        assert_eq!(read(&[0, 1, 5, 1]), Ok(()));
        assert_eq!(read(&[5, 0]), Err(FormatError::Range("a hole")));
        assert_eq!(read(&[5]), Err(FormatError::Short("a hole")));
        // 2^62 - 1, and one byte behind it.
        assert_eq!(read(&[&[0][..], &[0xff; 8]].concat()), Ok(()));
        assert_eq!(read(&[&[0][..], &[0xff; 8], &[0, 1]].concat()), Err(FormatError::Range("a hole")));
    }

    #[test]
    fn read_pairs__of_anything() {
        bolero::check!().with_iterations(2000).with_max_len(200).for_each(|pairs: &[u8]| {
            let mut holes = Holes::default();
            if holes.read_pairs(pairs).is_ok() {
                let mut again = Holes::default();
                holes.to_pairs().iter().for_each(|pairs| again.read_pairs(pairs).unwrap());
                assert_eq!(again, holes);
                assert_eq!(holes.iter().map(|hole| hole.end - hole.start).sum::<u64>(), holes.bytes());
            }
        });
    }

    proptest! {
        #[test]
        fn pairs__are_read_as_they_were_written(lengths in proptest::collection::vec((1_u64..1 << 40, 1_u64..1 << 40), 0..2000)) {
            let (mut holes, mut at) = (Holes::default(), 0);
            for (gap, length) in lengths {
                holes.push(at + gap..at + gap + length);
                at += gap + length;
            }
            let (entries, mut read) = (holes.to_pairs(), Holes::default());
            for entry in &entries {
                prop_assert!((1..=MAX_PAIRS_BYTES).contains(&entry.len()));
                read.read_pairs(entry).unwrap();
            }
            prop_assert_eq!(read, holes);
        }
    }
}
