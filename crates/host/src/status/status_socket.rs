//! The status socket, by which a process reports to others of its user: a Unix socket, a line of JSON each way.
//!
//! ```text
//! asked    {"ask":"status"}
//! answered a ProcessStatus, or {"error":"..."}
//! asked    {"ask":"leave","what":"..."}: a process that only waits for the peer of that transfer may stop
//! answered {"leaves":true}, or false
//! ```

use std::ffi::OsStr;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle, ScopedJoinHandle};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::process::{ProcessStatus, VERSION};
use crate::state::{StateDir, StateError, private_dir};

const MAX_ASKED_BYTES: u64 = 64 << 10;
const MAX_TOLD_BYTES: u64 = 64 << 20;
/// Time for a question and for an answer: a process that takes longer hangs. Tests judge no speed.
const PATIENCE: Duration = Duration::from_secs(if cfg!(test) { 120 } else { 2 });

/// The socket on which a process reports its status. Dropping it removes it.
pub struct StatusSocket {
    path: PathBuf,
    is_closed: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Serialize, Deserialize)]
struct StatusRequest {
    ask: String,
    #[serde(default)]
    what: String,
}

#[derive(Serialize, Deserialize)]
struct Leaves {
    leaves: bool,
}

/// Whether a process leaves a transfer of this name.
pub type Leave = Box<dyn Fn(&str) -> bool + Send>;

#[derive(Serialize)]
struct Refused {
    error: String,
}

/// The directory of all sockets of this user's processes: `$XDG_RUNTIME_DIR/fairwave`, or one in the state directory.
pub fn runtime_dir() -> Result<PathBuf, StateError> {
    let place = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
    if let Some(path) = place.map(|place| place.join("fairwave")) {
        // One that a shell has kept from another login is not there, or not ours.
        if private_dir(&path).is_ok() {
            return Ok(path);
        }
    }
    StateDir::open()?.dir("run")
}

impl StatusSocket {
    /// Opens one in a directory that belongs only to the user; `status` and `leave` are called on a separate thread for
    /// each request.
    pub fn open(
        dir: &Path,
        status: impl Fn() -> ProcessStatus + Send + 'static,
        leave: Option<Leave>,
    ) -> io::Result<Self> {
        let name = format!("{}-{:08x}.sock", std::process::id(), getrandom::u32().map_err(io::Error::other)?);
        let path = dir.join(name);
        let listener = UnixListener::bind(&path)?;
        let is_closed = Arc::new(AtomicBool::new(false));
        let closed = Arc::clone(&is_closed);
        let serve = move || {
            for stream in listener.incoming() {
                if closed.load(Ordering::SeqCst) {
                    return;
                }
                // A client that closes before the answer needs none; with no descriptor left, others get theirs later.
                match stream {
                    Ok(stream) => drop(answer(&stream, &status, leave.as_ref())),
                    Err(_) => thread::sleep(Duration::from_millis(100)),
                }
            }
        };
        let thread = thread::Builder::new().name("status".into()).spawn(serve)?;
        Ok(Self { path, is_closed, thread: Some(thread) })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for StatusSocket {
    fn drop(&mut self) {
        self.is_closed.store(true, Ordering::SeqCst);
        // Wakes the thread.
        let woken = UnixStream::connect(&self.path);
        let _ = fs::remove_file(&self.path);
        if let (Ok(_), Some(thread)) = (woken, self.thread.take()) {
            let _ = thread.join();
        }
    }
}

fn answer(stream: &UnixStream, status: &impl Fn() -> ProcessStatus, leave: Option<&Leave>) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut stream = stream;
    let mut reader = BufReader::new(stream.take(MAX_ASKED_BYTES));
    let mut line = String::new();
    while reader.read_line(&mut line)? > 0 {
        let answer = match serde_json::from_str::<StatusRequest>(&line) {
            Ok(asked) if asked.ask == "status" => serde_json::to_string(&status())?,
            Ok(asked) if asked.ask == "leave" => {
                serde_json::to_string(&Leaves { leaves: leave.is_some_and(|leave| leave(&asked.what)) })?
            }
            Ok(_) => serde_json::to_string(&Refused { error: "unknown request".into() })?,
            Err(error) => serde_json::to_string(&Refused { error: format!("no request: {error}") })?,
        };
        stream.write_all(format!("{answer}\n").as_bytes())?;
        line.clear();
    }
    Ok(())
}

/// The statuses of all processes whose sockets are in a directory, by process number. Sockets of dead processes are
/// removed; processes that do not answer are left out, and named in the second list.
pub fn statuses(dir: &Path) -> io::Result<(Vec<ProcessStatus>, Vec<String>)> {
    let sockets = sockets(dir)?;
    // Each takes a moment to look twice.
    let answers: Vec<_> = thread::scope(|scope| {
        let begin = |path| (path, thread::Builder::new().spawn_scoped(scope, move || status_of(path)));
        let asking: Vec<_> = sockets.iter().map(PathBuf::as_path).map(begin).collect();
        let answer = |(path, begun): (_, io::Result<ScopedJoinHandle<'_, _>>)| match begun {
            Ok(thread) => thread.join().unwrap_or(Ok(None)),
            // It is asked on this thread if there is no other.
            Err(_) => status_of(path),
        };
        asking.into_iter().map(answer).collect()
    });
    let (mut all, mut mute) = (Vec::new(), Vec::new());
    for (path, answer) in sockets.iter().zip(answers) {
        match answer {
            Ok(status) => all.extend(status),
            Err(error) => mute.push(format!("{}: {error}", path.display())),
        }
    }
    all.sort_by_key(|status: &ProcessStatus| status.pid);
    Ok((all, mute))
}

/// Asks all processes whose sockets are in a directory to leave a transfer, if they only wait for its peer to come
/// back: how many do.
pub fn ask_to_leave(dir: &Path, what: &str) -> io::Result<usize> {
    let asked = StatusRequest { ask: "leave".into(), what: what.to_owned() };
    let leaves = |path: &PathBuf| {
        let answer = ask(path, &asked).ok().flatten()?;
        serde_json::from_str::<Leaves>(&answer).ok().filter(|answer| answer.leaves)
    };
    Ok(sockets(dir)?.iter().filter_map(leaves).count())
}

/// Sockets of processes, whose names start with the process ID; a user's daemon has its own in the same directory.
fn sockets(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let is_process = |path: &PathBuf| {
        let stem = path.file_stem().map(OsStr::as_encoded_bytes).unwrap_or_default();
        path.extension().is_some_and(|extension| extension == "sock") && stem.first().is_some_and(u8::is_ascii_digit)
    };
    let paths = fs::read_dir(dir)?.filter_map(|entry| Some(entry.ok()?.path()));
    Ok(paths.filter(is_process).collect())
}

fn status_of(path: &Path) -> io::Result<Option<ProcessStatus>> {
    let Some(line) = ask(path, &StatusRequest { ask: "status".into(), what: String::new() })? else { return Ok(None) };
    let status: ProcessStatus = serde_json::from_str(&line)?;
    if status.version != VERSION {
        return Err(io::Error::other(format!("protocol version {}, expected {VERSION}", status.version)));
    }
    Ok(Some(status))
}

/// The answer of the process behind a socket; `None` if it is gone.
fn ask(path: &Path, asked: &StatusRequest) -> io::Result<Option<String>> {
    let stream = match UnixStream::connect(path) {
        Ok(stream) => stream,
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            fs::remove_file(path)?;
            return Ok(None);
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    (&stream).write_all(format!("{}\n", serde_json::to_string(asked)?).as_bytes())?;
    let mut line = String::new();
    BufReader::new((&stream).take(MAX_TOLD_BYTES)).read_line(&mut line)?;
    Ok(Some(line).filter(|line| !line.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses__merges_all_processes() {
        let place = tempfile::tempdir().unwrap();
        let _one = StatusSocket::open(place.path(), || status(2), None).unwrap();
        let _other = StatusSocket::open(place.path(), || status(1), None).unwrap();
        assert_eq!(statuses(place.path()).unwrap(), (vec![status(1), status(2)], vec![]));
    }

    #[test]
    fn statuses__removes_what_a_dead_process_left() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("7-0.sock");
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        assert_eq!(statuses(place.path()).unwrap(), (vec![], vec![]));
        assert!(!path.exists());
    }

    #[test]
    fn statuses__names_who_talks_nonsense() {
        let place = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(place.path().join("7-0.sock")).unwrap();
        let nonsense = std::thread::spawn(move || listener.accept().unwrap().0.write_all(b"hello\n"));
        let (all, mute) = statuses(place.path()).unwrap();
        nonsense.join().unwrap().unwrap();
        assert_eq!(all, []);
        assert!(mute.len() == 1 && mute[0].contains("7-0.sock"), "{mute:?}");
    }

    #[test]
    fn statuses__do_not_ask_a_daemon_in_the_directory() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("daemon.sock");
        drop(UnixListener::bind(&path).unwrap());
        assert_eq!(statuses(place.path()).unwrap(), (vec![], vec![]));
        assert!(path.exists());
    }

    #[test]
    fn drop__takes_the_socket_away() {
        let place = tempfile::tempdir().unwrap();
        let socket = StatusSocket::open(place.path(), || status(1), None).unwrap();
        assert!(socket.path().exists());
        drop(socket);
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }

    #[test]
    fn ask_to_leave__is_answered_by_whom_it_concerns() {
        let place = tempfile::tempdir().unwrap();
        let _deaf = StatusSocket::open(place.path(), || status(1), None).unwrap();
        let leave: Leave = Box::new(|what| what == "7");
        let _one = StatusSocket::open(place.path(), || status(2), Some(leave)).unwrap();
        assert_eq!(ask_to_leave(place.path(), "8").unwrap(), 0);
        assert_eq!(ask_to_leave(place.path(), "7").unwrap(), 1);
    }

    #[test]
    fn answer__says_what_it_does_not_know() {
        let place = tempfile::tempdir().unwrap();
        let socket = StatusSocket::open(place.path(), || status(1), None).unwrap();
        let mut stream = UnixStream::connect(socket.path()).unwrap();
        stream.write_all(b"{\"ask\":\"more\"}\nhello\n").unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], r#"{"error":"unknown request"}"#);
        assert!(lines[1].starts_with(r#"{"error":"no request"#), "{text}");
    }

    fn status(pid: u32) -> ProcessStatus {
        ProcessStatus { version: VERSION, pid, command: "serve".into(), ..ProcessStatus::default() }
    }
}
