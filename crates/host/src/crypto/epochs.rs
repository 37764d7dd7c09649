//! The epochs that a session's keys can still open as it goes on.

use fairwave_proto::codec::{HEADER_BYTES, PacketKind, Seal, TAG_BYTES, Unseal};

use super::keys::{OpenKeys, Pair, SessionKeys};
use super::seal::{EPOCH_BITS, Sealer, can_be_opened};
use super::suite::Suite;

const SPLIT: ([u8; 32], [u8; 32]) = ([1; 32], [2; 32]);
/// Expansions that whoever reads a memory tries: enough for two epochs' keys from the first secrets.
const DEPTH: u32 = 4;

fn ends() -> [OpenKeys; 2] {
    [true, false].map(|is_initiator| SessionKeys::new(Suite::Aes, is_initiator, false, SPLIT).open().unwrap())
}

/// The first number of an epoch.
fn first(epoch: u64) -> u64 {
    epoch << EPOCH_BITS
}

fn sealed(by: &mut Sealer, number: u64) -> Vec<u8> {
    let mut datagram = vec![9; HEADER_BYTES + 20 + TAG_BYTES];
    let (header, body) = datagram.split_at_mut(HEADER_BYTES);
    by.close(number, header, body, 4, &[5; 16]);
    datagram
}

fn opens(by: &mut impl Unseal, number: u64, datagram: &[u8]) -> bool {
    let mut datagram = datagram.to_vec();
    let (header, body) = datagram.split_at_mut(HEADER_BYTES);
    by.open(number, header, body).is_some()
}

/// A packet that goes from one end to the other, which opens it.
fn exchanged(from: &mut Pair, to: &mut Pair, epoch: u64) -> Vec<u8> {
    let datagram = sealed(&mut from.sealer, first(epoch));
    assert!(opens(&mut to.opener, first(epoch), &datagram), "epoch {epoch}");
    datagram
}

/// All secrets that a pair of chains holds.
fn held(pair: &Pair) -> Vec<[u8; 32]> {
    [pair.sealer.secrets(), pair.opener.secrets()].concat()
}

#[test]
fn closing__holds_no_key_of_an_epoch_before_the_last_but_one() {
    let [mut here, mut there] = ends();
    let mut recorded = Vec::new();
    for epoch in 0..=4 {
        for kind in [PacketKind::Data, PacketKind::Control] {
            let (one, other) = match kind {
                PacketKind::Data => (&mut here.data, &mut there.data),
                PacketKind::Control => (&mut here.control, &mut there.control),
            };
            recorded.extend(
                [exchanged(one, other, epoch), exchanged(other, one, epoch)].map(|packet| (epoch, kind, packet)),
            );
        }
    }
    let derived = |secrets: &[[u8; 32]], epoch, datagram: &[u8]| {
        secrets.iter().any(|secret| can_be_opened(secret, DEPTH, first(epoch), datagram, HEADER_BYTES))
    };
    // The secrets of the handshake would open the first epochs: a search like this one finds what memory still holds.
    let (_, _, oldest) = &recorded[0];
    assert!(derived(&[SPLIT.0, SPLIT.1], 0, oldest));
    let of_open = [held(&here.data), held(&here.control)].concat();
    for (epoch, kind, datagram) in &recorded {
        assert!(*epoch >= 3 || !derived(&of_open, *epoch, datagram), "{kind:?} of epoch {epoch}");
    }
    // The keys kept for closing open only control packets.
    let closing = SessionKeys::Closing(here.control);
    let SessionKeys::Closing(kept) = &closing else { unreachable!() };
    for (epoch, kind, datagram) in &recorded {
        let opened = opens(&mut &closing, first(*epoch), datagram);
        assert!(!opened || (*kind == PacketKind::Control && *epoch >= 3), "{kind:?} of epoch {epoch} opens");
        let is_derived = derived(&held(kept), *epoch, datagram);
        assert!(!is_derived || (*kind == PacketKind::Control && *epoch >= 3), "{kind:?} of epoch {epoch} is derived");
    }
}

#[test]
fn closing__goes_on_with_the_chains_of_both_ends() {
    let [mut here, mut there] = ends();
    for epoch in 0..=3 {
        exchanged(&mut here.control, &mut there.control, epoch);
        exchanged(&mut there.control, &mut here.control, epoch);
    }
    // The last packets may be of another epoch than those before.
    let (mut closing, mut other) = (SessionKeys::Closing(here.control), there.control);
    let close = sealed(closing.closing(), first(4));
    assert!(opens(&mut other.opener, first(4), &close));
    let answer = sealed(&mut other.sealer, first(4));
    assert!(opens(&mut &closing, first(4), &answer));
}

#[test]
fn closing__of_what_was_given_up_before_it_opened() {
    let mut keys = SessionKeys::new(Suite::Aes, true, false, SPLIT);
    let close = sealed(keys.closing(), 0);
    let [_, mut there] = ends();
    assert!(opens(&mut there.control.opener, 0, &close));
    assert!(keys.open().is_none());
}
