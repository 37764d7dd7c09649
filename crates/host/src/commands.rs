//! What other threads tell the network thread.

use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crossbeam_channel::{Receiver, Sender};
use fairwave_proto::codec::{CloseReason, SessionId, VoidReason};
use fairwave_units::{Bytes, Rate};
use rustix::event::{EventfdFlags, eventfd};

/// What an application told its session, each by the method of [`Session`](crate::Session) that is named.
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

/// Wakes the network thread when it sleeps.
pub(crate) struct ThreadWaker {
    pub(crate) fd: OwnedFd,
    is_awake: AtomicBool,
}

impl ThreadWaker {
    pub(crate) fn new() -> std::io::Result<Arc<Self>> {
        let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Arc::new(Self { fd, is_awake: AtomicBool::new(true) }))
    }

    /// Wakes it, if it sleeps.
    pub(crate) fn ring(&self) {
        if !self.is_awake.swap(true, Ordering::AcqRel) {
            // It can only fail because it has been rung 2^64 times.
            let _ = rustix::io::write(&self.fd, &1_u64.to_ne_bytes());
        }
    }

    /// It is about to sleep: who rings from now on wakes it. Look at the queues after this.
    pub(crate) fn hush(&self) {
        self.is_awake.store(false, Ordering::SeqCst);
    }

    /// It is awake. `is_rung` is whether the descriptor was readable: who rang may have been kept from writing until the
    /// sleep after, and what nobody reads would keep it awake for ever.
    pub(crate) fn wake(&self, is_rung: bool) {
        if self.is_awake.swap(true, Ordering::AcqRel) || is_rung {
            let _ = rustix::io::read(&self.fd, &mut [0; 8]);
        }
    }
}

impl Commands {
    pub(crate) fn new(bell: Arc<ThreadWaker>) -> (Self, Receiver<(SessionId, SessionCommand)>) {
        let (queue, receiver) = crossbeam_channel::unbounded();
        (Self { queue, bell }, receiver)
    }

    pub(crate) fn send(&self, session: SessionId, command: SessionCommand) {
        // Without a network thread there are no sessions any more.
        if self.queue.send((session, command)).is_ok() {
            self.bell.ring();
        }
    }

    /// Nobody is woken by these.
    pub(crate) fn detached() -> (Self, Receiver<(SessionId, SessionCommand)>) {
        Self::new(ThreadWaker::new().expect("a descriptor is left"))
    }
}
