//! Optional features of an end of a session.

/// The features that an end declares in the handshake. An end without features reads the declaration as padding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// As a source it sends claims.
    pub claims: bool,
    /// As a sink it gives grants.
    pub grants: bool,
}

const CLAIMS: u8 = 1;
const GRANTS: u8 = 2;

impl Features {
    /// As they travel; bits that are not known here say nothing.
    pub(crate) fn from_byte(byte: u8) -> Self {
        Self { claims: byte & CLAIMS != 0, grants: byte & GRANTS != 0 }
    }

    /// As they travel.
    pub(crate) fn byte(self) -> u8 {
        (if self.claims { CLAIMS } else { 0 }) | if self.grants { GRANTS } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn from_byte__looks_at_the_bits_that_it_knows() {
        for byte in 0..=u8::MAX {
            assert_eq!(Features::from_byte(byte).byte(), byte & 3);
        }
    }
}
