//! Which data packets a sink lacks: all numbers from one to another, and the lost ones among them.
//!
//! The lost ones come as ranges or as a bitmap, whichever is shorter; what does not fit into a packet goes into the
//! next. Every number below the end that is not lost has arrived.

use std::ops::Range;

use super::column::{Column, Width};
use super::writer::MAX_VARINT;
use super::{DecodeError, Full, Reader, Writer};

/// A report, or a page of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossReport<'a> {
    base: u64,
    end: u64,
    /// Above all that arrived.
    newest: u64,
    lost: Lost<'a>,
}

/// The lost numbers, checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lost<'a> {
    /// Of each range how many numbers arrived since the one before, and how many it has.
    Ranges { gaps: Column<'a>, lengths: Column<'a> },
    /// A bit a number, the lowest first.
    Bitmap(&'a [u8]),
}

/// The form of a bitmap. That of ranges is [`RANGES`] with the [`Width`] of the gaps, and two bits above it that of the
/// lengths.
const BITMAP: u8 = 0;
const RANGES: u8 = 0x10;

impl<'a> LossReport<'a> {
    /// The first number that it speaks of.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// The first number that it does not speak of any more.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// The highest number that it reports as arrived.
    pub fn newest(&self) -> Option<u64> {
        self.newest.checked_sub(1).filter(|newest| *newest >= self.base)
    }

    /// The lost numbers as ranges, in order; none is empty, and none touches another.
    pub fn lost(&self) -> LostRanges<'a> {
        LostRanges {
            lost: self.lost,
            ahead: [[0; AHEAD]; 2],
            index: 0,
            read: 0,
            at: self.base,
            base: self.base,
            end: self.end,
        }
    }

    /// Reads a report. Takes time in proportion to its bytes at most.
    pub fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let base = reader.varint("the base of a loss report")?;
        let span = reader.varint("the length of a loss report")?;
        let end = base.checked_add(span).filter(|end| *end <= MAX_VARINT);
        let end = end.ok_or(DecodeError::Range("the end of a loss report"))?;
        let (lost, newest) = match reader.u8("the form of a loss report")? {
            BITMAP => {
                let bytes = usize::try_from(span.div_ceil(8)).map_err(|_| DecodeError::Range("a bitmap"))?;
                let bytes = reader.bytes(bytes, "the bitmap of a loss report")?;
                (Lost::Bitmap(bytes), last_zero(bytes, base..end))
            }
            form if form & 0xf0 == RANGES => {
                let count = reader.varint("the ranges of a loss report")?;
                let gaps = Column::read(Width(form & 3), count, reader)?;
                let lengths = Column::read(Width(form >> 2 & 3), count, reader)?;
                let sum = gaps.sum().and_then(|sum| sum.checked_add(lengths.sum()?)).filter(|sum| *sum <= span);
                let is_valid = sum.is_some() && lengths.is_positive(0) && gaps.is_positive(1);
                if !is_valid {
                    return Err(DecodeError::Range("a range of a loss report"));
                }
                // The last range may end where the report does.
                let tail = if sum == Some(span) { lengths.last() } else { 0 };
                (Lost::Ranges { gaps, lengths }, end.saturating_sub(tail))
            }
            _ => return Err(DecodeError::Range("the form of a loss report")),
        };
        Ok(Self { base, end, newest, lost })
    }

    /// Writes a report about `numbers` with these lost ranges, which are in order, not empty, within `numbers` and do
    /// not touch: the end of what fitted, from which the next page goes on. An error if nothing does.
    pub fn write(numbers: Range<u64>, lost: &[Range<u64>], writer: &mut Writer<'_>) -> Result<u64, Full> {
        let Range { start: base, end } = numbers;
        let bitmap_bytes = usize::try_from(end.saturating_sub(base).div_ceil(8)).unwrap_or(usize::MAX);
        let head_bytes = HEAD_BYTES;
        let room = writer.room().checked_sub(head_bytes).ok_or(Full)?;
        // As many ranges as fit, with numbers as wide as these need.
        let (mut at, mut widths, mut fitting) = (base, [Width(0); 2], 0_usize);
        let [mut most_gap, mut most_length] = widths.map(Width::most);
        let mut most = room / 2;
        for range in lost {
            let gap = range.start.saturating_sub(at);
            let length = range.end.saturating_sub(range.start);
            if gap > most_gap || length > most_length {
                let wider = [widths[0].max(Width::of(gap)), widths[1].max(Width::of(length))];
                let fewer = room.checked_div(pair_bytes(wider)).unwrap_or(0);
                if fitting >= fewer {
                    break;
                }
                ([most_gap, most_length], widths, most) = (wider.map(Width::most), wider, fewer);
            }
            if fitting >= most {
                break;
            }
            fitting = fitting.saturating_add(1);
            at = range.end;
        }
        let ranges_bytes = fitting.saturating_mul(pair_bytes(widths));
        if bitmap_bytes <= room && (fitting < lost.len() || bitmap_bytes < ranges_bytes) {
            writer.whole(|writer| write_bitmap(base, end, lost, bitmap_bytes, writer))?;
            return Ok(end);
        }
        let (now, later) = lost.split_at_checked(fitting).unwrap_or((lost, &[]));
        let end = later.first().map_or(end, |range| range.start);
        if end == base && !later.is_empty() {
            return Err(Full);
        }
        writer.whole(|writer| write_ranges(base, end, now, widths, writer))?;
        Ok(end)
    }
}

/// Bytes in front of the lost numbers at most.
const HEAD_BYTES: usize = 8 + 8 + 1 + 8;

fn pair_bytes([gaps, lengths]: [Width; 2]) -> usize {
    gaps.bytes().saturating_add(lengths.bytes())
}

fn write_ranges(
    base: u64,
    end: u64,
    lost: &[Range<u64>],
    [gaps, lengths]: [Width; 2],
    writer: &mut Writer<'_>,
) -> Result<(), Full> {
    writer.varint(base)?;
    writer.varint(end.saturating_sub(base))?;
    writer.u8(RANGES | gaps.0 | lengths.0 << 2)?;
    writer.varint(lost.len() as u64)?;
    let mut at = base;
    let gap = |range: &Range<u64>| range.start.saturating_sub(std::mem::replace(&mut at, range.end));
    gaps.write(lost.iter().map(gap), lost.len(), writer)?;
    lengths.write(lost.iter().map(|range| range.end.saturating_sub(range.start)), lost.len(), writer)
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
    /// Gaps and lengths that come next, from `index` on.
    ahead: [[u64; AHEAD]; 2],
    index: usize,
    /// How many have been read ahead, with those before.
    read: usize,
    at: u64,
    base: u64,
    end: u64,
}

/// Ranges that are read at a time: many at once are faster.
const AHEAD: usize = 32;

impl Iterator for LostRanges<'_> {
    type Item = Range<u64>;

    #[inline]
    fn next(&mut self) -> Option<Range<u64>> {
        if let Lost::Bitmap(bytes) = self.lost {
            return self.next_in_bitmap(bytes);
        }
        if self.index >= self.read {
            self.read_ahead();
        }
        if self.index >= self.read {
            return None;
        }
        let [gaps, lengths] = &self.ahead;
        let place = self.index % AHEAD;
        let start = self.at.saturating_add(*gaps.get(place)?);
        self.at = start.saturating_add(*lengths.get(place)?);
        self.index = self.index.saturating_add(1);
        Some(start..self.at)
    }
}

impl LostRanges<'_> {
    fn read_ahead(&mut self) {
        let Lost::Ranges { gaps, lengths } = &self.lost else { return };
        let [gaps_ahead, lengths_ahead] = &mut self.ahead;
        let count = gaps.copy(self.index, gaps_ahead).min(lengths.copy(self.index, lengths_ahead));
        self.read = self.index.saturating_add(count);
    }

    #[inline(never)]
    fn next_in_bitmap(&mut self, bytes: &[u8]) -> Option<Range<u64>> {
        let start = next_bit(bytes, self.base, self.at..self.end, true)?;
        self.at = next_bit(bytes, self.base, start..self.end, false).unwrap_or(self.end);
        Some(start..self.at)
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

/// One above the highest of these numbers whose bit is not set; bits count from their beginning on.
fn last_zero(bytes: &[u8], numbers: Range<u64>) -> u64 {
    let Range { start, mut end } = numbers;
    while end > start {
        let last = end.saturating_sub(1).saturating_sub(start);
        let byte = usize::try_from(last / 8).ok().and_then(|index| bytes.get(index)).copied().unwrap_or(0);
        // Bits above the last number do not count.
        let set = (byte << 7_u64.saturating_sub(last % 8)).leading_ones();
        let of_byte = (last % 8).saturating_add(1);
        if u64::from(set) < of_byte {
            return end.saturating_sub(u64::from(set));
        }
        end = end.saturating_sub(of_byte);
    }
    start
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
        /// All pages together report what was to be reported, in the shorter of both forms or nearly.
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
                let lost: Vec<_> = report.lost().collect();
                let arrived = |number: &u64| lost.iter().all(|range| !range.contains(number));
                // In longer reports the numbers are not checked one by one.
                if report.end() - report.base() < 10_000 {
                    prop_assert_eq!(report.newest(), (report.base()..report.end()).rev().find(arrived));
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
            let columns = [0, 1].map(|first| pairs.iter().skip(first).step_by(2).copied().collect::<Vec<u8>>());
            let bytes = [&[10, 20, RANGES, pairs.len() as u8 / 2], &columns[0][..], &columns[1][..]].concat();
            LossReport::read(&mut Reader::new(&bytes)).map(|report| report.lost().collect::<Vec<_>>())
        };
        assert_eq!(report(&[0, 1, 1, 18]), Ok(vec![10..11, 12..30]));
        for wrong in [&[0, 0][..], &[0, 1, 0, 1], &[0, 21], &[19, 1, 1, 1]] {
            assert_eq!(report(wrong), Err(DecodeError::Range("a range of a loss report")), "{wrong:?}");
        }
    }
}
