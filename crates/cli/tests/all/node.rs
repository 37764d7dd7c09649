//! The end node of a machine, end to end: a daemon, processes that serve and that fetch, and what becomes of them when
//! one of them is killed. Rates are judged by what ends are granted, which a busy machine does not change.

#![allow(non_snake_case)]

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use fairwave_host::machine::{MachineSnapshot, ask};
use fairwave_testing::{Deadline, LIMIT, Process, wait_for};
use serde_json::Value;

/// Mb/s, each way. A build without optimisation carries that on a busy machine.
const CAPACITY: f64 = 10.0;
/// A directory, a daemon in it, and the processes that know of it. All are gone with it.
struct World {
    place: tempfile::TempDir,
    daemon: Option<Process>,
    servers: Vec<Process>,
    clients: Vec<Process>,
    /// User of the processes started from here on.
    user: u32,
    /// By which rule they share.
    rule: &'static str,
}

const ROOT: u32 = 0;
const NOBODY: u32 = 65_534;

impl World {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        for name in ["run", "state"] {
            let dir = place.path().join(name);
            std::fs::create_dir(&dir).unwrap();
            std::os::unix::fs::chown(&dir, None, None).unwrap();
            std::fs::set_permissions(&dir, PermissionsExt::from_mode(0o700)).unwrap();
        }
        Self { place, daemon: None, servers: Vec::new(), clients: Vec::new(), user: ROOT, rule: "gtp" }
    }

    fn socket(&self) -> PathBuf {
        self.place.path().join("d.sock")
    }

    fn fairwave(&self, words: &[&str]) -> Command {
        let mut command = Command::new(self.program());
        command.args(words).current_dir(self.place.path()).stdin(Stdio::null());
        command.env("FAIRWAVE_DAEMON", self.socket()).env("XDG_RUNTIME_DIR", self.place.path().join("run"));
        command.env("XDG_STATE_HOME", self.place.path().join("state"));
        if self.user != ROOT {
            command.uid(self.user).gid(self.user);
            command.env("XDG_RUNTIME_DIR", self.place.path().join("run2"));
            command.env("XDG_STATE_HOME", self.place.path().join("state2")).env("HOME", self.place.path());
        }
        command
    }

    /// Lets another user start processes here, with separate directories. Needs root.
    fn open_to_all(&self) {
        std::fs::set_permissions(self.place.path(), PermissionsExt::from_mode(0o755)).unwrap();
        for name in ["run2", "state2"] {
            let dir = self.place.path().join(name);
            std::fs::create_dir(&dir).unwrap();
            std::os::unix::fs::chown(&dir, Some(NOBODY), Some(NOBODY)).unwrap();
            std::fs::set_permissions(&dir, PermissionsExt::from_mode(0o700)).unwrap();
        }
        // The program may lie where nobody else comes.
        let (program, copy) = (env!("CARGO_BIN_EXE_fairwave"), self.place.path().join("fairwave"));
        std::fs::hard_link(program, &copy).or_else(|_| std::fs::copy(program, &copy).map(drop)).unwrap();
    }

    fn program(&self) -> PathBuf {
        let copy = self.place.path().join("fairwave");
        if copy.exists() { copy } else { env!("CARGO_BIN_EXE_fairwave").into() }
    }

    fn start_daemon(&mut self) {
        let capacity = format!("{CAPACITY} Mb/s");
        let mut command = self.fairwave(&["daemon", "--capacity", &capacity, "--quiet"]);
        self.daemon = Some(Process::spawn(command.stdout(Stdio::null())));
        wait_for("the daemon answers", || ask(&self.socket()).is_ok());
    }

    fn kill_daemon(&mut self) {
        drop(self.daemon.take().expect("it runs"));
    }

    fn serve(&mut self) {
        let number = self.servers.len();
        let ticket = std::fs::File::create(self.place.path().join(format!("t{number}"))).unwrap();
        let mut command = self.fairwave(&["bench", "serve", "--listen", "127.0.0.1:0", "--rule", self.rule, "--quiet"]);
        self.servers.push(Process::spawn(command.stdout(ticket).stderr(Stdio::null())));
        let path = self.place.path().join(format!("t{number}"));
        wait_for("a ticket", || std::fs::read_to_string(&path).unwrap().ends_with('\n'));
    }

    fn fetch(&mut self, server: usize) {
        let ticket = format!("@t{server}");
        let words = ["bench", &ticket, "--direction", "receive", "--time", "3600 s", "--rule", self.rule, "--quiet"];
        let mut command = self.fairwave(&words);
        self.clients.push(Process::spawn(command.stdout(Stdio::null()).stderr(Stdio::null())));
    }

    /// Sees the machine until it is as it should be.
    fn until(&self, what: &str, mut holds: impl FnMut(&MachineSnapshot) -> bool) -> MachineSnapshot {
        let deadline = Deadline::new();
        loop {
            let seen = ask(&self.socket());
            if let Ok(seen) = &seen
                && holds(seen)
            {
                return seen.clone();
            }
            deadline.check(&format!("{what}: {seen:#?}"));
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until this many sessions share the capacity: each is granted more than half of its part, and all together no
    /// more than the capacity. `make live` measures how exactly they share.
    fn until_shared(&self, sessions: usize) -> MachineSnapshot {
        let fair = CAPACITY * 1e6 / sessions as f64;
        self.until(&format!("{sessions} sessions of {fair} bit/s"), |seen| {
            let grants = grants(seen);
            let is_whole = grants.iter().sum::<f64>() <= 1.02 * CAPACITY * 1e6;
            grants.len() == sessions && is_whole && grants.iter().all(|bps| *bps > 0.5 * fair)
        })
    }

    fn status(&self) -> Value {
        let output = self.fairwave(&["status", "--json"]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

/// Grants of the sinks that carry a load, bit/s: a session has the other direction as well, without traffic.
fn grants(seen: &MachineSnapshot) -> Vec<f64> {
    let sinks = seen.sessions.iter().filter(|row| row.receives && row.command == "bench" && row.measured_bps > 1e5);
    sinks.map(|row| row.expected_bps).collect()
}

/// Grants of the clients' own nodes, as the processes report: bit/s of each session that is a sink.
fn of_processes(status: &Value) -> Vec<f64> {
    let processes = status["processes"].as_array().unwrap().iter().filter(|process| process["command"] == "bench");
    let sessions = processes.flat_map(|process| process["sessions"].as_array().unwrap());
    sessions.filter_map(|session| session["expected_bps"].as_f64()).collect()
}

#[test]
fn daemon__shares_between_processes_and_is_missed_when_it_is_killed() {
    let mut world = World::new();
    world.start_daemon();
    world.serve();
    world.serve();
    for server in [0, 0, 1] {
        world.fetch(server);
    }
    world.until_shared(3);
    let status = world.status();
    assert_eq!((&status["node"]["origin"], &status["node"]["capacity_bps"]), (&"daemon".into(), &10e6.into()));
    assert!(status["node"]["total_bps"].as_f64().unwrap() > 0.0);
    assert_eq!(status["users"].as_array().unwrap().len(), 1);
    let why = String::from_utf8(world.fairwave(&["why"]).output().unwrap().stdout).unwrap();
    let count = |verb: &str| why.lines().filter(|line| line.contains(verb) && line.contains("(bench")).count();
    assert_eq!((count(" receives from "), count(" sends to ")), (3, 3), "{why}");
    assert_eq!(why.matches("  sink           this machine, 10.00 Mb/s for all its sessions").count(), 3, "{why}");
    assert_eq!(why.matches("  source         this machine, 10.00 Mb/s for all its sessions").count(), 3, "{why}");
    let because = String::from_utf8(world.fairwave(&["why", "--json"]).output().unwrap().stdout).unwrap();
    let nodes: Vec<Value> =
        because.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["node"].clone()).collect();
    assert!(nodes.iter().all(|node| node["origin"] == "daemon" && node["capacity_bps"] == 10e6), "{because}");
    let sinks = nodes.iter().filter(|node| node["role"] == "sink");
    assert!(sinks.clone().all(|node| node["others"].as_array().unwrap().len() >= 2) && sinks.count() == 3, "{because}");
    assert!(status["daemon"]["tick_cost_s"].as_f64().unwrap() > 0.0, "{status}");
    let text = String::from_utf8(world.fairwave(&["status"]).output().unwrap().stdout).unwrap();
    assert!(
        text.contains("a tick takes ") && text.contains("this machine's end node") && text.contains("of 10.00 Mb/s"),
        "{text}"
    );
    assert!(text.contains("capacity 10.00 Mb/s (from the daemon at"), "{text}");

    world.kill_daemon();
    wait_for("all miss the daemon", || {
        let text = String::from_utf8(world.fairwave(&["status"]).output().unwrap().stdout).unwrap();
        text.contains("last grant of the daemon")
    });
    let status = world.status();
    assert_eq!(status["node"], Value::Null);
    let left = of_processes(&status);
    assert_eq!(left.len(), 3, "{status}");
    assert!(left.iter().sum::<f64>() <= 1.02 * CAPACITY * 1e6, "{left:?}");

    world.start_daemon();
    world.until_shared(3);
    world.fetch(1);
    world.until_shared(4);
    // One that is killed leaves its share to the others.
    drop(world.clients.remove(0));
    world.until_shared(3);
}

#[test]
fn daemon__shares_between_processes_of_tally_and_of_gtp() {
    let mut world = World::new();
    world.start_daemon();
    world.rule = "tally";
    for _ in 0..2 {
        world.serve();
    }
    for server in [0, 0, 1] {
        world.fetch(server);
    }
    world.until_shared(3);
    world.rule = "gtp";
    world.serve();
    world.fetch(2);
    world.until_shared(4);
    // A Tally process's reservation stays unused for two leases.
    drop(world.clients.remove(0));
    world.until_shared(3);
}

#[test]
fn node__own_takes_no_part_and_a_path_names_a_daemon() {
    let mut world = World::new();
    world.start_daemon();
    world.serve();
    let socket = world.socket().display().to_string();
    let node = |world: &World, node: &str| {
        let mut command = world.fairwave(&["bench", "@t0", "--time", "100 ms", "--node", node]);
        let output = command.env("FAIRWAVE_DAEMON", "/nonexistent/d.sock").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        ask(&world.socket()).unwrap().counts.joined
    };
    // The server has joined.
    let server = world.until("joined", |seen| seen.counts.joined == 1);
    assert_eq!(server.users[0].processes, 1);
    assert_eq!(node(&world, "own"), 1);
    assert_eq!(node(&world, "auto"), 1);
    assert_eq!(node(&world, &socket), 2);
}

#[test]
fn daemon__says_what_is_wrong_with_its_call() {
    let mut world = World::new();
    let refused = |world: &World, words: &[&str]| {
        let output = world.fairwave(words).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        said
    };
    assert!(refused(&world, &["daemon", "--capacity", "0 Mb/s"]).contains("must be above zero"));
    assert!(refused(&world, &["daemon", "--interval", "1 s"]).contains("must be between 1 ms and 200 ms"));
    let long = world.place.path().join("x".repeat(120));
    assert!(refused(&world, &["daemon", "--socket", long.to_str().unwrap()]).contains("--socket"));
    let said = refused(&world, &["daemon", "--config", "/nowhere.toml"]);
    assert!(
        said.contains("/nowhere.toml: ") && said.contains("hint: the default is /etc/fairwave/daemon.toml"),
        "{said}"
    );
    let said = refused(&world, &["daemon", "--socket", "a/b/d.sock"]);
    assert!(said.contains("no directory ") && said.contains("hint: create the directory"), "{said}");
    assert!(!world.place.path().join("a").exists());
    world.start_daemon();
    assert!(refused(&world, &["daemon"]).contains("a daemon is already listening"));
}

/// A daemon that stands still is named, with what helps; what the processes say themselves is there all the same.
#[test]
fn status__of_a_daemon_that_stands_still_says_so_and_goes_on() {
    let mut world = World::new();
    world.start_daemon();
    world.serve();
    let daemon = world.daemon.as_ref().expect("it runs").id();
    let signal = |signal| {
        let pid = rustix::process::Pid::from_raw(daemon.cast_signed()).expect("a process has a number");
        rustix::process::kill_process(pid, signal).unwrap();
    };
    signal(rustix::process::Signal::STOP);
    let status = world.fairwave(&["status"]).output().unwrap();
    signal(rustix::process::Signal::CONT);
    let (text, said) = (String::from_utf8(status.stdout).unwrap(), String::from_utf8(status.stderr).unwrap());
    let socket = world.socket();
    let silent = format!("note: {}: no reply from the daemon (process {daemon}) for 2 s\n", socket.display());
    let said = anstream::adapter::strip_str(&said).to_string();
    assert!(said.starts_with(&silent), "{said}");
    assert!(said.contains(&format!("\nhint: run `kill -CONT {daemon}`")), "{said}");
    assert!(!said.contains("os error"), "{said}");
    assert!(status.status.success() && text.contains("bench"), "{text}");
}

/// A process's configured capacity is a bound, whatever a daemon grants it or another leaves; its card's is not.
#[test]
fn node__a_capacity_that_is_said_is_a_bound_with_and_without_a_daemon() {
    let mut world = World::new();
    // Leftovers of a killed daemon.
    drop(std::os::unix::net::UnixListener::bind(world.socket()).unwrap());
    world.serve();
    let bound = ["bench", "@t0", "--direction", "receive", "--time", "3600 s", "--quiet", "--capacity", "2.5 Mb/s"];
    let client = Process::spawn(world.fairwave(&bound).stdout(Stdio::null()).stderr(Stdio::null()));
    world.clients.push(client);
    let bounded = |world: &World| {
        // A server is a source, and has no grant here.
        wait_for("a session is granted 2.5 Mb/s", || of_processes(&world.status()).contains(&2.5e6));
    };
    bounded(&world);
    world.start_daemon();
    world.fetch(0);
    // The session that is bound has no more than 2.5 of 10, and the other has most of the rest: it may be granted what a
    // busy machine keeps the first from using.
    world.until("2.5 Mb/s at most, and more than half of all", |seen| {
        let rows = seen.sessions.iter().filter(|row| row.receives && row.measured_bps > 1e5);
        let mut used: Vec<f64> = rows.map(|row| row.measured_bps / 1e6).collect();
        used.sort_by(f64::total_cmp);
        matches!(used[..], [bound, other] if bound < 2.75 && other > 5.0)
    });
    bounded(&world);
}

/// Needs root, for another user's processes.
#[test]
fn daemon__shares_between_users_first_and_shows_each_its_own() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: a second user takes root");
        return;
    }
    let mut world = World::new();
    world.open_to_all();
    world.start_daemon();
    for user in [ROOT, NOBODY] {
        world.user = user;
        world.serve();
    }
    // Two sessions of one user, and one of the other.
    for (user, server) in [(ROOT, 0), (ROOT, 0), (NOBODY, 1)] {
        world.user = user;
        world.fetch(server);
    }
    // 2.5, 2.5 and 5 Mb/s: shared between sessions, each would have a third.
    world.until("two sessions below a third and one above", |seen| {
        let sinks = || seen.sessions.iter().filter(|row| row.receives && row.measured_bps > 1e5);
        sinks().count() == 3 && sinks().all(|row| (row.expected_bps > 1e6 * CAPACITY / 3.0) == (row.user == NOBODY))
    });
    let seen_by = |world: &mut World, user: u32| {
        world.user = user;
        world.status()
    };
    let users = |status: &Value| -> std::collections::BTreeSet<u64> {
        status["sessions"].as_array().unwrap().iter().map(|row| row["user"].as_u64().unwrap()).collect()
    };
    let by_root = seen_by(&mut world, ROOT);
    assert_eq!(users(&by_root), [0, u64::from(NOBODY)].into());
    let by_nobody = seen_by(&mut world, NOBODY);
    assert_eq!(users(&by_nobody), [u64::from(NOBODY)].into());
    assert_eq!(by_nobody["users"].as_array().unwrap().len(), 2, "sums of both");
    let why = String::from_utf8(world.fairwave(&["why"]).output().unwrap().stdout).unwrap();
    assert!(why.contains("this machine, 10.00 Mb/s for all its sessions"), "{why}");
    // Root's sessions share it, and are not shown.
    assert!(why.contains("more, smaller or hidden"), "{why}");
    assert!(!why.contains("user 0"), "{why}");
}

/// A name server that does not answer must not make the daemon look dead: what stands for it is a file that has no end.
#[test]
fn daemon__lives_on_while_its_file_is_read() {
    let mut world = World::new();
    let (file, notify) = (world.place.path().join("daemon.toml"), world.place.path().join("notify"));
    std::fs::write(&file, "yield = 1.0\n").unwrap();
    let systemd = std::os::unix::net::UnixDatagram::bind(&notify).unwrap();
    systemd.set_read_timeout(Some(LIMIT)).unwrap();
    let mut command = world.fairwave(&["daemon", "--capacity", "24 Mb/s", "--quiet", "--config", "daemon.toml"]);
    command.env("NOTIFY_SOCKET", &notify).env("WATCHDOG_USEC", "400000");
    world.daemon = Some(Process::spawn(command.stdout(Stdio::null()).stderr(Stdio::null())));
    let heard = || {
        let mut room = [0; 256];
        // A process that the system stops and lets go on hears of that in calls with a time-out (signal(7)).
        let read = std::iter::repeat_with(|| systemd.recv(&mut room))
            .find(|read| !read.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::Interrupted));
        let read = read.expect("it goes on without an end").expect("it says something in time");
        String::from_utf8_lossy(&room[..read]).into_owned()
    };
    while !heard().starts_with("READY=1") {}
    std::fs::remove_file(&file).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &file,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .unwrap();
    let daemon = rustix::process::Pid::from_child(world.daemon.as_ref().unwrap());
    rustix::process::kill_process(daemon, rustix::process::Signal::HUP).unwrap();
    while !heard().starts_with("RELOADING=1") {}
    for _ in 0..5 {
        assert_eq!(heard(), "WATCHDOG=1");
    }
    let mut end = std::fs::OpenOptions::new().write(true).open(&file).unwrap();
    std::io::Write::write_all(&mut end, b"yield = 2.0\n").unwrap();
    drop(end);
    while !heard().starts_with("READY=1") {}
}

/// Crashes and returns: `FAIRWAVE_SOAK` of them, or a few. The sessions of processes that live go on, and have their
/// shares when all is back; the sum of the grants is never more than the capacity.
#[test]
fn soak__crashes_and_returns() {
    let most = std::env::var("FAIRWAVE_SOAK").map_or(4, |text| text.parse().expect("a number"));
    let seed: u64 = std::env::var("FAIRWAVE_SEED").map_or(42, |text| text.parse().expect("a number"));
    println!("FAIRWAVE_SEED={seed} FAIRWAVE_SOAK=500 cargo test -p fairwave-cli --test all soak");
    let begun = Instant::now();
    let mut chance = seed;
    let mut draw = |below: u64| {
        // Knuth's linear congruence.
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (chance >> 33) % below
    };
    let mut world = World::new();
    world.start_daemon();
    world.serve();
    world.serve();
    for server in [0, 1, 1] {
        world.fetch(server);
    }
    world.until_shared(3);
    let mut events = 0;
    while events < most {
        // Some in a row, and then all is to be well again.
        for _ in 0..=draw(4) {
            events += 1;
            match draw(3) {
                0 => {
                    world.kill_daemon();
                    std::thread::sleep(Duration::from_millis(draw(700)));
                    let left: f64 = of_processes(&world.status()).iter().sum();
                    assert!(left <= 1.05 * CAPACITY * 1e6, "{left} bit/s without a daemon after {events}");
                    world.start_daemon();
                }
                1 => {
                    let at = draw(world.clients.len() as u64) as usize;
                    drop(world.clients.remove(at));
                    world.fetch(draw(2) as usize);
                }
                _ => {
                    let daemon = rustix::process::Pid::from_child(world.daemon.as_ref().unwrap());
                    rustix::process::kill_process(daemon, rustix::process::Signal::STOP).unwrap();
                    std::thread::sleep(Duration::from_millis(draw(1500)));
                    rustix::process::kill_process(daemon, rustix::process::Signal::CONT).unwrap();
                }
            }
            let sum = ask(&world.socket()).map(|seen| grants(&seen).iter().sum::<f64>()).unwrap_or_default();
            assert!(sum <= 1.05 * CAPACITY * 1e6, "{sum} bit/s granted after {events} events");
        }
        world.until_shared(3);
        assert!(world.clients.iter_mut().all(|client| client.try_wait().unwrap().is_none()), "a session was lost");
    }
    println!("{events} crashes and returns in {:.0} s", begun.elapsed().as_secs_f64());
    assert!(Path::new(&world.socket()).exists());
}
