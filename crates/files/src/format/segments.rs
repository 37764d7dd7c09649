//! A stream that is written while it is read, in segments that authenticate themselves.
//!
//! ```text
//! segment = length of the body (u32 BE), body, first 16 bytes of BLAKE3 keyed (segment number u64 LE, body)
//! body    = version (1), entries up to the end: at most 64 KiB together
//! ```
//!
//! The contents of the entries are defined by the manifest and by the results.

use std::ops::Range;

use fairwave_proto::ByteRanges;
use fairwave_proto::codec::{Full, Writer};
use thiserror::Error;

use super::error::{FormatError, VERSION};
use super::short_hash::short;

/// Max size of a segment's body, bytes.
pub(crate) const MAX_BODY_BYTES: usize = 64 << 10;
/// Bytes that a reader requests beyond what it has read: at 60 ms of round trip some 100 000 entries a second.
const READ_AHEAD: u64 = 512 << 10;
/// Bytes of the length, before the body.
pub(crate) const LENGTH_BYTES: usize = 4;
/// Bytes of the proof, behind it.
pub(crate) const MAC_BYTES: usize = 16;
/// Max requests for a segment that fails its check: without forgery on the path, one is enough.
const MAX_TRIES: u32 = 8;

/// Why a stream of segments cannot be read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum SegmentError {
    /// Somebody on the path changes it, each time.
    #[error("part {0} failed verification {MAX_TRIES} times: the data is being modified on the path")]
    Forged(u64),
    /// It ended, and what read it did not find that it was complete.
    #[error("ended before it was complete")]
    Ended,
    /// It proves itself, and is not understood.
    #[error(transparent)]
    Format(#[from] FormatError),
}

/// Makes segments of entries.
pub(crate) struct SegmentWriter {
    key: [u8; 32],
    number: u64,
    body: Vec<u8>,
    used: usize,
}

/// Position of an added entry.
#[derive(Debug)]
pub(crate) struct Added {
    /// The segment that it did not fit into any more, as the stream has it.
    pub(crate) full: Option<Vec<u8>>,
    /// Its start in the body of its segment.
    pub(crate) offset: usize,
}

impl SegmentWriter {
    /// With the session's secret for the stream.
    pub(crate) fn new(secret: [u8; 32]) -> Self {
        let mut body = vec![0; MAX_BODY_BYTES];
        body[0] = VERSION;
        Self { key: secret, number: 0, body, used: 1 }
    }

    /// Adds an entry; one that has more than 64 KiB is an error.
    pub(crate) fn add(&mut self, write: impl Fn(&mut Writer<'_>) -> Result<(), Full>) -> Result<Added, Full> {
        let mut full = None;
        let used = if let Ok(used) = self.write(&write) {
            used
        } else {
            full = self.finish();
            self.write(&write)?
        };
        let added = Added { full, offset: self.used };
        self.used += used;
        Ok(added)
    }

    /// Bytes of the pending entries, with the version.
    pub(crate) fn body_bytes(&self) -> usize {
        self.used
    }

    /// The encoded segment of the pending entries, if any.
    pub(crate) fn finish(&mut self) -> Option<Vec<u8>> {
        let body = self.body.get(..self.used).filter(|body| body.len() > 1)?;
        let mut segment = Vec::with_capacity(LENGTH_BYTES + body.len() + MAC_BYTES);
        segment.extend_from_slice(&(body.len() as u32).to_be_bytes());
        segment.extend_from_slice(body);
        segment.extend_from_slice(&mac(&self.key, self.number, body));
        self.number += 1;
        self.used = 1;
        Some(segment)
    }

    fn write(&mut self, write: &impl Fn(&mut Writer<'_>) -> Result<(), Full>) -> Result<usize, Full> {
        let mut writer = Writer::new(&mut self.body[self.used..]);
        write(&mut writer)?;
        Ok(writer.used())
    }
}

/// The body and the proof of an encoded segment.
pub(crate) fn parts_of(segment: &[u8]) -> (&[u8], [u8; MAC_BYTES]) {
    let (head, proof) = segment.split_last_chunk().expect("a segment has a proof");
    (&head[LENGTH_BYTES..], *proof)
}

/// Reads a stream of segments whose bytes arrive in any order, from untrusted senders.
///
/// Hand in what comes ([`SegmentReader::on_data`], [`SegmentReader::on_void`]), then take all bodies
/// ([`SegmentReader::next`]), then want all that it wants ([`SegmentReader::wants`]). Memory: at most 512 KiB and one
/// segment.
pub(crate) struct SegmentReader {
    key: [u8; 32],
    /// The next segment.
    number: u64,
    /// Its start in the stream: the window's first byte.
    start: u64,
    window: Vec<u8>,
    arrived: ByteRanges,
    /// Everything below was wanted.
    wanted: u64,
    /// The stream has nothing from here on.
    end: Option<u64>,
    again: Option<Range<u64>>,
    tries: u32,
}

impl SegmentReader {
    /// With the session's secret for the stream.
    pub(crate) fn new(secret: [u8; 32]) -> Self {
        let arrived = ByteRanges::default();
        let window = Vec::new();
        Self { key: secret, number: 0, start: 0, window, arrived, wanted: 0, end: None, again: None, tries: 0 }
    }

    /// The next range to request. Call until it returns `None`.
    pub(crate) fn wants(&mut self) -> Option<Range<u64>> {
        if let Some(again) = self.again.take() {
            return Some(again);
        }
        // By halves: a request for each byte that was read would be many.
        let to = self.start.saturating_add(READ_AHEAD);
        if self.end.is_some() || to - self.wanted.min(to) < READ_AHEAD / 2 {
            return None;
        }
        let from = std::mem::replace(&mut self.wanted, to);
        Some(from..to)
    }

    /// Adds received bytes. Those that were not requested are dropped.
    pub(crate) fn on_data(&mut self, offset: u64, bytes: &[u8]) {
        let end = offset.saturating_add(bytes.len() as u64).min(self.wanted);
        let start = offset.max(self.start);
        if start >= end {
            return;
        }
        // Both are below the window's 512 KiB, and the source's index below the bytes' count.
        let (from, to) = ((start - self.start) as usize, (end - self.start) as usize);
        let source = &bytes[(start - offset) as usize..(end - offset) as usize];
        if self.window.len() < to {
            self.window.resize(to, 0);
        }
        self.window[from..to].copy_from_slice(source);
        self.arrived.insert(start..end);
    }

    /// A range will not arrive: the stream ends before it.
    pub(crate) fn on_void(&mut self, range: &Range<u64>) {
        let end = self.end.map_or(range.start, |end| end.min(range.start));
        self.end = Some(end.max(self.start));
    }

    /// The entries of the next segment, if it is complete.
    pub(crate) fn next(&mut self) -> Result<Option<Vec<u8>>, SegmentError> {
        let there =
            self.arrived.first().filter(|first| first.start == self.start).map_or(0, |first| first.end - first.start);
        if self.end == Some(self.start) {
            return Err(SegmentError::Ended);
        }
        let Some(window) = self.window.get(..there as usize) else { return Ok(None) };
        let Some((length, rest)) = window.split_first_chunk::<LENGTH_BYTES>() else {
            return self.look_at_end(there);
        };
        let length = u32::from_be_bytes(*length) as usize;
        if length == 0 || length > MAX_BODY_BYTES {
            return self.on_forged(LENGTH_BYTES as u64);
        }
        let whole = LENGTH_BYTES + length + MAC_BYTES;
        let Some((body, proof)) = rest.get(..length + MAC_BYTES).and_then(|rest| rest.split_at_checked(length)) else {
            return self.look_at_end(there);
        };
        if aws_lc_rs::constant_time::verify_slices_are_equal(&mac(&self.key, self.number, body), proof).is_err() {
            return self.on_forged(whole as u64);
        }
        let entries = match body.split_first() {
            Some((&VERSION, entries)) => entries.to_vec(),
            Some((&version, _)) => return Err(FormatError::Version(version).into()),
            None => return Err(FormatError::Short("a segment").into()),
        };
        self.window.drain(..whole);
        let next = self.start + whole as u64;
        self.arrived.remove(&(self.start..next));
        self.start = next;
        self.number += 1;
        self.tries = 0;
        Ok(Some(entries))
    }

    /// The stream ends without a whole segment: its length was forged.
    fn look_at_end(&mut self, there: u64) -> Result<Option<Vec<u8>>, SegmentError> {
        if self.end.is_some_and(|end| end <= self.start + there) { self.on_forged(there) } else { Ok(None) }
    }

    /// The first bytes of the window are not what was sent.
    fn on_forged(&mut self, bytes: u64) -> Result<Option<Vec<u8>>, SegmentError> {
        self.tries += 1;
        if self.tries >= MAX_TRIES {
            return Err(SegmentError::Forged(self.number));
        }
        let range = self.start..self.start + bytes;
        self.arrived.remove(&range);
        self.again = Some(range);
        Ok(None)
    }
}

fn mac(key: &[u8; 32], number: u64, body: &[u8]) -> [u8; MAC_BYTES] {
    let mut hasher = blake3::Hasher::new_keyed(key);
    hasher.update(&number.to_le_bytes()).update(body);
    short(&hasher)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KEY: [u8; 32] = [5; 32];

    /// A stream of entries of these sizes, bytes.
    fn stream(entries: &[Vec<u8>]) -> Vec<u8> {
        let mut writer = SegmentWriter::new(KEY);
        let mut stream = Vec::new();
        for entry in entries {
            stream.extend(writer.add(|writer| writer.bytes(entry)).unwrap().full.into_iter().flatten());
        }
        stream.extend(writer.finish().into_iter().flatten());
        stream
    }

    fn entries(count: usize, bytes: usize) -> Vec<Vec<u8>> {
        (0..count).map(|i| vec![i as u8; bytes]).collect()
    }

    /// Answers all requests of a reader from a stream, in order.
    fn answer(reader: &mut SegmentReader, stream: &[u8]) {
        while let Some(range) = reader.wants() {
            let end = range.end.min(stream.len() as u64);
            if range.start < end {
                reader.on_data(range.start, &stream[range.start as usize..end as usize]);
            }
            if end < range.end {
                reader.on_void(&(end.max(range.start)..range.end));
            }
        }
    }

    fn read_all(reader: &mut SegmentReader, stream: &[u8]) -> (Vec<u8>, SegmentError) {
        let mut entries = Vec::new();
        loop {
            answer(reader, stream);
            match reader.next() {
                Ok(body) => entries.extend(body.into_iter().flatten()),
                Err(error) => return (entries, error),
            }
        }
    }

    #[test]
    fn segments__hold_whole_entries() {
        let entries = entries(5, MAX_BODY_BYTES / 2);
        // With the version two do not fit into one.
        let stream = stream(&entries);
        assert_eq!(stream.len(), 5 * (MAX_BODY_BYTES / 2 + 1 + LENGTH_BYTES + MAC_BYTES));
        let (read, error) = read_all(&mut SegmentReader::new(KEY), &stream);
        assert!(read == entries.concat());
        assert_eq!(error, SegmentError::Ended);
    }

    #[test]
    fn add__says_where_an_entry_is() {
        let mut writer = SegmentWriter::new(KEY);
        assert!(matches!(writer.add(|w| w.bytes(&[7; 10])), Ok(Added { full: None, offset: 1 })));
        assert!(matches!(writer.add(|w| w.bytes(&[8; 10])), Ok(Added { full: None, offset: 11 })));
        assert!(writer.add(|w| w.bytes(&vec![8; MAX_BODY_BYTES])).is_err());
        let added = writer.add(|w| w.bytes(&[9; 10])).unwrap();
        assert_eq!(added.offset, 1);
        let segment = writer.finish().unwrap();
        assert_eq!(segment[5..15], [9; 10]);
        assert!(writer.finish().is_none());
    }

    #[test]
    fn reader__keeps_a_bounded_window() {
        let mut reader = SegmentReader::new(KEY);
        assert_eq!((reader.wants(), reader.wants()), (Some(0..READ_AHEAD), None));
        reader.on_data(READ_AHEAD - 1, &[1, 2, 3]);
        reader.on_data(u64::MAX - 1, &[1, 2, 3]);
        reader.on_data(READ_AHEAD, &[1]);
        assert_eq!((reader.window.len() as u64, reader.arrived.bytes()), (READ_AHEAD, 1));
    }

    #[test]
    fn reader__wants_again_what_was_forged() {
        let entries = entries(3, 50_000);
        let stream = stream(&entries);
        let mut reader = SegmentReader::new(KEY);
        for at in [0, 1, 3, 100, 50_010] {
            let mut forged = stream.clone();
            forged[at] ^= 0x80;
            answer(&mut reader, &forged);
            assert_eq!(reader.next(), Ok(None), "byte {at}");
        }
        let (read, _) = read_all(&mut reader, &stream);
        assert!(read == entries.concat());
    }

    #[test]
    fn reader__the_last_length_forged_to_reach_beyond_the_end() {
        let stream = stream(&entries(1, 100));
        let mut forged = stream.clone();
        forged[2] = 1;
        let mut reader = SegmentReader::new(KEY);
        answer(&mut reader, &forged);
        assert_eq!(reader.next(), Ok(None));
        answer(&mut reader, &stream);
        assert_eq!(reader.next(), Ok(Some(vec![0; 100])));
    }

    #[test]
    fn reader__gives_up_at_last() {
        let mut forged = stream(&entries(1, 100));
        forged[50] ^= 1;
        assert_eq!(read_all(&mut SegmentReader::new(KEY), &forged).1, SegmentError::Forged(0));
        assert_eq!(read_all(&mut SegmentReader::new([6; 32]), &forged).1, SegmentError::Forged(0));
        assert_eq!(read_all(&mut SegmentReader::new(KEY), &[]).1, SegmentError::Ended);
    }

    #[test]
    fn reader__another_version_is_named() {
        let mut writer = SegmentWriter::new(KEY);
        writer.body[0] = 9;
        writer.add(|writer| writer.u8(1)).unwrap();
        let stream = writer.finish().unwrap();
        let error = read_all(&mut SegmentReader::new(KEY), &stream).1;
        assert_eq!(error, FormatError::Version(9).into());
    }

    #[test]
    fn reader__of_anything() {
        bolero::check!().with_iterations(1000).with_max_len(4096).for_each(|bytes: &[u8]| {
            let mut reader = SegmentReader::new(KEY);
            reader.wants();
            reader.on_data(0, bytes);
            // A segment under another key is never read.
            assert!(matches!(reader.next(), Ok(None) | Err(SegmentError::Ended)));
        });
    }

    proptest! {
        /// Pieces may arrive in any order, repeatedly, and changed.
        #[test]
        fn reader__in_any_order(
            sizes in proptest::collection::vec(1_usize..40_000, 1..30),
            piece in 500_usize..9000,
            picks in proptest::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 0..200),
        ) {
            let entries: Vec<_> = sizes.iter().enumerate().map(|(i, size)| vec![i as u8; *size]).collect();
            let stream = stream(&entries);
            let mut reader = SegmentReader::new(KEY);
            let (mut read, mut waiting) = (Vec::new(), Vec::<(u64, u64)>::new());
            let mut picks = picks.into_iter();
            let error = loop {
                while let Some(range) = reader.wants() {
                    let starts = range.clone().step_by(piece);
                    waiting.extend(starts.map(|start| (start, range.end.min(start + piece as u64))));
                }
                let (at, is_forged) = picks.next().map_or((0, false), |(index, is_forged)| {
                    (if waiting.is_empty() { 0 } else { index.index(waiting.len()) }, is_forged)
                });
                // Not more often in all than one segment may be.
                let is_forged = is_forged && at % 50 == 7;
                if !waiting.is_empty() {
                    let (start, end) = waiting.remove(at);
                    let there = end.min(stream.len() as u64).max(start);
                    if start < there {
                        let mut bytes = stream[start as usize..there as usize].to_vec();
                        bytes[0] ^= u8::from(is_forged);
                        reader.on_data(start, &bytes);
                    }
                    if there < end {
                        reader.on_void(&(there..end));
                    }
                }
                match reader.next() {
                    Ok(Some(body)) => read.extend(body),
                    Ok(None) => {}
                    Err(error) => break error,
                }
            };
            if error == SegmentError::Ended {
                prop_assert!(read == entries.concat());
            } else {
                prop_assert!(matches!(error, SegmentError::Forged(_)) && entries.concat().starts_with(&read));
            }
        }
    }
}
