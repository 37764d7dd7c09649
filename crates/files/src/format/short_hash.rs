//! Hashes of 16 bytes, where 32 are not needed.

/// The first 16 bytes of a hash: a collision by chance takes some 2^64 hashes.
pub(crate) fn short(hasher: &blake3::Hasher) -> [u8; 16] {
    let mut out = [0; 16];
    hasher.finalize_xof().fill(&mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short__begins_as_the_whole_hash_does() {
        for bytes in [0, 1, 48, 5000] {
            let text = vec![7; bytes];
            let mut hasher = blake3::Hasher::new_keyed(&[3; 32]);
            hasher.update(&text);
            assert_eq!(short(&hasher)[..], blake3::keyed_hash(&[3; 32], &text).as_bytes()[..16]);
        }
    }
}
