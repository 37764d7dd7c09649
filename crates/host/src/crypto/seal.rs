//! Packets under seal: keys that change by themselves.

use aws_lc_rs::aead::{AES_128_GCM, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::constant_time::verify_slices_are_equal;
use fairwave_proto::codec::{HEADER_BYTES, PIECE_BYTES, Seal, TAG_BYTES, Unseal};
use siphasher::sip::SipHasher24;
use zeroize::Zeroizing;

use super::expand::expand;
use super::suite::Suite;

/// Numbers of one epoch: each has its own key, without negotiation. Tests use smaller epochs, to see many.
pub(super) const EPOCH_BITS: u32 = if cfg!(test) { 10 } else { 22 };

/// Closes the packets of one direction and kind.
pub(crate) struct Sealer(Closes);

enum Closes {
    Sealed(Chain),
    Plain(PlainMac),
}

/// Opens the packets of a session.
///
/// The epochs before and after the present one also open; the present one becomes the next when a packet of it has
/// opened.
pub(crate) struct Opener(Opens);

enum Opens {
    Sealed(Epochs),
    Plain(PlainMac),
}

/// The key of an epoch, and what the next one comes from.
struct Chain {
    suite: Suite,
    secret: Zeroizing<[u8; 32]>,
    epoch: u64,
    key: LessSafeKey,
}

struct Epochs {
    previous: Option<LessSafeKey>,
    current: Chain,
    next: Chain,
}

/// Authenticates packets whose data are not secret.
struct PlainMac {
    key: Zeroizing<[u8; 16]>,
}

impl Chain {
    fn new(suite: Suite, secret: Zeroizing<[u8; 32]>, epoch: u64) -> Self {
        let algorithm: &Algorithm = match suite {
            Suite::Aes => &AES_128_GCM,
            Suite::ChaCha => &CHACHA20_POLY1305,
        };
        let key = expand(secret.as_slice(), b"fairwave key");
        let key = UnboundKey::new(algorithm, &key[..algorithm.key_len()]).expect("the key has the cipher's length");
        Self { suite, secret, epoch, key: LessSafeKey::new(key) }
    }

    fn next(&self) -> Self {
        Self::new(self.suite, expand(self.secret.as_slice(), b"fairwave next"), self.epoch + 1)
    }
}

impl Sealer {
    pub(super) fn new(suite: Suite, secret: Zeroizing<[u8; 32]>) -> Self {
        Self(Closes::Sealed(Chain::new(suite, secret, 0)))
    }

    /// No secrecy: a MAC in place of the tag, of all but the data, and of their checksum.
    pub(super) fn plain(secret: &Zeroizing<[u8; 32]>) -> Self {
        Self(Closes::Plain(PlainMac::new(secret)))
    }
}

impl Seal for Sealer {
    fn close(&mut self, number: u64, header: &[u8], body: &mut [u8], head: usize, rest: &[u8]) {
        let chain = match &mut self.0 {
            Closes::Sealed(chain) => chain,
            Closes::Plain(mac) => {
                let (body, tag) = body.split_at_mut(body.len() - TAG_BYTES);
                body[head..].copy_from_slice(rest);
                tag.copy_from_slice(&mac.tag(header, body));
                return;
            }
        };
        while number >> EPOCH_BITS > chain.epoch {
            *chain = chain.next();
        }
        let (head, out) = body.split_at_mut(head);
        chain
            .key
            .seal_in_place_scatter(nonce(number), Aad::from(header), head, rest, out)
            .expect("a datagram is shorter than what the cipher takes");
    }
}

impl Opener {
    pub(super) fn new(suite: Suite, secret: Zeroizing<[u8; 32]>) -> Self {
        let current = Chain::new(suite, secret, 0);
        let next = current.next();
        Self(Opens::Sealed(Epochs { previous: None, current, next }))
    }

    pub(super) fn plain(secret: &Zeroizing<[u8; 32]>) -> Self {
        Self(Opens::Plain(PlainMac::new(secret)))
    }

    /// Opens a body in place as [`Unseal::open`] does, and the epoch stays.
    pub(super) fn look<'a>(&self, number: u64, header: &[u8], body: &'a mut [u8]) -> Option<&'a mut [u8]> {
        let epochs = match &self.0 {
            Opens::Sealed(epochs) => epochs,
            Opens::Plain(mac) => {
                let (body, tag) = body.split_last_chunk_mut::<TAG_BYTES>()?;
                let is_proven = verify_slices_are_equal(&mac.tag(header, body), tag).is_ok();
                return is_proven.then_some(body);
            }
        };
        let epoch = number >> EPOCH_BITS;
        let current = epochs.current.epoch;
        let key = match epoch {
            _ if epoch == current => &epochs.current.key,
            _ if epoch == current + 1 => &epochs.next.key,
            _ if epoch + 1 == current => epochs.previous.as_ref()?,
            _ => return None,
        };
        key.open_in_place(nonce(number), Aad::from(header), body).ok()
    }
}

impl Unseal for Opener {
    fn open<'a>(&mut self, number: u64, header: &[u8], body: &'a mut [u8]) -> Option<&'a mut [u8]> {
        let opened = self.look(number, header, body)?;
        if let Opens::Sealed(epochs) = &mut self.0
            && number >> EPOCH_BITS > epochs.current.epoch
        {
            let after = epochs.next.next();
            let before = std::mem::replace(&mut epochs.current, std::mem::replace(&mut epochs.next, after));
            epochs.previous = Some(before.key);
        }
        Some(opened)
    }
}

impl PlainMac {
    fn new(secret: &Zeroizing<[u8; 32]>) -> Self {
        let mut key = Zeroizing::new([0; 16]);
        key.copy_from_slice(&expand(secret.as_slice(), b"fairwave plain")[..16]);
        Self { key }
    }

    /// SipHash-2-4 (Aumasson & Bernstein 2012) of the session, the packet number, the position of the data, and the
    /// data's CRC32C and length. Forging a packet needs the key. An attacker who has a packet can change its data and
    /// keep the CRC, since that is linear: data are authenticated elsewhere.
    fn tag(&self, header: &[u8], body: &[u8]) -> [u8; TAG_BYTES] {
        let (piece, data) = body.split_at(body.len().min(PIECE_BYTES));
        let sum = crc_fast::crc32_iscsi(data);
        let mut proven = [0; MAX_PROVEN];
        let mut used = 0;
        for part in [header, piece, &sum.to_be_bytes(), &(data.len() as u64).to_be_bytes()] {
            proven[used..used + part.len()].copy_from_slice(part);
            used += part.len();
        }
        let mut tag = [0; TAG_BYTES];
        let hash = SipHasher24::new_with_key(&self.key).hash(&proven[..used]);
        tag[..8].copy_from_slice(&hash.to_be_bytes());
        tag
    }
}

/// Header, piece, checksum and length.
const MAX_PROVEN: usize = HEADER_BYTES + PIECE_BYTES + 4 + 8;

#[cfg(test)]
impl Sealer {
    pub(super) fn secrets(&self) -> Vec<[u8; 32]> {
        if let Closes::Sealed(chain) = &self.0 { vec![*chain.secret] } else { Vec::new() }
    }

    /// The epoch that it has come to.
    pub(crate) fn epoch(&self) -> u64 {
        if let Closes::Sealed(chain) = &self.0 { chain.epoch } else { 0 }
    }
}

#[cfg(test)]
impl Opener {
    pub(super) fn secrets(&self) -> Vec<[u8; 32]> {
        let Opens::Sealed(Epochs { current, next, .. }) = &self.0 else { return Vec::new() };
        vec![*current.secret, *next.secret]
    }
}

/// Whether any key that follows from a secret by the labels in use opens a datagram.
#[cfg(test)]
pub(super) fn can_be_opened(secret: &[u8; 32], depth: u32, number: u64, datagram: &[u8], header: usize) -> bool {
    let chain = Chain::new(Suite::Aes, Zeroizing::new(*secret), 0);
    let (clear, body) = datagram.split_at(header);
    if chain.key.open_in_place(nonce(number), Aad::from(clear), &mut body.to_vec()).is_ok() {
        return true;
    }
    let labels: [&[u8]; 4] = [b"fairwave next", b"fairwave key", b"fairwave data", b"fairwave control"];
    depth > 0 && labels.iter().any(|label| can_be_opened(&expand(secret, label), depth - 1, number, datagram, header))
}

fn nonce(number: u64) -> Nonce {
    let mut nonce = [0; 12];
    nonce[4..].copy_from_slice(&number.to_be_bytes());
    Nonce::assume_unique_for_key(nonce)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: usize = 17;

    fn pair(suite: Suite) -> (Sealer, Opener) {
        let secret = Zeroizing::new([3; 32]);
        (Sealer::new(suite, secret.clone()), Opener::new(suite, secret))
    }

    fn sealed(sealer: &mut Sealer, number: u64, rest: &[u8]) -> Vec<u8> {
        let mut datagram = vec![9; HEADER + 4 + rest.len() + TAG_BYTES];
        let (header, body) = datagram.split_at_mut(HEADER);
        sealer.close(number, header, body, 4, rest);
        datagram
    }

    fn opened(opener: &mut Opener, number: u64, mut datagram: Vec<u8>) -> Option<Vec<u8>> {
        let clear = HEADER.min(datagram.len());
        let (header, body) = datagram.split_at_mut(clear);
        opener.open(number, header, body).map(|body| body.to_vec())
    }

    #[test]
    fn open__what_was_closed() {
        let secret = Zeroizing::new([3; 32]);
        let plain = (Sealer::plain(&secret), Opener::plain(&secret));
        for (mut sealer, mut opener) in [pair(Suite::Aes), pair(Suite::ChaCha), plain] {
            let datagram = sealed(&mut sealer, 5, b"some bytes");
            assert_eq!(opened(&mut opener, 5, datagram.clone()).unwrap(), b"\x09\x09\x09\x09some bytes");
            for at in 0..datagram.len() {
                let mut changed = datagram.clone();
                changed[at] ^= 4;
                assert!(opened(&mut opener, 5, changed).is_none(), "byte {at}");
            }
            for length in 0..datagram.len() {
                assert!(opened(&mut opener, 5, datagram[..length].to_vec()).is_none());
            }
        }
    }

    #[test]
    fn open__another_number_or_key_fails() {
        let (mut sealer, mut opener) = pair(Suite::Aes);
        let datagram = sealed(&mut sealer, 5, b"some bytes");
        assert!(opened(&mut opener, 6, datagram.clone()).is_none());
        let mut other = Opener::new(Suite::Aes, Zeroizing::new([4; 32]));
        assert!(opened(&mut other, 5, datagram.clone()).is_none());
    }

    #[test]
    fn open__goes_from_epoch_to_epoch() {
        let (mut sealer, mut opener) = pair(Suite::Aes);
        let at = |epoch: u64, number: u64| (epoch << EPOCH_BITS) + number;
        let old = sealed(&mut sealer, at(0, 7), b"old");
        let late = sealed(&mut sealer, at(0, 8), b"late");
        let mut forged = sealed(&mut sealer, at(1, 0), b"new");
        let new = forged.clone();
        forged[HEADER] ^= 1;
        // A forged packet of the next epoch moves nothing.
        for _ in 0..3 {
            assert!(opened(&mut opener, at(1, 0), forged.clone()).is_none());
        }
        assert!(opened(&mut opener, at(0, 7), old.clone()).is_some());
        assert!(opened(&mut opener, at(1, 0), new.clone()).is_some());
        assert!(opened(&mut opener, at(0, 8), late.clone()).is_some());
        let newer = sealed(&mut sealer, at(2, 0), b"newer");
        assert!(opened(&mut opener, at(2, 0), newer.clone()).is_some());
        // The first epoch is gone by now.
        assert!(opened(&mut opener, at(0, 8), late.clone()).is_none());
    }
}
