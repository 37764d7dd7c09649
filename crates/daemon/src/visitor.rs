//! A connection of the control socket.

use std::io::{self, ErrorKind, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fairwave_host::control_socket::{MAX_QUESTION_BYTES, Question};
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, recv, send, sendmsg};

/// A connected process, identified by the system.
pub(crate) struct Visitor {
    pub(crate) stream: UnixStream,
    pub(crate) user: u32,
    pub(crate) pid: u32,
    /// Segments that it has: 0 before it takes part.
    pub(crate) segments: usize,
    /// Whether it waits for a view of the machine.
    pub(crate) waits: bool,
    came: Instant,
    asked: Vec<u8>,
    /// Its pending answer, and the number of bytes sent. Visitors with the same view share the text.
    unsent: Option<(Arc<str>, usize)>,
    /// When that was.
    answered: Instant,
}

/// Result of reading from a visitor.
pub(crate) enum Heard {
    /// Nothing whole yet.
    Nothing,
    /// A question; there may be more.
    Asked(Question),
    /// It talks nonsense.
    Nonsense(String),
    /// It is gone.
    Gone,
}

/// Time for a question to be complete, and for an answer to be read. It is long enough that a process that is not
/// scheduled for some seconds is not treated as idle: if connections run out, idle ones are closed before their time.
const PATIENCE: Duration = Duration::from_secs(10);

impl Visitor {
    /// A new connection; `None` if the system does not identify its process.
    pub(crate) fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        let who = rustix::net::sockopt::socket_peercred(&stream)?;
        let now = Instant::now();
        Ok(Self {
            stream,
            user: who.uid.as_raw(),
            pid: who.pid.as_raw_nonzero().get().unsigned_abs(),
            segments: 0,
            waits: false,
            came: now,
            asked: Vec::new(),
            unsent: None,
            answered: now,
        })
    }

    /// Reads the received bytes without descriptors: the system closes those sent with them.
    pub(crate) fn hear(&mut self) -> Heard {
        loop {
            if let Some(end) = self.asked.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.asked.drain(..=end).take(end).collect();
                return match serde_json::from_slice(&line) {
                    Ok(question) => Heard::Asked(question),
                    Err(error) => Heard::Nonsense(format!("no request: {error}")),
                };
            }
            if self.asked.len() > MAX_QUESTION_BYTES {
                return Heard::Nonsense("truncated request".to_owned());
            }
            let mut room = [0; MAX_QUESTION_BYTES];
            match recv(&self.stream, &mut room, RecvFlags::DONTWAIT) {
                Ok((_, 0)) => return Heard::Gone,
                Ok((_, came)) => self.asked.extend_from_slice(&room[..came]),
                Err(errno) if io::Error::from(errno).kind() == ErrorKind::WouldBlock => return Heard::Nothing,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return Heard::Gone,
            }
        }
    }

    /// Queues a line with its line end. Unsent bytes follow later; until then no request is read.
    pub(crate) fn answer(&mut self, line: Arc<str>) {
        self.answered = Instant::now();
        self.unsent = Some((line, 0));
    }

    /// Sends what it takes: whether it is still there.
    pub(crate) fn flush(&mut self) -> bool {
        while let Some((line, done)) = &mut self.unsent {
            let left = line.as_bytes().get(*done..).unwrap_or_default();
            if left.is_empty() {
                self.unsent = None;
                return true;
            }
            match send(&self.stream, left, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(taken) => *done += taken,
                Err(errno) if io::Error::from(errno).kind() == ErrorKind::WouldBlock => return true,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return false,
            }
        }
        true
    }

    /// Whether there is something that it has not taken.
    pub(crate) fn has_unsent(&self) -> bool {
        self.unsent.is_some()
    }

    /// Whether another question of it is here already, and nothing stands before that.
    pub(crate) fn has_more(&self) -> bool {
        !self.has_unsent() && !self.waits && self.asked.contains(&b'\n')
    }

    /// Whether it has no segment, waits for no answer and has read all answers: it only keeps a descriptor.
    pub(crate) fn is_unused(&self) -> bool {
        self.segments == 0 && !self.waits && !self.has_unsent()
    }

    /// Whether it only keeps a descriptor for too long, or does not take what it asked for.
    pub(crate) fn is_idle(&self) -> bool {
        let since = if self.has_unsent() { self.answered } else { self.came };
        (self.has_unsent() || self.is_unused()) && since.elapsed() > PATIENCE
    }

    /// It has asked something whole.
    pub(crate) fn renew(&mut self) {
        self.came = Instant::now();
    }
}

/// Sends a line with descriptors behind it. Whether it went whole.
pub(crate) fn send_with(stream: impl AsFd, line: &str, descriptors: &[OwnedFd]) -> io::Result<bool> {
    let borrowed: Vec<_> = descriptors.iter().map(AsFd::as_fd).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !borrowed.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(&borrowed)) {
        return Err(io::Error::other("more than two descriptors"));
    }
    let text = format!("{line}\n");
    let sent =
        sendmsg(stream, &[IoSlice::new(text.as_bytes())], &mut ancillary, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)?;
    Ok(sent == text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_idle__after_ten_seconds_without_a_question_or_with_an_answer_that_is_not_taken() {
        let (near, far) = UnixStream::pair().unwrap();
        let mut visitor = Visitor::new(near).unwrap();
        let [shortly, long] = [9, 11].map(|s| Instant::now().checked_sub(Duration::from_secs(s)).unwrap());
        for (came, is_idle) in [(shortly, false), (long, true)] {
            visitor.came = came;
            assert_eq!(visitor.is_idle(), is_idle);
        }
        // Half a question is ignored; a whole one is answered.
        rustix::io::write(&far, b"\"stat").unwrap();
        assert!(matches!(visitor.hear(), Heard::Nothing) && visitor.is_idle());
        rustix::io::write(&far, b"us\"\n").unwrap();
        assert!(matches!(visitor.hear(), Heard::Asked(Question::Status)));
        visitor.renew();
        assert!(!visitor.is_idle());
        // A process with a segment, or that waits for an answer, never times out.
        (visitor.came, visitor.waits) = (long, true);
        assert!(!visitor.is_idle());
        (visitor.waits, visitor.segments) = (false, 1);
        assert!(!visitor.is_idle());
        // But not for taking it.
        visitor.answer("x".repeat(8 << 20).into());
        assert!(visitor.flush() && visitor.has_unsent(), "more than a socket holds");
        for (answered, is_idle) in [(shortly, false), (long, true)] {
            visitor.answered = answered;
            assert_eq!(visitor.is_idle(), is_idle);
        }
    }
}
