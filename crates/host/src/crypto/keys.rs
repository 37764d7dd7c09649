//! The keys of a session.

use aws_lc_rs::hkdf::{HKDF_SHA256, Prk};
use fairwave_proto::codec::Kind;
use zeroize::Zeroizing;

use super::Suite;
use super::seal::{Opener, Sealer};

/// What both ends of a session derive from their handshake: four chains of keys, one for each direction and kind of packet,
/// and a secret to export.
#[derive(Clone)]
pub(crate) struct SessionKeys {
    suite: Suite,
    is_initiator: bool,
    is_plain: bool,
    from_initiator: Zeroizing<[u8; 32]>,
    from_responder: Zeroizing<[u8; 32]>,
}

impl SessionKeys {
    pub(super) fn new(
        suite: Suite,
        is_initiator: bool,
        is_plain: bool,
        (from_initiator, from_responder): ([u8; 32], [u8; 32]),
    ) -> Self {
        let (from_initiator, from_responder) = (Zeroizing::new(from_initiator), Zeroizing::new(from_responder));
        Self { suite, is_initiator, is_plain, from_initiator, from_responder }
    }

    /// Seals what this end sends.
    pub(crate) fn sealer(&self, kind: Kind) -> Sealer {
        if self.is_clear(kind) { Sealer::plain() } else { Sealer::new(self.suite, self.chain(self.is_initiator, kind)) }
    }

    /// Opens what the other end sends.
    pub(crate) fn opener(&self, kind: Kind) -> Opener {
        if self.is_clear(kind) {
            Opener::plain()
        } else {
            Opener::new(self.suite, self.chain(!self.is_initiator, kind))
        }
    }

    /// A secret of this session for the application.
    pub(crate) fn export(&self) -> [u8; 32] {
        let both = [*self.from_initiator, *self.from_responder].concat();
        *expand(&Zeroizing::new(both), b"fairwave export")
    }

    fn is_clear(&self, kind: Kind) -> bool {
        self.is_plain && kind == Kind::Data
    }

    fn chain(&self, from_initiator: bool, kind: Kind) -> Zeroizing<[u8; 32]> {
        let secret = if from_initiator { &self.from_initiator } else { &self.from_responder };
        let label: &[u8] = match kind {
            Kind::Data => b"fairwave data",
            Kind::Control => b"fairwave control",
        };
        expand(secret.as_slice(), label)
    }
}

/// HKDF-Expand (RFC 5869) with SHA-256, of a secret that is uniform already.
pub(super) fn expand(secret: &[u8], label: &[u8]) -> Zeroizing<[u8; 32]> {
    let mut out = Zeroizing::new([0; 32]);
    Prk::new_less_safe(HKDF_SHA256, secret)
        .expand(&[label], HKDF_SHA256)
        .and_then(|okm| okm.fill(out.as_mut_slice()))
        .expect("32 bytes are one block of SHA-256");
    out
}
