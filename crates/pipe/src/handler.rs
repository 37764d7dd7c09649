//! The network thread's work for a pipe.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use fairwave_host::{CloseReason, Handler, Session, VoidReason};

use crate::incoming::Came;
use crate::pipe::Shared;
use crate::streams::{BYTES, TAKEN};

/// The handler of a pipe's session.
pub(crate) struct PipeHandler {
    pub(crate) shared: Arc<Shared>,
}

impl PipeHandler {
    /// The other end reports the number of bytes that it has taken.
    fn on_taken(&self, taken: u64) {
        let mut free = Vec::new();
        let said = {
            let mut outgoing = self.shared.outgoing.lock();
            outgoing.on_taken(taken, &mut free).map(|()| outgoing.is_over() || outgoing.is_taken())
        };
        for buffer in free {
            self.shared.way.spares.give(buffer);
        }
        match said {
            Ok(is_all) => {
                self.shared.room.ring();
                if is_all || self.shared.is_stalled.swap(false, Ordering::AcqRel) {
                    self.shared.tell();
                }
            }
            Err(_) => self.shared.cut(),
        }
    }
}

impl Handler for PipeHandler {
    fn on_open(&mut self, session: &Session) {
        let is_cut = {
            let mut state = self.shared.session.lock();
            state.session = Some(session.clone());
            state.is_cut
        };
        if is_cut {
            session.close(CloseReason::Stopped);
            return;
        }
        let first = self.shared.incoming.lock().first();
        session.want(BYTES, first);
        self.shared.watch.on_open(session);
        self.shared.tell();
    }

    fn on_request(&mut self, session: &Session, stream: u32, range: Range<u64>) {
        match stream {
            BYTES => {
                let answer = self.shared.outgoing.lock().on_request(&range);
                if let Some(serve) = answer.serve {
                    session.serve(BYTES, serve);
                }
                if let Some(refuse) = answer.refuse {
                    session.refuse(BYTES, refuse, VoidReason::Shrank);
                }
            }
            TAKEN => {
                // Words that follow each other may come as one.
                self.on_taken(range.end.saturating_sub(1));
                session.refuse(TAKEN, range, VoidReason::Vanished);
            }
            _ => session.refuse(stream, range, VoidReason::Vanished),
        }
    }

    fn lend(&mut self, stream: u32, range: Range<u64>, take: &mut dyn FnMut(&[u8])) -> Result<(), VoidReason> {
        // Bytes that the other end has taken may have been requested twice: they were freed, and are not sent again.
        let is_here = stream == BYTES && self.shared.outgoing.lock().lend(&range, take);
        if is_here { Ok(()) } else { Err(VoidReason::Vanished) }
    }

    fn on_data(&mut self, _session: &Session, stream: u32, offset: u64, bytes: &[u8]) {
        if stream != BYTES {
            return;
        }
        let mut came = self.shared.incoming.lock().on_data(offset, bytes, None);
        if let Came::NeedsRoom(room) = came {
            let spare = self.shared.way.spares.take(room);
            came = self.shared.incoming.lock().on_data(offset, bytes, Some(spare));
        }
        if came == (Came::Kept { is_news: true }) {
            self.shared.tell();
        }
    }

    fn on_void(&mut self, session: &Session, stream: u32, range: Range<u64>, reason: VoidReason) {
        if stream != BYTES {
            return;
        }
        if reason != VoidReason::Shrank {
            // It lost bytes that it owes.
            return self.shared.cut();
        }
        let said = self.shared.incoming.lock().on_end(range.start);
        match said {
            Ok(()) => {
                session.give_up(BYTES, range.end..u64::MAX >> 2);
                self.shared.tell();
            }
            Err(_) => self.shared.cut(),
        }
    }

    fn on_closed(&mut self, _session: &Session, reason: CloseReason, by_peer: bool) {
        self.shared.session.lock().closed.get_or_insert((reason, by_peer));
        self.shared.room.ring();
        self.shared.tell();
    }
}

impl Drop for PipeHandler {
    fn drop(&mut self) {
        // A session that never existed has no other event.
        self.shared.session.lock().closed.get_or_insert((CloseReason::Stopped, false));
        self.shared.room.ring();
        self.shared.tell();
    }
}
