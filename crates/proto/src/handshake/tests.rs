use std::collections::BTreeMap;
use std::net::SocketAddr;

use fairwave_units::{Duration, Rate, Time};
use proptest::prelude::*;

use super::insecure::{InsecureInitiator, InsecureKeys, InsecurePending, InsecureResponder};
use super::*;
use crate::path::path_kind::{PathDeclaration, PathDeclarations, PathKind};
use crate::wire::codec::{
    Ahead, Frame, HELLO_BYTES, Handshake, Header, Hello, Mac, PROLOGUE_BYTES, PacketKind, Prologue, Reader, Refusal,
    Reset, SessionId, TicketId, VERSION, Writer, is_handshake, open_datagram, seal_datagram,
};
use crate::wire::features::Features;

mod losses;
mod replays;

const TICKET: TicketId = TicketId(77);
const SECRET: u64 = 0xfeed;
/// Position of the cookie in a hello.
const COOKIE: std::ops::Range<usize> = 11..PROLOGUE_BYTES;

fn ms(ms: u64) -> Time {
    Time::from_nanos(ms * 1_000_000)
}

fn address(host: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, (host >> 8) as u8, host as u8], 4000))
}

fn terms(session: u64) -> HandshakeTerms {
    HandshakeTerms {
        session: SessionId(session),
        declared: PathDeclaration::Shared,
        is_plain: false,
        weight: 1.0,
        send_end: None,
        receive_end: None,
        largest_packet: 1500,
        features: Features::default(),
        ahead: Ahead::default(),
    }
}

fn dedicated(session: u64) -> HandshakeTerms {
    HandshakeTerms { declared: PathDeclaration::Dedicated, ..terms(session) }
}

fn initiator(now: Time, nonce: u64, terms: HandshakeTerms) -> Initiator<InsecureInitiator> {
    let crypto = InsecureInitiator::new(TICKET, SECRET, nonce);
    Initiator::new(now, crypto, terms, (true, true), b"hi").unwrap()
}

/// Counts what is expensive.
struct Counting {
    inner: InsecureResponder,
    reads: usize,
}

impl ResponderCrypto for Counting {
    type Keys = InsecureKeys;
    type Pending = InsecurePending;

    fn hello_mac(&self, prologue: &Prologue, proven: &[u8]) -> Option<Mac> {
        self.inner.hello_mac(prologue, proven)
    }

    fn cookie(&self, bytes: &[u8]) -> Mac {
        self.inner.cookie(bytes)
    }

    fn read_hello(&mut self, prologue: &Prologue, message: &[u8]) -> Option<(Vec<u8>, InsecurePending)> {
        self.reads += 1;
        self.inner.read_hello(prologue, message)
    }

    fn write_reply(&mut self, pending: InsecurePending, payload: &[u8]) -> (Vec<u8>, InsecureKeys) {
        self.inner.write_reply(pending, payload)
    }

    fn reset(&self, session: SessionId) -> Option<Reset> {
        self.inner.reset(session)
    }
}

fn responder() -> Responder<Counting> {
    Responder::new(Counting { inner: InsecureResponder::new(5, [(TICKET, SECRET)]), reads: 0 })
}

fn reads(responder: &mut Responder<Counting>) -> usize {
    responder.crypto().reads
}

/// The answer to a hello that must get one without being read.
fn answer(responder: &mut Responder<Counting>, now: Time, from: SocketAddr, hello: &[u8]) -> Vec<u8> {
    match responder.handle(now, from, hello) {
        Incoming::Answer(answer) => answer,
        other => panic!("{other:?} in place of an answer"),
    }
}

/// A hello that its sender has a cookie for.
fn proven(responder: &mut Responder<Counting>, now: Time, from: SocketAddr, nonce: u64) -> Vec<u8> {
    let mut initiator = initiator(now, nonce, terms(nonce));
    let hello = initiator.poll_transmit(now).unwrap().to_vec();
    let cookie = answer(responder, now, from, &hello);
    assert_eq!(initiator.handle(now, &cookie), AttemptProgress::Waiting);
    initiator.poll_transmit(now).unwrap().to_vec()
}

fn asked(
    responder: &mut Responder<Counting>,
    now: Time,
    from: SocketAddr,
    hello: &[u8],
) -> SessionRequest<InsecurePending> {
    match responder.handle(now, from, hello) {
        Incoming::Asked(asked) => asked,
        other => panic!("{other:?} in place of a question"),
    }
}

type Ends = (Established<InsecureKeys>, Established<InsecureKeys>);

/// A whole handshake without mishap, 20 ms there and back: what both ends have.
fn opened(
    initiator_terms: HandshakeTerms,
    directions: (bool, bool),
    responder_terms: &HandshakeTerms,
) -> Result<Ends, HandshakeError> {
    let mut responder = responder();
    let crypto = InsecureInitiator::new(TICKET, SECRET, 9);
    let mut initiator = Initiator::new(ms(0), crypto, initiator_terms, directions, b"hi").unwrap();
    let hello = initiator.poll_transmit(ms(0)).unwrap().to_vec();
    let cookie = answer(&mut responder, ms(10), address(1), &hello);
    assert_eq!(initiator.handle(ms(20), &cookie), AttemptProgress::Waiting);
    let hello = initiator.poll_transmit(ms(20)).unwrap().to_vec();
    let asked = asked(&mut responder, ms(30), address(1), &hello);
    assert_eq!((asked.greeting.as_slice(), asked.from()), (&b"hi"[..], address(1)));
    let answered = responder.accept(ms(30), asked, responder_terms);
    let here = match initiator.handle(ms(40), &answered.datagram) {
        AttemptProgress::Established(established) => *established,
        AttemptProgress::Failed(error) => {
            assert_eq!(answered.refusal.map(HandshakeError::Refused), Some(error));
            return Err(error);
        }
        AttemptProgress::Waiting => panic!("a reply that says nothing"),
    };
    assert_eq!(initiator.poll_transmit(ms(9000)), None);
    assert_eq!(initiator.next_timeout(), None);
    let there = responder.confirm(ms(50), responder_terms.session).unwrap();
    assert!(responder.confirm(ms(50), responder_terms.session).is_none());
    Ok((here, there))
}

#[test]
fn handshake__each_end_knows_what_the_other_one_can_do() {
    let [both, claims] = [true, false].map(|grants| Features { claims: true, grants });
    let with = |session, features| HandshakeTerms { features, ..terms(session) };
    let (here, there) = opened(with(1, both), (true, false), &with(2, claims)).unwrap();
    assert_eq!((here.features, there.features), (claims, both));
    // An end that does not report the features supports neither.
    let (here, there) = opened(with(1, both), (true, false), &terms(2)).unwrap();
    assert_eq!((here.features, there.features), (Features::default(), both));
}

#[test]
fn handshake__both_ends_know_the_same() {
    let (here, there) = opened(terms(1), (true, false), &HandshakeTerms { largest_packet: 1400, ..terms(2) }).unwrap();
    assert_eq!((here.local, here.peer, here.is_initiator), (SessionId(1), SessionId(2), true));
    assert_eq!((there.local, there.peer, there.is_initiator), (SessionId(2), SessionId(1), false));
    assert_eq!([here.sends, here.receives, there.sends, there.receives], [true, false, false, true]);
    assert_eq!((here.keys, here.largest_packet, there.largest_packet), (there.keys, 1400, 1400));
    assert_eq!((here.rtt, there.rtt), (Some(Duration::from_millis(20)), Some(Duration::from_millis(20))));
    assert_eq!((here.ticket, there.ticket, there.address), (TICKET, TICKET, Some(address(1))));
}

#[test]
fn handshake__a_path_is_dedicated_if_both_say_so() {
    for (here, there, path) in [
        (dedicated(1), dedicated(2), PathKind::Dedicated),
        (dedicated(1), terms(2), PathKind::Shared),
        (terms(1), dedicated(2), PathKind::Shared),
        (terms(1), terms(2), PathKind::Shared),
    ] {
        let (here, there) = opened(here, (true, true), &there).unwrap();
        assert_eq!([here.path, there.path], [path; 2]);
    }
}

#[test]
fn handshake__each_end_learns_what_the_other_says_of_the_path() {
    const ALL: [PathDeclaration; 3] =
        [PathDeclaration::Shared, PathDeclaration::Dedicated, PathDeclaration::WithoutCapacity];
    for (one, other) in ALL.into_iter().flat_map(|one| ALL.map(|other| (one, other))) {
        let with = |session, declared| HandshakeTerms { declared, ..terms(session) };
        let (here, there) = opened(with(1, one), (true, true), &with(2, other)).unwrap();
        assert_eq!(here.declared, PathDeclarations { here: one, there: other });
        assert_eq!(there.declared, PathDeclarations { here: other, there: one });
        let is_dedicated = (one, other) == (PathDeclaration::Dedicated, PathDeclaration::Dedicated);
        assert_eq!(here.path == PathKind::Dedicated, is_dedicated, "{one:?} {other:?}");
    }
}

#[test]
fn handshake__plain_needs_both() {
    let plain = |session| HandshakeTerms { is_plain: true, ..terms(session) };
    let (here, there) = opened(plain(1), (true, true), &plain(2)).unwrap();
    assert!(here.is_plain && there.is_plain);
    for (here, there) in [(plain(1), terms(2)), (terms(1), plain(2))] {
        assert_eq!(opened(here, (true, true), &there), Err(HandshakeError::Refused(Refusal::Plain)));
    }
}

#[test]
fn handshake__a_dedicated_path_starts_with_the_smaller_share() {
    let ends = |send, receive, terms| HandshakeTerms { send_end: Some(send), receive_end: Some(receive), ..terms };
    let here = ends((Rate::mbps(1000.0), 4.0), (Rate::mbps(900.0), 2.0), dedicated(1));
    let there = ends((Rate::mbps(600.0), 3.0), (Rate::mbps(500.0), 1.0), dedicated(2));
    // There: min(1000 / 4, 500 / 1) = 250; back: min(600 / 3, 900 / 2) = 200.
    let (one, other) = opened(here, (true, true), &there).unwrap();
    let expected = [Some(Rate::mbps(250.0)), Some(Rate::mbps(200.0))];
    assert_eq!([one.start_send, one.start_receive], expected);
    assert_eq!([other.start_receive, other.start_send], expected);
    // Of an end that does not know its capacity, nothing; of a direction that carries nothing, nothing.
    let (one, other) = opened(here, (true, false), &dedicated(2)).unwrap();
    assert_eq!([one.start_send, one.start_receive], [expected[0], None]);
    assert_eq!([other.start_receive, other.start_send], [expected[0], None]);
    // A shared path starts slowly.
    let (one, other) =
        opened(HandshakeTerms { declared: PathDeclaration::Shared, ..here }, (true, true), &there).unwrap();
    assert_eq!([one.start_send, one.start_receive, other.start_send, other.start_receive], [None; 4]);
}

#[test]
fn initiator__repeats_itself_and_gives_up() {
    let mut silent = initiator(ms(0), 1, terms(1));
    let mut sent = Vec::new();
    while let Some(at) = silent.next_timeout() {
        if let Some(error) = silent.handle_timeout(at) {
            assert_eq!((at, error), (ms(5000), HandshakeError::NoAnswer));
        } else if silent.poll_transmit(at).is_some() {
            sent.push(at);
        }
    }
    assert_eq!(sent, [0, 250, 750, 1250, 1750, 2250, 2750, 3250, 3750, 4250, 4750].map(ms));
    // Or after the time that `lasting` sets.
    let mut short = initiator(ms(0), 1, terms(1)).lasting(Duration::from_millis(300));
    assert_eq!(short.handle_timeout(ms(299)), None);
    assert_eq!(short.handle_timeout(ms(300)), Some(HandshakeError::NoAnswer));
    assert_eq!(short.next_timeout(), None);
    // With a cookie 30 ms after the first hello: at once, and then after two round trips and so on.
    let (mut heard, mut responder, mut sent) = (initiator(ms(0), 1, terms(1)), responder(), Vec::new());
    let hello = heard.poll_transmit(ms(0)).unwrap().to_vec();
    let cookie = answer(&mut responder, ms(15), address(1), &hello);
    assert_eq!(heard.handle(ms(30), &cookie), AttemptProgress::Waiting);
    while let Some(at) = heard.next_timeout() {
        if let Some(error) = heard.handle_timeout(at) {
            assert_eq!((at, error), (ms(5000), HandshakeError::FellSilent));
        } else if heard.poll_transmit(at).is_some() {
            sent.push(at);
        }
        // A repeated cookie changes nothing.
        assert_eq!(heard.handle(at, &cookie), AttemptProgress::Waiting);
    }
    assert_eq!(sent, [30, 90, 210, 450, 930, 1430, 1930, 2430, 2930, 3430, 3930, 4430, 4930].map(ms));
}

#[test]
fn initiator__does_not_let_itself_be_driven_by_cookies() {
    let mut initiator = initiator(ms(0), 1, terms(1));
    let hello = initiator.poll_transmit(ms(0)).unwrap().to_vec();
    let Ok(Handshake::Hello(Hello { mac, .. })) = Handshake::read(&hello) else { panic!("no hello") };
    let mut sent = 0;
    let mut current = mac;
    for value in 0..100 {
        // An attacker that sees each hello, and one that saw only the first.
        for mac in [current, mac] {
            initiator.handle(ms(1), &cookie_for(mac, [value; 16]));
            let Some(hello) = initiator.poll_transmit(ms(1)) else { continue };
            let Ok(Handshake::Hello(hello)) = Handshake::read(hello) else { panic!("no hello") };
            assert_eq!((hello.prologue.cookie, mac), ([value; 16], current));
            (sent, current) = (sent + 1, hello.mac);
        }
    }
    assert_eq!(sent, 8);
}

fn cookie_for(hello: Mac, cookie: Mac) -> [u8; 33] {
    let mut datagram = [0; 33];
    Handshake::Cookie { hello, cookie }.write(&mut Writer::new(&mut datagram)).unwrap();
    datagram
}

#[test]
fn initiator__a_cookie_for_an_earlier_hello_comes_too_late() {
    let (mut initiator, mut responder) = (initiator(ms(0), 1, terms(1)), responder());
    let first = initiator.poll_transmit(ms(0)).unwrap().to_vec();
    let cookie = answer(&mut responder, ms(10), address(1), &first);
    assert_eq!(initiator.handle(ms(64), &cookie), AttemptProgress::Waiting);
    let second = initiator.poll_transmit(ms(64)).unwrap().to_vec();
    // The first hello was doubled on its way, and the answer to its double was changed: it came 10 ms after the second
    // hello.
    let mut changed = answer(&mut responder, ms(64), address(1), &first);
    changed[20] ^= 1;
    assert_eq!(initiator.handle(ms(74), &changed), AttemptProgress::Waiting);
    assert!(initiator.poll_transmit(ms(74)).is_none());
    let asked = asked(&mut responder, ms(90), address(1), &second);
    let reply = responder.accept(ms(90), asked, &terms(2)).datagram;
    let AttemptProgress::Established(established) = initiator.handle(ms(114), &reply) else { panic!("no session") };
    assert_eq!(established.rtt, Some(Duration::from_millis(50)));
}

#[test]
fn initiator__goes_on_when_its_cookie_is_too_old() {
    let (mut initiator, mut responder) = (initiator(ms(4_000), 1, terms(1)), responder());
    let first = initiator.poll_transmit(ms(4_000)).unwrap().to_vec();
    let cookie = answer(&mut responder, ms(4_500), address(1), &first);
    // All but nothing comes through: the cookie of the first five seconds is good up to the tenth.
    assert_eq!(initiator.handle(ms(8_900), &cookie), AttemptProgress::Waiting);
    let second = initiator.poll_transmit(ms(8_900)).unwrap().to_vec();
    let other = answer(&mut responder, ms(10_000), address(1), &second);
    assert_eq!((other.len(), reads(&mut responder)), (33, 0));
    assert_eq!(initiator.handle(ms(8_950), &other), AttemptProgress::Waiting);
    let third = initiator.poll_transmit(ms(8_950)).unwrap().to_vec();
    let [Ok(Handshake::Hello(second)), Ok(Handshake::Hello(third_read))] =
        [&second, &third].map(|hello| Handshake::read(hello))
    else {
        panic!("no hellos")
    };
    // Another handshake, with another ephemeral key.
    assert_ne!(second.message.get(..32), third_read.message.get(..32));
    let asked = asked(&mut responder, ms(10_100), address(1), &third);
    let reply = responder.accept(ms(10_100), asked, &terms(2)).datagram;
    assert!(matches!(initiator.handle(ms(8_999), &reply), AttemptProgress::Established(_)));
}

#[test]
fn initiator__says_nothing_in_its_first_hello_but_who_issued_its_ticket() {
    let hellos = [1, 2].map(|nonce| {
        let greeting = if nonce == 1 { &b"a secret"[..] } else { b"" };
        let crypto = InsecureInitiator::new(TICKET, SECRET, nonce);
        let mut initiator = Initiator::new(ms(0), crypto, terms(nonce), (true, false), greeting).unwrap();
        initiator.poll_transmit(ms(0)).unwrap().to_vec()
    });
    for hello in &hellos {
        assert_eq!(hello[..3], [VERSION << 4 | 1, 0, 0]);
        assert_eq!(hello[3..COOKIE.start], TICKET.0.to_be_bytes());
        assert!(hello[COOKIE.end..HELLO_BYTES - 16].iter().all(|byte| *byte == 0));
    }
    // Random bytes tell the two apart.
    assert_ne!(hellos[0][COOKIE], hellos[1][COOKIE]);
}

#[test]
fn responder__refuses_under_seal_and_in_the_same_words() {
    for why in [Refusal::Expired, Refusal::UsedUp, Refusal::UnknownName, Refusal::NoRoom, Refusal::Direction] {
        let mut responder = responder();
        let mut initiator = initiator(ms(0), 3, terms(1));
        let hello = initiator.poll_transmit(ms(0)).unwrap().to_vec();
        let cookie = answer(&mut responder, ms(0), address(1), &hello);
        initiator.handle(ms(0), &cookie);
        let hello = initiator.poll_transmit(ms(0)).unwrap().to_vec();
        let asked = asked(&mut responder, ms(0), address(1), &hello);
        let refused = responder.refuse(ms(0), asked, why);
        assert_eq!(refused.refusal, Some(why));
        assert_eq!(responder.next_timeout(), None, "a refusal leaves nothing");
        // Somebody on the path calls it a reply: what is under the seal counts.
        let mut called_reply = refused.datagram.clone();
        called_reply[0] ^= 3 ^ 4;
        assert_eq!(initiator.handle(ms(2), &called_reply), AttemptProgress::Failed(HandshakeError::Refused(why)));
    }
}

#[test]
fn responder__is_silent_about_a_wrong_mac_and_reads_nothing_of_it() {
    let mut responder = responder();
    for (ticket, secret) in [(TICKET, SECRET + 1), (TicketId(78), SECRET)] {
        let crypto = InsecureInitiator::new(ticket, secret, 1);
        let mut initiator = Initiator::new(ms(0), crypto, terms(1), (true, true), b"").unwrap();
        let hello = initiator.poll_transmit(ms(0)).unwrap().to_vec();
        assert!(matches!(responder.handle(ms(0), address(1), &hello), Incoming::Nothing));
    }
    let good = proven(&mut responder, ms(0), address(1), 1);
    for bit in 0..HELLO_BYTES * 8 {
        let mut changed = good.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        match responder.handle(ms(0), address(1), &changed) {
            Incoming::Nothing => {}
            other => panic!("bit {bit} does not count: {other:?}"),
        }
    }
    assert_eq!(reads(&mut responder), 0);
    asked(&mut responder, ms(0), address(1), &good);
}

#[test]
fn responder__takes_a_cookie_from_its_address_in_its_time_alone() {
    let mut responder = responder();
    let hello = proven(&mut responder, ms(0), address(1), 1);
    let other_port = SocketAddr::new(address(1).ip(), 4001);
    for (at, from) in [(0, address(2)), (0, other_port), (10_000, address(1))] {
        assert_eq!(answer(&mut responder, ms(at), from, &hello).len(), 33);
    }
    assert_eq!(reads(&mut responder), 0);
    // Under another key of the host's, as after it started again.
    let crypto = InsecureResponder::new(6, [(TICKET, SECRET)]);
    assert_eq!(answer(&mut Responder::new(Counting { inner: crypto, reads: 0 }), ms(0), address(1), &hello).len(), 33);
    asked(&mut responder, ms(9_999), address(1), &hello);
}

#[test]
fn responder__a_hello_that_was_used_is_worth_nothing() {
    let mut responder = responder();
    let hello = proven(&mut responder, ms(0), address(1), 1);
    let asked = asked(&mut responder, ms(0), address(1), &hello);
    let answered = responder.accept(ms(0), asked, &terms(5));
    assert_eq!(answer(&mut responder, ms(1), address(1), &hello), answered.datagram);
    assert!(responder.half_open(SessionId(5)).is_some());
    // It was sent twice: nobody knows which one was heard.
    assert_eq!(responder.confirm(ms(2), SessionId(5)).unwrap().rtt, None);
    assert!(matches!(responder.handle(ms(9_000), address(1), &hello), Incoming::Nothing));
    assert_eq!(answer(&mut responder, ms(10_000), address(1), &hello).len(), 33);
    assert_eq!(reads(&mut responder), 1);
}

#[test]
fn responder__floods_leave_nothing_without_a_cookie_and_so_much_with_one() {
    let mut responder = responder();
    for host in 0..3000 {
        let hello = initiator(ms(0), u64::from(host), terms(1)).poll_transmit(ms(0)).unwrap().to_vec();
        assert_eq!(answer(&mut responder, ms(0), address(host), &hello).len(), 33);
    }
    assert_eq!((reads(&mut responder), responder.next_timeout()), (0, None));
    responder.set_most(HalfOpen { all: 1024, of_ticket: 1024, of_prefix: 1024 });
    let mut opened = 0;
    for host in 0..3000 {
        let hello = proven(&mut responder, ms(1), address(host), u64::from(host));
        if let Incoming::Asked(asked) = responder.handle(ms(1), address(host), &hello) {
            opened += u64::from(responder.accept(ms(1), asked, &terms(u64::from(host))).refusal.is_none());
        }
    }
    assert_eq!((opened, reads(&mut responder)), (1024, 1024));
    assert_eq!(responder.next_timeout(), Some(ms(10_001)));
    assert_eq!(responder.handle_timeout(ms(10_000)), []);
    // Too late for the first packet, though nothing has been forgotten.
    assert!(responder.confirm(ms(10_001), SessionId(3)).is_none());
    assert_eq!(responder.handle_timeout(ms(10_001)), (0..1024).map(SessionId).collect::<Vec<_>>());
    assert!(responder.half_open(SessionId(3)).is_none());
    assert_eq!(responder.next_timeout(), None);
}

/// A datagram on its way, to the responder or from it.
struct Flying {
    to_responder: bool,
    datagram: Vec<u8>,
}

/// A network that loses, doubles, delays and changes what its fates say, and then nothing.
struct Network<F> {
    fates: F,
    flying: BTreeMap<(u64, u64), Flying>,
    sent: u64,
    mishaps: u32,
}

impl<F: Iterator<Item = (u8, u16)>> Network<F> {
    fn send(&mut self, now: u64, to_responder: bool, datagram: Vec<u8>) {
        let (fate, value) = self.fates.next().unwrap_or((255, 0));
        let mut put = |delay: u64, datagram| {
            self.sent += 1;
            self.flying.insert((now + 10 + delay, self.sent), Flying { to_responder, datagram });
        };
        match fate {
            0..40 => self.mishaps += 1,
            40..80 => {
                put(0, datagram.clone());
                put(u64::from(value % 7000), datagram);
            }
            80..120 => put(u64::from(value % 100), datagram),
            120..160 => {
                let mut datagram = datagram;
                let bit = usize::from(value) % (datagram.len() * 8);
                datagram[bit / 8] ^= 1 << (bit % 8);
                self.mishaps += 1;
                put(0, datagram);
            }
            _ => put(0, datagram),
        }
    }
}

/// The first packet of a session.
fn first_packet(session: &Established<InsecureKeys>, number: u64) -> Vec<u8> {
    let header = Header { kind: PacketKind::Control, session: session.peer, number };
    let mut room = [0; 100];
    let mut seal = session.keys.seal(true, PacketKind::Control);
    let length = seal_datagram(&header, &mut seal, &mut room, &[], |writer| Frame::Probe(1).write(writer)).unwrap();
    room[..length].to_vec()
}

fn fates() -> impl Strategy<Value = Vec<(u8, u16)>> {
    proptest::collection::vec(any::<(u8, u16)>(), 0..12)
}

proptest! {
    /// Whatever the network does to a few packets: either both ends have the session, with the same keys, or none has
    /// it in the end; with at most three lost or changed ones both have it. The responder never sends more than it
    /// received.
    #[test]
    fn handshake__through_any_network(fates in fates()) {
        let mut network = Network { fates: fates.into_iter(), flying: BTreeMap::new(), sent: 0, mishaps: 0 };
        let (mut initiator, mut responder) = (initiator(ms(0), 1, dedicated(1)), responder());
        let (mut here, mut there, mut failed) = (None, None, None);
        let (mut received, mut returned, mut names) = (0, 0, 100);
        for now in 0..20_000 {
            let at = ms(now);
            while let Some(entry) = network.flying.first_entry() && entry.key().0 <= now {
                let Flying { to_responder, mut datagram } = entry.remove();
                match (to_responder, is_handshake(&datagram)) {
                    (false, _) => match initiator.handle(at, &datagram) {
                        AttemptProgress::Established(established) => here = Some(*established),
                        AttemptProgress::Failed(error) => failed = Some(error),
                        AttemptProgress::Waiting => {}
                    },
                    (true, true) => {
                        received += datagram.len();
                        let answer = match responder.handle(at, address(1), &datagram) {
                            Incoming::Nothing => None,
                            Incoming::Answer(answer) => Some(answer),
                            Incoming::Asked(asked) => {
                                names += 1;
                                let answered = responder.accept(at, asked, &dedicated(names));
                                prop_assert_eq!(answered.refusal, None);
                                Some(answered.datagram)
                            }
                        };
                        if let Some(answer) = answer {
                            returned += answer.len();
                            network.send(now, false, answer);
                        }
                        prop_assert!(returned <= received);
                    }
                    (true, false) => {
                        let Ok(header) = Header::read(&mut Reader::new(&datagram)) else { continue };
                        let Some(half_open) = responder.half_open(header.session) else { continue };
                        let mut seal = half_open.keys.seal(true, PacketKind::Control);
                        if open_datagram(&header, &mut seal, &mut datagram).is_ok()
                            && let Some(established) = responder.confirm(at, header.session)
                        {
                            prop_assert!(here.is_some() && there.is_none());
                            there = Some(established);
                        }
                    }
                }
            }
            responder.handle_timeout(at);
            if let Some(error) = initiator.handle_timeout(at) {
                failed = Some(error);
            }
            if let Some(hello) = initiator.poll_transmit(at) {
                let hello = hello.to_vec();
                network.send(now, true, hello);
            }
            if let (Some(here), 0) = (&here, now % 100) {
                network.send(now, true, first_packet(here, now));
            }
        }
        prop_assert_eq!(here.is_some(), failed.is_none());
        if let Some(here) = &here {
            let there = there.unwrap();
            prop_assert_eq!((here.keys, here.local, here.peer), (there.keys, there.peer, there.local));
            prop_assert!(here.rtt.is_none_or(|rtt| rtt >= Duration::from_millis(20)));
            prop_assert!(there.rtt.is_none_or(|rtt| rtt >= Duration::from_millis(20)));
        } else {
            prop_assert!(there.is_none());
            prop_assert!(network.mishaps > 3, "{failed:?} after {} mishaps", network.mishaps);
        }
        prop_assert_eq!(responder.next_timeout(), None);
    }

    /// Strangers who send whatever they like, with hellos of all sorts from addresses that may be others': nobody gets
    /// more than was sent in his name, and who never had a cookie leaves nothing.
    #[test]
    fn responder__is_no_amplifier(
        steps in proptest::collection::vec((0_u16..4, 0_u64..4, 0_u8..5, 0_u64..4000, any::<u16>()), 1..60),
    ) {
        let mut responder = responder();
        let mut balance: BTreeMap<SocketAddr, (usize, usize)> = BTreeMap::new();
        let (mut now, mut names, mut cookies) = (0, 0, vec![(None, [0; 16])]);
        for (host, nonce, kind, wait, value) in steps {
            now += wait;
            let mut sender = initiator(ms(0), nonce, terms(nonce));
            let mut datagram = sender.poll_transmit(ms(0)).unwrap().to_vec();
            let (whose, cookie) = cookies[usize::from(value) % cookies.len()];
            if let (Some(_), Ok(Handshake::Hello(Hello { mac, .. }))) = (whose, Handshake::read(&datagram)) {
                sender.handle(ms(0), &cookie_for(mac, cookie));
                datagram = sender.poll_transmit(ms(0)).unwrap().to_vec();
            }
            match kind {
                0 => datagram[usize::from(value) % HELLO_BYTES] ^= 1,
                1 => datagram.truncate(usize::from(value) % HELLO_BYTES),
                _ => {}
            }
            let (received, returned) = balance.entry(address(host)).or_default();
            *received += datagram.len();
            let answer = match responder.handle(ms(now), address(host), &datagram) {
                Incoming::Nothing => continue,
                Incoming::Answer(answer) => answer,
                Incoming::Asked(asked) => {
                    prop_assert_eq!(whose, Some(host));
                    names += 1;
                    responder.accept(ms(now), asked, &terms(names)).datagram
                }
            };
            *returned += answer.len();
            prop_assert!(returned <= received);
            if let Ok(Handshake::Cookie { cookie, .. }) = Handshake::read(&answer) {
                cookies.push((Some(host), cookie));
            }
            responder.handle_timeout(ms(now));
        }
    }

    /// No panic, and nothing comes of it.
    #[test]
    fn handle__of_anything(datagram in proptest::collection::vec(any::<u8>(), 0..1300), kind in 0_u8..8, full: bool) {
        let mut datagram = datagram;
        if full {
            datagram.resize(HELLO_BYTES, 7);
        }
        if let Some(first) = datagram.first_mut() {
            *first = VERSION << 4 | kind;
        }
        prop_assert!(matches!(responder().handle(ms(0), address(1), &datagram), Incoming::Nothing));
        prop_assert_eq!(initiator(ms(0), 1, terms(1)).handle(ms(0), &datagram), AttemptProgress::Waiting);
    }
}
