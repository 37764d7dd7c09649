//! Endpoints on one machine, over the loopback device.

#![allow(non_snake_case)]

use std::io::Read;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, unbounded};
use fairwave_host::{
    BenchDirection, BenchError, BenchOptions, BindError, CloseReason, ConnectError, ConnectOptions, Endpoint,
    EndpointConfig, Handler, Identity, Keyring, Lasts, MemorySource, PathDeclaration, PathDeclarations, PathKind,
    ReadError, Refusal, Session, ShareId, StreamReader, Terms, Ticket, Validity, Visitor, VoidReason, bench,
    bench_accept, bench_judge,
};
use fairwave_proto::handshake::HandshakeError;
use fairwave_schemes::scheme::schemes;
use fairwave_testing::{LIMIT, wait_for};
use fairwave_units::Rate;

/// Endpoints whose sessions and attempts do not end because the machine is busy.
fn config() -> EndpointConfig {
    let limit = fairwave_units::Duration::from_secs(LIMIT.as_secs());
    EndpointConfig { lasts: Lasts { silent: limit, opening: limit, ..Lasts::default() }, ..EndpointConfig::default() }
}

/// An event of a handler.
#[derive(Debug, PartialEq)]
enum Seen {
    Data(u64, Vec<u8>),
    Void(Range<u64>, VoidReason),
    Closed(CloseReason, bool),
}

/// Lends the bytes of `byte_at` up to a length, and reports its events.
struct Teller {
    seen: Sender<Seen>,
    length: u64,
}

fn byte_at(offset: u64) -> u8 {
    (offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

impl Handler for Teller {
    fn on_request(&mut self, session: &Session, stream: u32, range: Range<u64>) {
        let end = range.end.min(self.length).max(range.start);
        if range.start < end {
            session.serve(stream, range.start..end);
        }
        if end < range.end {
            session.refuse(stream, end..range.end, VoidReason::Shrank);
        }
    }

    fn lend(&mut self, _stream: u32, range: Range<u64>, take: &mut dyn FnMut(&[u8])) -> Result<(), VoidReason> {
        let bytes: Vec<u8> = range.map(byte_at).collect();
        let (first, rest) = bytes.split_at(bytes.len() / 3);
        take(first);
        take(rest);
        Ok(())
    }

    fn on_data(&mut self, _session: &Session, _stream: u32, offset: u64, bytes: &[u8]) {
        let _ = self.seen.send(Seen::Data(offset, bytes.to_vec()));
    }

    fn on_void(&mut self, _session: &Session, _stream: u32, range: Range<u64>, reason: VoidReason) {
        let _ = self.seen.send(Seen::Void(range, reason));
    }

    fn on_closed(&mut self, _session: &Session, reason: CloseReason, by_peer: bool) {
        let _ = self.seen.send(Seen::Closed(reason, by_peer));
    }
}

struct Server {
    endpoint: Endpoint,
    keyring: Arc<Keyring>,
    seen: Receiver<Seen>,
}

impl Server {
    /// One that gives `length` bytes.
    fn new(config: &EndpointConfig, length: u64) -> Self {
        let listen = config.listen.or(Some("127.0.0.1:0".parse().unwrap()));
        let endpoint = Endpoint::bind(&EndpointConfig { listen, ..config.clone() }).unwrap();
        let keyring = Arc::new(Keyring::in_memory(Identity::random().unwrap(), ShareId(7)));
        let (tell, seen) = unbounded();
        endpoint.listen(
            Arc::clone(&keyring),
            Box::new(move |visitor| {
                if visitor.greeting == b"nobody" {
                    return Err(Refusal::UnknownName);
                }
                Ok((Terms::default(), Box::new(Teller { seen: tell.clone(), length })))
            }),
        );
        Self { endpoint, keyring, seen }
    }

    fn ticket(&self) -> Ticket {
        let validity = Validity { lasts_s: None, is_once: false };
        self.keyring.issue(validity, vec![self.endpoint.local_addr()]).unwrap()
    }
}

fn connect(endpoint: &Endpoint, ticket: &Ticket, greeting: &[u8]) -> Result<(Session, Receiver<Seen>), ConnectError> {
    let (seen, see) = unbounded();
    let greeting = greeting.to_vec();
    let options = ConnectOptions { sends: false, receives: true, greeting, options: Terms::default() };
    Ok((endpoint.connect(ticket, options, Box::new(Teller { seen, length: 0 }))?, see))
}

/// All that comes up to `length` bytes, put into order; each byte once.
fn collect(seen: &Receiver<Seen>, length: u64) -> Vec<u8> {
    let (mut bytes, mut count) = (vec![0; length as usize], 0);
    while count < length {
        match seen.recv_timeout(LIMIT).expect("data come") {
            Seen::Data(offset, data) => {
                bytes[offset as usize..][..data.len()].copy_from_slice(&data);
                count += data.len() as u64;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(count, length);
    bytes
}

/// Transfers this many bytes, and requests some beyond their end.
fn check_transfer(config: &EndpointConfig, client: &EndpointConfig, length: u64) {
    let server = Server::new(config, length);
    let client = Endpoint::bind(client).unwrap();
    let (session, seen) = connect(&client, &server.ticket(), b"").unwrap();
    session.want(1, 0..length);
    let bytes = collect(&seen, length);
    assert!(bytes.iter().zip(0..).all(|(byte, offset)| *byte == byte_at(offset)));
    // Bytes beyond the end are refused, and none arrives twice.
    session.want(1, length - 5..length + 10);
    let mut rest = [seen.recv_timeout(LIMIT).unwrap(), seen.recv_timeout(LIMIT).unwrap()];
    rest.sort_by_key(|seen| matches!(seen, Seen::Void(..)));
    assert_eq!(rest[0], Seen::Data(length - 5, (length - 5..length).map(byte_at).collect()));
    assert_eq!(rest[1], Seen::Void(length..length + 10, VoidReason::Shrank));
    session.close(CloseReason::Done);
    assert_eq!(seen.recv_timeout(LIMIT).unwrap(), Seen::Closed(CloseReason::Done, false));
    assert_eq!(server.seen.recv_timeout(LIMIT).unwrap(), Seen::Closed(CloseReason::Done, true));
}

fn with_capacity() -> EndpointConfig {
    let capacity = Some(Rate::mbps(500.0));
    EndpointConfig { send_capacity: capacity, receive_capacity: capacity, path: PathKind::Dedicated, ..config() }
}

#[test]
fn transfer__brings_every_byte_once() {
    check_transfer(&config(), &config(), 20_000_003);
}

#[test]
fn transfer__between_nodes_that_know_their_capacity() {
    check_transfer(&with_capacity(), &with_capacity(), 20_000_003);
}

#[test]
fn transfer__over_ipv6() {
    let listen = Some("[::1]:0".parse().unwrap());
    if std::net::UdpSocket::bind("[::1]:0").is_err() {
        println!("skipped: this machine has no IPv6");
        return;
    }
    check_transfer(&EndpointConfig { listen, ..config() }, &config(), 2_000_003);
}

#[test]
fn transfer__plain() {
    let plain = EndpointConfig { is_plain: true, ..with_capacity() };
    check_transfer(&plain, &plain, 5_000_003);
}

#[test]
fn connect__plain_with_one_end_alone_is_refused() {
    let server = Server::new(&config(), 0);
    let client = Endpoint::bind(&EndpointConfig { is_plain: true, ..config() }).unwrap();
    let error = connect(&client, &server.ticket(), b"").err();
    assert_eq!(error, Some(ConnectError::Handshake(HandshakeError::Refused(Refusal::Plain))));
}

#[test]
fn connect__says_why_it_is_refused() {
    let server = Server::new(&config(), 0);
    let client = Endpoint::bind(&config()).unwrap();
    let refused = |refusal| Some(ConnectError::Handshake(HandshakeError::Refused(refusal)));
    assert_eq!(connect(&client, &server.ticket(), b"nobody").err(), refused(Refusal::UnknownName));
    let ticket = server.ticket();
    server.keyring.revoke(ticket.id).unwrap();
    assert_eq!(connect(&client, &ticket, b"").err(), refused(Refusal::Revoked));
    let validity = Validity { lasts_s: None, is_once: true };
    let once = server.keyring.issue(validity, vec![server.endpoint.local_addr()]).unwrap();
    assert!(connect(&client, &once, b"").is_ok());
    server.keyring.spend(once.id).unwrap();
    assert_eq!(connect(&client, &once, b"").err(), refused(Refusal::UsedUp));
}

#[test]
fn connect__with_a_wrong_ticket_gets_no_answer() {
    let server = Server::new(&config(), 0);
    let other = Server::new(&config(), 0);
    let lasts = Lasts { opening: fairwave_units::Duration::from_millis(300), ..Lasts::default() };
    let client = Endpoint::bind(&EndpointConfig { lasts, ..config() }).unwrap();
    let ticket = Ticket { addresses: vec![server.endpoint.local_addr()], ..other.ticket() };
    let error = connect(&client, &ticket, b"").err();
    assert_eq!(error, Some(ConnectError::Handshake(HandshakeError::NoAnswer)));
}

#[test]
fn connect__tries_all_addresses() {
    let server = Server::new(&config(), 10);
    let client = Endpoint::bind(&config()).unwrap();
    // Nobody is at the first two; the documentation's networks lead nowhere.
    let dead: [SocketAddr; 2] = ["[2001:db8::1]:9".parse().unwrap(), "192.0.2.1:9".parse().unwrap()];
    let addresses = dead.into_iter().chain([server.endpoint.local_addr()]).collect();
    let (session, seen) = connect(&client, &Ticket { addresses, ..server.ticket() }, b"").unwrap();
    session.want(0, 0..10);
    assert_eq!(collect(&seen, 10).len(), 10);
    let none = Ticket { addresses: Vec::new(), ..server.ticket() };
    assert_eq!(connect(&client, &none, b"").err(), Some(ConnectError::NoAddress));
}

#[test]
fn close__tells_both_ends() {
    let server = Server::new(&config(), 10);
    let client = Endpoint::bind(&config()).unwrap();
    let (session, seen) = connect(&client, &server.ticket(), b"").unwrap();
    session.want(0, 0..10);
    assert_eq!(collect(&seen, 10).len(), 10);
    server.endpoint.close();
    assert_eq!(server.seen.recv_timeout(LIMIT).unwrap(), Seen::Closed(CloseReason::Leaving, false));
    assert_eq!(seen.recv_timeout(LIMIT).unwrap(), Seen::Closed(CloseReason::Leaving, true));
    // Commands to an ended session have no effect.
    session.want(0, 0..10);
    client.close();
    assert!(seen.recv_timeout(LIMIT).is_err());
    assert_eq!(connect(&client, &server.ticket(), b"").err(), Some(ConnectError::Closed));
}

/// A dedicated path is one that both ends declare so, with known capacities; otherwise each learns the other's setting.
#[test]
fn path__each_end_knows_what_the_other_says_of_it() {
    let dedicated = with_capacity();
    let without = EndpointConfig { send_capacity: None, receive_capacity: None, ..with_capacity() };
    let shared = EndpointConfig { path: PathKind::Shared, ..with_capacity() };
    let all = [
        (shared, PathDeclaration::Shared),
        (dedicated, PathDeclaration::Dedicated),
        (without, PathDeclaration::WithoutCapacity),
    ];
    for ((config, there), (client, here)) in all.iter().flat_map(|one| all.iter().map(move |other| (one, other))) {
        let server = Server::new(config, 1000);
        let client = Endpoint::bind(client).unwrap();
        let (session, _) = connect(&client, &server.ticket(), b"").unwrap();
        assert_eq!(session.facts().declared, PathDeclarations { here: *here, there: *there });
        let [other] = server.endpoint.sessions().try_into().unwrap_or_else(|_| panic!("one session"));
        assert_eq!(other.facts().declared, PathDeclarations { here: *there, there: *here });
        let is_dedicated = (*here, *there) == (PathDeclaration::Dedicated, PathDeclaration::Dedicated);
        assert_eq!(session.facts().path == PathKind::Dedicated, is_dedicated);
    }
}

#[test]
fn stats__tell_what_a_session_does() {
    let server = Server::new(&with_capacity(), 1 << 40);
    let client = Endpoint::bind(&with_capacity()).unwrap();
    let (session, seen) = connect(&client, &server.ticket(), b"").unwrap();
    session.want(1, 0..1 << 40);
    wait_for("20 MB", || {
        assert!(!seen.try_iter().any(|seen| matches!(seen, Seen::Closed(..))));
        session.stats().received_bytes >= 20_000_000
    });
    let stats = session.stats();
    assert!(stats.received_wire_bytes > stats.received_bytes);
    assert!(stats.sink.is_some() && stats.source.is_none() && stats.rtt.is_some(), "{stats:?}");
    let [there] = server.endpoint.sessions().try_into().unwrap_or_else(|_| panic!("one session"));
    // The source learns by reports what has arrived.
    wait_for("the source knows of 1000 packets", || there.stats().sent_path.all.arrived > 1000);
    let stats = there.stats();
    assert!(stats.source.is_some() && stats.sink.is_none() && stats.source_held_by.is_some(), "{stats:?}");
    assert!(stats.sent_path.least_rtt.is_some(), "{stats:?}");
    assert!(stats.sent_packets > 1000 && stats.datagram_bytes >= 1200, "{stats:?}");
    assert_eq!(there.secret("a label"), session.secret("a label"));
    assert_ne!(there.secret("a label"), session.secret("another"));
}

/// Each rule that runs on hosts accepts its name, at either end.
#[test]
fn rule__is_taken_by_its_name() {
    let rules: Vec<_> = schemes().iter().filter(|scheme| scheme.runs_on_hosts()).map(|scheme| scheme.name).collect();
    assert!(rules.contains(&"gtp") && rules.contains(&"abr-charny") && rules.contains(&"abr-hou"), "{rules:?}");
    for rule in rules {
        let config = EndpointConfig { rule: rule.to_owned(), ..with_capacity() };
        check_transfer(&config, &config, 2_000_003);
    }
    // Each end runs its own.
    check_transfer(&EndpointConfig { rule: "abr-hou".to_owned(), ..with_capacity() }, &with_capacity(), 2_000_003);
}

#[test]
fn rule__that_no_host_runs_is_refused() {
    for (rule, is_node) in schemes().iter().map(|scheme| (scheme.name, scheme.runs_on_hosts())).chain([("gpt", false)])
    {
        let bound = Endpoint::bind(&EndpointConfig { rule: rule.to_owned(), ..config() });
        match bound.err() {
            None => assert!(is_node, "{rule}"),
            Some(BindError::Rule(error)) if !is_node => {
                assert!(error.to_string().contains(&format!("\"{rule}\"")), "{error}");
                assert!(error.hint().starts_with("use one of gtp, "), "{}", error.hint());
            }
            Some(error) => panic!("{rule}: {error}"),
        }
    }
}

#[test]
fn bench__measures_both_directions() {
    let listen = Some("127.0.0.1:0".parse().unwrap());
    let server = Endpoint::bind(&EndpointConfig { listen, ..with_capacity() }).unwrap();
    let keyring = Arc::new(Keyring::in_memory(Identity::random().unwrap(), ShareId(7)));
    server.listen(Arc::clone(&keyring), bench_accept(Terms::default()));
    let ticket = keyring.issue(Validity { lasts_s: None, is_once: false }, vec![server.local_addr()]).unwrap();
    let client = Endpoint::bind(&with_capacity()).unwrap();
    for (direction, flows) in [(BenchDirection::Send, 2), (BenchDirection::Receive, 2), (BenchDirection::Both, 4)] {
        let options = BenchOptions {
            time: Duration::from_secs(1),
            sessions: 2,
            direction,
            limit: Some(Rate::mbps(20.0)),
            session: Terms::default(),
            every: Duration::from_millis(1),
        };
        let (mut reported, begin) = (0, Instant::now());
        let report = bench(&client, &ticket, &options, &mut |_| {
            reported += 1;
            // However slow the machine is, something goes each way before the time is over.
            let come =
                |to: &Endpoint| to.sessions().iter().filter(|session| session.stats().received_bytes > 0).count();
            wait_for("all flows carry something", || come(&client) + come(&server) >= flows);
        });
        let (report, wall_s) = (report.unwrap(), begin.elapsed().as_secs_f64());
        assert_eq!(report.flows.len(), flows);
        assert!(report.flows.iter().all(|flow| flow.bytes > 0), "{report:?}");
        assert!(report.wire_bps > report.goodput_bps && reported > 0, "{report:?}");
        assert!(report.cpu_s_per_gb.iter().all(|cpu| *cpu > 0.0), "{report:?}");
        // At most the limit over the whole time, and an initial window.
        let most = 20e6 / 8.0 * wall_s + 300e3;
        assert!(report.flows.iter().all(|flow| (flow.bytes as f64) < most), "more than {most} bytes: {report:?}");
        wait_for("the server's sessions are over", || server.sessions().is_empty());
    }
}

#[test]
fn bench__ends_when_its_ticket_is_taken_back() {
    let listen = Some("127.0.0.1:0".parse().unwrap());
    let server = Endpoint::bind(&EndpointConfig { listen, ..with_capacity() }).unwrap();
    let keyring = Arc::new(Keyring::in_memory(Identity::random().unwrap(), ShareId(7)));
    let session = Terms::default();
    server.listen_with(Arc::clone(&keyring), bench_judge(session), bench_accept(session));
    let issue = || keyring.issue(Validity { lasts_s: None, is_once: false }, vec![server.local_addr()]).unwrap();
    let (ticket, other) = (issue(), issue());
    let client = Endpoint::bind(&with_capacity()).unwrap();
    let options = |seconds| BenchOptions {
        time: Duration::from_secs(seconds),
        sessions: 2,
        direction: BenchDirection::Both,
        limit: Some(Rate::mbps(10.0)),
        session,
        every: Duration::from_millis(100),
    };
    let ended = bench(&client, &ticket, &options(LIMIT.as_secs()), &mut |_| _ = keyring.revoke(ticket.id).unwrap());
    assert!(
        matches!(ended, Err(BenchError::Ended { reason: CloseReason::Refused(Refusal::Revoked), .. })),
        "{ended:?}"
    );
    let refused = bench(&client, &ticket, &options(1), &mut |_| {});
    assert_eq!(refused, Err(ConnectError::Handshake(HandshakeError::Refused(Refusal::Revoked)).into()));
    assert!(bench(&client, &other, &options(1), &mut |_| {}).is_ok());
}

#[test]
fn listen_with__bounds_the_sessions_of_a_ticket() {
    let server = Server::new(&config(), 10);
    let (tell, _seen) = unbounded();
    let judge = Box::new(
        |visitor: &Visitor<'_>| {
            if visitor.sessions < 2 { Ok(Terms::default()) } else { Err(Refusal::NoRoom) }
        },
    );
    let accept = Box::new(move |_: &Visitor<'_>| {
        let teller: Box<dyn Handler> = Box::new(Teller { seen: tell.clone(), length: 10 });
        Ok((Terms::default(), teller))
    });
    server.endpoint.listen_with(Arc::clone(&server.keyring), judge, accept);
    let client = Endpoint::bind(&config()).unwrap();
    let (ticket, other) = (server.ticket(), server.ticket());
    let two = [(); 2].map(|()| connect(&client, &ticket, b"").unwrap());
    let refused = Some(ConnectError::Handshake(HandshakeError::Refused(Refusal::NoRoom)));
    assert_eq!(connect(&client, &ticket, b"").err(), refused);
    assert!(connect(&client, &other, b"").is_ok());
    // One ends: there is room for another.
    two[0].0.close(CloseReason::Done);
    wait_for("there is room again", || connect(&client, &ticket, b"").err() != refused);
}

#[test]
fn connect__futures_are_for_any_executor() {
    let server = Server::new(&config(), 10);
    let client = Endpoint::bind(&config()).unwrap();
    let (seen, see) = unbounded();
    let options = ConnectOptions { sends: false, receives: true, greeting: Vec::new(), options: Terms::default() };
    let ticket = server.ticket();
    let connecting = client.connect_async(&ticket, options, Box::new(Teller { seen, length: 0 }));
    let session = block_on(connecting).unwrap();
    session.want(0, 0..10);
    assert_eq!(collect(&see, 10).len(), 10);
}

/// The least executor there is.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(std::thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Arc::new(Unpark(std::thread::current())).into();
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut std::task::Context::from_waker(&waker)) {
            std::task::Poll::Ready(output) => return output,
            std::task::Poll::Pending => std::thread::park(),
        }
    }
}

/// A server of streams in memory, and a ticket for it.
fn memory_server(bytes: &Arc<[u8]>) -> (Endpoint, Ticket) {
    let listen = Some("127.0.0.1:0".parse().unwrap());
    let server = Endpoint::bind(&EndpointConfig { listen, ..config() }).unwrap();
    let keyring = Arc::new(Keyring::in_memory(Identity::random().unwrap(), ShareId(7)));
    let source = MemorySource::new([(3, Arc::clone(bytes))]);
    server.listen(Arc::clone(&keyring), Box::new(move |_| Ok((Terms::default(), Box::new(source.clone())))));
    let ticket = keyring.issue(Validity { lasts_s: None, is_once: false }, vec![server.local_addr()]).unwrap();
    (server, ticket)
}

#[test]
fn reader__hands_out_a_stream_in_order() {
    let bytes: Arc<[u8]> = (0..8_000_000).map(byte_at).collect();
    let (_server, ticket) = memory_server(&bytes);
    let client = Endpoint::bind(&config()).unwrap();
    let mut reader = StreamReader::open(&client, &ticket, b"", 3, 17..bytes.len() as u64).unwrap();
    let mut read = Vec::new();
    reader.read_to_end(&mut read).unwrap();
    assert!(read == bytes[17..]);
}

#[test]
fn reader__waits_for_any_executor() {
    let bytes: Arc<[u8]> = (0..3_000_000).map(byte_at).collect();
    let (_server, ticket) = memory_server(&bytes);
    let client = Endpoint::bind(&config()).unwrap();
    let read = block_on(async {
        let mut reader = StreamReader::open_async(&client, &ticket, b"", 3, 0..3_000_000).await.unwrap();
        let mut read = Vec::new();
        while let Some(chunk) = reader.chunk().await.unwrap() {
            read.extend(chunk);
        }
        read
    });
    assert!(read == *bytes);
}

#[test]
fn reader__says_what_is_not_there() {
    let bytes: Arc<[u8]> = (0..1000).map(byte_at).collect();
    let (server, ticket) = memory_server(&bytes);
    let client = Endpoint::bind(&config()).unwrap();
    let mut reader = StreamReader::open(&client, &ticket, b"", 3, 0..2000).unwrap();
    let error = reader.read_to_end(&mut Vec::new()).unwrap_err();
    assert_eq!(error.to_string(), ReadError::Void { offset: 1000, reason: VoidReason::Shrank }.to_string());
    let mut reader = StreamReader::open(&client, &ticket, b"", 4, 0..1).unwrap();
    assert!(reader.read_to_end(&mut Vec::new()).is_err());
    let mut reader = StreamReader::open(&client, &ticket, b"", 3, 0..2).unwrap();
    assert_eq!(reader.read(&mut [0]).unwrap(), 1);
    server.close();
    while !matches!(block_on(reader.chunk()), Err(ReadError::Closed(CloseReason::Leaving)) | Ok(None)) {}
}
