//! How often a host answers packets of sessions that it does not know.

use super::{Prefix, ResponderCrypto};

/// Resets of this second, counted: all of them, and those to one prefix, at a place that a MAC under the host's own key
/// chooses again for each second, as [`Refusals`](super::refusals::Refusals) are. RFC 9000 s10.3.3 has an endpoint
/// bound their number.
#[derive(Debug)]
pub(super) struct Resets {
    second: u64,
    all: u16,
    counts: Vec<u16>,
}

/// Resets in a second, to one prefix and in all. A host that starts again has as many clients as it had sessions, each
/// of which sends some packets a second: those that have no answer today have one in the next second. An answer costs a
/// hash and at most 80 bytes.
pub(crate) const MAX_RESETS: [u16; 2] = [64, 1024];

/// Counters by a hash of the prefix: 512 bytes, so that remote hosts cannot make the table grow.
const PLACES: u16 = 256;
const NANOS_PER_S: u64 = 1_000_000_000;

impl Resets {
    /// None yet.
    pub(super) fn new() -> Self {
        Self { second: 0, all: 0, counts: vec![0; usize::from(PLACES)] }
    }

    /// Whether there may be another one: then it counts.
    pub(super) fn allow(&mut self, crypto: &impl ResponderCrypto, now: fairwave_units::Time, to: Prefix) -> bool {
        let second = now.as_nanos() / NANOS_PER_S;
        if second != self.second {
            (self.second, self.all) = (second, 0);
            self.counts.fill(0);
        }
        let [most_of_prefix, most] = MAX_RESETS;
        if self.all >= most {
            return false;
        }
        let [one, other, ..] = crypto.cookie(&[b"reset", &second.to_be_bytes()[..], &to.to_bytes()].concat());
        let place = usize::from(u16::from_be_bytes([one, other]) % PLACES);
        let Some(count) = self.counts.get_mut(place).filter(|count| **count < most_of_prefix) else { return false };
        *count += 1;
        self.all += 1;
        true
    }
}
