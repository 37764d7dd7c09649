//! Two endpoints on one thread, whose insides can be looked at.

use std::ops::Range;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use fairwave_proto::SessionOptions;
use fairwave_proto::codec::{CloseReason, SessionId, VoidReason};

use super::*;
use crate::crypto::SessionKeys;
use crate::endpoint::{ConnectOptions, EndpointConfig};
use crate::handler::Handler;
use crate::identity::Identity;
use crate::keyring::{Keyring, Validity};
use crate::session::Session;
use crate::share_id::ShareId;

const PATIENCE: Duration = Duration::from_secs(60);

enum Seen {
    Open(Session),
    Bytes(u64),
    Closed(CloseReason, bool),
}

/// Gives zeros, and tells what it sees.
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
        let _ = self.0.send(Seen::Bytes(bytes.len() as u64));
    }

    fn on_closed(&mut self, _session: &Session, reason: CloseReason, by_peer: bool) {
        let _ = self.0.send(Seen::Closed(reason, by_peer));
    }
}

struct End {
    driver: Driver,
    orders: Sender<Order>,
    seen: Receiver<Seen>,
    tell: Sender<Seen>,
    session: Option<Session>,
    bytes: u64,
    closed: Option<(CloseReason, bool)>,
}

impl End {
    fn new() -> Self {
        let config = EndpointConfig { listen: Some("127.0.0.1:0".parse().unwrap()), ..EndpointConfig::default() };
        let bell = Bell::new().unwrap();
        let (commands, told) = Commands::new(bell.clone());
        let (orders, ordered) = unbounded();
        let driver = Driver::new(&config, bell, commands, told, ordered).unwrap();
        let (tell, seen) = unbounded();
        Self { driver, orders, seen, tell, session: None, bytes: 0, closed: None }
    }

    fn turn(&mut self) {
        self.driver.turn();
        for seen in self.seen.try_iter() {
            match seen {
                Seen::Open(session) => self.session = Some(session),
                Seen::Bytes(bytes) => self.bytes += bytes,
                Seen::Closed(reason, by_peer) => self.closed = Some((reason, by_peer)),
            }
        }
    }

    fn id(&self) -> SessionId {
        self.session.as_ref().expect("it is open").id()
    }
}

/// A session from the first end, which takes, to the second, which gives.
fn ends() -> [End; 2] {
    let mut ends = [End::new(), End::new()];
    let keyring = std::sync::Arc::new(Keyring::in_memory(Identity::random().unwrap(), ShareId(7)));
    let address = ends[1].driver.shared().facts.local;
    let to = keyring.issue(Validity { lasts_s: None, is_once: false }, vec![address]).unwrap();
    let tell = ends[1].tell.clone();
    let accept: crate::endpoint::Accept =
        Box::new(move |_| Ok((SessionOptions::default(), Box::new(Teller(tell.clone())))));
    let judge: crate::endpoint::Judge = Box::new(|_| Ok(SessionOptions::default()));
    ends[1].orders.send(Order::Listen { tickets: keyring, judge, accept }).unwrap();
    let options = ConnectOptions { sends: false, receives: true, greeting: vec![], options: SessionOptions::default() };
    let handler = Box::new(Teller(ends[0].tell.clone()));
    let call = Call { to, options, handler, proof: None, reply: bounded(1).0 };
    ends[0].orders.send(Order::Connect(Box::new(call))).unwrap();
    run(&mut ends, |ends| ends.iter().all(|end| end.session.is_some()));
    ends
}

fn run(ends: &mut [End; 2], is_done: impl Fn(&[End; 2]) -> bool) {
    let begin = Instant::now();
    while !is_done(ends) {
        ends.iter_mut().for_each(End::turn);
        assert!(begin.elapsed() < PATIENCE, "it takes too long");
    }
}

/// Both ends ask so often whether the other is there: so many control packets go either way, and more.
fn talk(ends: &mut [End; 2], times: usize) {
    for _ in 0..times {
        for end in ends.iter_mut() {
            let (now, id) = (end.driver.clock.now(), end.id());
            end.driver.host.control.probe(now, id);
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
        // What says so is sealed as the session's packets were.
        let kept = ends[closes].driver.host.keys(ids[closes]);
        let Some(SessionKeys::Closing(control)) = kept else { panic!("nothing to say it with") };
        assert!(control.sealer.epoch() >= 3, "{}", control.sealer.epoch());
        run(&mut ends, |ends| ends[1 - closes].closed.is_some());
        assert_eq!(ends[closes].closed, Some((CloseReason::Done, false)));
        assert_eq!(ends[1 - closes].closed, Some((CloseReason::Done, true)));
        run(&mut ends, |ends| ends.iter().zip(ids).all(|(end, id)| end.driver.host.keys(id).is_none()));
    }
}
