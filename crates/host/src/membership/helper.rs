//! The thread that talks to the daemon: the network thread never waits for it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender};
use fairwave_table::{ProcessSegment, SegmentMemory, TableError, VERSION};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::control_socket::{
    CONTROL_VERSION, ControlError, ControlStream, MAX_COMMAND_BYTES, Question, monotonic_ns, usual_sockets,
};
use crate::membership::facts::NodeChoice;
use crate::thread_waker::ThreadWaker;

/// Events for the network thread.
pub(super) enum MembershipEvent {
    /// A daemon admits this process.
    Joined(PathBuf, ProcessSegment),
    /// It has more rows.
    More(ProcessSegment),
    /// It has no more rows.
    NoMore,
    /// The daemon is gone.
    Gone,
    /// No daemon admits it; `is_absent` if no daemon has ever run.
    None { is_absent: bool },
}

/// The network thread's end of the helper; dropping it ends the helper.
pub(super) struct Helper {
    pub(super) news: Receiver<MembershipEvent>,
    bell: Arc<ThreadWaker>,
    shared: Arc<HelperRequests>,
}

#[derive(Default)]
struct HelperRequests {
    more: AtomicBool,
    is_over: AtomicBool,
}

/// Retry period of a process that is not a member, ms, give or take a quarter: processes that lost one daemon do not
/// all ask at once.
const ASK_EVERY_MS: u64 = 1000;

impl Helper {
    /// Starts the thread; `network` is woken by news.
    pub(super) fn start(choice: NodeChoice, network: Arc<ThreadWaker>) -> std::io::Result<Self> {
        let (tell, news) = crossbeam_channel::unbounded();
        let bell = ThreadWaker::new()?;
        let shared = Arc::new(HelperRequests::default());
        let run = HelperThread { choice, network, tell, bell: Arc::clone(&bell), shared: Arc::clone(&shared) };
        std::thread::Builder::new().name("fairwave-seat".to_owned()).spawn(move || run.run())?;
        Ok(Self { news, bell, shared })
    }

    /// The rows of this process are all taken.
    pub(super) fn ask_for_more(&self) {
        self.shared.more.store(true, Ordering::SeqCst);
        self.bell.ring();
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        self.bell.ring();
    }
}

struct HelperThread {
    choice: NodeChoice,
    network: Arc<ThreadWaker>,
    tell: Sender<MembershipEvent>,
    bell: Arc<ThreadWaker>,
    shared: Arc<HelperRequests>,
}

impl HelperThread {
    fn run(self) {
        let mut reported = None;
        while !self.is_over() {
            match self.join() {
                Ok((socket, mut stream, segment)) => {
                    tracing::info!(socket = %socket.display(), "joined the machine's end node");
                    reported = None;
                    self.say(MembershipEvent::Joined(socket, segment));
                    self.attend(&mut stream);
                    if !self.is_over() {
                        tracing::info!("the daemon has stopped");
                        self.say(MembershipEvent::Gone);
                    }
                }
                Err(error) => {
                    let is_absent = error.is_absence();
                    if reported != Some(is_absent) {
                        tracing::debug!(%error, "no daemon on this machine");
                        reported = Some(is_absent);
                        self.say(MembershipEvent::None { is_absent });
                    }
                }
            }
            self.rest();
        }
    }

    fn is_over(&self) -> bool {
        self.shared.is_over.load(Ordering::SeqCst)
    }

    fn say(&self, news: MembershipEvent) {
        if self.tell.send(news).is_ok() {
            self.network.ring();
        }
    }

    fn join(&self) -> Result<(PathBuf, ControlStream, ProcessSegment), ControlError> {
        let sockets = match &self.choice {
            NodeChoice::At(socket) => vec![socket.clone()],
            NodeChoice::Own | NodeChoice::Auto => usual_sockets(),
        };
        join_any(sockets)
    }

    /// Stays until the daemon has stopped, or this end.
    fn attend(&self, stream: &mut ControlStream) {
        loop {
            self.bell.hush();
            if self.is_over() {
                return;
            }
            if self.shared.more.swap(false, Ordering::SeqCst) {
                self.bell.wake(false);
                match segment(stream, &Question::More) {
                    Ok(segment) => self.say(MembershipEvent::More(segment)),
                    Err(ControlError::Refused(error)) => {
                        tracing::warn!(error, "the daemon's table is full: further sessions wait");
                        self.say(MembershipEvent::NoMore);
                    }
                    Err(_) => return,
                }
                continue;
            }
            let mut fds = [PollFd::new(&*self.bell, PollFlags::IN), PollFd::new(stream.stream(), PollFlags::IN)];
            let _ = poll(&mut fds, None);
            let is_news = !fds[1].revents().is_empty();
            self.bell.wake(fds[0].revents().contains(PollFlags::IN));
            // A daemon sends nothing unrequested: incoming data is its end, or invalid.
            if is_news {
                return;
            }
        }
    }

    /// Waits until it is time to ask again.
    fn rest(&self) {
        let draw = u64::from(getrandom::u32().unwrap_or(0)) * (ASK_EVERY_MS / 2) / u64::from(u32::MAX);
        let wait = Duration::from_millis(ASK_EVERY_MS - ASK_EVERY_MS / 4 + draw);
        let until = std::time::Instant::now() + wait;
        loop {
            self.bell.hush();
            let left = until.saturating_duration_since(std::time::Instant::now());
            if self.is_over() || left.is_zero() {
                return;
            }
            let timeout = Timespec::try_from(left).ok();
            let mut bell = [PollFd::new(&*self.bell, PollFlags::IN)];
            let _ = poll(&mut bell, timeout.as_ref());
            self.bell.wake(bell[0].revents().contains(PollFlags::IN));
        }
    }
}

/// The first available membership; else the error, of a socket that exists if there is one.
fn join_any(sockets: Vec<PathBuf>) -> Result<(PathBuf, ControlStream, ProcessSegment), ControlError> {
    let mut found = None;
    for socket in sockets {
        match join_at(&socket) {
            Ok((stream, segment)) => return Ok((socket, stream, segment)),
            Err(error) => {
                if found.as_ref().is_none_or(|found: &ControlError| found.is_absence() || !error.is_absence()) {
                    found = Some(error);
                }
            }
        }
    }
    Err(found.unwrap_or_else(|| ControlError::Refused("no directory for a socket".to_owned())))
}

/// Requests a membership from the daemon at a socket.
fn join_at(socket: &std::path::Path) -> Result<(ControlStream, ProcessSegment), ControlError> {
    let mut stream = ControlStream::connect(socket)?;
    let join =
        Question::Join { version: CONTROL_VERSION, layout: VERSION, clock_ns: monotonic_ns(), command: command() };
    let segment = segment(&mut stream, &join)?;
    Ok((stream, segment))
}

fn segment(stream: &mut ControlStream, question: &Question) -> Result<ProcessSegment, ControlError> {
    let [rows, grants] = stream.join(question)?;
    let of_table = |error: TableError| ControlError::Refused(error.to_string());
    ProcessSegment::map(SegmentMemory { rows, grants }).map_err(of_table)
}

/// The purpose of this process: the command's subcommand, or the program's name.
fn command() -> String {
    let mut words = std::env::args();
    let program = words.next().unwrap_or_default();
    let name = program.rsplit('/').next().unwrap_or_default();
    let word = if name == "fairwave" { words.next().unwrap_or_default() } else { name.to_owned() };
    let printable: String = word.chars().filter(|c| c.is_ascii_graphic() || *c == ' ').collect();
    printable.chars().take(MAX_COMMAND_BYTES).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn join_any__tells_that_nothing_is_there_from_what_does_not_answer() {
        let place = tempfile::tempdir().unwrap();
        let absent = || place.path().join("absent");
        let error = |sockets| join_any(sockets).map(|_| ()).unwrap_err();
        assert!(error(vec![absent()]).is_absence());
        assert!(error(vec![absent(), absent()]).is_absence());
        // A socket left behind is not an absence, at any position in the list.
        let left = place.path().join("left");
        drop(std::os::unix::net::UnixListener::bind(&left).unwrap());
        assert!(!error(vec![left.clone(), absent()]).is_absence());
        assert!(!error(vec![absent(), left]).is_absence());
    }
}
