//! Transfers that go on by themselves when the other end was gone.

use fairwave_testing::wait_for;
use rustix::process::{Pid, Signal, kill_process};

use super::gate::Gate;
use super::user::{Host, Process, Serving, bytes};
use super::*;

const BYTES: usize = 12_000_000;
/// Bytes that pass the gate: two blocks and a part of the third.
const PASSES: i64 = 9_500_000;
/// Bytes that must have come before a test disturbs a transfer.
const HALF: u64 = 6_000_000;

impl Process {
    /// Waits for an event on stdout, and gives it.
    fn event(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        let mut found = Value::Null;
        self.wait_for(|event| {
            let is_it = is_it(event);
            if is_it {
                found = event.clone();
            }
            is_it
        });
        found
    }

    fn named(&mut self, name: &str) -> Value {
        self.event(|event| event["event"] == name)
    }
}

impl Serving {
    /// It is asked to end, and does.
    fn interrupt(mut self) {
        self.process.signal(Signal::INT);
        self.process.status();
    }
}

/// All came in two sessions, and nothing of it was there before.
fn assert_went_on(last: &Value, bytes: usize) {
    assert_eq!(last["event"].as_str(), Some("done"), "{last}");
    assert_eq!((last["bytes"].as_u64(), last["bytes_resumed"].as_u64()), (Some(bytes as u64), Some(0)), "{last}");
    assert_eq!(last["reconnects"].as_u64(), Some(1), "{last}");
}

#[test]
fn get__goes_on_when_the_server_begins_anew() {
    let host = Host::new();
    host.write("big.bin", &bytes(BYTES));
    let gate = Gate::new(PASSES);
    let serve = gate.serve(&host, &["big.bin"]);
    let mut get = host.start(&["get", &serve.at(), "to", "--json"]);
    get.moves(HALF);
    serve.interrupt();
    let retry = get.named("retry");
    assert_eq!((retry["reason"].as_str(), retry["attempt"].as_u64()), (Some("the peer shut down"), Some(1)), "{retry}");
    assert!(retry["next_s"].as_f64().unwrap() <= 1.0 && retry["gives_up_s"].as_f64().unwrap() <= 600.0, "{retry}");
    // Of what had come, nothing is lost.
    let there = |event: &Value| event["bytes_done"].as_u64().unwrap() + event["bytes_held"].as_u64().unwrap();
    assert!(there(&retry) > HALF, "{retry}");
    let second = get.named("retry");
    assert_eq!(second["attempt"].as_u64(), Some(2), "{second}");
    assert!(second["reason"].as_str().unwrap().starts_with("no reply"), "{second}");
    gate.open();
    let _serve = gate.serve(&host, &["big.bin"]);
    get.named("resumed");
    assert_went_on(&get.named("done"), BYTES);
    assert_eq!(get.end().0.code(), Some(0));
    assert!(std::fs::read(host.path("to/big.bin")).unwrap() == bytes(BYTES));
}

#[test]
fn get_and_put__go_on_when_the_server_was_killed() {
    let host = Host::new();
    host.write("box/big.bin", &bytes(BYTES));
    host.write("sent.bin", &bytes(BYTES));
    for is_get in [true, false] {
        let gate = Gate::new(PASSES);
        let offer = ["box", "--writable", "--readable"];
        let mut serve = gate.serve(&host, &offer);
        let ticket = serve.at();
        let words =
            if is_get { ["get", &ticket, "box/big.bin", "to/"] } else { ["put", "sent.bin", &ticket, "--quiet"] };
        let mut client = host.start(&[&words[..], &["--json"]].concat());
        client.moves(HALF);
        serve.process.kill();
        gate.open();
        let _serve = gate.serve(&host, &offer);
        // The new server rejects the session, so no client waits for 30 s of silence.
        let last = client.event(|event| {
            assert_ne!(event["reason"], "the peer stopped responding");
            event["event"] == "done"
        });
        assert_went_on(&last, BYTES);
        assert_eq!(client.end().0.code(), Some(0));
    }
    assert!(std::fs::read(host.path("to/box/big.bin")).unwrap() == bytes(BYTES));
    assert!(std::fs::read(host.path("box/sent.bin")).unwrap() == bytes(BYTES));
}

#[test]
fn get__with_a_ticket_for_one_transfer_may_come_back_until_it_is_done() {
    let host = Host::new();
    // Bytes sent into the closed gate count as sent. Several windows remain, so they are not all of the file.
    let large = 4 * BYTES;
    host.write("big.bin", &bytes(large));
    let gate = Gate::new(PASSES);
    let offer = ["big.bin", "--once"];
    let serve = gate.serve(&host, &offer);
    let ticket = serve.at();
    let mut get = host.start(&["get", &ticket, "to", "--json"]);
    get.moves(HALF);
    serve.interrupt();
    get.named("retry");
    gate.open();
    let _serve = gate.serve(&host, &offer);
    assert_went_on(&get.named("done"), large);
    wait_for("the ticket is used up", || {
        let list = host.run(&["serve", "--tickets", "--json"]).json();
        list.iter().any(|ticket| ticket["state"] == "used up")
    });
    let again = host.run(&["get", &ticket, "to", "--check"]);
    assert_eq!(again.code(), Some(1), "{}", again.stderr());
    assert!(again.stderr().contains("hint: ask for a new ticket"), "{}", again.stderr());
}

#[test]
fn get__an_interrupt_while_it_waits_ends_it() {
    let host = Host::new();
    host.write("big.bin", &bytes(BYTES));
    let serve = Gate::new(PASSES).serve(&host, &["big.bin"]);
    let mut get = host.start(&["get", &serve.at(), "to", "--json"]);
    get.moves(HALF);
    serve.interrupt();
    get.event(|event| event["event"] == "retry" && event["attempt"] == 2);
    get.signal(Signal::INT);
    get.named("stopped");
    let (status, stderr) = get.end();
    assert_eq!(status.code(), Some(130), "{stderr}");
    assert!(stderr.contains("hint: repeat the command to resume"), "{stderr}");
}

#[test]
fn get__without_retries_ends_with_its_session() {
    let host = Host::new();
    host.write("big.bin", &bytes(BYTES));
    let serve = Gate::new(PASSES).serve(&host, &["big.bin"]);
    let mut get = host.start(&["get", &serve.at(), "to", "--retry", "0 s", "--json"]);
    get.moves(HALF);
    serve.interrupt();
    let last = get.named("failed");
    assert_eq!((last["reason"].as_str(), last["reconnects"].as_u64()), (Some("the peer shut down"), Some(0)));
    let (status, stderr) = get.end();
    assert_eq!(status.code(), Some(4), "{stderr}");
    assert!(stderr.contains("complete; repeat the command to resume"), "{stderr}");
    let wrong = host.run(&["get", &format!("@{}", host.path("x").display()), "to", "--retry", "10"]).refused();
    assert!(wrong.contains("--retry"), "{wrong}");
}

/// A session ends after a silence of 30 s, so this takes longer: FAIRWAVE_LONG=1 runs it.
#[test]
fn cp__goes_on_after_the_far_end_could_not_be_heard() {
    if std::env::var_os("FAIRWAVE_LONG").is_none() {
        println!("skipped: FAIRWAVE_LONG=1 runs it");
        return;
    }
    let host = Host::new();
    host.write("big.bin", &bytes(60_000_000));
    let ssh = host.ssh();
    let mut cp = host.start(&["cp", "--ssh", &ssh, "big.bin", "server:in/", "--json", "--limit", "40 Mb/s"]);
    cp.moves(8_000_000);
    let status = host.run(&["status", "--json"]).json().pop().unwrap();
    let far = status["processes"].as_array().unwrap().iter().find(|process| process["command"] == "cp (far end)");
    let id = far.unwrap()["pid"].as_u64().unwrap();
    let id = Pid::from_raw(i32::try_from(id).unwrap()).unwrap();
    // A process that receives no packet and sends none is as good as behind a network that was cut.
    kill_process(id, Signal::STOP).unwrap();
    cp.named("retry");
    kill_process(id, Signal::CONT).unwrap();
    let last = cp.named("done");
    assert_eq!((last["bytes"].as_u64(), last["bytes_resumed"].as_u64()), (Some(60_000_000), Some(0)), "{last}");
    assert!(last["reconnects"].as_u64().unwrap() >= 1, "{last}");
    assert_eq!(cp.end().0.code(), Some(0));
    assert!(std::fs::read(host.path("home/in/big.bin")).unwrap() == bytes(60_000_000));
}
