//! Reading bytes that anybody may have sent.

use super::DecodeError;

/// A place in bytes, which ends with them.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// From the first byte on.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The unread bytes.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether all has been read.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next `count` bytes, of `what`.
    pub fn bytes(&mut self, count: usize, what: &'static str) -> Result<&'a [u8], DecodeError> {
        let (head, rest) = self.rest.split_at_checked(count).ok_or(DecodeError::Short(what))?;
        self.rest = rest;
        Ok(head)
    }

    fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], DecodeError> {
        let (head, rest) = self.rest.split_first_chunk().ok_or(DecodeError::Short(what))?;
        self.rest = rest;
        Ok(*head)
    }

    /// One byte.
    pub fn u8(&mut self, what: &'static str) -> Result<u8, DecodeError> {
        self.array::<1>(what).map(u8::from_be_bytes)
    }

    /// Four bytes, big-endian.
    pub fn u32(&mut self, what: &'static str) -> Result<u32, DecodeError> {
        self.array(what).map(u32::from_be_bytes)
    }

    /// Eight bytes, big-endian.
    pub fn u64(&mut self, what: &'static str) -> Result<u64, DecodeError> {
        self.array(what).map(u64::from_be_bytes)
    }

    /// One, two, four or eight bytes (RFC 9000 s16): a number below 2^62.
    pub fn varint(&mut self, what: &'static str) -> Result<u64, DecodeError> {
        let first = *self.rest.first().ok_or(DecodeError::Short(what))?;
        Ok(match first >> 6 {
            0 => u64::from(self.u8(what)?),
            1 => u64::from(u16::from_be_bytes(self.array(what)?) & 0x3fff),
            2 => u64::from(self.u32(what)? & 0x3fff_ffff),
            _ => self.u64(what)? & 0x3fff_ffff_ffff_ffff,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varint__as_in_rfc_9000_appendix_a() {
        for (bytes, value) in [
            (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c][..], 151_288_809_941_952_652),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
            (&[0x40, 0x25], 37),
        ] {
            assert_eq!(Reader::new(bytes).varint("test"), Ok(value));
            let short = &bytes[..bytes.len() - 1];
            assert_eq!(Reader::new(short).varint("test"), Err(DecodeError::Short("test")));
        }
    }

    #[test]
    fn bytes__end_where_they_end() {
        let mut reader = Reader::new(&[1, 2, 3]);
        assert_eq!(reader.bytes(4, "test"), Err(DecodeError::Short("test")));
        assert_eq!(reader.bytes(2, "test"), Ok(&[1, 2][..]));
        assert_eq!((reader.u8("test"), reader.is_empty()), (Ok(3), true));
        assert_eq!(reader.u8("test"), Err(DecodeError::Short("test")));
    }
}
