//! Packets under seal: keys that change by themselves.

use aws_lc_rs::aead::{AES_128_GCM, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use fairwave_proto::codec::TAG_BYTES;
use zeroize::Zeroizing;

use super::Suite;
use super::keys::expand;

/// Numbers of one epoch: each has a key of its own, which nothing has to negotiate.
const EPOCH_BITS: u32 = 22;

/// Closes the packets of one direction and kind.
pub(crate) struct Sealer(Option<Chain>);

/// Opens them.
///
/// The epochs before and after the present one open, too; the present one becomes the next when a packet of it has opened.
pub(crate) struct Opener(Option<Epochs>);

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
        Self(Some(Chain::new(suite, secret, 0)))
    }

    /// No secrecy: a CRC32C in place of a tag.
    pub(super) fn plain() -> Self {
        Self(None)
    }

    /// Closes a datagram: `datagram` begins with `header` bytes in the clear, then `head` bytes of the body; `rest` is the
    /// body's rest, and what follows the head in `datagram` has room for exactly that and a tag.
    pub(crate) fn close(&mut self, number: u64, datagram: &mut [u8], header: usize, head: usize, rest: &[u8]) {
        let (clear, body) = datagram.split_at_mut(header);
        let Some(chain) = &mut self.0 else {
            let (tag_at, data) = (body.len() - TAG_BYTES, &mut body[head..]);
            data[..rest.len()].copy_from_slice(rest);
            let sum = checksum(clear, &body[..tag_at]);
            body[tag_at..].copy_from_slice(&sum);
            return;
        };
        while number >> EPOCH_BITS > chain.epoch {
            *chain = chain.next();
        }
        let (head, out) = body.split_at_mut(head);
        chain
            .key
            .seal_in_place_scatter(nonce(number), Aad::from(clear), head, rest, out)
            .expect("a datagram is shorter than what the cipher takes");
    }
}

impl Opener {
    pub(super) fn new(suite: Suite, secret: Zeroizing<[u8; 32]>) -> Self {
        let current = Chain::new(suite, secret, 0);
        let next = current.next();
        Self(Some(Epochs { previous: None, current, next }))
    }

    pub(super) fn plain() -> Self {
        Self(None)
    }

    /// Opens a datagram in place, of which `header` bytes are in the clear: the body.
    pub(crate) fn open<'a>(&mut self, number: u64, datagram: &'a mut [u8], header: usize) -> Option<&'a mut [u8]> {
        let (clear, body) = datagram.split_at_mut_checked(header)?;
        let Some(epochs) = &mut self.0 else {
            let (body, tag) = body.split_last_chunk_mut::<TAG_BYTES>()?;
            return (checksum(clear, body) == *tag).then_some(body);
        };
        let epoch = number >> EPOCH_BITS;
        let current = epochs.current.epoch;
        let key = match epoch {
            _ if epoch == current => &epochs.current.key,
            _ if epoch == current + 1 => &epochs.next.key,
            _ if epoch + 1 == current => epochs.previous.as_ref()?,
            _ => return None,
        };
        let opened = key.open_in_place(nonce(number), Aad::from(clear), body).ok()?;
        if epoch > current {
            let after = epochs.next.next();
            let before = std::mem::replace(&mut epochs.current, std::mem::replace(&mut epochs.next, after));
            epochs.previous = Some(before.key);
        }
        Some(opened)
    }
}

fn nonce(number: u64) -> Nonce {
    let mut nonce = [0; 12];
    nonce[4..].copy_from_slice(&number.to_be_bytes());
    Nonce::assume_unique_for_key(nonce)
}

/// CRC32C of header and body, in the place of a tag: the rest of it is zero.
fn checksum(header: &[u8], body: &[u8]) -> [u8; TAG_BYTES] {
    let mut digest = crc_fast::Digest::new(crc_fast::CrcAlgorithm::Crc32Iscsi);
    digest.update(header);
    digest.update(body);
    let mut tag = [0; TAG_BYTES];
    tag[..4].copy_from_slice(&(digest.finalize() as u32).to_be_bytes());
    tag
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
        sealer.close(number, &mut datagram, HEADER, 4, rest);
        datagram
    }

    #[test]
    fn open__what_was_closed() {
        let plain = (Sealer::plain(), Opener::plain());
        for (mut sealer, mut opener) in [pair(Suite::Aes), pair(Suite::ChaCha), plain] {
            let datagram = sealed(&mut sealer, 5, b"some bytes");
            assert_eq!(opener.open(5, &mut datagram.clone(), HEADER).unwrap(), b"\x09\x09\x09\x09some bytes");
            for at in 0..datagram.len() {
                let mut changed = datagram.clone();
                changed[at] ^= 4;
                assert!(opener.open(5, &mut changed, HEADER).is_none(), "byte {at}");
            }
            for length in 0..datagram.len() {
                assert!(opener.open(5, &mut datagram[..length].to_vec(), HEADER).is_none());
            }
        }
    }

    #[test]
    fn open__another_number_or_key_fails() {
        let (mut sealer, mut opener) = pair(Suite::Aes);
        let datagram = sealed(&mut sealer, 5, b"some bytes");
        assert!(opener.open(6, &mut datagram.clone(), HEADER).is_none());
        let mut other = Opener::new(Suite::Aes, Zeroizing::new([4; 32]));
        assert!(other.open(5, &mut datagram.clone(), HEADER).is_none());
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
            assert!(opener.open(at(1, 0), &mut forged.clone(), HEADER).is_none());
        }
        assert!(opener.open(at(0, 7), &mut old.clone(), HEADER).is_some());
        assert!(opener.open(at(1, 0), &mut new.clone(), HEADER).is_some());
        assert!(opener.open(at(0, 8), &mut late.clone(), HEADER).is_some());
        let newer = sealed(&mut sealer, at(2, 0), b"newer");
        assert!(opener.open(at(2, 0), &mut newer.clone(), HEADER).is_some());
        // The first epoch is gone by now.
        assert!(opener.open(at(0, 8), &mut late.clone(), HEADER).is_none());
    }
}
