//! Ends of sessions as processes of their own, which can be stopped, killed and measured: this very program, asked for one
//! test that plays a part.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{IpAddr, SocketAddr};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use fairwave_host::{ConnectOptions, Endpoint, EndpointConfig, SessionOptions, Ticket};
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};

use crate::content::{Giver, Taker};
use crate::hosts::{dedicated, open};
use crate::space::Space;

/// What a process does.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Part {
    /// Lends bytes from memory to everybody with the ticket that it prints.
    Give { address: SocketAddr, capacity_mbps: f64 },
    /// Fetches so many bytes, looks at them, and says so.
    Take { ticket: String, length: u64, capacity_mbps: f64 },
}

/// A process that plays a part. It is killed when this is dropped.
pub(crate) struct Actor {
    child: Child,
    lines: BufReader<ChildStdout>,
}

const VARIABLE: &str = "FAIRWAVE_PART";
/// Tells what a part says from what the test runner does.
const SAYS: &str = "part: ";

impl Actor {
    /// Starts one in `space`.
    pub(crate) fn start(space: &Space, part: &Part) -> Self {
        let program = std::env::current_exe().expect("it runs");
        let mut command = Command::new(program);
        command.args(["--exact", "parts::part__is_played", "--ignored", "--nocapture"]);
        command.env(VARIABLE, serde_json::to_string(part).expect("it has no maps"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = space.run(|| command.spawn()).expect("it ran once");
        let lines = BufReader::new(child.stdout.take().expect("it is piped"));
        Self { child, lines }
    }

    /// The next thing that it says.
    pub(crate) fn hear(&mut self) -> String {
        let mut line = String::new();
        while self.lines.read_line(&mut line).expect("it is text") > 0 {
            // The runner's own words may stand before it.
            if let Some((_, said)) = line.trim_end().split_once(SAYS) {
                return said.to_owned();
            }
            line.clear();
        }
        panic!("the process ended without a word");
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

impl Drop for Actor {
    fn drop(&mut self) {
        // Also if it is stopped.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
#[ignore = "what other tests start as a process"]
fn part__is_played() {
    let Ok(part) = std::env::var(VARIABLE) else { return };
    // Who started it is gone, and nobody else would end it.
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    match serde_json::from_str(&part).expect("another process of this program wrote it") {
        Part::Give { address, capacity_mbps } => give(address, &dedicated(capacity_mbps)),
        Part::Take { ticket, length, capacity_mbps } => {
            take(&ticket.parse().expect("a ticket"), length, &dedicated(capacity_mbps));
        }
    }
}

fn give(address: SocketAddr, config: &EndpointConfig) {
    let any: IpAddr = if address.is_ipv6() { "::".parse() } else { "0.0.0.0".parse() }.expect("an address");
    let listen = Some(SocketAddr::new(any, address.port()));
    let endpoint = Endpoint::bind(&EndpointConfig { listen, ..config.clone() }).expect("the port is free");
    let ticket = open(&endpoint, address, Box::new(|_| Ok((SessionOptions::default(), Box::new(Giver)))));
    println!("{SAYS}{ticket}");
    loop {
        std::thread::park();
    }
}

fn take(ticket: &Ticket, length: u64, config: &EndpointConfig) {
    let endpoint = Endpoint::bind(config).expect("a port is free");
    let (taker, tally) = Taker::new(length);
    let wish =
        ConnectOptions { sends: false, receives: true, greeting: Vec::new(), options: SessionOptions::default() };
    endpoint.connect(ticket, wish, Box::new(taker)).expect("the giver is there");
    println!("{SAYS}open");
    tally.wait(length, Duration::from_secs(120));
    println!("{SAYS}done");
    endpoint.close();
}
