//! The key under which this host trusts what it kept.

use std::sync::OnceLock;

use fairwave_host::{Identity, StateDir};

use crate::format::short_hash::short;
use crate::take::resume::key::TemporaryKey;

/// The key of a destination's journals: a file that another host, user or program put in a journal's place has no MAC
/// under it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct KeptKey([u8; 32]);

impl KeptKey {
    #[cfg(test)]
    pub(crate) const fn new(key: [u8; 32]) -> Self {
        Self(key)
    }

    /// This user's on this host, from its identity. Without a state directory it is a random key of this process, and
    /// nothing that another process kept is trusted.
    pub(crate) fn of_host() -> Self {
        static KEY: OnceLock<KeptKey> = OnceLock::new();
        let of_identity = || {
            let identity = StateDir::open().and_then(|state| Identity::open(&state)).ok()?;
            Some(Self(blake3::derive_key("fairwave 2026 journal", identity.private().as_bytes())))
        };
        let random = || {
            let mut key = [0; 32];
            getrandom::fill(&mut key).ok().map(|()| Self(key))
        };
        KEY.get_or_init(|| of_identity().or_else(random).expect("the system has random bytes")).clone()
    }

    /// The key of one transfer: what is kept of another is not taken for its own.
    pub(crate) fn of_transfer(&self, transfer: &TemporaryKey) -> Self {
        Self(blake3::keyed_hash(&self.0, transfer).into())
    }

    pub(crate) fn mac(&self, bytes: &[u8]) -> [u8; 16] {
        short(blake3::Hasher::new_keyed(&self.0).update(bytes))
    }

    pub(crate) fn is_mac(&self, bytes: &[u8], mac: &[u8; 16]) -> bool {
        aws_lc_rs::constant_time::verify_slices_are_equal(&self.mac(bytes), mac).is_ok()
    }
}

impl std::fmt::Debug for KeptKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeptKey")
    }
}
