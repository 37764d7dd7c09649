//! A server as a separate process: this program, run with the name of the test that plays it.

use std::collections::HashSet;
use std::fmt;
use std::fs;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fairwave_files::{Share, ShareOptions};
use fairwave_host::{Endpoint, EndpointConfig, Identity, Keyring, ShareId, Ticket, Validity};
use fairwave_testing::{Deadline, Process};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

const VARIABLE: &str = "FAIRWAVE_HOSTILE_SERVER";
const WRITABLE: &str = "FAIRWAVE_HOSTILE_WRITABLE";
/// Distinguishes the server's output from the test runner's.
const SAYS: &str = "server: ";
const FREE: &str = "FAIRWAVE_HOSTILE_FREE";
/// As many free descriptors as a process has on most systems.
pub(crate) const DESCRIPTORS: u32 = 1000;
/// Paths of the share: each takes a descriptor for each visitor.
const PATHS: usize = 8;

/// A server, which ends with this.
pub(crate) struct Server {
    child: Process,
    words: BufReader<ChildStdout>,
    pub(crate) address: SocketAddr,
    /// The ticket whose hellos are recorded, and which can be revoked.
    pub(crate) recorded: Ticket,
    /// That of everybody else.
    pub(crate) good: Ticket,
}

/// System resources of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) threads: usize,
    pub(crate) descriptors: usize,
}

impl fmt::Display for Usage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} threads and {} descriptors", self.threads, self.descriptors)
    }
}

impl Server {
    /// Serves eight files below `place`, or takes what others put there. So many descriptors are free once it listens,
    /// whatever it has inherited.
    pub(crate) fn start(place: &Path, is_writable: bool, free: u32) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("it runs"));
        command.args(["--exact", "replayed_hellos::server__is_played", "--ignored", "--nocapture"]);
        command.env(VARIABLE, place).env(WRITABLE, u8::from(is_writable).to_string()).env(FREE, free.to_string());
        let mut child = Process::spawn(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
        let mut words = BufReader::new(child.stdout.take().expect("it is piped"));
        let [recorded, good] = [(); 2].map(|()| hear(&mut words).parse::<Ticket>().expect("a ticket"));
        Self { child, words, address: recorded.addresses[0], recorded, good }
    }

    /// Takes back the ticket that was recorded.
    pub(crate) fn revoke(&mut self) {
        let input = self.child.stdin.as_mut().expect("it is piped");
        writeln!(input, "revoke").expect("it listens");
        assert_eq!(hear(&mut self.words), "revoked");
    }

    /// Its current usage.
    pub(crate) fn usage(&self) -> Usage {
        let own = PathBuf::from(format!("/proc/{}", self.child.id()));
        let status = fs::read_to_string(own.join("status")).expect("it runs");
        let threads = status.lines().find_map(|line| line.strip_prefix("Threads:")).expect("proc(5) says so");
        let descriptors = fs::read_dir(own.join("fd")).expect("it is one's own").count();
        Usage { threads: threads.trim().parse().expect("a number"), descriptors }
    }

    /// Its usage once it has been stable for a while.
    pub(crate) fn settled(&self) -> Usage {
        let (mut usage, mut since, deadline) = (self.usage(), Instant::now(), Deadline::new());
        while since.elapsed() < Duration::from_secs(1) {
            deadline.check("it settles");
            std::thread::sleep(Duration::from_millis(10));
            let now = self.usage();
            if now != usage {
                (usage, since) = (now, Instant::now());
            }
        }
        usage
    }
}

fn hear(words: &mut BufReader<ChildStdout>) -> String {
    loop {
        let mut line = String::new();
        assert!(words.read_line(&mut line).expect("it is text") > 0, "the server ended");
        // The runner's own words may stand before it.
        if let Some((_, said)) = line.trim_end().split_once(SAYS) {
            return said.to_owned();
        }
    }
}

fn say(what: &str) {
    let mut out = io::stdout().lock();
    writeln!(out, "{SAYS}{what}").and_then(|()| out.flush()).expect("somebody listens");
}

/// Uses up all unused descriptors of this process except this many: the limit bounds their numbers.
fn leave_descriptors(free: usize) {
    let own = fs::read_dir("/proc/self/fd").expect("it is one's own");
    let taken: HashSet<u64> = own.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    // The one that the directory was read by is in the set, and closed by now: it is one of those that are free.
    let last = (0..).filter(|number| !taken.contains(number)).nth(free - 2).expect("numbers do not end");
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: Some(last + 1), maximum }).expect("a lower limit is allowed");
}

/// Main function of the server process.
pub(crate) fn play() {
    let Some(place) = std::env::var_os(VARIABLE).map(PathBuf::from) else { return };
    let is_writable = std::env::var(WRITABLE).is_ok_and(|value| value == "1");
    let share = if is_writable {
        let options = ShareOptions { writable_into: Some(place.join("into")), ..ShareOptions::default() };
        Share::new(Vec::new(), options)
    } else {
        let paths: Vec<_> = (0..PATHS).map(|number| place.join(format!("file{number}"))).collect();
        for path in &paths {
            fs::write(path, [1; 5000]).expect("there is room");
        }
        Share::new(paths, ShareOptions::default())
    };
    let share = Arc::new(share.expect("all is there"));
    let listen = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    let endpoint = Endpoint::bind(&EndpointConfig { listen, ..EndpointConfig::default() }).expect("a port is free");
    let keyring = Arc::new(Keyring::in_memory(Identity::random().expect("random bytes"), ShareId(0)));
    endpoint.listen_with(Arc::clone(&keyring), share.judges(), share.accept());
    let free = std::env::var(FREE).ok().and_then(|free| free.parse().ok()).expect("the test says how many");
    leave_descriptors(free);
    let validity = Validity { lasts_s: None, is_once: false };
    let issue = || keyring.issue(validity, vec![endpoint.local_addr()]).expect("nothing is written");
    let recorded = issue();
    for ticket in [&recorded, &issue()] {
        say(&ticket.to_string());
    }
    for line in io::stdin().lines().map_while(Result::ok) {
        if line == "revoke" {
            assert!(keyring.revoke(recorded.id).expect("nothing is written"));
            say("revoked");
        }
    }
}
