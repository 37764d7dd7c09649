//! A server and those who come to it: several at once, and in turn.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use fairwave_host::{
    CloseReason, ConnectError, ConnectOptions, Endpoint, EndpointConfig, Handler, Session, Terms, Ticket,
};
use fairwave_testing::wait_for;
use rustix::process::Signal;

use super::gate::Gate;
use super::user::{Host, Process, bytes};

/// A server that reports events as JSON.
struct JsonServer {
    process: Process,
    ticket: String,
    id: String,
}

impl JsonServer {
    fn serve(host: &Host, args: &[&str]) -> Self {
        let mut process = host.start(&[&["serve", "--json", "--listen", "127.0.0.1:0"], args].concat());
        let (mut text, mut id) = (String::new(), String::new());
        process.wait_for(|event| {
            let of = |key: &str| event[key].as_str().unwrap_or_default().to_owned();
            (text, id) = (of("ticket"), of("id"));
            event["event"] == "ticket"
        });
        let name = format!("{}.ticket", process.child.id());
        host.write(&name, text.as_bytes());
        Self { process, ticket: format!("@{name}"), id }
    }

    /// Waits until it has reported the ends of this many transfers.
    fn ends(&mut self, mut count: usize) {
        self.process.wait_for(|event| {
            assert_ne!(event["event"], "failed", "{event}");
            count -= usize::from(event["event"] == "done");
            count == 0
        });
    }
}

#[test]
fn serve_json__lets_in_one_after_the_other_and_several_at_once() {
    let host = Host::new();
    host.write("tree/a.bin", &bytes(3_000_000));
    host.write("tree/deep/b.txt", b"hello");
    let mut serve = JsonServer::serve(&host, &["tree"]);
    for to in ["one", "two", "three"] {
        host.run(&["get", &serve.ticket, to]).good();
        assert_eq!(host.tree(&format!("{to}/tree")), host.tree("tree"));
    }
    let mut gets: Vec<_> = (0..4).map(|n| host.start(&["get", &serve.ticket, &format!("at-once-{n}")])).collect();
    for (n, get) in gets.iter_mut().enumerate() {
        let (status, stderr) = get.end();
        assert_eq!(status.code(), Some(0), "{stderr}");
        assert_eq!(host.tree(&format!("at-once-{n}/tree")), host.tree("tree"));
    }
    serve.ends(3 + 4);
    // It also notices revoked tickets.
    host.run(&["serve", "--revoke", &serve.id]).good();
    wait_for("the ticket is good for nothing", || {
        let done = host.run(&["get", &serve.ticket, "late", "--check"]);
        done.code() == Some(1) && done.stderr().contains("the ticket has been revoked")
    });
}

#[test]
fn serve__ticket_file_is_private_and_replaces_what_others_can_read() {
    use std::os::unix::fs::PermissionsExt as _;
    let host = Host::new();
    host.write("a.bin", &bytes(100_000));
    host.write("a.ticket", b"");
    let path = host.path("a.ticket");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let _serve = host.start(&["serve", "a.bin", "--listen", "127.0.0.1:0", "--ticket", "a.ticket"]);
    wait_for("the ticket in its file", || std::fs::read(&path).is_ok_and(|text| text.ends_with(b"\n")));
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    host.run(&["get", "@a.ticket", "there"]).good();
    assert_eq!(std::fs::read(host.path("there/a.bin")).unwrap(), bytes(100_000));
    let names: Vec<_> = std::fs::read_dir(host.path(".")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!names.iter().any(|name| name.to_string_lossy().starts_with(".a.ticket")), "{names:?}");
}

#[test]
fn serve__ticket_file_that_cannot_be_written_ends_it() {
    let host = Host::new();
    host.write("a.bin", b"a");
    for place in ["missing/a.ticket", "run"] {
        let done = host.run(&["serve", "a.bin", "--listen", "127.0.0.1:0", "--ticket", place]);
        assert_eq!(done.code(), Some(2), "{}", done.stderr());
        assert!(done.stderr().contains(&format!("--ticket {place}: cannot write: ")), "{}", done.stderr());
        assert_eq!(done.stdout(), "");
    }
}

#[test]
fn serve_json__takes_several_puts() {
    let host = Host::new();
    std::fs::create_dir(host.path("in")).unwrap();
    let mut serve = JsonServer::serve(&host, &["in", "--writable"]);
    for name in ["one", "two", "three"] {
        host.write(&format!("{name}/a.bin"), &bytes(2_000_000));
        host.run(&["put", name, &serve.ticket]).good();
        assert_eq!(host.tree(&format!("in/{name}")), host.tree(name));
    }
    serve.ends(3);
}

#[test]
fn serve_json__once_ends_with_the_first_transfer() {
    let host = Host::new();
    host.write("a.txt", b"hello");
    let mut serve = JsonServer::serve(&host, &["a.txt", "--once"]);
    host.run(&["get", &serve.ticket, "to"]).good();
    assert_eq!(serve.process.status().code(), Some(0));
}

/// A dishonest client: it takes all bytes of the only file, and reports that it was stopped.
#[derive(Clone, Default)]
struct Thief {
    got: Arc<AtomicU64>,
    is_closed: Arc<AtomicBool>,
}

const LOOT: usize = 3_000_000;

impl Handler for Thief {
    fn on_open(&mut self, session: &Session) {
        // The list, one block's hash, and the bytes.
        let wants: [(u32, Range<u64>); 3] = [(0, 0..4096), (1, 0..48), (2, 0..LOOT as u64)];
        for (stream, range) in wants {
            session.want(stream, range);
        }
    }

    fn on_data(&mut self, session: &Session, stream: u32, _: u64, bytes: &[u8]) {
        let got = if stream == 2 { self.got.fetch_add(bytes.len() as u64, Ordering::SeqCst) } else { return };
        if got + bytes.len() as u64 == LOOT as u64 {
            session.close(CloseReason::Stopped);
        }
    }

    fn on_closed(&mut self, _: &Session, _: CloseReason, _: bool) {
        self.is_closed.store(true, Ordering::SeqCst);
    }
}

impl Thief {
    /// Whether it got all that there is.
    fn fetch(&self, ticket: &Ticket) -> Result<bool, ConnectError> {
        let endpoint = Endpoint::bind(&EndpointConfig::default()).unwrap();
        let greeting = vec![1, 1];
        let options = ConnectOptions { sends: false, receives: true, greeting, options: Terms::default() };
        endpoint.connect(ticket, options, Box::new(self.clone()))?;
        wait_for("the end of its session", || self.is_closed.load(Ordering::SeqCst));
        endpoint.close();
        Ok(self.got.load(Ordering::SeqCst) == LOOT as u64)
    }
}

#[test]
fn serve_once__is_used_up_by_all_bytes_whatever_the_client_says() {
    let host = Host::new();
    host.write("loot.bin", &bytes(LOOT));
    let mut serve = host.serve(&["loot.bin", "--once", "--listen", "127.0.0.1:0"]);
    let ticket: Ticket = std::fs::read_to_string(&serve.ticket).unwrap().trim().parse().unwrap();
    let fetched = (0..4).filter(|_| Thief::default().fetch(&ticket) == Ok(true)).count();
    assert_eq!(fetched, 1, "times that all was fetched");
    assert_eq!(serve.process.status().code(), Some(0));
    let list = host.run(&["serve", "--tickets", "--json"]).json();
    assert_eq!(list[0]["state"].as_str(), Some("used up"));
}

#[test]
fn serve_once__belongs_to_the_first_who_comes() {
    let host = Host::new();
    host.write("big.bin", &bytes(3_000_000));
    let gate = Gate::new(1_000_000);
    let serve = gate.serve(&host, &["big.bin", "--once"]);
    let mut first = host.start(&["get", &serve.at(), "first", "--json"]);
    first.moves(300_000);
    for _ in 0..2 {
        let other = host.run(&["get", &serve.at(), "other"]);
        assert_eq!(other.code(), Some(1), "{}", other.stderr());
        assert!(
            other.stderr().contains("the ticket is for one transfer, and another transfer is using it"),
            "{}",
            other.stderr()
        );
    }
    gate.open();
    first.wait_for(|event| event["event"] == "done");
    assert!(!host.path("other/big.bin").exists());
}

#[test]
fn serve_once__who_stops_may_begin_anew() {
    let host = Host::new();
    // What is sent counts, also what the gate drops until the first one stops: far less than what is left.
    host.write("big.bin", &bytes(60_000_000));
    let mut serve = Gate::new(9_000_000).serve(&host, &["big.bin", "--once"]);
    let mut first = host.start(&["get", &serve.at(), "to", "--json"]);
    first.moves(6_000_000);
    first.signal(Signal::INT);
    assert_eq!(first.end().0.code(), Some(130));
    let last = host.run(&["get", &serve.at(), "to", "--json"]).json().pop().unwrap();
    assert_eq!(last["event"], "done");
    assert!(last["bytes_resumed"].as_u64().unwrap() > 0, "{last}");
    assert_eq!(serve.process.status().code(), Some(0));
}

/// The names of all files below a directory.
fn names(host: &Host, at: &str) -> Vec<String> {
    host.tree(at).into_iter().map(|(name, _)| String::from_utf8(name).unwrap()).collect()
}

#[test]
fn own_places__are_never_given_away() {
    let (host, other) = (Host::new(), Host::new());
    host.write("data.txt", b"hello");
    // Another name of the keys, as a backup of hard links has it.
    host.run(&["serve", "--tickets"]).good();
    std::fs::hard_link(host.path("state/fairwave/identity"), host.path("backup")).unwrap();
    let to = |name: &str| other.path(name).into_os_string().into_string().unwrap();
    let mut serve = host.serve(&[".", "--listen", "127.0.0.1:0"]);
    let text = std::fs::read_to_string(&serve.ticket).unwrap();
    other.write("ticket", text.as_bytes());
    let got = other.run(&["get", "@ticket", "got", "--verbose"]);
    got.good();
    assert!(got.stderr().contains("holds Fairwave's keys"), "{}", got.stderr());
    std::fs::create_dir(other.path("put")).unwrap();
    let box_of = other.serve(&["put", "--writable", "--listen", "127.0.0.1:0"]);
    let put = host.run(&["put", ".", &format!("@{}", box_of.ticket.display())]);
    put.good();
    let copied = host.run(&["cp", ".", &to("copied/")]);
    copied.good();
    serve.process.signal(Signal::INT);
    let says = [serve.process.end().1, put.stderr(), copied.stderr()];
    for (at, says) in ["got", "put", "copied"].into_iter().zip(says) {
        let names = names(&other, at);
        assert!(names.iter().any(|name| name.ends_with("/data.txt")), "{at}: {names:?}");
        let own = |name: &&String| name.contains("/fairwave/") || name.ends_with("/backup");
        assert_eq!(names.iter().filter(own).collect::<Vec<_>>(), Vec::<&String>::new(), "{at}");
        let state = host.path("state/fairwave").canonicalize().unwrap();
        assert!(
            says.contains(&format!("skipping {}: it holds Fairwave's keys or sockets", state.display())),
            "{at}: {says}"
        );
    }
}

#[test]
fn own_places__are_no_place_to_serve_from_or_into() {
    let host = Host::new();
    host.run(&["serve", "--tickets"]).good();
    let identity = "state/fairwave/identity";
    for (args, says) in [
        (&["state/fairwave"][..], "Fairwave's private keys"),
        (&[identity], "Fairwave's private keys"),
        (&["run/fairwave"], "Fairwave's private keys"),
        (&["state/fairwave", "--writable"], "Fairwave's private keys"),
        (&["state/fairwave/new", "--writable"], "Fairwave's private keys"),
        (&[".", "--writable"], "uploads could replace them"),
        (&["state", "--writable"], "uploads could replace them"),
    ] {
        std::fs::create_dir_all(host.path("run/fairwave")).unwrap();
        let args = [&["serve", "--listen", "127.0.0.1:0"], args].concat();
        let (status, stderr) = host.start(&args).end();
        assert_eq!(status.code(), Some(2), "{args:?}: {stderr}");
        assert!(stderr.contains(says) && stderr.contains("hint: "), "{args:?}: {stderr}");
    }
    assert!(!host.path("state/fairwave/new").exists());
    for args in [&["put", identity, "@ticket"][..], &["cp", identity, "to/"]] {
        let mut serve = None;
        if args[0] == "put" {
            std::fs::create_dir(host.path("in")).unwrap();
            let serving = host.serve(&["in", "--writable", "--listen", "127.0.0.1:0"]);
            host.write("ticket", &std::fs::read(&serving.ticket).unwrap());
            serve = Some(serving);
        }
        let stderr = host.run(args).refused();
        assert!(stderr.contains("Fairwave's private keys"), "{args:?}: {stderr}");
        drop(serve);
    }
}

#[test]
fn path__dedicated_at_one_end_alone_is_said_at_both_with_what_to_type() {
    let host = Host::new();
    host.write("big.bin", &bytes(2_000_000));
    let mut serve = JsonServer::serve(&host, &["big.bin", "--path", "dedicated", "--capacity", "100 Mb/s"]);
    let mut get = host.start(&["get", &serve.ticket, "to", "--json", "--capacity", "100 Mb/s"]);
    let mut note = String::new();
    let mut is_note = |event: &serde_json::Value| {
        note = event["note"].as_str().unwrap_or_default().to_owned();
        event["event"] == "path"
    };
    get.wait_for(&mut is_note);
    serve.process.wait_for(&mut is_note);
    let here = "the path is treated as shared because only this end sets --path dedicated: add `--path dedicated --capacity RATE` at the peer";
    assert_eq!(note, here);
    serve.ends(1);
    // For people, on stderr; and `--path dedicated` is all that is missing at an end that knows its capacity.
    let done = host.run(&["get", &serve.ticket, "again", "--capacity", "100 Mb/s"]);
    assert_eq!(done.good(), "");
    let there = "only the peer sets --path dedicated: add `--path dedicated` here";
    assert!(done.stderr().contains(there), "{}", done.stderr());
    // With it there is nothing to say.
    let done = host.run(&["get", &serve.ticket, "quick", "--capacity", "100 Mb/s", "--path", "dedicated"]);
    assert_eq!(done.good(), "");
    assert!(!done.stderr().contains("sets --path dedicated"), "{}", done.stderr());
}
