//! A secret of 32 bytes, which leaves no trace.

use std::fmt;

use zeroize::{Zeroize, ZeroizeOnDrop};

/// 32 secret bytes: overwritten when dropped, and never printed.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct Secret([u8; 32]);

impl Secret {
    /// These bytes, as a secret.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// A new one, from the system's randomness.
    pub fn random() -> Result<Self, getrandom::Error> {
        let mut secret = Self([0; 32]);
        getrandom::fill(&mut secret.0)?;
        Ok(secret)
    }

    /// The bytes. Do not copy them to where they stay.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug__shows_no_byte() {
        assert_eq!(format!("{:?}", Secret::new([7; 32])), "Secret(..)");
    }

    #[test]
    fn random__differs_each_time() {
        assert_ne!(Secret::random().unwrap(), Secret::random().unwrap());
    }
}
