//! A server and those who come to it: several at once, and in turn.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::host::{Host, PATIENCE, Process, bytes};

/// A server that tells what happens as JSON.
struct Told {
    process: Process,
    ticket: String,
    id: String,
}

impl Told {
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

    /// Waits until it has told the ends of so many transfers.
    fn ends(&mut self, mut count: usize) {
        self.process.wait_for(|event| {
            count -= usize::from(event["event"] == "done");
            count == 0
        });
    }
}

/// Waits until something is so.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn serve_json__lets_in_one_after_the_other_and_several_at_once() {
    let host = Host::new();
    host.write("tree/a.bin", &bytes(3_000_000));
    host.write("tree/deep/b.txt", b"hello");
    let mut serve = Told::serve(&host, &["tree"]);
    for to in ["one", "two", "three"] {
        host.run(&["get", &serve.ticket, to]).good();
        assert_eq!(host.tree(&format!("{to}/tree")), host.tree("tree"));
    }
    let mut gets: Vec<_> =
        (0..4).map(|n| host.start(&["get", &serve.ticket, &format!("at-once-{n}"), "--limit", "20 Mb/s"])).collect();
    for (n, get) in gets.iter_mut().enumerate() {
        let (status, stderr) = get.end();
        assert_eq!(status.code(), Some(0), "{stderr}");
        assert_eq!(host.tree(&format!("at-once-{n}/tree")), host.tree("tree"));
    }
    serve.ends(3 + 4);
    // It hears of what is taken back, too.
    host.run(&["serve", "--revoke", &serve.id]).good();
    until("the ticket is good for ever", || {
        let done = host.run(&["get", &serve.ticket, "late", "--check"]);
        done.code() == Some(1) && done.stderr().contains("the ticket has been revoked")
    });
}

#[test]
fn serve_json__takes_several_puts() {
    let host = Host::new();
    std::fs::create_dir(host.path("in")).unwrap();
    let mut serve = Told::serve(&host, &["in", "--writable"]);
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
    let mut serve = Told::serve(&host, &["a.txt", "--once"]);
    host.run(&["get", &serve.ticket, "to"]).good();
    until("it serves on", || serve.process.child.try_wait().unwrap().is_some());
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
    assert!(got.stderr().contains("where Fairwave keeps its keys"), "{}", got.stderr());
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
        assert!(says.contains(&format!("{}: holds Fairwave's keys or sockets", state.display())), "{at}: {says}");
    }
}

#[test]
fn own_places__are_no_place_to_serve_from_or_into() {
    let host = Host::new();
    host.run(&["serve", "--tickets"]).good();
    let identity = "state/fairwave/identity";
    for (args, says) in [
        (&["state/fairwave"][..], "where Fairwave keeps its keys"),
        (&[identity], "where Fairwave keeps its keys"),
        (&["run/fairwave"], "where Fairwave keeps its keys"),
        (&["state/fairwave", "--writable"], "where Fairwave keeps its keys"),
        (&["state/fairwave/new", "--writable"], "where Fairwave keeps its keys"),
        (&[".", "--writable"], "who may write there could replace its keys"),
        (&["state", "--writable"], "who may write there could replace its keys"),
    ] {
        std::fs::create_dir_all(host.path("run/fairwave")).unwrap();
        let args = [&["serve", "--listen", "127.0.0.1:0"], args].concat();
        let mut process = host.start(&args);
        until(&format!("{args:?} serves"), || process.child.try_wait().unwrap().is_some());
        let (status, stderr) = process.end();
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
        assert!(stderr.contains("where Fairwave keeps its keys"), "{args:?}: {stderr}");
        drop(serve);
    }
}
