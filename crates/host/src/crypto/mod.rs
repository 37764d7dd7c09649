//! The real cryptography: Noise for the handshake, AES-128-GCM or ChaCha20-Poly1305 for packets.

#[cfg(test)]
mod epochs;
mod expand;
mod keys;
mod noise;
mod seal;
mod suite;

pub(crate) use keys::{OpenKeys, Pair, SessionKeys};
pub(crate) use noise::{Noise, NoiseInitiator, NoiseResponder};
pub(crate) use seal::Sealer;
#[cfg(test)]
pub(crate) use suite::Suite;
