//! The pump's work for one pipe.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use fairwave_host::{CloseReason, Session, VoidReason};
use rustix::net::{Shutdown, shutdown};

use crate::descriptor_state::DescriptorState;
use crate::moves::{Broken, Read, Written, say};
use crate::pipe::Shared;
use crate::streams::BYTES;

/// The end of a pipe here, as the pump has it: how its descriptor is.
#[expect(clippy::struct_excessive_bools, reason = "what is known of the two directions of a descriptor")]
pub(crate) struct End {
    pub(crate) shared: Arc<Shared>,
    /// Whether the descriptor may give something.
    pub(crate) is_readable: bool,
    /// Whether it may take something.
    pub(crate) is_writable: bool,
    /// Whether nobody has its other end any more, or nobody will read and write there.
    pub(crate) is_hung_up: bool,
    /// Whether it was reset, as when its other end was closed with something unread.
    pub(crate) is_reset: bool,
    /// Whether what it gives now is all that it ever gives.
    pub(crate) is_last: bool,
    /// Bytes that it took and gave since that was asked last.
    moved: usize,
    /// Whether the session was closed since both streams are over.
    is_closing: bool,
    /// Whether its program was informed that its writes are lost.
    is_refusing: bool,
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

/// Calls that read or write before others have their turn.
const CALLS_PER_TURN: usize = 16;

impl End {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            is_readable: false,
            is_writable: false,
            is_hung_up: false,
            is_reset: false,
            is_last: false,
            moved: 0,
            is_closing: false,
            is_refusing: false,
            waits_until: None,
        }
    }

    /// It has its descriptor; one that it had goes.
    pub(crate) fn attach(&mut self, descriptor: OwnedFd) {
        let before = self.shared.local.lock().descriptor.replace(descriptor);
        drop(before);
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
            // Bytes that have arrived and were not taken are lost with the rest.
            return self.close(closed.unwrap_or((CloseReason::Stopped, false)));
        }
        let has_descriptor = self.shared.local.lock().descriptor.is_some();
        if !has_descriptor {
            return if let Some(closed) = closed { self.close(closed) } else { Next::Wait };
        }
        let moved = self.move_bytes(closed.is_some(), scratch);
        let Some(is_more) = moved.ok().filter(|_| !self.is_reset || closed.is_some()) else {
            self.shared.cut();
            return self.close((CloseReason::Stopped, false));
        };
        self.tell_end();
        if let Some(closed) = closed {
            return if is_more {
                Next::Again
            } else if self.has_to_write() {
                self.refuse_more();
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

    /// Nobody reads any more what its program writes.
    fn refuse_more(&mut self) {
        let local = self.shared.local.lock();
        if let Some(descriptor) = &local.descriptor
            && !std::mem::replace(&mut self.is_refusing, true)
        {
            self.shared.watch.on_cutting(descriptor);
        }
    }

    /// Whether what came waits for the descriptor.
    fn has_to_write(&self) -> bool {
        let local = self.shared.local.lock();
        !local.is_deaf && !self.is_hung_up && (!local.writing.is_empty() || self.shared.incoming.lock().is_ready())
    }

    /// Reads and writes as much as its turn allows: whether there is more to do at once.
    fn move_bytes(&mut self, is_closed: bool, scratch: &mut Vec<u8>) -> Result<bool, Broken> {
        let shared = Arc::clone(&self.shared);
        let mut local = shared.local.lock();
        let written = self.write(&mut local);
        let read = if is_closed { Ok(false) } else { self.read(&mut local, scratch) };
        Ok(written? | read?)
    }

    fn read(&mut self, local: &mut DescriptorState, scratch: &mut Vec<u8>) -> Result<bool, Broken> {
        for _ in 0..CALLS_PER_TURN {
            if local.is_read_out || !self.is_readable || !self.has_room() {
                local.serve(&self.shared);
                return Ok(false);
            }
            match local.read(&self.shared, scratch)? {
                Read::Some(bytes) => self.moved += bytes,
                Read::Nothing if self.is_last => local.on_read_end(&self.shared),
                Read::Nothing => self.is_readable = false,
                Read::End => {}
            }
        }
        local.serve(&self.shared);
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

    fn write(&mut self, local: &mut DescriptorState) -> Result<bool, Broken> {
        for _ in 0..CALLS_PER_TURN {
            if !self.is_writable && !local.is_deaf {
                return Ok(false);
            }
            match local.write(&self.shared)? {
                Written::Some(bytes) => self.moved += bytes,
                Written::Full => {
                    self.is_writable = false;
                    return Ok(false);
                }
                Written::Nothing => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Tells the descriptor of the end, when it has taken all before that.
    fn tell_end(&mut self) {
        let local = self.shared.local.lock();
        let Some(descriptor) = &local.descriptor else { return };
        if !local.writing.is_empty() {
            return;
        }
        let word = {
            let mut incoming = self.shared.incoming.lock();
            let is_due = incoming.has_all() && !incoming.is_ready() && !incoming.is_over();
            is_due.then(|| incoming.on_over())
        };
        if word.is_some() {
            // One that is gone needs to know nothing.
            let _ = shutdown(descriptor, Shutdown::Write);
            say(&self.shared, word);
        }
    }

    /// Its session is over: reports the outcome to the watcher.
    fn close(&mut self, (reason, _): (CloseReason, bool)) -> Next {
        let descriptor = self.shared.local.lock().descriptor.take();
        let is_whole = self.shared.incoming.lock().is_over();
        let is_given = {
            let mut outgoing = self.shared.outgoing.lock();
            if is_whole && reason == CloseReason::Done {
                // An end reports completion when it has taken all and knows that the other end has also taken all.
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

    /// Bytes that it took and gave since this was asked last.
    pub(crate) fn take_moved(&mut self) -> usize {
        std::mem::take(&mut self.moved)
    }

    /// Whether the other end does not know of all that was taken here.
    pub(crate) fn is_unreported(&self) -> bool {
        self.shared.incoming.lock().is_unreported()
    }

    /// Tells it.
    pub(crate) fn tell_rest(&self) {
        let word = self.shared.incoming.lock().rest();
        say(&self.shared, word);
    }

    /// Whether the other end may not know that this one gives no more.
    pub(crate) fn has_unheard_end(&self) -> bool {
        self.shared.outgoing.lock().unheard_end().is_some()
    }

    /// Repeats the end. A loss goes unnoticed: a sink that has requested bytes beyond the end waits as long as a slow
    /// source may need for all requested, at most half a minute.
    pub(crate) fn say_end_again(&self) {
        let unheard = self.shared.outgoing.lock().unheard_end().filter(|beyond| !beyond.is_empty());
        if let Some((beyond, session)) = unheard.zip(self.shared.session()) {
            session.refuse(BYTES, beyond, VoidReason::Shrank);
        }
    }

    /// Whether all that it gave was taken at the other end, and its end as well.
    pub(crate) fn is_drained(&self) -> bool {
        let has_descriptor = self.shared.local.lock().descriptor.is_some();
        !has_descriptor || self.shared.outgoing.lock().is_over()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use fairwave_host::{Carrier, PathDeclaration, PathDeclarations, PathKind, SessionCommand, SessionFacts};

    use super::*;
    use crate::options::PipeOptions;
    use crate::pump::Pump;
    use crate::spares::SPARE_BYTES;

    fn facts() -> SessionFacts {
        SessionFacts {
            peer: ([127, 0, 0, 1], 9).into(),
            is_initiator: false,
            sends: true,
            receives: true,
            carrier: Carrier::Udp,
            path: PathKind::Shared,
            declared: PathDeclarations { here: PathDeclaration::Shared, there: PathDeclaration::Shared },
            is_plain: false,
        }
    }

    /// Commands to a session whose other end requests its bytes while the bytes that its program wrote, and `more`, are
    /// read.
    fn told_meanwhile(more: impl FnOnce(&UnixStream)) -> Vec<SessionCommand> {
        let pump = Pump::start().unwrap();
        let (pipe, mut handler) = pump.pipe(PipeOptions::default(), Box::new(()));
        let (mut program, ours) = UnixStream::pair().unwrap();
        let mut end = End::new(Arc::clone(&pipe.shared));
        end.attach(ours.into());
        program.write_all(b"hello").unwrap();
        more(&program);
        let (session, received) = Session::detached(facts());
        let local = pipe.shared.local.lock();
        std::thread::scope(|scope| {
            let (tell, thread) = std::sync::mpsc::channel();
            let working = scope.spawn(move || {
                tell.send(rustix::thread::gettid()).unwrap();
                end.work(&mut Vec::with_capacity(SPARE_BYTES))
            });
            // It has seen that there is no session, and waits for the lock.
            fairwave_testing::wait_until_asleep(thread.recv().unwrap());
            handler.on_open(&session);
            handler.on_request(&session, BYTES, 0..100);
            drop(local);
            assert_eq!(working.join().unwrap(), Next::Wait);
        });
        received.try_iter().map(|(_, command)| command).collect()
    }

    #[test]
    fn work__what_is_asked_for_while_it_reads_is_served() {
        let received = told_meanwhile(|_| {});
        assert!(received.contains(&SessionCommand::Serve { stream: BYTES, range: 0..5 }), "{received:?}");
    }

    #[test]
    fn work__what_is_asked_for_beyond_the_end_while_it_reads_is_refused() {
        let received = told_meanwhile(|program| program.shutdown(std::net::Shutdown::Write).unwrap());
        let (stream, reason) = (BYTES, VoidReason::Shrank);
        assert!(received.contains(&SessionCommand::Refuse { stream, range: 5..100, reason }), "{received:?}");
    }
}
