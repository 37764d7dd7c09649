//! Two endpoints on one thread, whose insides can be looked at. Their sockets are real and their time is not: it moves by a
//! step a turn, however long the turn took.

mod floods;
mod marks;
mod stops;

use std::net::{SocketAddr, UdpSocket};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use fairwave_proto::Terms;
use fairwave_proto::codec::{CloseReason, Header, PacketKind, Reader, Refusal, SessionId, VoidReason, Writer};
use fairwave_proto::handshake::{HALF_OPEN_LASTS, HandshakeError};
use fairwave_testing::Deadline;
use fairwave_units::{Duration, Time};

mod tunnels;

use super::visits::LOOK_EVERY;
use super::*;
use crate::commands::Commands;
use crate::config::EndpointConfig;
use crate::connect::{ConnectError, ConnectOptions};
use crate::crypto::SessionKeys;
use crate::handler::Handler;
use crate::identity::Identity;
use crate::keyring::{Keyring, Validity};
use crate::orders::{Call, EndpointOrder};
use crate::proof::Proof;
use crate::session::Session;
use crate::share_id::ShareId;
use crate::thread_waker::ThreadWaker;
use crate::ticket::Ticket;

/// By which the time moves in a turn.
const STEP: Duration = Duration::from_micros(100);

enum Seen {
    Open(Session),
    Bytes(u64),
    Closed(CloseReason, bool),
}

/// Lends zeros, accepts nothing else, and reports what it sees.
struct Teller(Sender<Seen>);

impl Handler for Teller {
    fn on_open(&mut self, session: &Session) {
        let _ = self.0.send(Seen::Open(session.clone()));
    }

    fn on_request(&mut self, session: &Session, stream: u32, range: Range<u64>) {
        session.serve(stream, range);
    }

    fn lend(&mut self, _stream: u32, range: Range<u64>, take: &mut dyn FnMut(&[u8])) -> Result<(), VoidReason> {
        take(&vec![0; (range.end - range.start) as usize]);
        Ok(())
    }

    fn on_data(&mut self, _session: &Session, _stream: u32, _offset: u64, bytes: &[u8]) {
        assert!(bytes.iter().all(|byte| *byte == 0), "other bytes than were given");
        let _ = self.0.send(Seen::Bytes(bytes.len() as u64));
    }

    fn on_closed(&mut self, _session: &Session, reason: CloseReason, by_peer: bool) {
        let _ = self.0.send(Seen::Closed(reason, by_peer));
    }
}

struct End {
    driver: Driver,
    orders: Sender<EndpointOrder>,
    seen: Receiver<Seen>,
    tell: Sender<Seen>,
    session: Option<Session>,
    bytes: u64,
    closed: Option<(CloseReason, bool)>,
}

impl End {
    fn new() -> Self {
        Self::at(own_address())
    }

    fn at(place: SocketAddr) -> Self {
        Self::with(&EndpointConfig { listen: Some(place), ..EndpointConfig::default() })
    }

    fn with(config: &EndpointConfig) -> Self {
        let bell = ThreadWaker::new().unwrap();
        let (commands, received) = Commands::new(bell.clone());
        let (orders, ordered) = unbounded();
        let mut driver = Driver::new(config, bell, commands, received, ordered).unwrap();
        driver.clock.advance(Duration::ZERO);
        let (tell, seen) = unbounded();
        Self { driver, orders, seen, tell, session: None, bytes: 0, closed: None }
    }

    /// A turn, after which it is a step later.
    fn turn(&mut self) {
        self.driver.turn();
        self.wait(STEP);
        for seen in self.seen.try_iter() {
            match seen {
                Seen::Open(session) => self.session = Some(session),
                Seen::Bytes(bytes) => self.bytes += bytes,
                Seen::Closed(reason, by_peer) => self.closed = Some((reason, by_peer)),
            }
        }
    }

    fn now(&self) -> Time {
        self.driver.clock.now()
    }

    fn wait(&mut self, span: Duration) {
        self.driver.clock.advance(span);
    }

    /// Lets in who has a ticket of this keyring.
    fn listen(&self, tickets: &Arc<Keyring>) {
        let tell = self.tell.clone();
        let accept: crate::visitor::Accept = Box::new(move |_| Ok((Terms::default(), Box::new(Teller(tell.clone())))));
        let judge: crate::visitor::Judge = Box::new(|_| Ok(Terms::default()));
        self.orders.send(EndpointOrder::Listen { tickets: Arc::clone(tickets), judge, accept }).unwrap();
    }

    /// Returns the result's receiver.
    fn connect(&self, to: Ticket) -> Receiver<Result<Session, ConnectError>> {
        self.connect_with(to, Box::new(Teller(self.tell.clone())))
    }

    fn connect_with(&self, to: Ticket, handler: Box<dyn Handler>) -> Receiver<Result<Session, ConnectError>> {
        self.call(to, handler, None)
    }

    /// Connects with the proof of a session that this one follows.
    fn connect_again(&self, to: Ticket, proof: Proof) -> Receiver<Result<Session, ConnectError>> {
        self.call(to, Box::new(Teller(self.tell.clone())), Some(proof))
    }

    fn call(
        &self,
        to: Ticket,
        handler: Box<dyn Handler>,
        proof: Option<Proof>,
    ) -> Receiver<Result<Session, ConnectError>> {
        let options = ConnectOptions { sends: false, receives: true, greeting: vec![], options: Terms::default() };
        let (reply, answer) = bounded(1);
        let call = Call { to, options, handler, proof, reply };
        self.orders.send(EndpointOrder::Connect(Box::new(call))).unwrap();
        answer
    }

    fn place(&self) -> SocketAddr {
        self.driver.shared().facts.local
    }

    /// Datagrams that have come are lost: what loopback carries is there when it was sent.
    fn lose_what_came(&mut self) {
        let mut inbox = std::mem::take(&mut self.driver.inbox);
        while inbox.receive(&self.driver.socket).is_ok_and(|count| count > 0) {}
        self.driver.inbox = inbox;
    }

    fn id(&self) -> SessionId {
        self.session.as_ref().expect("it is open").id()
    }
}

/// Any port of a loopback address that nobody else uses, or hardly: a port that an end leaves is free for the next one.
fn own_address() -> SocketAddr {
    static ENDS: AtomicU32 = AtomicU32::new(0);
    let [.., high, low] = ENDS.fetch_add(1, Ordering::Relaxed).to_be_bytes();
    let process = std::process::id() % 250 + 1;
    SocketAddr::from(([127, process as u8, high.wrapping_add(1), low], 0))
}

/// A session from the first end, which takes, to the second, which gives.
fn ends() -> [End; 2] {
    ends_with(&keyring())
}

fn keyring() -> Arc<Keyring> {
    Arc::new(Keyring::in_memory(Identity::random().unwrap(), ShareId(7)))
}

fn ends_with(keyring: &Arc<Keyring>) -> [End; 2] {
    let mut ends = [End::new(), End::new()];
    let to = keyring.issue(Validity { lasts_s: None, is_once: false }, vec![ends[1].place()]).unwrap();
    ends[1].listen(keyring);
    ends[0].connect(to);
    run(&mut ends, |ends| ends.iter().all(|end| end.session.is_some()));
    ends
}

fn run(ends: &mut [End; 2], is_done: impl Fn(&[End; 2]) -> bool) {
    let deadline = Deadline::new();
    while !is_done(ends) {
        ends.iter_mut().for_each(End::turn);
        deadline.check("what two endpoints come to");
    }
}

/// Both ends probe each other this many times: at least that many control packets are sent either way.
fn talk(ends: &mut [End; 2], times: usize) {
    for _ in 0..times {
        for end in ends.iter_mut() {
            let (now, id) = (end.driver.clock.now(), end.id());
            end.driver.host.probe(now, id);
        }
        ends.iter_mut().for_each(End::turn);
    }
}

#[test]
fn close__after_epochs_is_heard_and_leaves_no_earlier_key() {
    for closes in [0, 1] {
        let mut ends = ends();
        // Epochs have 1024 numbers here, and a data packet at most 64 KiB.
        let length = 3 << 26;
        ends[0].session.as_ref().unwrap().want(1, 0..length);
        run(&mut ends, |ends| ends[0].bytes >= length);
        talk(&mut ends, 3 << 10);
        let ids = [ends[0].id(), ends[1].id()];
        for (end, id) in ends.iter().zip(ids) {
            assert!(end.driver.host.keys(id).is_none(), "the core has keys of a session that is open");
        }
        ends[closes].session.as_ref().unwrap().close(CloseReason::Done);
        run(&mut ends, |ends| ends[closes].closed.is_some());
        // The close is sealed as the session's packets were.
        let kept = ends[closes].driver.host.keys(ids[closes]);
        let Some(SessionKeys::Closing(control)) = kept else { panic!("nothing to say it with") };
        assert!(control.sealer.epoch() >= 3, "{}", control.sealer.epoch());
        run(&mut ends, |ends| ends[1 - closes].closed.is_some());
        assert_eq!(ends[closes].closed, Some((CloseReason::Done, false)));
        assert_eq!(ends[1 - closes].closed, Some((CloseReason::Done, true)));
        run(&mut ends, |ends| ends.iter().zip(ids).all(|(end, id)| end.driver.host.keys(id).is_none()));
    }
}

#[test]
fn stop__of_an_endpoint_comes_after_what_its_sessions_were_told() {
    for closes in [0, 1] {
        let mut ends = ends();
        ends[closes].session.as_ref().unwrap().close(CloseReason::Done);
        ends[closes].orders.send(EndpointOrder::Stop).unwrap();
        run(&mut ends, |ends| ends[1 - closes].closed.is_some());
        assert_eq!(ends[1 - closes].closed, Some((CloseReason::Done, true)));
    }
}

/// A process that ends at once after its last word would not know whether that was heard.
#[test]
fn stop__waits_for_the_answer_of_a_peer_that_was_told_before() {
    let mut ends = ends();
    let [closes, hears] = &mut ends;
    closes.session.as_ref().unwrap().close(CloseReason::Done);
    while closes.closed.is_none() {
        closes.turn();
    }
    closes.orders.send(EndpointOrder::Stop).unwrap();
    let (now, _) = closes.driver.turn();
    assert!(!closes.driver.is_over(now), "the peer has said nothing");
    assert!(closes.driver.is_over(now.saturating_add(Duration::from_secs(1))), "it may say nothing ever");
    // The close is lost, and is repeated.
    hears.lose_what_came();
    run(&mut ends, |ends| ends[1].closed.is_some());
    assert_eq!(ends[1].closed, Some((CloseReason::Done, true)));
    // The answer is under way.
    run(&mut ends, |ends| ends[0].driver.is_over(now));
}

/// A second end at the address of the first, as a process that was killed and restarted: no peer is notified.
fn begun_anew(end: End, keyring: &Arc<Keyring>) -> End {
    let place = end.place();
    drop(end);
    let end = End::at(place);
    end.listen(keyring);
    end
}

#[test]
fn reset__costs_who_was_connected_no_silence() {
    let keyring = keyring();
    let [client, server] = ends_with(&keyring);
    let mut ends = [client, begun_anew(server, &keyring)];
    let begin = ends[0].now();
    run(&mut ends, |ends| ends[0].closed.is_some());
    assert_eq!(ends[0].closed, Some((CloseReason::Reset, true)));
    let to = keyring.issue(Validity { lasts_s: None, is_once: false }, vec![ends[1].place()]).unwrap();
    ends[0].session = None;
    ends[0].connect(to);
    run(&mut ends, |ends| ends.iter().all(|end| end.session.is_some()));
    let took = ends[0].now().since(begin);
    assert!(took < Duration::from_secs(1), "{took:?}");
}

/// The first end has a session that the second has agreed to and has heard nothing of, and what came of the call.
fn half_open(keyring: &Arc<Keyring>) -> ([End; 2], Receiver<Result<Session, ConnectError>>) {
    let mut ends = [End::new(), End::new()];
    let to = keyring.issue(Validity { lasts_s: None, is_once: false }, vec![ends[1].place()]).unwrap();
    ends[1].listen(keyring);
    let answer = ends[0].connect(to);
    let deadline = Deadline::new();
    while ends[0].session.is_none() {
        ends[1].turn();
        ends[0].turn();
        deadline.check("half of a session");
    }
    assert!(ends[1].session.is_none() && answer.is_empty());
    (ends, answer)
}

fn failure(answer: &Receiver<Result<Session, ConnectError>>) -> ConnectError {
    answer.try_recv().expect("it is over").err().expect("there is no session")
}

#[test]
fn connect__to_who_has_forgotten_it_before_the_first_packet_opens_no_session() {
    let keyring = keyring();
    let ([client, server], answer) = half_open(&keyring);
    let mut ends = [client, begun_anew(server, &keyring)];
    run(&mut ends, |ends| ends[0].closed.is_some());
    assert_eq!(ends[0].closed, Some((CloseReason::Reset, true)));
    assert_eq!(failure(&answer), HandshakeError::FellSilent.into());
}

/// A process that was stopped, or a path that stood still, between the reply and the first packet: that goes again.
#[test]
fn connect__who_stands_still_for_six_seconds_before_the_first_packet_opens_a_session() {
    let (mut ends, answer) = half_open(&keyring());
    ends[1].lose_what_came();
    for end in &mut ends {
        end.wait(Duration::from_secs(6));
    }
    run(&mut ends, |ends| !answer.is_empty() || ends[0].closed.is_some());
    assert!(answer.try_recv().is_ok_and(|answer| answer.is_ok()), "{:?}", ends[0].closed);
    assert!(ends[1].session.is_some());
}

#[test]
fn connect__to_who_says_nothing_after_the_handshake_opens_no_session() {
    let ([mut client, _server], answer) = half_open(&keyring());
    let later = client.driver.clock.now().saturating_add(Duration::from_secs(31));
    client.driver.host.handle_timeout(later);
    client.turn();
    assert_eq!(client.closed, Some((CloseReason::Silence, false)));
    assert_eq!(failure(&answer), HandshakeError::FellSilent.into());
}

/// Its application was not asked.
#[test]
fn connect__to_who_lets_in_nobody_so_late_opens_no_session() {
    let (mut ends, answer) = half_open(&keyring());
    let Driver { visits, clock, entries, .. } = &mut ends[1].driver;
    visits.revoked(clock.now().saturating_add(HALF_OPEN_LASTS * 2), entries);
    run(&mut ends, |ends| ends[0].closed.is_some());
    assert!(ends[1].session.is_none());
    assert_eq!(ends[0].closed, Some((CloseReason::Silence, true)));
    assert_eq!(failure(&answer), HandshakeError::FellSilent.into());
}

#[test]
fn connect__to_who_closes_it_at_once_opens_a_session() {
    let (mut ends, answer) = half_open(&keyring());
    while ends[1].session.is_none() {
        ends[1].turn();
    }
    ends[0].lose_what_came();
    let id = ends[1].id();
    let now = ends[1].driver.clock.now();
    ends[1].driver.host.close(now, id, CloseReason::Done);
    run(&mut ends, |ends| ends[0].closed.is_some());
    assert!(answer.try_recv().is_ok_and(|answer| answer.is_ok()));
}

/// Processes of one user have one identity: a reset from one of them about an unknown name ends no session of another
/// one.
#[test]
fn reset__of_another_process_with_the_same_identity_ends_nothing() {
    let keyring = keyring();
    let mut ends = ends_with(&keyring);
    let mut other = End::new();
    other.listen(&keyring);
    other.turn();
    // Somebody who has seen a packet on its way asks the other process about its session, and knows how to forge
    // addresses.
    let mut stray = vec![0; 100];
    let header = Header { kind: PacketKind::Control, session: ends[1].id(), number: 5 };
    header.write(&mut Writer::new(&mut stray)).unwrap();
    let server = ends[1].place();
    let answer = other.driver.host.handle_stray(other.driver.clock.now(), ends[0].place(), &header, &stray).unwrap();
    let header = Header::read(&mut Reader::new(&answer)).unwrap();
    let now = ends[0].driver.clock.now();
    ends[0].driver.host.handle_stray(now, server, &header, &answer);
    talk(&mut ends, 10);
    assert_eq!((ends[0].closed, ends[1].closed), (None, None));
    // The very same of the process that the session was with ends it.
    let [mut client, server_end] = ends;
    let mut anew = begun_anew(server_end, &keyring);
    anew.turn();
    let header = Header::read(&mut Reader::new(&stray)).unwrap();
    let answer = anew.driver.host.handle_stray(anew.driver.clock.now(), client.place(), &header, &stray).unwrap();
    let header = Header::read(&mut Reader::new(&answer)).unwrap();
    let now = client.driver.clock.now();
    client.driver.host.handle_stray(now, server, &header, &answer);
    client.turn();
    assert_eq!(client.closed, Some((CloseReason::Reset, true)));
}

#[test]
fn return__a_proof_opens_one_session_at_a_time() {
    let keyring = keyring();
    let mut ends = [End::new(), End::new()];
    let to = keyring.issue(Validity { lasts_s: None, is_once: true }, vec![ends[1].place()]).unwrap();
    ends[1].listen(&keyring);
    ends[0].connect(to.clone());
    run(&mut ends, |ends| ends.iter().all(|end| end.session.is_some()));
    keyring.use_up(to.id);
    let proof = ends[0].session.as_ref().unwrap().proof();
    let answers: Vec<_> = (0..20).map(|_| ends[0].connect_again(to.clone(), proof)).collect();
    let without = ends[0].connect(to.clone());
    let with_another = ends[0].connect_again(to, [9; 16]);
    run(&mut ends, |_| answers.iter().chain([&without, &with_another]).all(|answer| !answer.is_empty()));
    assert!(answers.iter().any(|answer| answer.try_recv().is_ok_and(|answer| answer.is_ok())));
    for refused in [without, with_another] {
        assert_eq!(failure(&refused), HandshakeError::Refused(Refusal::UsedUp).into());
    }
    assert_eq!(ends[1].driver.entries.iter().count(), 1, "sessions that are open with one proof");
}

/// Changes of other processes are known here after half a second, and the sessions of a ticket are checked once a
/// second.
#[test]
fn revoked__a_session_ends_within_two_seconds() {
    let keyring = keyring();
    let mut ends = ends_with(&keyring);
    let ticket = ends[1].driver.entries.tickets().next().unwrap();
    let Driver { visits, clock, entries, .. } = &mut ends[1].driver;
    let looked = clock.now().saturating_add(LOOK_EVERY);
    assert!(visits.revoked(looked, entries).is_empty());
    assert!(keyring.revoke(ticket).unwrap());
    let next = looked.saturating_add(LOOK_EVERY);
    assert_eq!(visits.revoked(next, entries).len(), 1);
    let all = LOOK_EVERY.as_secs_f64() + crate::keyring::LOOK_AGAIN.as_secs_f64();
    assert!(all < 2.0, "{all} s");
}

#[test]
fn reset__a_flood_of_unknown_sessions_gets_few_and_small_answers() {
    let mut server = End::new();
    server.listen(&keyring());
    let flooder = UdpSocket::bind("127.0.0.1:0").unwrap();
    flooder.set_nonblocking(true).unwrap();
    let (begin, mut sent, mut answers, mut room) = (server.now(), 0_u64, 0_u64, [0; 2000]);
    let mut stray = [9; 100];
    while server.now().since(begin) < Duration::from_millis(2500) {
        for _ in 0..50 {
            let header = Header {
                kind: PacketKind::Data,
                session: SessionId(sent.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
                number: sent,
            };
            header.write(&mut Writer::new(&mut stray)).unwrap();
            sent += u64::from(flooder.send_to(&stray, server.place()).is_ok());
        }
        server.turn();
        server.wait(Duration::from_millis(10));
        while let Ok(bytes) = flooder.recv(&mut room) {
            answers += 1;
            assert!(bytes < stray.len(), "{bytes}");
        }
    }
    // 64 in each second, of which it saw three or four.
    assert!((64..=4 * 64).contains(&answers) && sent > 1000, "{answers} answers to {sent} packets");
}
