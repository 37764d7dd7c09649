//! Refusals of a host, counted without addresses.

use super::{Prefix, ResponderCrypto};
use crate::wire::codec::TicketId;

/// Refusals of the last seconds, counted in a table of fixed size: by ticket, and by ticket and prefix, each at a place
/// that a MAC under the host's own key chooses again for each epoch. So an attacker cannot aim at a place that it
/// shares with others, and a chance collision ends seconds later.
///
/// WireGuard also bounds the computation that verified addresses cause (Donenfeld 2017, s5.3: a cookie proves who owns
/// an address, and allows token buckets); here only handshakes that led to nothing count, since honest clients may open
/// thousands of sessions a second.
#[derive(Debug)]
pub(super) struct Refusals {
    epoch: u64,
    counts: Vec<u16>,
}

/// Handshakes of one ticket that may lead to nothing in an epoch, from one prefix and from all of them: each costs as
/// much as one that opens a session.
pub(crate) const MAX_REFUSALS: [u16; 2] = [64, 512];

/// Counters by a hash of the prefix: 2 KiB, so that remote hosts cannot make the table grow.
const PLACES: u16 = 1024;

impl Refusals {
    /// None yet.
    pub(super) fn new() -> Self {
        Self { epoch: 0, counts: vec![0; usize::from(PLACES)] }
    }

    /// Whether a hello with this ticket, from there, is worth looking at.
    pub(super) fn are_few(&self, crypto: &impl ResponderCrypto, epoch: u64, ticket: TicketId, prefix: Prefix) -> bool {
        epoch != self.epoch
            || places(crypto, epoch, ticket, prefix)
                .into_iter()
                .zip(MAX_REFUSALS)
                .all(|(place, most)| self.counts.get(place).is_none_or(|count| *count < most))
    }

    /// A hello led to nothing.
    pub(super) fn count(&mut self, crypto: &impl ResponderCrypto, epoch: u64, ticket: TicketId, prefix: Prefix) {
        if epoch != self.epoch {
            self.epoch = epoch;
            self.counts.fill(0);
        }
        for place in places(crypto, epoch, ticket, prefix) {
            if let Some(count) = self.counts.get_mut(place) {
                *count = count.saturating_add(1);
            }
        }
    }
}

/// The counters of a ticket's refusals: to a prefix, and to all.
fn places(crypto: &impl ResponderCrypto, epoch: u64, ticket: TicketId, prefix: Prefix) -> [usize; 2] {
    let all = [epoch.to_be_bytes(), ticket.0.to_be_bytes()].concat();
    [[&all[..], &prefix.to_bytes()].concat(), all].map(|bytes| {
        let [one, other, ..] = crypto.cookie(&bytes);
        usize::from(u16::from_be_bytes([one, other]) % PLACES)
    })
}
