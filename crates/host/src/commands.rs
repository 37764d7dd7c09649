//! Commands from other threads to the network thread.

use std::ops::Range;
use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender};
use fairwave_proto::codec::{CloseReason, SessionId, VoidReason};
use fairwave_units::{Bytes, Rate};

use crate::thread_waker::ThreadWaker;

/// A command of an application to its session, each by the method of [`Session`](crate::Session) that is named.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the fields are the methods' arguments")]
pub enum SessionCommand {
    /// `want`.
    Want { stream: u32, range: Range<u64> },
    /// `give_up`.
    GiveUp { stream: u32, range: Range<u64> },
    /// `set_room`.
    Room(Bytes),
    /// `serve`.
    Serve { stream: u32, range: Range<u64> },
    /// `refuse`.
    Refuse { stream: u32, range: Range<u64>, reason: VoidReason },
    /// `set_desired`.
    Desired(Rate),
    /// `set_ceiling`.
    Ceiling(Option<Rate>),
    /// `close`.
    Close(CloseReason),
}

/// The way of commands to the network thread. It is woken once for all that wait.
#[derive(Clone)]
pub(crate) struct Commands {
    queue: Sender<(SessionId, SessionCommand)>,
    bell: Arc<ThreadWaker>,
}

impl Commands {
    pub(crate) fn new(bell: Arc<ThreadWaker>) -> (Self, Receiver<(SessionId, SessionCommand)>) {
        let (queue, receiver) = crossbeam_channel::unbounded();
        (Self { queue, bell }, receiver)
    }

    pub(crate) fn send(&self, session: SessionId, command: SessionCommand) {
        // Without a network thread there are no sessions.
        if self.queue.send((session, command)).is_ok() {
            self.bell.ring();
        }
    }

    /// Nobody is woken by these.
    pub(crate) fn detached() -> (Self, Receiver<(SessionId, SessionCommand)>) {
        Self::new(ThreadWaker::new().expect("a descriptor is left"))
    }
}
