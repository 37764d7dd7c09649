//! Arbitrary input to every decoder: `make fuzz` looks for inputs that break it, and `cargo test` runs the ones in
//! `__fuzz__/<target>/corpus` again, and some at random.
//!
//! Every input is either refused or decoded, without a panic; a decoded value is the same after it is written again.

#![allow(missing_docs)]

use std::net::SocketAddr;

use fairwave_proto::codec::{
    Ahead, Answer, Checksum, Frame, Frames, Full, HELLO_BYTES, Handshake, Header, LossReport, Offer, Piece, Reader,
    Refusal, TicketId, Writer, open_datagram,
};
use fairwave_proto::handshake::insecure::{InsecureInitiator, InsecureResponder};
use fairwave_proto::handshake::{AttemptProgress, HandshakeTerms, Incoming, Initiator, Responder};
use fairwave_proto::{Features, Outstanding, PathDeclaration, PieceAt, Repairs, Settlement, Verdict};
use fairwave_units::{Duration, Time};

/// Inputs at random in `cargo test`; BOLERO_RANDOM_ITERATIONS overrides this.
const ITERATIONS: usize = 2000;
/// A datagram has no more.
const LARGEST: usize = 1500;

fn written(write: impl FnOnce(&mut Writer<'_>) -> Result<(), Full>) -> Vec<u8> {
    let mut room = vec![0; 4 * LARGEST];
    let mut writer = Writer::new(&mut room);
    write(&mut writer).expect("what was read fits");
    let used = writer.used();
    room.truncate(used);
    room
}

#[test]
fn header() {
    bolero::check!().with_iterations(ITERATIONS).with_max_len(LARGEST).for_each(|bytes: &[u8]| {
        let mut reader = Reader::new(bytes);
        if let Ok(header) = Header::read(&mut reader) {
            let used = bytes.len() - reader.rest().len();
            assert_eq!(written(|writer| header.write(writer)), bytes[..used]);
            // A seal that nobody has made does not open.
            assert!(open_datagram(&header, &mut Checksum::new(7), &mut bytes.to_vec()).is_err());
        }
    });
}

#[test]
fn piece() {
    bolero::check!().with_iterations(ITERATIONS).with_max_len(LARGEST).for_each(|bytes: &[u8]| {
        if let Ok(piece) = Piece::read(&mut Reader::new(bytes)) {
            let again = written(|writer| piece.write(writer));
            assert_eq!(Piece::read(&mut Reader::new(&again)), Ok(piece));
        }
    });
}

#[test]
fn frames() {
    bolero::check!().with_iterations(ITERATIONS).with_max_len(LARGEST).for_each(|bytes: &[u8]| {
        for frame in Frames::new(bytes).flatten() {
            let again = written(|writer| frame.write(writer));
            match (frame, Frames::new(&again).next()) {
                (Frame::Losses(frame), Some(Ok(Frame::Losses(again)))) => assert_same(&frame, &again),
                (frame, again) => assert_eq!(Some(Ok(frame)), again),
            }
        }
    });
}

fn assert_same(one: &LossReport<'_>, other: &LossReport<'_>) {
    assert_eq!((one.base(), one.end()), (other.base(), other.end()));
    assert!(one.lost().eq(other.lost()));
}

/// A report, to a source that has some packets under way, of which it has skipped some.
#[test]
fn loss_report() {
    bolero::check!().with_iterations(ITERATIONS).with_max_len(LARGEST).for_each(|bytes: &[u8]| {
        let Ok(report) = LossReport::read(&mut Reader::new(bytes)) else { return };
        let mut at = report.base();
        for (index, range) in report.lost().enumerate() {
            assert!(range.start < range.end && range.end <= report.end());
            assert!(range.start > at || (index == 0 && range.start == at));
            at = range.end;
        }
        let us = |us| Time::from_nanos(us * 1000);
        let mut outstanding = Outstanding::default();
        for number in 0..300 {
            if number % 70 == 69 {
                outstanding.skip();
            } else {
                outstanding.send(PieceAt { stream: 1, length: 10, offset: 10 * (number / 2) }, us(number));
            }
        }
        let (mut repairs, mut fates) = (Repairs::default(), 0);
        let mut hear = |_| fates += 1;
        let verdict = Verdict { now: us(400), window: Duration::from_micros(20), sight: Duration::from_micros(300) };
        if let Ok(settlement) = outstanding.on_report(&report, &verdict, &mut repairs, Some(&mut hear)) {
            assert_eq!(settlement.arrived + settlement.lost, fates);
            assert_eq!((settlement.lost, 0), (repairs.needed.len() as u64, repairs.in_vain.len()));
            // A repeated report adds nothing; and packets stay settled as time passes.
            for (at, most_lost) in [(400, 0), (2000, 300 - settlement.arrived - settlement.lost)] {
                let verdict = Verdict { now: us(at), ..verdict };
                let again = outstanding.on_report(&report, &verdict, &mut repairs, None).unwrap();
                assert_eq!(Settlement { lost: 0, ..again }, Settlement::default());
                assert!(again.lost <= most_lost);
            }
        } else {
            assert!(repairs == Repairs::default() && outstanding.una() == 0);
        }
    });
}

#[test]
fn handshake() {
    bolero::check!().with_iterations(ITERATIONS).with_max_len(LARGEST).for_each(|bytes: &[u8]| {
        if let Ok(packet) = Handshake::read(bytes) {
            let again = written(|writer| packet.write(writer));
            assert_eq!(Handshake::read(&again), Ok(packet));
        }
    });
}

/// Contents of the sealed part of the handshake.
#[test]
fn terms() {
    bolero::check!().with_iterations(ITERATIONS).with_max_len(LARGEST).for_each(|bytes: &[u8]| {
        if let Ok(offer) = Offer::read(bytes) {
            let again = written(|writer| offer.write(writer));
            assert_eq!(Offer::read(&again), Ok(offer));
        }
        if let Ok(answer) = Answer::read(bytes) {
            let again = written(|writer| answer.write(writer));
            assert_eq!(Answer::read(&again), Ok(answer));
        }
        if let Ok(refusal) = Refusal::read(bytes) {
            let again = written(|writer| refusal.write(writer));
            assert_eq!(Refusal::read(&again), Ok(refusal));
        }
    });
}

const TERMS: HandshakeTerms = HandshakeTerms {
    session: fairwave_proto::codec::SessionId(1),
    declared: PathDeclaration::Shared,
    is_plain: false,
    weight: 1.0,
    send_end: None,
    receive_end: None,
    largest_packet: 1500,
    features: Features { claims: true, grants: true },
    ahead: Ahead { claim_bps: 0, promise_bps: 0 },
};

/// Both machines of the handshake: nothing opens without the secret, and no answer is larger than a hello.
#[test]
fn responder() {
    bolero::check!().with_iterations(ITERATIONS).with_max_len(LARGEST).for_each(|bytes: &[u8]| {
        let ticket = TicketId(1);
        let mut responder = Responder::new(InsecureResponder::new(1, [(ticket, 2)]));
        let from = SocketAddr::from(([10, 0, 0, 1], 9));
        // Short input tests only the first byte, since a hello has 1200: it is also repeated to that length.
        let datagrams = [bytes.to_vec(), bytes.iter().copied().cycle().take(HELLO_BYTES).collect()];
        for datagram in datagrams.iter().filter(|datagram| !datagram.is_empty()) {
            assert!(matches!(responder.handle(Time::ZERO, from, datagram), Incoming::Nothing));
            let crypto = InsecureInitiator::new(ticket, 2, 3);
            let mut initiator = Initiator::new(Time::ZERO, crypto, TERMS, (true, false), b"").expect("no greeting");
            assert_eq!(initiator.handle(Time::ZERO, datagram), AttemptProgress::Waiting);
        }
    });
}
