//! Rows of numbers that all have the same width.

use super::{DecodeError, Full, Reader, Writer};

/// How wide the numbers of a column are, as the power of two of their bytes: 0 to 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Width(pub(super) u8);

/// Numbers of one width, big-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column<'a> {
    One(&'a [[u8; 1]]),
    Two(&'a [[u8; 2]]),
    Four(&'a [[u8; 4]]),
    Eight(&'a [[u8; 8]]),
}

impl Width {
    /// The least one that holds a number.
    pub(super) fn of(number: u64) -> Self {
        match number {
            0..0x100 => Self(0),
            0x100..0x1_0000 => Self(1),
            0x1_0000..0x1_0000_0000 => Self(2),
            _ => Self(3),
        }
    }

    /// The largest number that it holds.
    pub(super) fn most(self) -> u64 {
        match self.0 {
            0 => 0xff,
            1 => 0xffff,
            2 => 0xffff_ffff,
            _ => u64::MAX,
        }
    }

    /// Bytes of a number.
    pub(super) fn bytes(self) -> usize {
        match self.0 {
            0 => 1,
            1 => 2,
            2 => 4,
            _ => 8,
        }
    }

    /// Writes `count` numbers, which must fit the width.
    pub(super) fn write(
        self,
        numbers: impl Iterator<Item = u64>,
        count: usize,
        writer: &mut Writer<'_>,
    ) -> Result<(), Full> {
        let room = writer.take(count.checked_mul(self.bytes()).ok_or(Full)?)?;
        match self.0 {
            0 => room.iter_mut().zip(numbers).for_each(|(place, number)| *place = number as u8),
            1 => fill(room, numbers.map(|number| (number as u16).to_be_bytes())),
            2 => fill(room, numbers.map(|number| (number as u32).to_be_bytes())),
            _ => fill(room, numbers.map(u64::to_be_bytes)),
        }
        Ok(())
    }
}

fn fill<const N: usize>(room: &mut [u8], numbers: impl Iterator<Item = [u8; N]>) {
    room.as_chunks_mut().0.iter_mut().zip(numbers).for_each(|(place, number)| *place = number);
}

impl<'a> Column<'a> {
    /// Reads `count` numbers.
    pub(super) fn read(width: Width, count: u64, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let what = "a column";
        let count = usize::try_from(count).ok().and_then(|count| count.checked_mul(width.bytes()));
        let bytes = reader.bytes(count.ok_or(DecodeError::Short(what))?, what)?;
        Ok(match width.0 {
            0 => Self::One(bytes.as_chunks().0),
            1 => Self::Two(bytes.as_chunks().0),
            2 => Self::Four(bytes.as_chunks().0),
            _ => Self::Eight(bytes.as_chunks().0),
        })
    }

    /// Copies those from the `first` on, as many as there is room for: how many.
    pub(super) fn copy(&self, first: usize, room: &mut [u64]) -> usize {
        match self {
            Self::One(numbers) => copy(numbers, first, room, |number| u64::from(u8::from_be_bytes(number))),
            Self::Two(numbers) => copy(numbers, first, room, |number| u64::from(u16::from_be_bytes(number))),
            Self::Four(numbers) => copy(numbers, first, room, |number| u64::from(u32::from_be_bytes(number))),
            Self::Eight(numbers) => copy(numbers, first, room, u64::from_be_bytes),
        }
    }

    /// The last number; zero if the column is empty.
    pub(super) fn last(&self) -> u64 {
        match self {
            Self::One(numbers) => numbers.last().map_or(0, |&number| u64::from(u8::from_be_bytes(number))),
            Self::Two(numbers) => numbers.last().map_or(0, |&number| u64::from(u16::from_be_bytes(number))),
            Self::Four(numbers) => numbers.last().map_or(0, |&number| u64::from(u32::from_be_bytes(number))),
            Self::Eight(numbers) => numbers.last().map_or(0, |&number| u64::from_be_bytes(number)),
        }
    }

    /// All of them together, if that is a number.
    pub(super) fn sum(&self) -> Option<u64> {
        match self {
            // In memory there are less than 2^32 of them.
            Self::One(numbers) => Some(numbers.iter().map(|&number| u64::from(u8::from_be_bytes(number))).sum()),
            Self::Two(numbers) => Some(numbers.iter().map(|&number| u64::from(u16::from_be_bytes(number))).sum()),
            Self::Four(numbers) => Some(numbers.iter().map(|&number| u64::from(u32::from_be_bytes(number))).sum()),
            Self::Eight(numbers) => {
                numbers.iter().try_fold(0_u64, |sum, &number| sum.checked_add(u64::from_be_bytes(number)))
            }
        }
    }

    /// Whether all from the `first` on are above zero.
    pub(super) fn is_positive(&self, first: usize) -> bool {
        match self {
            Self::One(numbers) => are_positive(numbers, first),
            Self::Two(numbers) => are_positive(numbers, first),
            Self::Four(numbers) => are_positive(numbers, first),
            Self::Eight(numbers) => are_positive(numbers, first),
        }
    }
}

fn copy<T: Copy>(numbers: &[T], first: usize, room: &mut [u64], convert: impl Fn(T) -> u64) -> usize {
    let numbers = numbers.get(first..).unwrap_or_default();
    room.iter_mut().zip(numbers).for_each(|(place, number)| *place = convert(*number));
    numbers.len().min(room.len())
}

fn are_positive<const N: usize>(numbers: &[[u8; N]], first: usize) -> bool {
    // Without an early end it runs on many numbers at once.
    numbers.get(first..).unwrap_or_default().iter().filter(|number| **number == [0; N]).count() == 0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn read__what_was_written(bits in 1_u32..64, anything in proptest::collection::vec(any::<u64>(), 0..20)) {
            let numbers: Vec<u64> = anything.iter().map(|number| number >> bits).collect();
            let width = numbers.iter().map(|&number| Width::of(number)).max().unwrap_or(Width(0));
            let mut room = [0; 160];
            let mut writer = Writer::new(&mut room);
            width.write(numbers.iter().copied(), numbers.len(), &mut writer).unwrap();
            let used = writer.used();
            prop_assert_eq!(used, numbers.len() * width.bytes());
            let column = Column::read(width, numbers.len() as u64, &mut Reader::new(&room[..used])).unwrap();
            let mut got = [0; 20];
            let count = column.copy(0, &mut got);
            prop_assert_eq!(column.copy(3, &mut [0; 4]), numbers.len().saturating_sub(3).min(4));
            prop_assert_eq!(column.sum(), numbers.iter().try_fold(0_u64, |sum, &number| sum.checked_add(number)));
            prop_assert_eq!(column.is_positive(1), numbers.iter().skip(1).all(|&number| number > 0));
            prop_assert_eq!(&got[..count], numbers);
        }
    }

    #[test]
    fn read__needs_all_of_it() {
        for (log, bytes) in [(0, 1), (1, 2), (2, 4), (3, 8)] {
            let room = vec![1; 3 * bytes - 1];
            assert!(Column::read(Width(log), 2, &mut Reader::new(&room)).is_ok());
            for count in [3, 1 << 61, u64::MAX] {
                let column = Column::read(Width(log), count, &mut Reader::new(&room));
                assert_eq!(column, Err(DecodeError::Short("a column")));
            }
        }
    }
}
