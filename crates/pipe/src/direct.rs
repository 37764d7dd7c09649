//! Bytes that bypass the descriptor between a program of this process and a session, on the program's own thread.
//!
//! Through the descriptor each byte is copied once more at each end, and the pump's thread has to run. Bytes in the
//! descriptor are older and go first: the order of bytes is that of the calls, on any thread.

use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering;

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use crate::descriptor_state::DescriptorState;
use crate::moves::{Read, Written, report};
use crate::outgoing::SMALL_CHUNK;
use crate::pipe::{Pipe, Shared};
use crate::pump::WORTH_A_REST;
use crate::spares::SPARE_BYTES;

/// The result of giving a program's bytes directly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given {
    /// So many of them go, at least one.
    Some(usize),
    /// None: the other end has left no room. [`Pipe::wait_for_room`] waits for some.
    NoRoom,
    /// None: they have to use the descriptor, or it reports the error.
    ByDescriptor,
}

/// Bytes of one turn, after which others have theirs.
const MAX_AT_ONCE: usize = 256 << 10;

impl Pipe {
    /// Takes what has arrived, at least a byte and at most the room, and does not wait: EAGAIN if there is nothing,
    /// zero at the end of the stream. `program` is the other end of the pipe's descriptor: bytes that can be read there
    /// come first.
    ///
    /// The rest still shows at the descriptor, but usually not all of it at once, until the program reads there.
    pub fn take(&self, program: BorrowedFd<'_>, room: &mut [u8]) -> rustix::io::Result<usize> {
        let shared = &self.shared;
        let mut local = shared.local.lock();
        let mut taken = match recv(program, &mut *room, RecvFlags::DONTWAIT) {
            Ok((_, 0)) => return Ok(0),
            Ok((_, got)) => got,
            Err(Errno::AGAIN) => 0,
            Err(error) => return Err(error),
        };
        // If that was less than the room, nothing is left there, and a writer to it needs the lock.
        let by_descriptor = taken;
        (local.is_direct, local.has_token) = (true, false);
        while taken < room.len() {
            if local.writing.is_empty() {
                shared.incoming.lock().take_ready(&mut local.writing);
            }
            let Some(first) = local.writing.front() else { break };
            let bytes = &first[local.at..];
            let count = bytes.len().min(room.len() - taken);
            room[taken..taken + count].copy_from_slice(&bytes[..count]);
            taken += count;
            local.pass(&shared.way.spares, count);
        }
        local.taken += taken;
        if taken > by_descriptor {
            report(shared, taken - by_descriptor);
        }
        // Polling must show that there is more.
        let is_left = matches!(local.write(shared), Ok(Written::Some(_) | Written::Full));
        drop(local);
        if !is_left && self.is_all() {
            shared.tell();
        }
        shared.watch_unreported();
        if taken > 0 { Ok(taken) } else { Err(Errno::AGAIN) }
    }

    /// Whether enough was taken by [`Pipe::take`] since the last call that more will arrive soon, and is cheaper taken
    /// together.
    pub fn is_busy(&self) -> bool {
        std::mem::take(&mut self.shared.local.lock().taken) >= WORTH_A_REST
    }

    /// Whether the pump may have to tell the descriptor of an end.
    fn is_all(&self) -> bool {
        let is_whole = self.shared.incoming.lock().has_all();
        is_whole || self.shared.session.lock().closed.is_some()
    }

    /// Gives bytes to the session, as many as there is room for, behind all that the program wrote into the descriptor.
    /// It does not wait. Whether the program may write at all the descriptor knows.
    pub fn give(&self, bytes: &[u8]) -> Given {
        let is_over = {
            let state = self.shared.session.lock();
            state.closed.is_some() || state.is_cut
        };
        let mut local = self.shared.local.lock();
        if is_over || local.descriptor.is_none() || local.is_read_out {
            return Given::ByDescriptor;
        }
        let mut scratch = self.shared.way.spares.take(1);
        let before = self.read_out(&mut local, &mut scratch);
        self.shared.way.spares.give(scratch);
        if let Err(instead) = before {
            local.serve(&self.shared);
            return instead;
        }
        let mut given = 0;
        while given < bytes.len().min(MAX_AT_ONCE) {
            let room = self.shared.outgoing.lock().room().min(SPARE_BYTES);
            let piece = &bytes[given..bytes.len().min(given + room)];
            if piece.is_empty() {
                break;
            }
            let served = if piece.len() < SMALL_CHUNK {
                self.shared.outgoing.lock().push(piece)
            } else {
                let mut buffer = self.shared.way.spares.take(piece.len());
                buffer.extend_from_slice(piece);
                self.shared.outgoing.lock().push_chunk(buffer)
            };
            given += piece.len();
            local.note_served(&self.shared, served);
        }
        local.serve(&self.shared);
        if given > 0 { Given::Some(given) } else { Given::NoRoom }
    }

    /// Reads what the program has written into the descriptor, as far as there is room.
    fn read_out(&self, local: &mut DescriptorState, scratch: &mut Vec<u8>) -> Result<(), Given> {
        loop {
            if !self.has_room() {
                return Err(Given::NoRoom);
            }
            match local.read(&self.shared, scratch) {
                Ok(Read::Some(_)) => {}
                Ok(Read::Nothing) => return Ok(()),
                Ok(Read::End) | Err(_) => {
                    // The pump also sees that.
                    self.shared.tell();
                    return Err(Given::ByDescriptor);
                }
            }
        }
    }

    fn has_room(&self) -> bool {
        self.shared.outgoing.lock().room() > 0
    }

    /// Waits until [`Pipe::give`] may do something other than say that there is no room, or the descriptor has something
    /// to say: EINTR where a signal came whose handler does not let calls go on. `call` makes the call of the system that
    /// waits, during which no lock is held.
    pub fn wait_for_room(
        &self,
        call: impl FnOnce(&dyn Fn() -> rustix::io::Result<usize>) -> rustix::io::Result<usize>,
    ) -> rustix::io::Result<()> {
        let is_over = || {
            let is_over = {
                let state = self.shared.session.lock();
                state.closed.is_some() || state.is_cut
            };
            is_over || self.has_room() || self.shared.is_shut.load(Ordering::SeqCst)
        };
        self.shared.room.wait(is_over, call)
    }
}

impl Shared {
    /// The pump informs the source within a second of what was taken, if it does not know.
    fn watch_unreported(self: &std::sync::Arc<Self>) {
        let is_unreported = self.incoming.lock().is_unreported();
        if is_unreported && !self.is_watched.swap(true, Ordering::AcqRel) {
            self.tell();
        }
    }
}
