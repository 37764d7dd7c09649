//! A `cp` whose ssh ends in the middle, where nothing else leads to the far end.

use fairwave_testing::wait_for;
use rustix::process::{Pid, Signal, kill_process};

use super::user::{Host, Process, bytes};
use super::*;

const BYTES: usize = 12_000_000;
const HALF: u64 = 6_000_000;
/// Carries 9.5 MB, and then nothing, but does not end: a broken pipe is something that the other end hears of.
const CARRY: &str = "\
import os, time
left = 9_500_000
while left and (part := os.read(0, min(left, 65536))):
    left -= len(part)
    while part:
        part = part[os.write(1, part):]
time.sleep(0 if left else 1000)
";

impl Host {
    /// A fake ssh that is a separate process between the two ends, as a real one is: it records its id, and killing it
    /// leaves the far end running. If the file "narrow" exists it removes that and carries only 9.5 MB each way
    /// ([`CARRY`]): a transfer through it is unfinished until it is killed. While the file "unreachable" has lines,
    /// each call removes one and fails.
    pub(crate) fn ssh_between(&self) -> String {
        let inner = self.ssh();
        let body = format!(
            "[ \"$1\" = -G ] && exec '{inner}' \"$@\"\n\
             cd '{place}'\n\
             echo call >> starts\n\
             if [ -s unreachable ]; then sed -i 1d unreachable; echo 'no route to host' >&2; exit 255; fi\n\
             mkfifo in$$ out$$\n\
             '{inner}' \"$@\" < in$$ > out$$ 2>> far-errors &\n\
             exec 3<&0\n\
             carry=cat\n\
             if mv narrow taken 2> /dev/null; then carry='python3 carry.py'; fi\n\
             $carry <&3 > in$$ &\n\
             echo $! $$ > ids\n\
             exec $carry < out$$",
            place = self.path("").display(),
        );
        self.write("carry.py", CARRY.as_bytes());
        self.script("between-ssh", &body)
    }

    /// Kills the running ssh: both of its directions.
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
        host.write("narrow", b"");
        let mut cp = host.start(&["cp", "--ssh", &ssh, "--json", "--carrier", "ssh", from, to]);
        cp.moves(HALF);
        host.kill_ssh();
        let events = rest(&mut cp);
        let retry = events.iter().find(|event| event["event"] == "retry").unwrap();
        assert_eq!(retry["reason"].as_str(), Some("the carrying connection was lost"), "{retry}");
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
    host.write("narrow", b"");
    let mut cp = host.start(&["cp", "--ssh", &ssh, "--json", "--carrier", "ssh", "here.bin", "server:in/"]);
    cp.moves(HALF);
    host.write("unreachable", b"once\ntwice\n");
    host.kill_ssh();
    let events = rest(&mut cp);
    let reasons: Vec<_> =
        events.iter().filter(|event| event["event"] == "retry").map(|event| &event["reason"]).collect();
    assert_eq!(
        reasons,
        ["the carrying connection was lost", "server: ssh cannot connect", "server: ssh cannot connect"]
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
    host.write("narrow", b"");
    let call = ["cp", "--ssh", &ssh, "--json", "--carrier", "ssh", "--retry", "0 s", "here.bin", "server:in/"];
    let mut cp = host.start(&call);
    cp.moves(HALF);
    host.kill_ssh();
    let events = rest(&mut cp);
    let end = events.last().unwrap();
    assert_eq!((end["event"].as_str(), host.starts()), (Some("failed"), 1), "{end}");
}

/// An interrupt ends a copy whose ssh hangs.
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
    host.write("narrow", b"");
    let mut cp = host.start(&["cp", "--ssh", &ssh, "--json", "--carrier", "ssh", "here.bin", "server:in/"]);
    cp.moves(HALF);
    host.write("hangs", b"");
    host.kill_ssh();
    wait_for("a second ssh", || host.starts() == 2);
    cp.signal(Signal::INT);
    assert_eq!(rest(&mut cp).last().unwrap()["event"].as_str(), Some("stopped"));
    let (status, stderr) = cp.end();
    assert_eq!(status.code(), Some(130), "{stderr}");
}
