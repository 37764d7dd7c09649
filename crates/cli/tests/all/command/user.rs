//! A user of the command, with a separate home, and the processes it starts.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};

use fairwave_testing::{Deadline, LIMIT, Process as Child, wait_for, wait_some};
use rustix::process::{Pid, Signal, kill_process};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::os::unix::ffi::OsStrExt;
use std::process::{ChildStdout, ExitStatus};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use super::*;

/// An address at which nothing listens, and a server can start twice. Its port is outside the ephemeral range: one of a
/// recently closed connection would be refused to a listener.
pub(crate) fn place() -> SocketAddr {
    static PLACES: AtomicU16 = AtomicU16::new(0);
    const FIRST: u16 = 10_000;
    // Those above are chosen from by Linux, unless it is configured otherwise.
    const COUNT: u16 = 22_000;
    let own = (std::process::id() % u32::from(COUNT)) as u16;
    std::iter::repeat_with(|| {
        let number = own.wrapping_mul(64).wrapping_add(PLACES.fetch_add(1, Ordering::Relaxed)) % COUNT;
        let place = SocketAddr::from((Ipv4Addr::LOCALHOST, FIRST + number));
        (UdpSocket::bind(place).is_ok() && TcpListener::bind(place).is_ok()).then_some(place)
    })
    .take(usize::from(COUNT))
    .flatten()
    .next()
    .expect("one is free of both")
}

/// Runs a command to its end.
pub(crate) fn finish(command: &mut Command) -> Done {
    let mut child = Child::spawn(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    let stdout = bytes_of(child.stdout.take().expect("piped above"));
    let stderr = bytes_of(child.stderr.take().expect("piped above"));
    let status = status_of(&mut child);
    let [stdout, stderr] = [stdout, stderr].map(|all| all.recv_timeout(LIMIT).expect("another process holds it"));
    Done(Output { status, stdout, stderr })
}

/// The exit status of a child. Processes that it started may live on and hold its stderr.
pub(crate) fn status_of(child: &mut Child) -> ExitStatus {
    wait_some("the end of a process", || child.try_wait().expect("it is our child"))
}

/// Lines of a process that a failed test shows.
const SHOWN: usize = 30;

/// A user with a separate home.
pub(crate) struct Host {
    place: tempfile::TempDir,
    /// A library that each of its commands loads first, with the file that this reads.
    preloaded: Option<[PathBuf; 2]>,
}

/// A command under way.
pub(crate) struct Process {
    pub(crate) child: Child,
    /// Lines of its stdout, read by a thread.
    lines: Receiver<String>,
    /// Those that were read last, for a test that fails.
    said: RefCell<VecDeque<String>>,
    /// All of its stderr when that ends, read by a thread.
    errors: Receiver<Vec<u8>>,
}

/// A command that offers something.
pub(crate) struct Serving {
    pub(crate) process: Process,
    pub(crate) ticket: PathBuf,
}

impl Host {
    pub(crate) fn new() -> Self {
        let place = tempfile::tempdir().expect("there is a place for files");
        std::fs::create_dir(place.path().join("run")).expect("it is new");
        Self { place, preloaded: None }
    }

    /// Its commands load a library first, which reads what to do from a file.
    pub(crate) fn preload(&mut self, library: PathBuf, told_by: PathBuf) {
        self.preloaded = Some([library, told_by]);
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: &[u8]) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("it lies in the place")).expect("it takes directories");
        std::fs::write(path, content).expect("it takes files");
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fairwave"));
        command
            .args(args)
            .current_dir(self.place.path())
            .env("XDG_STATE_HOME", self.path("state"))
            .env("XDG_RUNTIME_DIR", self.path("run"))
            .env_remove("FAIRWAVE_TICKET")
            .env_remove("FAIRWAVE_SSH");
        if let Some([library, told_by]) = &self.preloaded {
            command.env("LD_PRELOAD", library).env("FAIRWAVE_JUMP", told_by);
        }
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Done {
        finish(self.command(args).stdin(Stdio::null()))
    }

    pub(crate) fn start(&self, args: &[&str]) -> Process {
        let mut command = self.command(args);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = Child::spawn(&mut command);
        let lines = lines_of(child.stdout.take().expect("piped above"));
        let errors = bytes_of(child.stderr.take().expect("piped above"));
        Process { child, lines, said: RefCell::default(), errors }
    }

    pub(crate) fn serve(&self, args: &[&str]) -> Serving {
        self.serve_with(&[&["serve"], args].concat())
    }

    /// Starts it, and waits for its ticket.
    pub(crate) fn serve_with(&self, args: &[&str]) -> Serving {
        let mut process = self.start(args);
        let Some(text) = process.line("the ticket") else { panic!("no ticket: {}", process.end().1) };
        let ticket = self.path(&format!("{}.ticket", process.child.id()));
        std::fs::write(&ticket, text + "\n").expect("the place takes files");
        Serving { process, ticket }
    }

    /// All files below a directory with their content.
    pub(crate) fn tree(&self, name: &str) -> Vec<(Vec<u8>, Vec<u8>)> {
        fn walk(dir: &Path, below: &[u8], found: &mut Vec<(Vec<u8>, Vec<u8>)>) {
            for entry in std::fs::read_dir(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display())) {
                let path = entry.expect("it can be read").path();
                let name = [below, b"/", path.file_name().expect("it has a name").as_bytes()].concat();
                if path.is_dir() {
                    walk(&path, &name, found);
                } else {
                    let content = std::fs::read(&path).expect("it can be read");
                    found.push((name, content));
                }
            }
        }
        let mut found = Vec::new();
        walk(&self.path(name), b"", &mut found);
        found.sort();
        found
    }

    /// Processes that its commands started, also at its fake far ends.
    pub(crate) fn processes(&self) -> Vec<Pid> {
        processes_with(&[b"XDG_STATE_HOME=", self.path("state").as_os_str().as_bytes()].concat())
    }

    pub(crate) fn script(&self, name: &str, body: &str) -> String {
        use std::os::unix::fs::PermissionsExt;
        let path = self.path(name);
        std::fs::write(&path, format!("#!/bin/sh\n{body}\n")).expect("the place takes files");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("they can be set");
        path.into_os_string().into_string().expect("the place's name is text")
    }

    /// A fake ssh: runs the command here, in another home, and records its arguments.
    pub(crate) fn ssh(&self) -> String {
        let body = format!(
            "for word in \"$@\"; do printf '%s|' \"$word\"; done >> '{calls}'; echo >> '{calls}'\n\
             [ \"$1\" = -G ] && {{ echo hostname 127.0.0.1; exit 0; }}\n\
             cd '{home}' && export SSH_CONNECTION='127.0.0.1 1 127.0.0.1 22' PATH='{bin}':\"$PATH\" && exec sh -c \"$2\"",
            calls = self.path("calls").display(),
            home = self.path("home").display(),
            bin = Path::new(env!("CARGO_BIN_EXE_fairwave")).parent().expect("it lies in a directory").display(),
        );
        std::fs::create_dir_all(self.path("home")).expect("the place takes directories");
        self.script("ssh", &body)
    }
}

impl Process {
    /// Waits until more bytes than that came, also of blocks that are not whole.
    pub(crate) fn moves(&mut self, least: u64) {
        let number = |event: &Value, key: &str| event[key].as_u64().unwrap_or(0);
        self.wait_for(|event| number(event, "bytes_done") + number(event, "bytes_held") > least);
    }

    /// Waits for an event on stdout.
    pub(crate) fn wait_for(&mut self, mut is_it: impl FnMut(&Value) -> bool) {
        let deadline = Deadline::new();
        let mut last = "nothing".to_owned();
        while let Some(line) = self.line(&last) {
            let event = serde_json::from_str(&line).expect("a line is an object");
            if is_it(&event) {
                return;
            }
            deadline.check(&format!("an event after {event}"));
            last = line;
        }
        panic!("it ended before: {}", self.end().1);
    }

    /// Its next line, or `None` at the end of its stdout. `last` is the line before.
    fn line(&self, last: &str) -> Option<String> {
        match self.lines.recv_timeout(LIMIT) {
            Ok(line) => {
                let mut said = self.said.borrow_mut();
                said.truncate(SHOWN - 1);
                said.push_front(line.clone());
                Some(line)
            }
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("it says nothing for {LIMIT:?}, after {last}"),
        }
    }

    /// Looks at each event on stdout until it ends.
    pub(crate) fn each(&mut self, mut look: impl FnMut(&Self, &Value)) {
        while let Some(line) = self.line("something") {
            look(self, &serde_json::from_str(&line).expect("a line is an object"));
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it is our child");
    }

    /// Its exit status.
    pub(crate) fn status(&mut self) -> ExitStatus {
        status_of(&mut self.child)
    }

    /// Its exit status and its stderr.
    pub(crate) fn end(&mut self) -> (ExitStatus, String) {
        let status = self.status();
        let errors = self.errors.recv_timeout(LIMIT).expect("another process holds its stderr");
        (status, String::from_utf8_lossy(&errors).into_owned())
    }

    /// Kills it and waits for its end.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it is our child");
        self.status();
    }
}

/// Shows what it said, in a test that fails.
impl Drop for Process {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let said: Vec<_> = self.said.borrow().iter().rev().cloned().collect();
            let _ = self.child.kill();
            let errors = self.errors.recv_timeout(Duration::from_secs(1)).unwrap_or_default();
            println!("process {} said:\n{}\n{}", self.child.id(), said.join("\n"), String::from_utf8_lossy(&errors));
        }
    }
}

impl Serving {
    /// Its ticket, as a call names it.
    pub(crate) fn at(&self) -> String {
        format!("@{}", self.ticket.display())
    }
}

/// The lines of a pipe as they come.
fn lines_of(pipe: ChildStdout) -> Receiver<String> {
    let (sender, lines) = channel();
    // The receiver is dropped with the process.
    std::thread::spawn(move || {
        BufReader::new(pipe).lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
    });
    lines
}

/// All of a pipe when it ends.
fn bytes_of(mut pipe: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (sender, all) = channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes);
        sender.send(bytes)
    });
    all
}

/// Ends what the commands of a host started and left running: the far end of a copy outlives its ssh by ten minutes, for a
/// near end that may come back. A process is a host's if its environment names the host's state directory.
impl Drop for Host {
    fn drop(&mut self) {
        wait_for("the end of the processes of a host", || {
            let ids = self.processes();
            for id in &ids {
                _ = kill_process(*id, Signal::KILL);
            }
            ids.is_empty()
        });
    }
}

/// The processes with a variable in their environment. The environment of a process that has ended is empty.
fn processes_with(variable: &[u8]) -> Vec<Pid> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let has_it = |id: &Pid| {
        let environment = std::fs::read(format!("/proc/{}/environ", id.as_raw_nonzero())).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|one| one == variable)
    };
    entries.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)).filter(has_it).collect()
}

pub(crate) fn bytes(count: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    std::iter::repeat_with(next).take(count).collect()
}
