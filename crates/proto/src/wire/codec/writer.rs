//! Writing bytes into room that is given.

use thiserror::Error;

/// There is no room for what was to be written; nothing of it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the packet is full")]
pub struct Full;

/// A place in room for bytes.
#[derive(Debug)]
pub struct Writer<'a> {
    room: &'a mut [u8],
    used: usize,
}

impl<'a> Writer<'a> {
    /// From the first byte on.
    pub fn new(room: &'a mut [u8]) -> Self {
        Self { room, used: 0 }
    }

    /// Bytes written.
    pub fn used(&self) -> usize {
        self.used
    }

    /// Bytes that there is room for.
    pub fn room(&self) -> usize {
        self.room.len().saturating_sub(self.used)
    }

    /// Writes bytes.
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<(), Full> {
        self.take(bytes.len())?.copy_from_slice(bytes);
        Ok(())
    }

    /// The next `count` bytes of the room, to be filled.
    pub(crate) fn take(&mut self, count: usize) -> Result<&mut [u8], Full> {
        let end = self.used.checked_add(count).ok_or(Full)?;
        let room = self.room.get_mut(self.used..end).ok_or(Full)?;
        self.used = end;
        Ok(room)
    }

    /// One byte.
    pub fn u8(&mut self, value: u8) -> Result<(), Full> {
        self.bytes(&[value])
    }

    /// Four bytes, big-endian.
    pub fn u32(&mut self, value: u32) -> Result<(), Full> {
        self.bytes(&value.to_be_bytes())
    }

    /// Eight bytes, big-endian.
    pub fn u64(&mut self, value: u64) -> Result<(), Full> {
        self.bytes(&value.to_be_bytes())
    }

    /// A number below 2^62 in as few bytes as it takes (RFC 9000 s16); a larger one counts as 2^62 - 1.
    pub fn varint(&mut self, value: u64) -> Result<(), Full> {
        let value = value.min(MAX_VARINT);
        match varint_bytes(value) {
            1 => self.u8(value as u8),
            2 => self.bytes(&(value as u16 | 0x4000).to_be_bytes()),
            4 => self.u32(value as u32 | 0x8000_0000),
            _ => self.u64(value | 0xc000_0000_0000_0000),
        }
    }

    /// Writes all that `write` does, or nothing if it does not fit.
    pub fn whole(&mut self, write: impl FnOnce(&mut Self) -> Result<(), Full>) -> Result<(), Full> {
        let before = self.used;
        let outcome = write(self);
        if outcome.is_err() {
            self.used = before;
        }
        outcome
    }
}

/// The largest number that a varint holds.
pub(crate) const MAX_VARINT: u64 = (1 << 62) - 1;

/// Bytes of a varint.
pub(crate) const fn varint_bytes(value: u64) -> usize {
    match value {
        0..0x40 => 1,
        0x40..0x4000 => 2,
        0x4000..0x4000_0000 => 4,
        _ => 8,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Reader;
    use super::*;

    proptest! {
        #[test]
        fn varint__is_read_as_it_was_written(bits in 0_u32..62, any in any::<u64>()) {
            let value = any & ((1 << bits) | ((1 << bits) - 1));
            let mut room = [0; 8];
            let mut writer = Writer::new(&mut room);
            writer.varint(value).unwrap();
            let used = writer.used();
            prop_assert_eq!(used, varint_bytes(value));
            prop_assert_eq!(Reader::new(&room[..used]).varint("test"), Ok(value));
        }
    }

    #[test]
    fn whole__writes_all_or_nothing() {
        let mut room = [0; 5];
        let mut writer = Writer::new(&mut room);
        assert_eq!(writer.whole(|writer| writer.u32(1).and_then(|()| writer.u32(2))), Err(Full));
        assert_eq!((writer.used(), writer.room()), (0, 5));
        assert_eq!(writer.whole(|writer| writer.u32(1).and_then(|()| writer.u8(2))), Ok(()));
        assert_eq!((writer.used(), writer.u8(0)), (5, Err(Full)));
    }
}
