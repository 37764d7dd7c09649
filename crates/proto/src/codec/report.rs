//! Which data packets a sink lacks: all numbers from one to another, and the lost ones among them.
//!
//! The lost ones come as ranges or as a bitmap, whichever is shorter; what does not fit into a packet goes into the next.
//! Every number below the end that is not lost has arrived.

use std::ops::Range;

use super::writer::{MOST_VARINT, varint_bytes};
use super::{DecodeError, Full, Reader, Writer};

/// A report, or a page of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossReport<'a> {
    base: u64,
    end: u64,
    lost: Lost<'a>,
}

/// The lost numbers, checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lost<'a> {
    /// So many pairs of varints: numbers that arrived since the range before, and numbers that did not.
    Ranges { count: u64, pairs: &'a [u8] },
    /// A bit a number, the lowest first.
    Bitmap(&'a [u8]),
}

const RANGES: u8 = 0;
const BITMAP: u8 = 1;

impl<'a> LossReport<'a> {
    /// The first number that it speaks of.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// The first number that it does not speak of any more.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// The lost numbers as ranges, in order; none is empty, and none touches another.
    pub fn lost(&self) -> LostRanges<'a> {
        LostRanges { lost: self.lost, at: self.base, base: self.base, end: self.end }
    }

    /// Reads a report. Takes time in proportion to its bytes.
    pub fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let base = reader.varint("the base of a loss report")?;
        let span = reader.varint("the length of a loss report")?;
        let end = base.checked_add(span).filter(|end| *end <= MOST_VARINT);
        let end = end.ok_or(DecodeError::Range("the end of a loss report"))?;
        let lost = match reader.u8("the form of a loss report")? {
            RANGES => {
                let count = reader.varint("the ranges of a loss report")?;
                let begin = reader.rest();
                let mut at = base;
                for index in 0..count {
                    let gap = reader.varint("a range of a loss report")?;
                    let length = reader.varint("a range of a loss report")?;
                    let is_apart = index == 0 || gap > 0;
                    let next = at.checked_add(gap).and_then(|at| at.checked_add(length));
                    let next = next.filter(|next| *next <= end && length > 0 && is_apart);
                    at = next.ok_or(DecodeError::Range("a range of a loss report"))?;
                }
                let used = begin.len().saturating_sub(reader.rest().len());
                Lost::Ranges { count, pairs: begin.get(..used).unwrap_or_default() }
            }
            BITMAP => {
                let bytes = usize::try_from(span.div_ceil(8)).map_err(|_| DecodeError::Range("a bitmap"))?;
                Lost::Bitmap(reader.bytes(bytes, "the bitmap of a loss report")?)
            }
            _ => return Err(DecodeError::Range("the form of a loss report")),
        };
        Ok(Self { base, end, lost })
    }

    /// Writes a report about `numbers` with these lost ranges, which are in order, not empty, within `numbers` and do not
    /// touch: the end of what fitted, from which the next page goes on. An error if nothing does.
    pub fn write(numbers: Range<u64>, lost: &[Range<u64>], writer: &mut Writer<'_>) -> Result<u64, Full> {
        let Range { start: base, end } = numbers;
        let bitmap_bytes = usize::try_from(end.saturating_sub(base).div_ceil(8)).unwrap_or(usize::MAX);
        let head_bytes = HEAD_BYTES;
        let room = writer.room().checked_sub(head_bytes).ok_or(Full)?;
        // As many ranges as fit, and what they take.
        let (mut at, mut ranges_bytes, mut fitting) = (base, 0_usize, 0_usize);
        for range in lost {
            let gap = range.start.saturating_sub(at);
            let length = range.end.saturating_sub(range.start);
            let more = ranges_bytes.saturating_add(varint_bytes(gap)).saturating_add(varint_bytes(length));
            if more > room {
                break;
            }
            (at, ranges_bytes) = (range.end, more);
            fitting = fitting.saturating_add(1);
        }
        if bitmap_bytes <= room && (fitting < lost.len() || bitmap_bytes < ranges_bytes) {
            writer.whole(|writer| write_bitmap(base, end, lost, bitmap_bytes, writer))?;
            return Ok(end);
        }
        let (now, later) = lost.split_at_checked(fitting).unwrap_or((lost, &[]));
        let end = later.first().map_or(end, |range| range.start);
        if end == base && !later.is_empty() {
            return Err(Full);
        }
        writer.whole(|writer| write_ranges(base, end, now, writer))?;
        Ok(end)
    }
}

/// Bytes in front of the lost numbers at the most.
const HEAD_BYTES: usize = 8 + 8 + 1 + 8;

fn write_ranges(base: u64, end: u64, lost: &[Range<u64>], writer: &mut Writer<'_>) -> Result<(), Full> {
    writer.varint(base)?;
    writer.varint(end.saturating_sub(base))?;
    writer.u8(RANGES)?;
    writer.varint(lost.len() as u64)?;
    let mut at = base;
    for range in lost {
        writer.varint(range.start.saturating_sub(at))?;
        writer.varint(range.end.saturating_sub(range.start))?;
        at = range.end;
    }
    Ok(())
}

fn write_bitmap(base: u64, end: u64, lost: &[Range<u64>], bytes: usize, writer: &mut Writer<'_>) -> Result<(), Full> {
    writer.varint(base)?;
    writer.varint(end.saturating_sub(base))?;
    writer.u8(BITMAP)?;
    let mut ranges = lost.iter().map(|range| range.start.saturating_sub(base)..range.end.saturating_sub(base));
    let mut range = ranges.next().unwrap_or(u64::MAX..u64::MAX);
    for index in 0..bytes as u64 {
        let from = index.saturating_mul(8);
        let mut byte = 0_u8;
        for bit in 0..8 {
            let number = from.saturating_add(bit);
            while range.end <= number {
                range = ranges.next().unwrap_or(u64::MAX..u64::MAX);
            }
            if range.contains(&number) {
                byte |= 1 << bit;
            }
        }
        writer.u8(byte)?;
    }
    Ok(())
}

/// The lost numbers of a [`LossReport`].
#[derive(Clone, Debug)]
pub struct LostRanges<'a> {
    lost: Lost<'a>,
    at: u64,
    base: u64,
    end: u64,
}

impl Iterator for LostRanges<'_> {
    type Item = Range<u64>;

    fn next(&mut self) -> Option<Range<u64>> {
        match &mut self.lost {
            Lost::Ranges { count, pairs } => {
                *count = count.checked_sub(1)?;
                let mut reader = Reader::new(pairs);
                let gap = reader.varint("a range").ok()?;
                let length = reader.varint("a range").ok()?;
                *pairs = reader.rest();
                let start = self.at.checked_add(gap)?;
                self.at = start.checked_add(length)?;
                Some(start..self.at)
            }
            Lost::Bitmap(bytes) => {
                let (bytes, base, end) = (*bytes, self.base, self.end);
                let start = next_bit(bytes, base, self.at..end, true)?;
                self.at = next_bit(bytes, base, start..end, false).unwrap_or(end);
                Some(start..self.at)
            }
        }
    }
}

/// The first number in `numbers` whose bit is `wanted`; bits count from `base` on.
fn next_bit(bytes: &[u8], base: u64, numbers: Range<u64>, wanted: bool) -> Option<u64> {
    let mut number = numbers.start;
    while number < numbers.end {
        let index = number.saturating_sub(base);
        let byte = *bytes.get(usize::try_from(index / 8).ok()?)?;
        let matching = if wanted { byte } else { !byte };
        // Bits below the number do not count; whole bytes without a match are skipped.
        let left = u32::from(matching) >> (index % 8);
        if left != 0 {
            let found = number.saturating_add(u64::from(left.trailing_zeros()));
            return (found < numbers.end).then_some(found);
        }
        number = number.saturating_add(8_u64.saturating_sub(index % 8));
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Ranges apart, from lengths of what arrived and what did not.
    fn ranges(base: u64, steps: &[(u64, u64)]) -> Vec<Range<u64>> {
        let mut at = base;
        let range = |&(gap, length): &(u64, u64)| {
            let start = at + gap;
            at = start + length;
            start..at
        };
        steps.iter().map(range).collect()
    }

    fn read(bytes: &[u8]) -> (Range<u64>, Vec<Range<u64>>) {
        let mut reader = Reader::new(bytes);
        let report = LossReport::read(&mut reader).unwrap();
        assert!(reader.is_empty());
        (report.base()..report.end(), report.lost().collect())
    }

    proptest! {
        /// Page after page says the same as was to be said, in the shorter of both forms or nearly.
        #[test]
        fn write__pages_that_read_back(
            base in 0_u64..1 << 40,
            steps in proptest::collection::vec((1_u64..300, 1_u64..40), 0..200),
            tail in 0_u64..100,
            room in 60_usize..400,
        ) {
            let lost = ranges(base, &steps);
            let end = lost.last().map_or(base, |range| range.end) + tail;
            let (mut at, mut got) = (base, Vec::new());
            let mut left: &[Range<u64>] = &lost;
            loop {
                let mut bytes = vec![0; room];
                let mut writer = Writer::new(&mut bytes);
                let next = LossReport::write(at..end, left, &mut writer).unwrap();
                let used = writer.used();
                let (numbers, page) = read(&bytes[..used]);
                prop_assert_eq!(numbers, at..next);
                left = &left[page.len()..];
                got.extend(page);
                if next == end {
                    break;
                }
                prop_assert!(next > at);
                at = next;
            }
            prop_assert_eq!(got, lost);
        }

        /// Whatever comes in: an error, or ranges that are in order, apart, not empty and within.
        #[test]
        fn read__of_anything(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            if let Ok(report) = LossReport::read(&mut Reader::new(&bytes)) {
                let mut at = report.base();
                for (index, range) in report.lost().enumerate() {
                    prop_assert!(range.start < range.end && range.end <= report.end());
                    prop_assert!(range.start > at || (index == 0 && range.start == at));
                    at = range.end;
                }
            }
        }
    }

    #[test]
    fn write__takes_the_shorter_form() {
        let mut room = [0; 400];
        // Every other one of 800 numbers: 100 bytes of bits; as ranges two bytes each, 800 bytes.
        let lost: Vec<_> = (0..400).map(|at| 2 * at + 1..2 * at + 2).collect();
        let mut writer = Writer::new(&mut room);
        assert_eq!(LossReport::write(0..800, &lost, &mut writer), Ok(800));
        assert_eq!(writer.used(), 1 + 2 + 1 + 100);
        assert_eq!(read(&room[..104]).1, lost);
        // One of 800: a range.
        let mut writer = Writer::new(&mut room);
        assert_eq!(LossReport::write(0..800, &lost[..1], &mut writer), Ok(800));
        assert_eq!(writer.used(), 1 + 2 + 1 + 1 + 2);
    }

    #[test]
    fn read__refuses_ranges_that_touch_or_reach_beyond() {
        let report = |pairs: &[u8]| {
            let bytes: Vec<u8> = [&[10, 20, RANGES, pairs.len() as u8 / 2], pairs].concat();
            LossReport::read(&mut Reader::new(&bytes)).map(|report| report.lost().collect::<Vec<_>>())
        };
        assert_eq!(report(&[0, 1, 1, 18]), Ok(vec![10..11, 12..30]));
        for wrong in [&[0, 0][..], &[0, 1, 0, 1], &[0, 21], &[19, 1, 1, 1]] {
            assert_eq!(report(wrong), Err(DecodeError::Range("a range of a loss report")), "{wrong:?}");
        }
    }
}
