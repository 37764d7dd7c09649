//! One secret out of another.

use aws_lc_rs::hkdf::{HKDF_SHA256, Prk};
use zeroize::Zeroizing;

/// HKDF-Expand (RFC 5869) with SHA-256, of a secret that is uniform already.
pub(super) fn expand(secret: &[u8], label: &[u8]) -> Zeroizing<[u8; 32]> {
    let mut out = Zeroizing::new([0; 32]);
    Prk::new_less_safe(HKDF_SHA256, secret)
        .expand(&[label], HKDF_SHA256)
        .and_then(|okm| okm.fill(out.as_mut_slice()))
        .expect("32 bytes are one block of SHA-256");
    out
}
