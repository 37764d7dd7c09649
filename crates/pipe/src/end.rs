//! What the pump does for one pipe.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use fairwave_host::{CloseReason, Session};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};

use crate::incoming::Word;
use crate::outgoing::SMALL_CHUNK;
use crate::pipe::Shared;
use crate::streams::{BYTES, TAKEN};

/// The end of a pipe here: its descriptor, and how far that is.
#[expect(clippy::struct_excessive_bools, reason = "what is known of the two directions of a descriptor")]
pub(crate) struct End {
    pub(crate) shared: Arc<Shared>,
    descriptor: Option<OwnedFd>,
    /// Whether the descriptor may give something.
    pub(crate) is_readable: bool,
    /// Whether it may take something.
    pub(crate) is_writable: bool,
    /// Whether nobody has its other end any more, or nobody will read and write there.
    pub(crate) is_hung_up: bool,
    /// Whether what it gives now is all that it ever gives.
    pub(crate) is_last: bool,
    /// Whether it has given all that it ever gives.
    is_read_out: bool,
    /// Whether nobody reads what comes, though somebody writes: it is thrown away.
    is_deaf: bool,
    /// What it is taking, and how much of that it has taken.
    writing: Vec<u8>,
    at: usize,
    /// Whether the session was closed since both streams are over.
    is_closing: bool,
    /// Until when the other end may have something to say that nobody here will hear.
    pub(crate) waits_until: Option<Instant>,
}

/// How it goes on with a pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// When something happens.
    Wait,
    /// At once, when others had their turn.
    Again,
    /// It is over.
    Over,
}

/// The descriptor cannot go on.
struct Broken;

/// Calls that read or write before others have their turn.
const CALLS_PER_TURN: usize = 16;
/// Bytes that one call reads at the most.
pub(crate) const READ_BYTES: usize = 64 << 10;
/// Larger buffers are not kept.
const MOST_SPARE: usize = 256 << 10;

impl End {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            descriptor: None,
            is_readable: false,
            is_writable: false,
            is_hung_up: false,
            is_last: false,
            is_read_out: false,
            is_deaf: false,
            writing: Vec::new(),
            at: 0,
            is_closing: false,
            waits_until: None,
        }
    }

    /// It has its descriptor; one that it had goes.
    pub(crate) fn attach(&mut self, descriptor: OwnedFd) {
        self.descriptor = Some(descriptor);
        (self.is_readable, self.is_writable) = (true, true);
    }

    /// Does what can be done now. `scratch` is for what is read, and empty between calls.
    pub(crate) fn work(&mut self, scratch: &mut Vec<u8>) -> Next {
        self.shared.heard();
        let (session, closed, is_cut) = {
            let state = self.shared.session.lock();
            (state.session.clone(), state.closed, state.is_cut)
        };
        if is_cut {
            // What has come and was not taken is lost with the rest.
            return self.close(closed.unwrap_or((CloseReason::Stopped, false)));
        }
        if self.descriptor.is_none() {
            return if let Some(closed) = closed { self.close(closed) } else { Next::Wait };
        }
        let moved = self.move_bytes(session.as_ref(), closed.is_some(), scratch);
        let Ok(is_more) = moved else {
            self.shared.cut();
            return self.close((CloseReason::Stopped, false));
        };
        self.tell_end(session.as_ref());
        if let Some(closed) = closed {
            return if is_more {
                Next::Again
            } else if self.has_to_write() {
                Next::Wait
            } else {
                self.close(closed)
            };
        }
        if let Some(session) = &session {
            self.settle(session);
        }
        if is_more { Next::Again } else { Next::Wait }
    }

    /// Closes the session when both streams are over, and sees to it that it is not kept for nobody.
    fn settle(&mut self, session: &Session) {
        let is_given = self.shared.outgoing.lock().is_over();
        let is_taken = self.shared.incoming.lock().is_over();
        if is_given && is_taken && !self.is_closing {
            self.is_closing = true;
            session.close(CloseReason::Done);
        } else if is_given && self.is_hung_up && self.waits_until.is_none() {
            self.waits_until = Instant::now().checked_add(self.shared.options.lingers);
        }
    }

    /// Whether what came waits for the descriptor.
    fn has_to_write(&self) -> bool {
        !self.is_deaf && !self.is_hung_up && (self.at < self.writing.len() || self.shared.incoming.lock().is_ready())
    }

    /// Reads and writes as much as its turn allows: whether there is more to do at once.
    fn move_bytes(
        &mut self,
        session: Option<&Session>,
        is_closed: bool,
        scratch: &mut Vec<u8>,
    ) -> Result<bool, Broken> {
        let Some(descriptor) = self.descriptor.take() else { return Ok(false) };
        let written = self.write(&descriptor, session);
        let read = if is_closed { Ok(false) } else { self.read(&descriptor, session, scratch) };
        self.descriptor = Some(descriptor);
        Ok(written? | read?)
    }

    fn read(&mut self, descriptor: &OwnedFd, session: Option<&Session>, scratch: &mut Vec<u8>) -> Result<bool, Broken> {
        for _ in 0..CALLS_PER_TURN {
            if self.is_read_out || !self.is_readable || !self.has_room() {
                return Ok(false);
            }
            scratch.clear();
            scratch.reserve(READ_BYTES);
            let serve = match recv(descriptor, rustix::buffer::spare_capacity(scratch), RecvFlags::DONTWAIT) {
                Ok((0, _)) => return Ok(self.on_read_end(session)),
                Ok(_) if scratch.len() < SMALL_CHUNK => self.shared.outgoing.lock().push(scratch),
                Ok(_) => self.shared.outgoing.lock().push_chunk(std::mem::take(scratch)),
                Err(Errno::AGAIN) if self.is_last => return Ok(self.on_read_end(session)),
                Err(Errno::AGAIN) => {
                    self.is_readable = false;
                    return Ok(false);
                }
                Err(Errno::INTR) => None,
                Err(_) => return Err(Broken),
            };
            if let (Some(session), Some(serve)) = (session, serve) {
                session.serve(BYTES, serve);
            }
        }
        Ok(true)
    }

    /// Whether the other end has left room; if not, it is looked at again when that has changed.
    fn has_room(&self) -> bool {
        if self.shared.outgoing.lock().room() > 0 {
            return true;
        }
        self.shared.is_stalled.store(true, Ordering::Release);
        // It may have changed in between.
        self.shared.outgoing.lock().room() > 0
    }

    fn on_read_end(&mut self, session: Option<&Session>) -> bool {
        self.is_read_out = true;
        let refuse = self.shared.outgoing.lock().finish();
        if let (Some(session), Some(refuse)) = (session, refuse) {
            session.refuse(BYTES, refuse, fairwave_host::VoidReason::Shrank);
        }
        false
    }

    fn write(&mut self, descriptor: &OwnedFd, session: Option<&Session>) -> Result<bool, Broken> {
        for _ in 0..CALLS_PER_TURN {
            if !self.is_writable && !self.is_deaf {
                return Ok(false);
            }
            if self.at == self.writing.len() {
                self.at = 0;
                let mut spare = std::mem::take(&mut self.writing);
                spare.clear();
                spare.shrink_to(MOST_SPARE);
                self.writing = self.shared.incoming.lock().take_ready(spare);
                if self.writing.is_empty() {
                    return Ok(false);
                }
            }
            let left = &self.writing[self.at..];
            let sent = if self.is_deaf {
                Ok(left.len())
            } else {
                send(descriptor, left, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)
            };
            match sent {
                Ok(sent) => {
                    self.at += sent;
                    let word = self.shared.incoming.lock().on_taken(sent as u64);
                    if let (Some(session), Some(word)) = (session, word) {
                        say(session, &word);
                    }
                }
                Err(Errno::AGAIN) => {
                    self.is_writable = false;
                    return Ok(false);
                }
                Err(Errno::INTR) => {}
                // Who reads no more and may write is told nothing of it by TCP either.
                Err(Errno::PIPE) if !is_hung_up(descriptor) => self.is_deaf = true,
                Err(_) => return Err(Broken),
            }
        }
        Ok(true)
    }

    /// Tells the descriptor of the end, when it has taken all before that.
    fn tell_end(&mut self, session: Option<&Session>) {
        let Some(descriptor) = &self.descriptor else { return };
        if self.at < self.writing.len() {
            return;
        }
        let word = {
            let mut incoming = self.shared.incoming.lock();
            let is_due = incoming.has_all() && !incoming.is_ready() && !incoming.is_over();
            is_due.then(|| incoming.on_over())
        };
        if let Some(word) = word {
            // One that is gone needs to know nothing.
            let _ = shutdown(descriptor, Shutdown::Write);
            if let Some(session) = session {
                say(session, &word);
            }
        }
    }

    /// Its session is over: tells who watches how that was.
    fn close(&mut self, (reason, _): (CloseReason, bool)) -> Next {
        let descriptor = self.descriptor.take();
        let is_whole = self.shared.incoming.lock().is_over();
        let is_given = {
            let mut outgoing = self.shared.outgoing.lock();
            if is_whole && reason == CloseReason::Done {
                // An end says that all is done when it has taken all and knows that all of its own was taken.
                outgoing.on_all_taken();
            }
            outgoing.is_taken()
        };
        if is_whole && is_given {
            if let Some(descriptor) = &descriptor {
                // One that was to be reset if this process ended before its time is not.
                let _ = rustix::net::sockopt::set_socket_linger(descriptor, None);
            }
            self.shared.watch.on_end(descriptor);
        } else {
            self.shared.watch.on_cut(descriptor, reason);
        }
        Next::Over
    }

    /// Whether all that it gave was taken at the other end, and its end as well.
    pub(crate) fn is_drained(&self) -> bool {
        self.descriptor.is_none() || self.shared.outgoing.lock().is_over()
    }
}

/// Tells the source what was taken, in place of what it was told before.
fn say(session: &Session, word: &Word) {
    session.give_up(TAKEN, 0..word.taken);
    session.want(TAKEN, word.taken..word.taken.saturating_add(1));
    if let Some(want) = &word.want {
        session.want(BYTES, want.clone());
    }
}

/// Whether nobody has the other end of a descriptor.
fn is_hung_up(descriptor: &OwnedFd) -> bool {
    let mut descriptors = [PollFd::from_borrowed_fd(descriptor.as_fd(), PollFlags::empty())];
    let polled = poll(&mut descriptors, Some(&Timespec::default()));
    polled.is_ok() && descriptors[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
}
