//! Processes that play a part: this program, started for one test, `net::parts::part__is_played`, with the part in its
//! environment.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr};
use std::process::{Command, Stdio};
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, unbounded};
use fairwave_host::{Endpoint, EndpointConfig};
use fairwave_testing::{LIMIT, Process, end_with_parent};
use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;
use serde::de::DeserializeOwned;

use fairwave_wan::Space;

/// A process that plays a part. It ends with this, also if it is stopped.
pub(crate) struct Actor {
    child: Process,
    words: Receiver<String>,
}

const VARIABLE: &str = "FAIRWAVE_PART";
/// Prefix that separates a part's output from the test runner's.
pub(crate) const SAYS: &str = "part: ";

impl Actor {
    /// Starts one in `space`.
    pub(crate) fn start(space: &Space, part: &impl Serialize) -> Self {
        let program = std::env::current_exe().expect("it runs");
        let mut command = Command::new(program);
        command.args(["--exact", "net::parts::part__is_played", "--ignored", "--nocapture"]);
        command.env(VARIABLE, serde_json::to_string(part).expect("it has no maps"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let child = space.run(|| command.spawn()).expect("a thread is left").expect("it ran once");
        let mut child = Process::from(child);
        // The thread that spawned it has ended, and its parent is the one that lasts.
        child.stdin.as_mut().expect("it is piped").write_all(b"\n").expect("it runs");
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        let (says, words) = unbounded();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                // The runner's own words may stand before it.
                let said = line.split_once(SAYS).map(|(_, said)| said.to_owned());
                if said.is_some_and(|said| says.send(said).is_err()) {
                    return;
                }
            }
        });
        Self { child, words }
    }

    /// The next line of its output.
    pub(crate) fn hear(&mut self) -> String {
        self.hear_within(LIMIT).expect("it says something")
    }

    /// The next line of its output, if it comes within this time.
    pub(crate) fn hear_within(&mut self, time: Duration) -> Option<String> {
        match self.words.recv_timeout(time) {
            Ok(said) => Some(said),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => panic!("the process ended without a word"),
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("it runs");
    }

    /// Bytes of memory that it uses.
    pub(crate) fn resident_bytes(&self) -> u64 {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("every process has some");
        1024 * line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number")
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).expect("ids are small")).expect("it is not 0")
    }
}

/// The part that this process was started to play, if it was. The process ends with who started it.
pub(crate) fn part<P: DeserializeOwned>() -> Option<P> {
    let part = std::env::var(VARIABLE).ok()?;
    std::io::stdin().read_exact(&mut [0]).ok()?;
    end_with_parent().expect("a system call without conditions");
    // In case the parent ended earlier.
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    Some(serde_json::from_str(&part).expect("another process of this program wrote it"))
}

/// An endpoint at the port of an address.
pub(crate) fn listen(address: SocketAddr, config: &EndpointConfig) -> Endpoint {
    let any: IpAddr = if address.is_ipv6() { "::".parse() } else { "0.0.0.0".parse() }.expect("an address");
    let listen = Some(SocketAddr::new(any, address.port()));
    Endpoint::bind(&EndpointConfig { listen, ..config.clone() }).expect("the port is free")
}
