//! The protocol between a process and the machine's daemon on the control socket: a line of JSON each way; the answer
//! to a join is followed by the two descriptors of its shared memory, which carries all periodic exchange.
//!
//! ```text
//! asked    {"join":{"version":1,"layout":1,"clock_ns":...,"command":"get"}}
//! answered {"seat":{"version":1,"layout":1,"clock_ns":...}} and two descriptors, or {"error":"..."}
//! asked    "more": another segment of rows, for a process that has joined
//! answered the same as a join
//! asked    "status"
//! answered {"status":{...}}: a snapshot of the machine
//! ```
//!
//! The connection of a process that has joined stays open: when it closes, the process or the daemon is gone.

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, recvmsg};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Of these words.
pub const CONTROL_VERSION: u32 = 1;
/// A question has no more bytes than this.
pub const MAX_QUESTION_BYTES: usize = 4096;
/// Max length of a process's command name, bytes.
pub const MAX_COMMAND_BYTES: usize = 64;
/// Two clocks of one kind read one after the other differ by less than this: more is another time namespace.
pub const MAX_CLOCK_DIFFERENCE: Duration = Duration::from_secs(2);
/// A peer that answers more slowly than this is considered hung.
const PATIENCE: Duration = Duration::from_secs(2);
/// A snapshot of 65 536 rows has some 40 MB.
const MAX_ANSWER_BYTES: usize = 64 << 20;
const SYSTEM_SOCKET: &str = "/run/fairwave/daemon.sock";
/// Environment variable with the path of a control socket in no usual place.
const VARIABLE: &str = "FAIRWAVE_DAEMON";

/// A request to a daemon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Question {
    /// To take part.
    Join {
        /// [`CONTROL_VERSION`].
        version: u32,
        /// The version of the table's layout.
        layout: u64,
        /// CLOCK_MONOTONIC.
        clock_ns: u64,
        /// The purpose of the process, such as "get".
        command: String,
    },
    /// For another segment.
    More,
    /// A snapshot of the machine.
    Status,
}

/// A daemon's answer to a request to join.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// A segment, whose memory comes with it.
    #[serde(rename = "seat")]
    Joined {
        /// [`CONTROL_VERSION`].
        version: u32,
        /// The version of the table's layout.
        layout: u64,
        /// CLOCK_MONOTONIC.
        clock_ns: u64,
    },
    /// Why not.
    Error(String),
}

/// Reason why a daemon is of no use.
#[derive(Debug, Error)]
pub enum ControlError {
    /// Nobody listens there.
    #[error("{}: no daemon: {source}", socket.display())]
    Nobody {
        /// The socket.
        socket: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// It belongs to somebody who has no say over this user's rates.
    #[error("{}: owned by user {user}, which is neither root nor this user", socket.display())]
    Stranger {
        /// The socket.
        socket: PathBuf,
        /// Whose it is.
        user: u32,
    },
    /// It refuses.
    #[error("refused by the daemon: {0}")]
    Refused(String),
    /// It sends nothing for two seconds.
    #[error("{}: no reply from the daemon (process {pid}) for {} s", socket.display(), PATIENCE.as_secs())]
    Silent {
        /// The socket.
        socket: PathBuf,
        /// The process that listens there.
        pid: u32,
    },
    /// Its connection breaks, or it talks nonsense.
    #[error("invalid reply from the daemon: {0}")]
    Nonsense(io::Error),
}

impl ControlError {
    /// Whether there is no socket at all: no daemon has run here, or it has ended in good order.
    pub fn is_absence(&self) -> bool {
        matches!(self, Self::Nobody { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    /// A hint for the user, if the user can fix it.
    pub fn hint(&self) -> Option<String> {
        let Self::Silent { pid, .. } = self else { return None };
        Some(format!("run `kill -CONT {pid}` if the daemon is suspended, or reduce the load of the machine"))
    }
}

/// Possible control sockets, best first: only `$FAIRWAVE_DAEMON` if it is set, else the system's and the user's.
pub fn usual_sockets() -> Vec<PathBuf> {
    if let Some(said) = std::env::var_os(VARIABLE).filter(|path| !path.is_empty()) {
        return vec![PathBuf::from(said)];
    }
    let of_user = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
    [PathBuf::from(SYSTEM_SOCKET)].into_iter().chain(of_user.map(|dir| dir.join("fairwave/daemon.sock"))).collect()
}

/// CLOCK_MONOTONIC, in nanoseconds.
pub fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    (now.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(now.tv_nsec as u64)
}

/// A connection to a daemon.
pub struct ControlStream {
    stream: UnixStream,
    socket: PathBuf,
    /// The process that listens there.
    pid: u32,
    read: Vec<u8>,
    descriptors: Vec<OwnedFd>,
}

impl ControlStream {
    /// Connects, and makes sure that who listens may tell this user's processes what to send: root, the user itself, or
    /// whom root gave the directory of the system's socket.
    pub fn connect(socket: &Path) -> Result<Self, ControlError> {
        let nobody = |source| ControlError::Nobody { socket: socket.to_owned(), source };
        if socket.as_os_str().as_bytes().len() > 107 {
            return Err(nobody(io::Error::other("the path of a socket must be at most 107 bytes")));
        }
        let stream = UnixStream::connect(socket).map_err(nobody)?;
        let (user, pid) = crate::sys::peer(&stream).map_err(nobody)?;
        let mine = rustix::process::geteuid().as_raw();
        if user != 0 && user != mine && Some(user) != system_owner(socket) {
            return Err(ControlError::Stranger { socket: socket.to_owned(), user });
        }
        let control = Self { stream, socket: socket.to_owned(), pid, read: Vec::new(), descriptors: Vec::new() };
        control.set_patience(PATIENCE).map_err(nobody)?;
        Ok(control)
    }

    /// Asks, and takes what is answered as text.
    pub fn ask(&mut self, question: &Question) -> Result<String, ControlError> {
        let asked = serde_json::to_string(question).map_err(|error| ControlError::Nonsense(error.into()))?;
        let written = match io::Write::write_all(&mut &self.stream, format!("{asked}\n").as_bytes()) {
            // A daemon that refuses a connection answers before the question, and closes it: the answer has the reason.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => self.line().map_err(|_| error),
            written => written.and_then(|()| self.line()),
        };
        written.map_err(|error| match error.kind() {
            // The error kinds of a timeout.
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                ControlError::Silent { socket: self.socket.clone(), pid: self.pid }
            }
            _ => ControlError::Nonsense(error),
        })
    }

    /// Asks for rows: their memory, the process's and the daemon's.
    pub fn join(&mut self, question: &Question) -> Result<[OwnedFd; 2], ControlError> {
        let before = monotonic_ns();
        let line = self.ask(question)?;
        let after = monotonic_ns();
        let nonsense = |what: &'static str| ControlError::Nonsense(io::Error::other(what));
        match serde_json::from_str(&line).map_err(|error| ControlError::Nonsense(error.into()))? {
            Answer::Error(error) => Err(ControlError::Refused(error)),
            Answer::Joined { version, layout, clock_ns } => {
                if version != CONTROL_VERSION || layout != fairwave_table::VERSION {
                    return Err(ControlError::Refused(other_version(version, layout)));
                }
                let most = MAX_CLOCK_DIFFERENCE.as_nanos() as u64;
                if clock_ns < before.saturating_sub(most) || clock_ns > after.saturating_add(most) {
                    return Err(ControlError::Refused(OTHER_CLOCK.to_owned()));
                }
                let memory = std::mem::take(&mut self.descriptors);
                <[OwnedFd; 2]>::try_from(memory).map_err(|_| nonsense("the reply lacks its two descriptors"))
            }
        }
    }

    /// Sets how long [`Self::ask`] waits for the daemon, 2 s by default.
    pub fn set_patience(&self, patience: Duration) -> io::Result<()> {
        self.stream.set_read_timeout(Some(patience))?;
        self.stream.set_write_timeout(Some(patience))
    }

    /// The connection, to see its end.
    pub fn stream(&self) -> &UnixStream {
        &self.stream
    }

    /// The next line, and in `descriptors` what came with it.
    fn line(&mut self) -> io::Result<String> {
        self.descriptors.clear();
        let mut room = [0; 16 << 10];
        // So many bytes have no end of a line among them.
        let mut scanned = 0;
        loop {
            let end = self.read.iter().skip(scanned).position(|byte| *byte == b'\n').map(|end| scanned + end);
            scanned = self.read.len();
            if let Some(end) = end {
                let line: Vec<u8> = self.read.drain(..=end).take(end).collect();
                return String::from_utf8(line).map_err(io::Error::other);
            }
            if self.read.len() > MAX_ANSWER_BYTES {
                return Err(io::Error::other("truncated reply"));
            }
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
            let mut ancillary = RecvAncillaryBuffer::new(&mut space);
            let came =
                recvmsg(&self.stream, &mut [IoSliceMut::new(&mut room)], &mut ancillary, crate::sys::CLOSE_ON_EXEC)?;
            for message in ancillary.drain() {
                if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                    self.descriptors.extend(descriptors);
                }
            }
            if came.bytes == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.read.extend_from_slice(&room[..came.bytes]);
        }
    }
}

/// The error of both ends about an unknown version.
pub fn other_version(version: u32, layout: u64) -> String {
    format!(
        "it uses protocol {version}.{layout}, this Fairwave {CONTROL_VERSION}.{}: update both to the same version",
        fairwave_table::VERSION
    )
}

/// The error of both ends about a foreign clock.
pub const OTHER_CLOCK: &str = "it runs in another time namespace";

/// To whom root gave the directory of the system's socket, if this is that.
fn system_owner(socket: &Path) -> Option<u32> {
    let dir = Path::new(SYSTEM_SOCKET).parent()?;
    let metadata = std::fs::symlink_metadata(dir).ok().filter(|_| socket == Path::new(SYSTEM_SOCKET))?;
    // Nobody but root makes a directory in /run.
    metadata.is_dir().then(|| metadata.uid())
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::UnixListener;

    use super::*;

    /// The error of a process that requests a membership while `serve` answers one connection.
    fn asked_where(serve: impl FnOnce(UnixStream) + Send + 'static) -> ControlError {
        let place = tempfile::tempdir().unwrap();
        let socket = place.path().join("d.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let server = std::thread::spawn(move || serve(listener.accept().unwrap().0));
        let mut control = ControlStream::connect(&socket).unwrap();
        control.set_patience(fairwave_testing::LIMIT).unwrap();
        let join = Question::Join {
            version: CONTROL_VERSION,
            layout: fairwave_table::VERSION,
            clock_ns: monotonic_ns(),
            command: String::new(),
        };
        let error = control.join(&join).unwrap_err();
        server.join().unwrap();
        error
    }

    fn answers(answer: &Answer) -> impl FnOnce(UnixStream) + Send + 'static {
        let line = serde_json::to_string(answer).unwrap() + "\n";
        move |mut stream| {
            BufReader::new(&stream).read_line(&mut String::new()).unwrap();
            stream.write_all(line.as_bytes()).unwrap();
        }
    }

    #[test]
    fn ask__an_answer_that_comes_before_the_question_is_read() {
        let place = tempfile::tempdir().unwrap();
        let socket = place.path().join("d.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let mut control = ControlStream::connect(&socket).unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(b"{\"error\":\"too many\"}\n").unwrap();
        drop(stream);
        let error = control.join(&Question::More).unwrap_err().to_string();
        assert_eq!(error, "refused by the daemon: too many");
    }

    #[test]
    fn joined__is_the_seat_of_the_line_format() {
        let line = serde_json::to_string(&Answer::Joined { version: 1, layout: 2, clock_ns: 3 }).unwrap();
        assert_eq!(line, r#"{"seat":{"version":1,"layout":2,"clock_ns":3}}"#);
    }

    #[test]
    fn join__refuses_another_clock() {
        let hour = 3_600_000_000_000;
        for clock_ns in [monotonic_ns() + hour, monotonic_ns().saturating_sub(hour)] {
            let joined = Answer::Joined { version: CONTROL_VERSION, layout: fairwave_table::VERSION, clock_ns };
            assert_eq!(asked_where(answers(&joined)).to_string(), format!("refused by the daemon: {OTHER_CLOCK}"));
        }
    }

    #[test]
    fn join__refuses_another_version() {
        let joined = Answer::Joined { version: CONTROL_VERSION + 1, layout: 1, clock_ns: monotonic_ns() };
        assert!(asked_where(answers(&joined)).to_string().contains("update both to the same version"));
    }
}
