//! Blocked UDP: TCP to the same port, and cp's own ssh.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use fairwave_testing::wait_for;
use rustix::process::Signal;

use super::user::{Host, Process, Serving, bytes, place};
use super::*;

/// A place in front of a server that lets TCP through and swallows UDP, as many firewalls do.
struct Firewall {
    place: SocketAddr,
    /// Received datagrams are never read.
    _udp: UdpSocket,
    passing: Arc<Mutex<Vec<TcpStream>>>,
    /// Bytes that may pass.
    left: Arc<AtomicI64>,
}

impl Firewall {
    /// In front of the server that will listen at `server`.
    fn before(server: SocketAddr) -> Self {
        let (listener, udp) = std::iter::repeat_with(|| {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
            let udp = UdpSocket::bind(listener.local_addr().expect("it has one"));
            udp.ok().map(|udp| (listener, udp))
        })
        .flatten()
        .next()
        .expect("one is free of both");
        let place = listener.local_addr().expect("it has one");
        let passing = Arc::<Mutex<Vec<TcpStream>>>::default();
        let left = Arc::new(AtomicI64::new(i64::MAX));
        let (all, room) = (Arc::clone(&passing), Arc::clone(&left));
        std::thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let Ok(far) = TcpStream::connect(server) else { continue };
                let both = || Ok::<_, io::Error>((near.try_clone()?, far.try_clone()?));
                let Ok(pairs) = [(); 3].map(|()| both()).into_iter().collect::<Result<Vec<_>, _>>() else { continue };
                for (number, (near, far)) in pairs.into_iter().enumerate() {
                    if number == 2 {
                        all.lock().unwrap().extend([near, far]);
                        continue;
                    }
                    let (from, to) = if number == 0 { (near, far) } else { (far, near) };
                    let left = Arc::clone(&room);
                    std::thread::spawn(move || {
                        let _ = carry(&from, &to, &left);
                        let _ = to.shutdown(Shutdown::Write);
                    });
                }
            }
        });
        Self { place, _udp: udp, passing, left }
    }

    /// From now on this number of bytes may pass.
    fn pass(&self, bytes: i64) {
        self.left.store(bytes, Ordering::SeqCst);
    }

    /// Cuts all connections. Bytes of later ones pass.
    fn cut(&self) {
        self.passing.lock().unwrap().drain(..).for_each(|stream| _ = stream.shutdown(Shutdown::Both));
        self.pass(i64::MAX);
    }
}

/// Carries all bytes one way, and waits while none may pass.
fn carry(mut from: &TcpStream, mut to: &TcpStream, left: &AtomicI64) -> io::Result<()> {
    let mut room = vec![0; 1 << 16];
    loop {
        let bytes = from.read(&mut room)?;
        if bytes == 0 {
            return Ok(());
        }
        wait_for("more may pass", || {
            let take = |left: i64| (left > 0).then(|| left.saturating_sub(i64::try_from(bytes).expect("lengths fit")));
            left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).is_ok()
        });
        to.write_all(&room[..bytes])?;
    }
}

/// A server behind a firewall.
fn serve_behind(host: &Host, args: &[&str]) -> (Serving, Firewall, SocketAddr) {
    let server = place();
    let firewall = Firewall::before(server);
    let serve = serve_at(host, args, server, &firewall);
    (serve, firewall, server)
}

fn serve_at(host: &Host, args: &[&str], server: SocketAddr, firewall: &Firewall) -> Serving {
    let (listen, advertise) = (server.to_string(), firewall.place.to_string());
    host.serve(&[args, &["--listen", &listen, "--advertise", &advertise]].concat())
}

fn last(process: &mut Process) -> Value {
    let mut last = Value::Null;
    process.each(|_, event| last = event.clone());
    last
}

#[test]
fn get__where_udp_is_blocked_goes_over_tcp_and_says_what_it_costs() {
    let host = Host::new();
    host.write("small.bin", b"the first byte, and some more");
    let (mut serve, firewall, _) = serve_behind(&host, &["small.bin", "--json"]);
    // Its ticket stands in an event.
    let event: Value = serde_json::from_slice(&std::fs::read(&serve.ticket).unwrap()).unwrap();
    std::fs::write(&serve.ticket, event["ticket"].as_str().unwrap()).unwrap();
    let done = host.run(&["get", &serve.at(), "to", "--json"]);
    let end = done.json().pop().unwrap();
    assert_eq!((end["event"].as_str(), end["carrier"].as_str()), (Some("done"), Some("tcp")), "{end}");
    let says = format!("no answer over UDP from {}: continuing over TCP, which is slower", firewall.place);
    assert!(done.stderr().contains(&says), "{}", done.stderr());
    assert!(host.tree("to") == [(b"/small.bin".to_vec(), b"the first byte, and some more".to_vec())]);
    let mut opened = Value::Null;
    serve.process.wait_for(|event| {
        opened = event.clone();
        event["event"] == "opened"
    });
    assert_eq!(opened["carrier"].as_str(), Some("tcp"), "{opened}");
    // With only UDP allowed, the error is that it is blocked.
    let done = host.run(&["get", &serve.at(), "to", "--carrier", "udp", "--check", "--retry", "0 s"]);
    assert_eq!(done.code(), Some(4), "{}", done.stderr());
    assert!(done.stderr().contains("no reply"), "{}", done.stderr());
    // With TCP requested, there is no delay and no message about the carrier.
    let done = host.run(&["get", &serve.at(), "to", "--carrier", "tcp", "--check"]);
    done.good();
    assert!(!done.stderr().contains("no answer over UDP"), "{}", done.stderr());
}

#[test]
fn get__over_udp_says_that_it_does() {
    let host = Host::new();
    host.write("small.bin", b"some");
    let serve = host.serve(&["small.bin", "--listen", "127.0.0.1:0"]);
    let done = host.run(&["get", &serve.at(), "to", "--json"]);
    assert_eq!(done.json().pop().unwrap()["carrier"].as_str(), Some("udp"));
    assert!(!done.stderr().contains("TCP"), "{}", done.stderr());
}

#[test]
fn bench__where_udp_is_blocked_goes_over_tcp_and_says_what_it_costs() {
    let host = Host::new();
    let server = place();
    let firewall = Firewall::before(server);
    let (listen, advertise) = (server.to_string(), firewall.place.to_string());
    let serve = host.serve_with(&["bench", "serve", "--listen", &listen, "--advertise", &advertise]);
    let call = ["bench", &serve.at(), "--time", "1200 ms", "--limit", "20 Mb/s", "--json"];
    let done = host.run(&call);
    let events = done.json();
    let carriers: Vec<_> = events.iter().map(|event| event["carrier"].as_str().unwrap_or("-")).collect();
    assert!(carriers.len() > 1 && carriers.iter().all(|carrier| *carrier == "tcp"), "{events:?}");
    let says = format!("no answer over UDP from {}: continuing over TCP, which is slower", firewall.place);
    assert_eq!(done.stderr().matches(&says).count(), 1, "{}", done.stderr());
    let done = host.run(&[&call[..], &["--carrier", "tcp"]].concat());
    assert_eq!(done.json().pop().unwrap()["carrier"].as_str(), Some("tcp"));
    assert!(!done.stderr().contains("no answer over UDP"), "{}", done.stderr());
}

#[test]
fn bench__where_udp_is_blocked_opens_all_sessions_over_tcp() {
    let host = Host::new();
    let server = place();
    let firewall = Firewall::before(server);
    let (listen, advertise) = (server.to_string(), firewall.place.to_string());
    let serve = host.serve_with(&["bench", "serve", "--listen", &listen, "--advertise", &advertise]);
    let done = host.run(&["bench", &serve.at(), "--sessions", "8", "--time", "300 ms", "--limit", "2 Mb/s", "--json"]);
    let report = done.json().pop().unwrap();
    assert_eq!((report["carrier"].as_str(), report["sessions"].as_array().unwrap().len()), (Some("tcp"), 8));
}

#[test]
fn get_and_put__over_tcp_go_on_after_a_cut() {
    const BYTES: usize = 12_000_000;
    let host = Host::new();
    host.write("box/big.bin", &bytes(BYTES));
    host.write("sent.bin", &bytes(BYTES));
    let (serve, firewall, _) = serve_behind(&host, &["box", "--writable", "--readable"]);
    let ticket = serve.at();
    for words in [&["get", &ticket, "box/big.bin", "to/"][..], &["put", "sent.bin", &ticket]] {
        firewall.pass(9_500_000);
        let mut process = host.start(&[words, &["--json", "--carrier", "tcp"]].concat());
        process.moves(6_000_000);
        firewall.cut();
        let end = last(&mut process);
        assert_eq!(end["event"].as_str(), Some("done"), "{end}");
        assert_eq!((end["reconnects"].as_u64(), end["bytes"].as_u64()), (Some(1), Some(BYTES as u64)), "{end}");
    }
    assert!(std::fs::read(host.path("to/box/big.bin")).unwrap() == bytes(BYTES));
    assert!(std::fs::read(host.path("box/sent.bin")).unwrap() == bytes(BYTES));
}

#[test]
fn get__over_tcp_goes_on_after_an_interrupt_and_after_the_server_was_killed() {
    let host = Host::new();
    host.write("tree/big.bin", &bytes(20_000_000));
    for number in 0..100 {
        host.write(&format!("tree/many/{number}"), &bytes(number * 10));
    }
    let (mut serve, firewall, server) = serve_behind(&host, &["tree"]);
    let call = ["get", &serve.at(), "to", "--json", "--carrier", "tcp"];
    firewall.pass(11_000_000);
    let mut get = host.start(&call);
    get.moves(6_000_000);
    get.signal(Signal::INT);
    let end = last(&mut get);
    assert_eq!((end["event"].as_str(), get.end().0.code()), (Some("stopped"), Some(130)), "{end}");
    firewall.cut();
    firewall.pass(6_000_000);
    let mut get = host.start(&call);
    get.moves(9_000_000);
    serve.process.kill();
    firewall.cut();
    let _serve = serve_at(&host, &["tree"], server, &firewall);
    let end = last(&mut get);
    assert_eq!((end["event"].as_str(), end["reconnects"].as_u64()), (Some("done"), Some(1)), "{end}");
    assert!(end["bytes_resumed"].as_u64().unwrap() > 3_000_000, "{end}");
    assert!(host.tree("to/tree") == host.tree("tree"));
}

#[test]
fn cp__through_ssh_moves_a_tree_either_way_and_goes_on_after_an_interrupt() {
    let host = Host::new();
    for home in ["", "home/"] {
        host.write(&format!("{home}tree/b.bin"), &bytes(16_000_000));
        for number in 0..100 {
            host.write(&format!("{home}tree/many/{number}"), &bytes(number * 10));
        }
    }
    let ssh = host.ssh_between();
    for (from, to, rem) in [("tree", "server:in/", "home/in/tree"), ("server:tree", "out/", "out/tree")] {
        let call = ["cp", "--ssh", &ssh, "--json", "--carrier", "ssh", from, to];
        host.write("narrow", b"");
        let mut cp = host.start(&call);
        cp.moves(6_000_000);
        cp.signal(Signal::INT);
        assert_eq!(last(&mut cp)["event"].as_str(), Some("stopped"), "{to}");
        // The far end of before writes what it has.
        let mut end = Value::Null;
        wait_for(&format!("{to} is done"), || {
            end = host.run(&call).json().pop().unwrap_or_default();
            end["event"] == "done"
        });
        assert_eq!(end["carrier"].as_str(), Some("ssh"), "{to}: {end}");
        assert!(end["bytes_resumed"].as_u64().unwrap() > 3_000_000, "{to}: {end}");
        assert!(host.tree(rem) == host.tree("tree"), "{to}");
    }
}

/// The far end is where no datagram leads, and only what its ssh carries goes in and out.
#[test]
fn cp__where_udp_is_blocked_goes_through_ssh() {
    let host = Host::new();
    host.write("home/a.bin", b"the first byte, and some more");
    host.write("b.bin", b"the other way");
    let inner = host.ssh();
    let apart = "unshare --net --map-root-user";
    let may = Command::new("sh").args(["-c", &format!("{apart} true")]).output();
    if !may.is_ok_and(|done| done.status.success()) {
        println!("skipped: this system makes no network namespaces");
        return;
    }
    let body = format!(
        "[ \"$1\" = -G ] && {{ echo hostname 127.0.0.1; exit 0; }}\n\
         exec {apart} sh -c 'ip link set lo up; ip address add 192.0.2.7/32 dev lo; exec \"$@\"' - '{inner}' \"$@\""
    );
    let ssh = host.script("far-ssh", &body);
    for (from, to, there) in [("server:a.bin", "to/", "to/a.bin"), ("b.bin", "server:in/", "home/in/b.bin")] {
        let done = host.run(&["cp", "--ssh", &ssh, "--json", from, to]);
        let end = done.json().pop().unwrap();
        assert_eq!((end["event"].as_str(), end["carrier"].as_str()), (Some("done"), Some("ssh")), "{end}");
        assert!(host.path(there).is_file());
        let says = "continuing through the ssh connection, which is slower";
        assert!(done.stderr().contains(says), "{}", done.stderr());
    }
}

#[test]
fn carrier__that_a_command_has_not_is_refused_and_named() {
    let host = Host::new();
    host.write("a.bin", b"a");
    let serve = host.serve(&["a.bin", "--listen", "127.0.0.1:0"]);
    for (args, says) in [
        (vec!["get", &serve.at(), "to", "--carrier", "ssh"], "get: --carrier ssh: only `fairwave cp` supports ssh"),
        (vec!["cp", "a.bin", "server:", "--carrier", "tcp"], "cp: --carrier tcp: cp supports udp, ssh and sftp only"),
        (vec!["serve", "a.bin", "--carrier", "tcp"], "serve: --carrier tcp: a server supports udp"),
        (vec!["get", &serve.at(), "to", "--carrier", "quic"], "not a carrier: expected auto, udp, tcp, ssh or sftp"),
    ] {
        let stderr = host.run(&args).refused();
        assert!(stderr.contains(says), "{args:?}: {stderr}");
    }
}

#[test]
fn serve__without_its_tcp_port_says_so_and_goes_on() {
    let host = Host::new();
    host.write("a.bin", b"a");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = taken.local_addr().unwrap().to_string();
    let mut serve = host.serve(&["a.bin", "--listen", &at]);
    host.run(&["get", &serve.at(), "to"]).good();
    serve.process.signal(Signal::INT);
    let (status, stderr) = serve.process.end();
    assert_eq!(status.code(), Some(0), "{stderr}");
    assert!(
        stderr.contains("cannot listen on TCP port") && stderr.contains("clients without UDP cannot connect"),
        "{stderr}"
    );
    // With only UDP allowed, it does not need that port.
    let mut serve = host.serve(&["a.bin", "--listen", &at, "--carrier", "udp"]);
    serve.process.signal(Signal::INT);
    let (_, stderr) = serve.process.end();
    assert!(!stderr.contains("TCP"), "{stderr}");
}
