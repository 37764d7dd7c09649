//! `fairwave cp hostA:x hostB:y`: a copy between two other machines.

use fairwave_testing::wait_for;
use rustix::process::Signal;

use super::user::{Host, Process, bytes};
use super::*;

const BYTES: usize = 16_000_000;
/// Unfinished until it is stopped.
const SLOW: [&str; 2] = ["--limit", "20 Mb/s"];
const NOTE: &str = "continuing through the machine that runs cp, which is slower";

impl Host {
    /// A fake ssh to machines `a`, `b` and others, each with a home of its name. Of machines that the file "apart"
    /// names, each is where no datagram leads.
    fn ssh_to_all(&self) -> String {
        let body = format!(
            "[ \"$1\" = -G ] && {{ echo hostname 127.0.0.1; exit 0; }}\n\
             cd '{place}' && printf '%s|' \"$@\" >> calls && echo >> calls\n\
             export SSH_CONNECTION='127.0.0.1 1 127.0.0.1 22' PATH='{bin}':\"$PATH\"\n\
             mkdir -p \"$1\"; cd \"$1\"\n\
             grep -qsx \"$1\" ../apart && exec unshare --net --map-root-user sh -c \"ip link set lo up; exec $2\"\n\
             exec sh -c \"$2\"",
            place = self.path("").display(),
            bin = Path::new(env!("CARGO_BIN_EXE_fairwave")).parent().expect("it lies in a directory").display(),
        );
        self.script("ssh-to-all", &body)
    }

    fn make_tree(&self, name: &str) {
        self.write(&format!("{name}/big.bin"), &bytes(BYTES));
        for number in 0..20 {
            self.write(&format!("{name}/many/{number}.txt"), &bytes(number * 10));
        }
    }

    /// Waits until nothing is left that a command started, at any of its machines.
    fn has_ended(&self) {
        wait_for("the end of both far ends", || self.processes().is_empty());
    }
}

/// The last event.
fn last(process: &mut Process) -> Value {
    let mut last = Value::Null;
    process.each(|_, event| last = event.clone());
    last
}

fn can_part() -> bool {
    let may = Command::new("unshare").args(["--net", "--map-root-user", "true"]).output();
    let may = may.is_ok_and(|done| done.status.success());
    if !may {
        println!("skipped: this system makes no network namespaces");
    }
    may
}

#[test]
fn cp__between_two_other_machines() {
    let host = Host::new();
    host.make_tree("a/tree");
    host.write("rules", b"*7.txt\n");
    let ssh = host.ssh_to_all();
    let cp = |words: &[&str]| host.run(&[&["cp", "--ssh", &ssh], words].concat());
    let look = cp(&["--dry-run", "a:tree", "b:in/"]).good();
    assert!(look.contains("new ") && look.contains("tree/big.bin"), "{look}");
    assert!(!host.path("b/in").exists());
    let done = cp(&["--json", "a:tree", "b:in/"]);
    let events = done.json();
    let end = events.last().unwrap();
    assert_eq!((end["event"].as_str(), end["carrier"].as_str()), (Some("done"), Some("udp")), "{end}");
    assert!(host.tree("b/in/tree") == host.tree("a/tree"));
    // A name there, patterns of this machine, wildcards of the first, and a single machine.
    let done = cp(&["a:tree/many/1.txt", "b:new name"]);
    done.good();
    assert!(done.stderr().contains("1 file, 10 B in "), "{}", done.stderr());
    assert_eq!(std::fs::read(host.path("b/new name")).unwrap(), bytes(10));
    cp(&["--exclude-from", "rules", "a:tree/many/1*.txt", "b:some"]).good();
    assert_eq!(host.tree("b/some").len(), 10);
    cp(&["a:tree/many", "a:again"]).good();
    assert_eq!(host.tree("a/again"), host.tree("a/tree/many"));
    host.has_ended();
    let calls = std::fs::read_to_string(host.path("calls")).unwrap();
    assert!(
        calls.lines().all(|line| ["a", "b"].iter().any(|name| line == format!("{name}|fairwave serve --bootstrap|"))),
        "{calls}"
    );
}

#[test]
fn cp__between_machines_without_a_way_goes_through_this() {
    if !can_part() {
        return;
    }
    let host = Host::new();
    host.make_tree("a/tree");
    let ssh = host.ssh_to_all();
    host.write("apart", b"b\n");
    let done = host.run(&["cp", "--ssh", &ssh, "--json", "a:tree", "b:in/"]);
    let end = done.json().pop().unwrap();
    assert_eq!((end["event"].as_str(), end["carrier"].as_str()), (Some("done"), Some("ssh")), "{end}");
    assert_eq!(done.stderr().matches(NOTE).count(), 1, "{}", done.stderr());
    assert!(host.tree("b/in/tree") == host.tree("a/tree"));
    host.has_ended();
}

/// An interrupt and a kill, with a direct way and without.
#[test]
fn cp__between_machines_ends_both_ends_and_resumes() {
    let can_part = can_part();
    let host = Host::new();
    host.make_tree("a/tree");
    let ssh = host.ssh_to_all();
    for (number, (apart, signal)) in
        [("", Signal::INT), ("", Signal::KILL), ("b\n", Signal::INT), ("b\n", Signal::KILL)].into_iter().enumerate()
    {
        if !(apart.is_empty() || can_part) {
            continue;
        }
        host.write("apart", apart.as_bytes());
        let to = format!("b:in{number}/");
        let call = ["cp", "--ssh", &ssh, "--json", "a:tree", &to];
        let mut first = host.start(&[&call[..], &SLOW].concat());
        first.moves(6_000_000);
        for id in host.processes() {
            for what in ["cmdline", "environ"] {
                let text = std::fs::read(format!("/proc/{}/{what}", id.as_raw_nonzero())).unwrap_or_default();
                assert!(!text.windows(5).any(|word| word == b"fw101"), "a ticket in {what}");
            }
        }
        first.signal(signal);
        if signal == Signal::INT {
            assert_eq!(last(&mut first)["event"].as_str(), Some("stopped"), "{number}");
            assert_eq!(first.end().0.code(), Some(130), "{number}");
        } else {
            first.status();
        }
        host.has_ended();
        let end = host.run(&call).json().pop().unwrap();
        assert_eq!(end["event"].as_str(), Some("done"), "{number}: {end}");
        assert!(end["bytes_resumed"].as_u64().unwrap() > 3_000_000, "{number}: {end}");
        assert!(host.tree(&format!("b/in{number}/tree")) == host.tree("a/tree"));
    }
}

#[test]
fn cp__between_machines_fails_as_each_end_does() {
    let host = Host::new();
    host.write("a/a.bin", b"a");
    host.write("b/file", b"there");
    let ssh = host.ssh_to_all();
    let cp = |words: &[&str]| host.run(&[&["cp", "--ssh", &ssh], words].concat());
    let done = cp(&["a:none", "b:in/"]);
    assert_eq!(done.code(), Some(1), "{}", done.stderr());
    assert!(done.stderr().contains("a: ") && done.stderr().contains("none"), "{}", done.stderr());
    let done = cp(&["a:a.bin", "b:file/in/"]);
    assert_eq!(done.code(), Some(2), "{}", done.stderr());
    assert!(done.stderr().contains("file"), "{}", done.stderr());
    let done = cp(&["--remote-command", "./none", "a:a.bin", "b:in/"]);
    assert_eq!(done.code(), Some(4), "{}", done.stderr());
    host.has_ended();
}

/// The machine of the sources gives something else.
#[test]
fn cp__between_machines_the_first_cannot_plant_other_names() {
    let host = Host::new();
    host.write("home/.bashrc", b"evil");
    let hostile = host.hostile_ssh(&[".bashrc"]);
    let ssh = host.ssh_to_all();
    let ssh = host.script("one-of-both", &format!("[ \"$1\" = a ] && exec '{hostile}' \"$@\"\nexec '{ssh}' \"$@\""));
    let done = host.run(&["cp", "--ssh", &ssh, "a:a.bin", "b:in/"]);
    assert_eq!(done.code(), Some(1), "{}", done.stderr());
    assert!(done.stderr().contains("the peer sent \".bashrc\", expected \"a.bin\""), "{}", done.stderr());
    assert_eq!(host.tree("b/in"), []);
}

/// The machine of the destination prints what it likes.
#[test]
fn cp__between_machines_the_second_cannot_steer_the_terminal() {
    let host = Host::new();
    host.write("a/a.bin", b"a");
    let reply = serde_json::to_vec("begun").unwrap();
    host.write("reply", &[&u32::try_from(reply.len()).unwrap().to_be_bytes()[..], &reply].concat());
    let evil = "\x1b[2J\x01no json\n\x01{\"event\":\r\"done\"}\n\x01{\"event\":\"\u{9b}2J\"}\n\x01[1]\n\x1b]0;x\x07\n";
    host.write("evil", evil.as_bytes());
    let inner = host.ssh_to_all();
    let body = format!(
        "case \"$1\" in b) head -c 100 > /dev/null; cat '{place}/reply'; cat '{place}/evil' >&2; exit 0;; esac\nexec '{inner}' \"$@\"",
        place = host.path("").display()
    );
    let ssh = host.script("loud-ssh", &body);
    let done = host.run(&["cp", "--ssh", &ssh, "--json", "a:a.bin", "b:in/"]);
    assert_eq!(done.good(), "{\"event\":\"\\u009b2J\"}\n");
    assert!(!done.stderr().chars().any(|c| c.is_control() && c != '\n'), "{:?}", done.stderr());
    let done = host.run(&["cp", "--ssh", &ssh, "a:a.bin", "b:in/"]);
    assert!(!done.good().chars().any(|c| c.is_control() && c != '\n'), "{:?}", done.stdout());
    host.has_ended();
}
