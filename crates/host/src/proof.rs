//! A proof that one session follows another.

/// Proves to the other end of a session that the peer that opens the next one also had this one: only the two ends know
/// it.
pub type Proof = [u8; 16];
