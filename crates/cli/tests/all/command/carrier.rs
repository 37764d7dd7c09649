//! Where UDP is blocked: TCP to the same port, and cp's own ssh.

use std::io::{self};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::host::{Host, Process, Serving, bytes, place};
use super::*;

/// A place in front of a server that lets TCP through and swallows UDP, as many firewalls do.
struct Firewall {
    place: SocketAddr,
    /// What comes here is never read.
    _udp: UdpSocket,
    passing: Arc<Mutex<Vec<TcpStream>>>,
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
        let all = Arc::clone(&passing);
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
                    let (mut from, mut to) = if number == 0 { (near, far) } else { (far, near) };
                    std::thread::spawn(move || {
                        let _ = io::copy(&mut from, &mut to);
                        let _ = to.shutdown(Shutdown::Write);
                    });
                }
            }
        });
        Self { place, _udp: udp, passing }
    }

    /// Cuts all that passes.
    fn cut(&self) {
        self.passing.lock().unwrap().drain(..).for_each(|stream| _ = stream.shutdown(Shutdown::Both));
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

fn until_moved(process: &mut Process, least: u64) {
    process.wait_for(|event| event["bytes_done"].as_u64().unwrap_or(0) > least);
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
    let begin = Instant::now();
    let done = host.run(&["get", &serve.at(), "to", "--json"]);
    let took = begin.elapsed();
    println!("all was there after {took:?}");
    assert!(took < Duration::from_secs(6), "{took:?}");
    let end = done.json().pop().unwrap();
    assert_eq!((end["event"].as_str(), end["carrier"].as_str()), (Some("done"), Some("tcp")), "{end}");
    let says = format!("UDP to {} is not answered: going on over TCP, which shares the path", firewall.place);
    assert!(done.stderr().contains(&says), "{}", done.stderr());
    assert!(host.tree("to") == [(b"/small.bin".to_vec(), b"the first byte, and some more".to_vec())]);
    let mut opened = Value::Null;
    serve.process.wait_for(|event| {
        opened = event.clone();
        event["event"] == "opened"
    });
    assert_eq!(opened["carrier"].as_str(), Some("tcp"), "{opened}");
    // Who wants UDP alone hears that it is blocked.
    let done = host.run(&["get", &serve.at(), "to", "--carrier", "udp", "--check", "--retry", "0 s"]);
    assert_eq!(done.code(), Some(1), "{}", done.stderr());
    assert!(done.stderr().contains("no answer"), "{}", done.stderr());
    // Who asks for TCP waits for nothing, and is not told what it knows.
    let done = host.run(&["get", &serve.at(), "to", "--carrier", "tcp", "--check"]);
    done.good();
    assert!(!done.stderr().contains("not answered"), "{}", done.stderr());
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
    let call = ["bench", &serve.at(), "--time", "1500 ms", "--limit", "20 Mb/s", "--json"];
    let done = host.run(&call);
    let events = done.json();
    let carriers: Vec<_> = events.iter().map(|event| event["carrier"].as_str().unwrap_or("-")).collect();
    assert!(carriers.len() > 1 && carriers.iter().all(|carrier| *carrier == "tcp"), "{events:?}");
    let says = format!("UDP to {} is not answered: going on over TCP, which shares the path", firewall.place);
    assert_eq!(done.stderr().matches(&says).count(), 1, "{}", done.stderr());
    let done = host.run(&[&call[..], &["--carrier", "tcp"]].concat());
    assert_eq!(done.json().pop().unwrap()["carrier"].as_str(), Some("tcp"));
    assert!(!done.stderr().contains("not answered"), "{}", done.stderr());
}

#[test]
fn bench__where_udp_is_blocked_waits_for_that_once_and_not_for_each_session() {
    let host = Host::new();
    let server = place();
    let firewall = Firewall::before(server);
    let (listen, advertise) = (server.to_string(), firewall.place.to_string());
    let serve = host.serve_with(&["bench", "serve", "--listen", &listen, "--advertise", &advertise]);
    let begin = Instant::now();
    let done = host.run(&["bench", &serve.at(), "--sessions", "8", "--time", "500 ms", "--limit", "2 Mb/s", "--json"]);
    let report = done.json().pop().unwrap();
    assert_eq!((report["carrier"].as_str(), report["sessions"].as_array().unwrap().len()), (Some("tcp"), 8));
    // One wait of 2 s, and not eight.
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
}

#[test]
fn get_and_put__over_tcp_go_on_after_a_cut() {
    let host = Host::new();
    host.write("box/big.bin", &bytes(30_000_000));
    host.write("sent.bin", &bytes(30_000_000));
    let (serve, firewall, _) = serve_behind(&host, &["box", "--writable", "--readable"]);
    let limit = ["--json", "--limit", "80 Mb/s", "--carrier", "tcp"];
    let mut get = host.start(&[&["get", &serve.at(), "box/big.bin", "to"], &limit[..]].concat());
    let mut put = host.start(&[&["put", "sent.bin", &serve.at()], &limit[..]].concat());
    until_moved(&mut get, 6_000_000);
    until_moved(&mut put, 6_000_000);
    let begin = Instant::now();
    firewall.cut();
    for process in [&mut get, &mut put] {
        let end = last(process);
        assert_eq!(end["event"].as_str(), Some("done"), "{end}");
        assert_eq!((end["reconnects"].as_u64(), end["bytes"].as_u64()), (Some(1), Some(30_000_000)), "{end}");
    }
    println!("both were done {:?} after the cut", begin.elapsed());
    assert!(std::fs::read(host.path("to/box/big.bin")).unwrap() == bytes(30_000_000));
    assert!(std::fs::read(host.path("box/sent.bin")).unwrap() == bytes(30_000_000));
}

#[test]
fn get__over_tcp_goes_on_after_an_interrupt_and_after_the_server_was_killed() {
    let host = Host::new();
    host.write("tree/big.bin", &bytes(20_000_000));
    for number in 0..300 {
        host.write(&format!("tree/many/{number}"), &bytes(number * 10));
    }
    let (mut serve, firewall, server) = serve_behind(&host, &["tree"]);
    let call = ["get", &serve.at(), "to", "--json", "--carrier", "tcp"];
    let mut get = host.start(&[&call[..], &["--limit", "60 Mb/s"]].concat());
    until_moved(&mut get, 6_000_000);
    get.signal(Signal::INT);
    let end = last(&mut get);
    assert_eq!((end["event"].as_str(), get.end().0.code()), (Some("stopped"), Some(130)), "{end}");
    let mut get = host.start(&[&call[..], &["--limit", "40 Mb/s"]].concat());
    until_moved(&mut get, 9_000_000);
    serve.process.child.kill().unwrap();
    serve.process.child.wait().unwrap();
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
    let ssh = host.ssh();
    for (from, to, rem) in [("tree", "server:in/", "home/in/tree"), ("server:tree", "out/", "out/tree")] {
        let call = ["cp", "--ssh", &ssh, "--json", "--carrier", "ssh", from, to];
        let mut cp = host.start(&[&call[..], &["--limit", "60 Mb/s"]].concat());
        until_moved(&mut cp, 6_000_000);
        cp.signal(Signal::INT);
        assert_eq!(last(&mut cp)["event"].as_str(), Some("stopped"), "{to}");
        let again = Instant::now() + super::host::PATIENCE;
        let end = loop {
            // The far end of before writes what it has.
            let end = host.run(&call).json().pop().unwrap_or_default();
            if end["event"] == "done" || Instant::now() > again {
                break end;
            }
        };
        assert_eq!((end["event"].as_str(), end["carrier"].as_str()), (Some("done"), Some("ssh")), "{to}: {end}");
        assert!(end["bytes_resumed"].as_u64().unwrap() > 3_000_000, "{to}: {end}");
        assert!(host.tree(rem) == host.tree("tree"), "{to}");
    }
}

/// The far end is where no datagram leads, and only what its ssh carries goes in and out.
#[test]
fn cp__where_udp_is_blocked_goes_through_ssh_within_some_seconds() {
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
        let begin = Instant::now();
        let done = host.run(&["cp", "--ssh", &ssh, "--json", from, to]);
        let took = begin.elapsed();
        println!("{from}: all was there after {took:?}");
        let end = done.json().pop().unwrap();
        assert_eq!((end["event"].as_str(), end["carrier"].as_str()), (Some("done"), Some("ssh")), "{end}");
        assert!(took < Duration::from_secs(6), "{took:?}");
        assert!(host.path(there).is_file());
        let says = "is not answered: going on through the ssh connection, which shares the path";
        assert!(done.stderr().contains(says), "{}", done.stderr());
    }
}

#[test]
fn carrier__that_a_command_has_not_is_refused_and_named() {
    let host = Host::new();
    host.write("a.bin", b"a");
    let serve = host.serve(&["a.bin", "--listen", "127.0.0.1:0"]);
    for (args, says) in [
        (vec!["get", &serve.at(), "to", "--carrier", "ssh"], "get: --carrier ssh: there is no ssh"),
        (vec!["cp", "a.bin", "server:", "--carrier", "tcp"], "cp: --carrier tcp: the files go by udp"),
        (vec!["serve", "a.bin", "--carrier", "tcp"], "serve: --carrier tcp: a server is reached by udp"),
        (vec!["get", &serve.at(), "to", "--carrier", "quic"], "is no carrier: write auto, udp, tcp or ssh"),
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
    assert!(stderr.contains("cannot be had") && stderr.contains("who cannot come by UDP cannot come"), "{stderr}");
    // Asked for UDP alone, it wants no such port.
    let mut serve = host.serve(&["a.bin", "--listen", &at, "--carrier", "udp"]);
    serve.process.signal(Signal::INT);
    let (_, stderr) = serve.process.end();
    assert!(!stderr.contains("TCP"), "{stderr}");
}
