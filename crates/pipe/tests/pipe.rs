//! Pipes between two endpoints of one process, over the loopback device.

#![allow(non_snake_case)]

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use fairwave_host::{
    CloseReason, ConnectOptions, Endpoint, EndpointConfig, Handler, Identity, Keyring, Lasts, Refusal, Session,
    ShareId, Terms, Ticket, Validity, VoidReason,
};
use fairwave_pipe::{Pipe, PipeOptions, Pump, Watch, greeting, read_greeting, reset};
use fairwave_testing::{Deadline, LIMIT, wait_for};

/// How a pipe ended.
#[derive(Debug, PartialEq)]
enum Heard {
    End,
    Cut(CloseReason),
}

struct Teller(Sender<Heard>);

impl Watch for Teller {
    fn on_cut(&self, descriptor: Option<OwnedFd>, reason: CloseReason) {
        descriptor.into_iter().for_each(reset);
        let _ = self.0.send(Heard::Cut(reason));
    }

    fn on_end(&self, _: Option<OwnedFd>) {
        let _ = self.0.send(Heard::End);
    }
}

/// One end of a pipe, as its program sees it.
struct Program<S> {
    stream: S,
    pipe: Pipe,
    heard: Receiver<Heard>,
}

struct World {
    pump: Pump,
    server: Endpoint,
    client: Endpoint,
    ticket: Ticket,
    came: Receiver<(Pipe, Receiver<Heard>)>,
}

impl World {
    fn new() -> Self {
        let limit = fairwave_units::Duration::from_secs(LIMIT.as_secs());
        let lasts = Lasts { silent: limit, opening: limit, ..Lasts::default() };
        let listen = Some("127.0.0.1:0".parse().unwrap());
        let config = EndpointConfig { listen, lasts, ..EndpointConfig::default() };
        let (server, client) = (Endpoint::bind(&config).unwrap(), Endpoint::bind(&config).unwrap());
        let keyring = Arc::new(Keyring::in_memory(Identity::random().unwrap(), ShareId(1)));
        let pump = Pump::start().unwrap();
        let (tell, came) = channel();
        let pumps = pump.clone();
        server.listen(
            Arc::clone(&keyring),
            Box::new(move |visitor| {
                if read_greeting(visitor.greeting) != Some(b"hello") {
                    return Err(Refusal::Purpose);
                }
                let (reported, heard) = channel();
                let (pipe, handler) = pumps.pipe(PipeOptions::default(), Box::new(Teller(reported)));
                let _ = tell.send((pipe, heard));
                Ok((Terms::default(), handler))
            }),
        );
        let ticket = keyring.issue(Validity { lasts_s: None, is_once: false }, vec![server.local_addr()]).unwrap();
        Self { pump, server, client, ticket, came }
    }

    fn options() -> ConnectOptions {
        ConnectOptions { sends: true, receives: true, greeting: greeting(b"hello"), options: Terms::default() }
    }

    /// Programs with descriptors of this kind, which are joined.
    fn programs<S>(&self, pair: impl Fn() -> (S, OwnedFd)) -> (Program<S>, Program<S>) {
        let ((asking, theirs), (answering, ours)) = (pair(), pair());
        let (reported, heard) = channel();
        let (pipe, handler) = self.pump.pipe(PipeOptions::default(), Box::new(Teller(reported)));
        pipe.attach(theirs);
        self.client.connect(&self.ticket, Self::options(), handler).unwrap();
        let (other, other_heard) = self.came.recv_timeout(LIMIT).unwrap();
        other.attach(ours);
        let asking = Program { stream: asking, pipe, heard };
        (asking, Program { stream: answering, pipe: other, heard: other_heard })
    }
}

fn unix() -> (UnixStream, OwnedFd) {
    let (program, pipe) = UnixStream::pair().unwrap();
    program.set_read_timeout(Some(LIMIT)).unwrap();
    (program, pipe.into())
}

fn tcp() -> (TcpStream, OwnedFd) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let program = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    program.set_read_timeout(Some(LIMIT)).unwrap();
    (program, listener.accept().unwrap().0.into())
}

fn bytes(seed: u64, length: usize) -> Vec<u8> {
    (0..length as u64).map(|at| ((at ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

fn all(mut stream: impl Read) -> Vec<u8> {
    let mut all = Vec::new();
    stream.read_to_end(&mut all).unwrap();
    all
}

#[test]
fn pipe__carries_both_ways_at_once_to_both_ends() {
    const LENGTH: usize = 12_000_007;
    let world = World::new();
    let (mut asking, mut answering) = world.programs(unix);
    let writers = [(1, &asking.stream), (2, &answering.stream)].map(|(seed, stream)| {
        let mut stream = stream.try_clone().unwrap();
        thread::spawn(move || {
            stream.write_all(&bytes(seed, LENGTH)).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
        })
    });
    let mut there = answering.stream.try_clone().unwrap();
    let reader = thread::spawn(move || all(&mut there));
    assert!(all(&mut asking.stream) == bytes(2, LENGTH));
    assert!(reader.join().unwrap() == bytes(1, LENGTH));
    for writer in writers {
        writer.join().unwrap();
    }
    for program in [&mut asking, &mut answering] {
        assert_eq!(program.heard.recv_timeout(LIMIT), Ok(Heard::End));
        let status = program.pipe.status();
        assert_eq!((status.written_taken, status.came_taken), (LENGTH as u64, LENGTH as u64));
        assert_eq!(status.closed, Some(CloseReason::Done));
    }
    assert!(world.server.sessions().is_empty());
}

#[test]
fn pipe__one_way_may_end_long_before_the_other() {
    let world = World::new();
    let (mut asking, mut answering) = world.programs(tcp);
    asking.stream.write_all(b"what?").unwrap();
    asking.stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(all(&mut answering.stream), b"what?");
    answering.stream.write_all(b"that").unwrap();
    let mut four = [0; 4];
    asking.stream.read_exact(&mut four).unwrap();
    assert_eq!(&four, b"that");
    assert!(asking.heard.try_recv().is_err());
    drop(answering.stream);
    assert_eq!(all(&mut asking.stream), b"");
    assert_eq!(asking.heard.recv_timeout(LIMIT), Ok(Heard::End));
    assert_eq!(answering.heard.recv_timeout(LIMIT), Ok(Heard::End));
}

/// Relays datagrams to an address and back until it is dropped, except those to it while it is blocked.
struct Carrier {
    address: SocketAddr,
    loses: Arc<AtomicBool>,
    lost: Arc<AtomicU64>,
}

impl Carrier {
    fn to(server: SocketAddr) -> Self {
        let [near, far] = [0, 1].map(|_| Arc::new(UdpSocket::bind("127.0.0.1:0").unwrap()));
        far.connect(server).unwrap();
        let (address, loses) = (near.local_addr().unwrap(), Arc::new(AtomicBool::new(false)));
        let (client, lost) = (Arc::new(Mutex::new(None)), Arc::new(AtomicU64::new(0)));
        for (from, is_back) in [(Arc::clone(&near), false), (Arc::clone(&far), true)] {
            let (near, far, client, loses) =
                (Arc::clone(&near), Arc::clone(&far), Arc::clone(&client), Arc::downgrade(&loses));
            let lost = Arc::clone(&lost);
            from.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
            thread::spawn(move || {
                let mut room = vec![0; 1 << 16];
                while let Some(loses) = loses.upgrade() {
                    let Ok((length, who)) = from.recv_from(&mut room) else { continue };
                    if is_back {
                        let to: Option<SocketAddr> = *client.lock().unwrap();
                        let _ = near.send_to(&room[..length], to.unwrap());
                    } else if loses.load(Ordering::SeqCst) {
                        lost.fetch_add(1, Ordering::SeqCst);
                    } else {
                        *client.lock().unwrap() = Some(who);
                        let _ = far.send(&room[..length]);
                    }
                }
            });
        }
        Self { address, loses, lost }
    }
}

#[test]
fn pipe__an_end_whose_word_gets_lost_is_said_again() {
    let mut world = World::new();
    let carrier = Carrier::to(world.server.local_addr());
    world.ticket.addresses = vec![carrier.address];
    let (asking, mut answering) = world.programs(unix);
    // A program that writes a little now and then: by its rate what was asked for ahead takes an hour.
    for _ in 0..100 {
        (&asking.stream).write_all(&[1; 10]).unwrap();
        answering.stream.read_exact(&mut [0; 10]).unwrap();
        thread::sleep(Duration::from_millis(10));
    }
    carrier.loses.store(true, Ordering::SeqCst);
    asking.stream.shutdown(Shutdown::Write).unwrap();
    wait_for("the word and another one get lost", || carrier.lost.load(Ordering::SeqCst) >= 2);
    carrier.loses.store(false, Ordering::SeqCst);
    assert_eq!(all(&mut answering.stream), b"");
}

#[test]
fn pipe__a_stream_of_nothing_ends() {
    let world = World::new();
    let (mut asking, answering) = world.programs(unix);
    drop(answering.stream);
    assert_eq!(all(&mut asking.stream), b"");
    drop(asking.stream);
    assert_eq!(asking.heard.recv_timeout(LIMIT), Ok(Heard::End));
}

#[test]
fn pipe__who_takes_nothing_stops_the_other_end() {
    let world = World::new();
    let (asking, mut answering) = world.programs(unix);
    asking.stream.set_nonblocking(true).unwrap();
    let piece = bytes(3, 1 << 16);
    let (mut written, mut idle) = (0, 0);
    let deadline = Deadline::new();
    // The bytes requested ahead are accepted, sooner or later. Then nothing more is for half a second.
    while written <= 4 << 20 || idle < 50 {
        deadline.check("4 MiB are taken, and no more");
        match (&asking.stream).write(&piece) {
            Ok(bytes) => (written, idle) = (written + bytes, 0),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                idle += 1;
                thread::sleep(Duration::from_millis(10));
            }
            Err(error) => panic!("{error}"),
        }
    }
    // The bytes requested ahead, the bytes kept, and the content of both descriptors.
    assert!(written < (4 << 20) + (5 << 20) + (2 << 20), "{written} bytes were taken of one that nobody reads");
    asking.stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(all(&mut answering.stream).len(), written);
}

#[test]
fn pipe__an_idle_end_keeps_nothing() {
    let world = World::new();
    let (asking, mut answering) = world.programs(unix);
    (&asking.stream).write_all(&bytes(4, 1000)).unwrap();
    answering.stream.read_exact(&mut [0; 1000]).unwrap();
    wait_for("the other end says what it has taken", || asking.pipe.status().written_taken >= 1000);
}

#[test]
fn pipe__a_cut_is_no_end() {
    let world = World::new();
    let (mut asking, answering) = world.programs(tcp);
    asking.stream.write_all(b"half of").unwrap();
    let mut seven = [0; 7];
    (&answering.stream).read_exact(&mut seven).unwrap();
    asking.pipe.cut();
    let error = (&answering.stream).read(&mut seven).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    let error = asking.stream.read(&mut seven).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    assert_eq!(answering.heard.recv_timeout(LIMIT), Ok(Heard::Cut(CloseReason::Stopped)));
}

#[test]
fn pipe__a_reset_of_a_program_reaches_the_other() {
    let world = World::new();
    let (asking, answering) = world.programs(tcp);
    (&answering.stream).write_all(b"unread").unwrap();
    let mut one = [0; 1];
    asking.stream.peek(&mut one).unwrap();
    // Closed with unread bytes: TCP resets.
    drop(asking.stream);
    let mut stream = &answering.stream;
    let error = stream.read(&mut one).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    assert_eq!(answering.heard.recv_timeout(LIMIT), Ok(Heard::Cut(CloseReason::Stopped)));
}

#[test]
fn pipe__an_endpoint_that_goes_away_cuts() {
    let world = World::new();
    let (asking, answering) = world.programs(tcp);
    (&asking.stream).write_all(b"hello").unwrap();
    let mut five = [0; 5];
    (&answering.stream).read_exact(&mut five).unwrap();
    world.client.close();
    let error = (&answering.stream).read(&mut five).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    assert_eq!(answering.heard.recv_timeout(LIMIT), Ok(Heard::Cut(CloseReason::Leaving)));
}

#[test]
fn pipe__what_came_before_a_cut_is_read() {
    let world = World::new();
    let (asking, mut answering) = world.programs(unix);
    let sent = bytes(5, 2_000_000);
    (&asking.stream).write_all(&sent).unwrap();
    wait_for("all has come", || answering.pipe.status().came >= sent.len() as u64);
    asking.pipe.cut();
    let mut read = Vec::new();
    // A Unix socket whose program has written nothing has no reset.
    let _ = answering.stream.read_to_end(&mut read);
    assert!(read == sent, "{} bytes of {}", read.len(), sent.len());
    assert_eq!(answering.heard.recv_timeout(LIMIT), Ok(Heard::Cut(CloseReason::Stopped)));
}

#[test]
fn pipe__who_is_refused_hears_it() {
    let world = World::new();
    let (reported, heard) = channel();
    let (pipe, handler) = world.pump.pipe(PipeOptions::default(), Box::new(Teller(reported)));
    let options = ConnectOptions { greeting: greeting(b"nobody"), ..World::options() };
    assert!(world.client.connect(&world.ticket, options, handler).is_err());
    assert!(matches!(heard.recv_timeout(LIMIT), Ok(Heard::Cut(_))));
    let (program, descriptor) = tcp();
    pipe.attach(descriptor);
    assert_eq!((&program).read(&mut [0; 1]).unwrap_err().kind(), ErrorKind::ConnectionReset);
}

#[test]
fn drain__waits_for_what_was_written() {
    let world = World::new();
    let (asking, mut answering) = world.programs(unix);
    (&asking.stream).write_all(&bytes(6, 100_000)).unwrap();
    let reader = thread::spawn(move || all(&mut answering.stream).len());
    let other = world.pump.clone();
    // Both ends are of this pump: each stream ends where its program has stopped.
    assert!(other.drain(LIMIT));
    assert_eq!(reader.join().unwrap(), 100_000);
}

/// A peer that implements the protocol itself, and lies.
struct Liar {
    says: fn(&Session),
}

impl Handler for Liar {
    fn on_open(&mut self, session: &Session) {
        (self.says)(session);
    }

    fn on_request(&mut self, session: &Session, stream: u32, range: std::ops::Range<u64>) {
        if stream == 1 {
            // Ten bytes, of which it has none.
            session.serve(1, range.start..range.start + 10);
        }
    }
}

#[test]
fn pipe__liars_are_cut() {
    let lies: [fn(&Session); 3] = [
        // It has taken what was never given.
        |session| session.want(0, 99..100),
        // It lends nothing of what it serves: the range is void, and that is not an end.
        |_| {},
        // It asks for a stream that no pipe has, which is refused; and takes more than there is.
        |session| {
            session.want(7, 0..10);
            session.want(0, 1..2);
        },
    ];
    for says in lies {
        let world = World::new();
        world.client.connect(&world.ticket, World::options(), Box::new(Liar { says })).unwrap();
        let (pipe, heard) = world.came.recv_timeout(LIMIT).unwrap();
        let (program, descriptor) = tcp();
        pipe.attach(descriptor);
        assert!(matches!(heard.recv_timeout(LIMIT), Ok(Heard::Cut(_))));
        assert_eq!((&program).read(&mut [0; 1]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    }
}

/// One whose stream shrinks below what it has sent.
struct Shrinking;

impl Handler for Shrinking {
    fn on_request(&mut self, session: &Session, stream: u32, range: std::ops::Range<u64>) {
        if stream == 1 && range.start == 0 {
            session.serve(1, 0..100);
        } else if stream == 0 {
            session.refuse(0, range, VoidReason::Vanished);
        }
    }

    fn lend(&mut self, _: u32, range: std::ops::Range<u64>, take: &mut dyn FnMut(&[u8])) -> Result<(), VoidReason> {
        take(&vec![7; (range.end - range.start) as usize]);
        Ok(())
    }
}

#[test]
fn pipe__a_stream_does_not_end_before_what_came() {
    let world = World::new();
    let session = world.client.connect(&world.ticket, World::options(), Box::new(Shrinking)).unwrap();
    let (pipe, heard) = world.came.recv_timeout(LIMIT).unwrap();
    let (program, descriptor) = tcp();
    pipe.attach(descriptor);
    let mut hundred = [0; 100];
    (&program).read_exact(&mut hundred).unwrap();
    session.refuse(1, 50..1000, VoidReason::Shrank);
    assert!(matches!(heard.recv_timeout(LIMIT), Ok(Heard::Cut(_))));
    assert_eq!((&program).read(&mut hundred).unwrap_err().kind(), ErrorKind::ConnectionReset);
}
