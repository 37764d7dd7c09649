//! Ends of sessions as processes of their own, which can be stopped, killed and measured: this very program, asked for one
//! test that plays a part.

use crossbeam_channel::{Receiver, RecvTimeoutError, unbounded};
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use fairwave_host::{
    Accept, ConnectOptions, Endpoint, EndpointConfig, GetOptions, Keyring, SessionOptions, Share, ShareId,
    ShareOptions, StateDir, Ticket, Validity, at_end, get,
};
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};

use crate::content::{Giver, Taker};
use crate::hosts::{dedicated, open};
use crate::space::Space;

/// What a process does.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Part {
    /// Lends bytes from memory to everybody with the ticket that it prints, and says how each session ends.
    Give { address: SocketAddr, capacity_mbps: f64 },
    /// Fetches so many bytes, looks at them, and says so; or how the session ended before.
    Take { ticket: String, length: u64, capacity_mbps: f64 },
    /// Gives files to everybody with the ticket that it prints, also the one that it printed an earlier time.
    Serve { path: PathBuf, state: PathBuf, address: SocketAddr, capacity_mbps: f64 },
    /// Gets files, and says how that ended.
    Get { ticket: String, destination: PathBuf, capacity_mbps: f64 },
}

/// A process that plays a part. It is killed when this is dropped.
pub(crate) struct Actor {
    child: Child,
    words: Receiver<String>,
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

    /// The next thing that it says.
    pub(crate) fn hear(&mut self) -> String {
        self.hear_within(Duration::from_secs(120)).expect("it says something")
    }

    /// The next thing that it says, if it does so soon.
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
        Part::Serve { path, state, address, capacity_mbps } => {
            serve(path, &state, address, &dedicated(capacity_mbps));
        }
        Part::Get { ticket, destination, capacity_mbps } => {
            fetch(&ticket.parse().expect("a ticket"), destination, &dedicated(capacity_mbps));
        }
    }
}

fn give(address: SocketAddr, config: &EndpointConfig) {
    let endpoint = listen(address, config);
    let accept: Accept = Box::new(|_| {
        let tell = Box::new(|reason, _| println!("{SAYS}closed: {reason:?}"));
        Ok((SessionOptions::default(), at_end(Box::new(Giver), tell)))
    });
    let ticket = open(&endpoint, address, accept);
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
    match tally.end(length, Duration::from_secs(120)) {
        None => println!("{SAYS}done"),
        Some(reason) => println!("{SAYS}closed: {reason:?}"),
    }
    endpoint.close();
}

fn serve(path: PathBuf, state: &Path, address: SocketAddr, config: &EndpointConfig) {
    let share = ShareId::of([&path], false);
    let keyring = Keyring::open(StateDir::at(state).expect("there is room"), share).expect("it can be read");
    let ticket = keyring.again(vec![address]).unwrap_or_else(|| {
        keyring.issue(Validity { lasts_s: None, is_once: false }, vec![address]).expect("there is room")
    });
    let share = Arc::new(Share::new(vec![path], ShareOptions::default()).expect("it is there"));
    let endpoint = listen(address, config);
    endpoint.listen(Arc::new(keyring), share.accept());
    println!("{SAYS}{ticket}");
    loop {
        std::thread::park();
    }
}

fn fetch(ticket: &Ticket, destination: PathBuf, config: &EndpointConfig) {
    let endpoint = Endpoint::bind(config).expect("a port is free");
    let options = GetOptions { destination, ..GetOptions::default() };
    let transfer = get(&endpoint, ticket, options).expect("the giver is there");
    println!("{SAYS}open");
    let outcome = transfer.wait(None).expect("it waits until the end");
    println!("{SAYS}{:?}, {} failed", outcome.ended, outcome.files_failed);
    endpoint.close();
}

fn listen(address: SocketAddr, config: &EndpointConfig) -> Endpoint {
    let any: IpAddr = if address.is_ipv6() { "::".parse() } else { "0.0.0.0".parse() }.expect("an address");
    let listen = Some(SocketAddr::new(any, address.port()));
    Endpoint::bind(&EndpointConfig { listen, ..config.clone() }).expect("the port is free")
}
