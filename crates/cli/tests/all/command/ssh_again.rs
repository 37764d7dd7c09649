//! A `cp` whose ssh ends in the middle, where nothing else leads to the far end.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::host::{Host, Process, bytes};
use super::*;

const BYTES: usize = 24_000_000;

impl Host {
    /// Stands for an ssh that is a process of its own between the two ends, as a real one is: it writes down its id, and
    /// whoever kills it leaves the far end behind. While the file "unreachable" has lines, each call takes one and fails.
    fn ssh_between(&self) -> String {
        let inner = self.ssh();
        let body = format!(
            "[ \"$1\" = -G ] && exec '{inner}' \"$@\"\n\
             cd '{place}'\n\
             echo call >> starts\n\
             if [ -s unreachable ]; then sed -i 1d unreachable; echo 'no route to host' >&2; exit 255; fi\n\
             mkfifo in$$ out$$\n\
             '{inner}' \"$@\" < in$$ > out$$ 2>> far-errors &\n\
             exec 3<&0\n\
             cat <&3 > in$$ &\n\
             echo $! $$ > ids\n\
             exec cat < out$$",
            place = self.path("").display(),
        );
        self.script("between-ssh", &body)
    }

    /// Ends the ssh that is there: both of its directions.
    fn kill_ssh(&self) {
        let ids = std::fs::read_to_string(self.path("ids")).expect("an ssh has begun");
        for id in ids.split_whitespace() {
            let id = Pid::from_raw(id.parse().expect("it is a number")).expect("it is not 0");
            kill_process(id, Signal::KILL).expect("it is there");
        }
    }

    /// So often an ssh was started.
    fn starts(&self) -> usize {
        std::fs::read_to_string(self.path("starts")).map_or(0, |text| text.lines().count())
    }
}

fn moves(process: &mut Process) {
    process.wait_for(|event| event["bytes_done"].as_u64().unwrap_or(0) > 6_000_000);
}

/// All events from here on.
fn rest(process: &mut Process) -> Vec<Value> {
    let mut all = Vec::new();
    process.each(|_, event| all.push(event.clone()));
    all
}

#[test]
fn cp__an_ssh_that_ends_is_started_again_and_it_goes_on() {
    let host = Host::new();
    host.write("home/there.bin", &bytes(BYTES));
    host.write("here.bin", &bytes(BYTES));
    let ssh = host.ssh_between();
    for (number, (from, to, result)) in
        [("server:there.bin", "to/", "to/there.bin"), ("here.bin", "server:in/", "home/in/here.bin")]
            .into_iter()
            .enumerate()
    {
        let call = ["cp", "--ssh", &ssh, "--json", "--carrier", "ssh", "--limit", "60 Mb/s", from, to];
        let mut cp = host.start(&call);
        moves(&mut cp);
        host.kill_ssh();
        let events = rest(&mut cp);
        let retry = events.iter().find(|event| event["event"] == "retry").unwrap();
        assert_eq!(retry["reason"].as_str(), Some("the connection that carried the session was cut"), "{retry}");
        let end = events.last().unwrap();
        let (status, stderr) = cp.end();
        assert_eq!((end["event"].as_str(), end["carrier"].as_str()), (Some("done"), Some("ssh")), "{end} {stderr}");
        assert_eq!((end["reconnects"].as_u64(), end["bytes_resumed"].as_u64()), (Some(1), Some(0)), "{end}");
        assert_eq!((status.code(), host.starts()), (Some(0), 2 * (number + 1)), "{stderr}");
        assert!(std::fs::read(host.path(result)).unwrap() == bytes(BYTES), "{result}");
    }
}

#[test]
fn cp__an_ssh_that_cannot_be_started_again_is_tried_until_it_can() {
    let host = Host::new();
    host.write("here.bin", &bytes(BYTES));
    let ssh = host.ssh_between();
    let call = ["cp", "--ssh", &ssh, "--json", "--carrier", "ssh", "--limit", "60 Mb/s", "here.bin", "server:in/"];
    let mut cp = host.start(&call);
    moves(&mut cp);
    host.write("unreachable", b"once\ntwice\n");
    host.kill_ssh();
    let events = rest(&mut cp);
    let reasons: Vec<_> =
        events.iter().filter(|event| event["event"] == "retry").map(|event| &event["reason"]).collect();
    assert_eq!(
        reasons,
        [
            "the connection that carried the session was cut",
            "server: ssh cannot reach it",
            "server: ssh cannot reach it"
        ]
    );
    let end = events.last().unwrap();
    assert_eq!((end["event"].as_str(), end["reconnects"].as_u64()), (Some("done"), Some(1)), "{end}");
    assert_eq!(host.starts(), 4);
    assert!(std::fs::read(host.path("home/in/here.bin")).unwrap() == bytes(BYTES));
}

#[test]
fn cp__without_retries_ends_with_its_ssh() {
    let host = Host::new();
    host.write("here.bin", &bytes(BYTES));
    let ssh = host.ssh_between();
    let call = ["cp", "--ssh", &ssh, "--json", "--carrier", "ssh", "--retry", "0 s", "--limit", "60 Mb/s"];
    let mut cp = host.start(&[&call[..], &["here.bin", "server:in/"]].concat());
    moves(&mut cp);
    host.kill_ssh();
    let events = rest(&mut cp);
    let end = events.last().unwrap();
    assert_eq!((end["event"].as_str(), host.starts()), (Some("failed"), 1), "{end}");
}

/// What is asked to end while an ssh hangs does so at once.
#[test]
fn cp__an_interrupt_while_an_ssh_hangs_ends_it() {
    let host = Host::new();
    host.write("here.bin", &bytes(BYTES));
    let inner = host.ssh_between();
    let body = format!(
        "if [ \"$1\" != -G ] && [ -e '{place}/hangs' ]; then echo call >> '{place}/starts'; exec sleep 300; fi\n\
         exec '{inner}' \"$@\"",
        place = host.path("").display()
    );
    let ssh = host.script("hanging-ssh", &body);
    let call = ["cp", "--ssh", &ssh, "--json", "--carrier", "ssh", "--limit", "60 Mb/s", "here.bin", "server:in/"];
    let mut cp = host.start(&call);
    moves(&mut cp);
    host.write("hangs", b"");
    host.kill_ssh();
    let until = std::time::Instant::now() + super::host::PATIENCE;
    while host.starts() < 2 {
        assert!(std::time::Instant::now() < until, "no ssh was started again");
        std::thread::sleep(Duration::from_millis(20));
    }
    cp.signal(Signal::INT);
    let begin = std::time::Instant::now();
    assert_eq!(rest(&mut cp).last().unwrap()["event"].as_str(), Some("stopped"));
    let (status, stderr) = cp.end();
    println!("it ended within {:?}", begin.elapsed());
    assert_eq!(status.code(), Some(130), "{stderr}");
}
