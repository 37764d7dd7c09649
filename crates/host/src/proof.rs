//! What shows that one session follows another.

/// Shows the other end of a session that whoever opens the next one had this one, too: only the two ends know it.
pub type Proof = [u8; 16];
