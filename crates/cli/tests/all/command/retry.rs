//! Transfers that go on by themselves when the other end was gone.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::host::{Host, PATIENCE, Process, Serving, bytes, place};
use super::*;

/// Takes some seconds at [`LIMIT`].
const BYTES: usize = 60_000_000;
const LIMIT: [&str; 3] = ["--json", "--limit", "80 Mb/s"];
const HALF: u64 = 8_000_000;

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

    fn moves(&mut self) {
        self.wait_for(|event| event["bytes_done"].as_u64().unwrap_or(0) > HALF);
    }
}

impl Serving {
    /// It is asked to end, and does.
    fn interrupt(mut self) {
        self.process.signal(Signal::INT);
        self.process.child.wait().expect("it is our child");
    }
}

/// All came in two sessions, and nothing of it was there before.
fn assert_went_on(last: &Value) {
    assert_eq!(last["event"].as_str(), Some("done"), "{last}");
    assert_eq!((last["bytes"].as_u64(), last["bytes_resumed"].as_u64()), (Some(BYTES as u64), Some(0)), "{last}");
    assert_eq!(last["reconnects"].as_u64(), Some(1), "{last}");
}

#[test]
fn get__goes_on_when_the_server_begins_anew() {
    let host = Host::new();
    host.write("big.bin", &bytes(BYTES));
    let at = place().to_string();
    let offer = ["big.bin", "--listen", &at];
    let serve = host.serve(&offer);
    let mut get = host.start(&[&["get", &serve.at(), "to"], &LIMIT[..]].concat());
    get.moves();
    serve.interrupt();
    let retry = get.named("retry");
    assert_eq!((retry["reason"].as_str(), retry["attempt"].as_u64()), (Some("the other end has ended"), Some(1)));
    assert!(retry["next_s"].as_f64().unwrap() <= 1.0 && retry["gives_up_s"].as_f64().unwrap() <= 600.0, "{retry}");
    assert!(retry["bytes_done"].as_u64().unwrap() > HALF, "{retry}");
    let second = get.named("retry");
    assert!(second["reason"].as_str().unwrap().starts_with("no answer"), "{second}");
    let _serve = host.serve(&offer);
    let resumed = get.named("resumed");
    assert!(resumed["bytes_done"].as_u64().unwrap() > HALF, "{resumed}");
    assert_went_on(&get.named("done"));
    assert_eq!(get.end().0.code(), Some(0));
    assert!(std::fs::read(host.path("to/big.bin")).unwrap() == bytes(BYTES));
}

#[test]
fn get_and_put__go_on_when_the_server_was_killed() {
    let host = Host::new();
    host.write("box/big.bin", &bytes(BYTES));
    host.write("sent.bin", &bytes(BYTES));
    let at = place().to_string();
    let offer = ["box", "--writable", "--readable", "--listen", &at];
    let mut serve = host.serve(&offer);
    let mut get = host.start(&[&["get", &serve.at(), "box/big.bin", "to"], &LIMIT[..]].concat());
    let mut put = host.start(&[&["put", "sent.bin", &serve.at()], &LIMIT[..]].concat());
    get.moves();
    put.moves();
    serve.process.child.kill().unwrap();
    serve.process.child.wait().unwrap();
    let _serve = host.serve(&offer);
    // The new one says that it does not know them: they connect again at once, and nobody waits for 30 s of silence.
    for process in [&mut get, &mut put] {
        let last = process.event(|event| {
            assert_ne!(event["reason"], "nothing came from the other end any more");
            event["event"] == "done"
        });
        assert_went_on(&last);
        assert_eq!(process.end().0.code(), Some(0));
    }
    assert!(std::fs::read(host.path("to/box/big.bin")).unwrap() == bytes(BYTES));
    assert!(std::fs::read(host.path("box/sent.bin")).unwrap() == bytes(BYTES));
}

#[test]
fn get__with_a_ticket_for_one_transfer_may_come_back_until_it_is_done() {
    let host = Host::new();
    host.write("big.bin", &bytes(BYTES));
    let at = place().to_string();
    let offer = ["big.bin", "--once", "--listen", &at];
    let serve = host.serve(&offer);
    let ticket = serve.at();
    let mut get = host.start(&[&["get", &ticket, "to"], &LIMIT[..]].concat());
    get.moves();
    serve.interrupt();
    get.named("retry");
    let _serve = host.serve(&offer);
    assert_went_on(&get.named("done"));
    let states = || -> Vec<_> {
        let list = host.run(&["serve", "--tickets", "--json"]).json();
        list.iter().map(|ticket| ticket["state"].as_str().unwrap().to_owned()).collect()
    };
    let deadline = Instant::now() + PATIENCE;
    while !states().contains(&"used up".to_owned()) {
        assert!(Instant::now() < deadline, "{:?}", states());
    }
    let again = host.run(&["get", &ticket, "to", "--check"]);
    assert_eq!(again.code(), Some(1), "{}", again.stderr());
    assert!(again.stderr().contains("hint: ask for a new ticket"), "{}", again.stderr());
}

#[test]
fn get__an_interrupt_while_it_waits_ends_it_at_once() {
    let host = Host::new();
    host.write("big.bin", &bytes(BYTES));
    let serve = host.serve(&["big.bin", "--listen", "127.0.0.1:0"]);
    let mut get = host.start(&[&["get", &serve.at(), "to"], &LIMIT[..]].concat());
    get.moves();
    serve.interrupt();
    get.event(|event| event["event"] == "retry" && event["attempt"] == 2);
    get.signal(Signal::INT);
    let begin = Instant::now();
    get.named("stopped");
    let (status, stderr) = get.end();
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
    assert_eq!(status.code(), Some(130), "{stderr}");
    assert!(stderr.contains("the same command goes on where it stopped"), "{stderr}");
}

#[test]
fn get__without_retries_ends_with_its_session() {
    let host = Host::new();
    host.write("big.bin", &bytes(BYTES));
    let serve = host.serve(&["big.bin", "--listen", "127.0.0.1:0"]);
    let mut get = host.start(&[&["get", &serve.at(), "to", "--retry", "0 s"], &LIMIT[..]].concat());
    get.moves();
    serve.interrupt();
    let last = get.named("failed");
    assert_eq!((last["reason"].as_str(), last["reconnects"].as_u64()), (Some("the other end has ended"), Some(0)));
    let (status, stderr) = get.end();
    assert_eq!(status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("the same command goes on where it was"), "{stderr}");
    let wrong = host.run(&["get", &format!("@{}", host.path("x").display()), "to", "--retry", "10"]).refused();
    assert!(wrong.contains("--retry"), "{wrong}");
}

#[test]
fn cp__goes_on_after_the_far_end_could_not_be_heard_for_40_s() {
    let host = Host::new();
    host.write("big.bin", &bytes(BYTES));
    let ssh = host.ssh();
    let mut cp = host.start(&[&["cp", "--ssh", &ssh, "big.bin", "server:in/"], &LIMIT[..]].concat());
    cp.moves();
    let status = host.run(&["status", "--json"]).json().pop().unwrap();
    let far = status["processes"].as_array().unwrap().iter().find(|process| process["command"] == "cp (far end)");
    let id = far.unwrap()["pid"].as_u64().unwrap();
    let id = Pid::from_raw(i32::try_from(id).unwrap()).unwrap();
    // What no packet reaches, and what sends none, is as good as behind a network that was cut.
    kill_process(id, Signal::STOP).unwrap();
    std::thread::sleep(Duration::from_secs(40));
    kill_process(id, Signal::CONT).unwrap();
    let last = cp.named("done");
    assert_eq!((last["bytes"].as_u64(), last["bytes_resumed"].as_u64()), (Some(BYTES as u64), Some(0)), "{last}");
    assert!(last["reconnects"].as_u64().unwrap() >= 1, "{last}");
    assert_eq!(cp.end().0.code(), Some(0));
    assert!(std::fs::read(host.path("home/in/big.bin")).unwrap() == bytes(BYTES));
}
