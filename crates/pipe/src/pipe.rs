//! One pipe, as any thread speaks to it.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crossbeam_channel::Sender;
use fairwave_host::{CloseReason, Lock, Session, ThreadWaker};

use crate::descriptor_state::DescriptorState;
use crate::incoming::Incoming;
use crate::options::PipeOptions;
use crate::outgoing::Outgoing;
use crate::room::RoomBell;
use crate::spares::Spares;
use crate::streams::BYTES;
use crate::watch::Watch;

/// A byte stream each way between a descriptor here and one at the other end of a session. Cheap to clone.
///
/// It lives as long as one of the two does: dropping it ends nothing.
#[derive(Clone)]
pub struct Pipe {
    pub(crate) shared: Arc<Shared>,
}

/// Period of checks while waiting for the other end.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// How far a pipe is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PipeStatus {
    /// Bytes that the descriptor gave.
    pub written: u64,
    /// Of those, the bytes that the descriptor at the other end has taken.
    pub written_taken: u64,
    /// Bytes that came in order for the descriptor.
    pub came: u64,
    /// Of those, the bytes that the descriptor has taken.
    pub came_taken: u64,
    /// Whether the end of the incoming stream was delivered to the descriptor.
    pub is_ended: bool,
    /// Why its session is over, if it is.
    pub closed: Option<CloseReason>,
}

/// State of a pipe shared by the threads of the network and of the pump.
pub(crate) struct Shared {
    pub(crate) number: u64,
    pub(crate) options: PipeOptions,
    pub(crate) outgoing: Lock<Outgoing>,
    pub(crate) incoming: Lock<Incoming>,
    pub(crate) session: Lock<SessionState>,
    /// Over the three above.
    pub(crate) local: Lock<DescriptorState>,
    pub(crate) watch: Box<dyn Watch>,
    /// Whether the pump is to look at it and has not.
    is_reported: AtomicBool,
    /// Whether the pump waits for the other end to take something.
    pub(crate) is_stalled: AtomicBool,
    /// Whether the pump looks within a second whether the source knows of all that was taken.
    pub(crate) is_watched: AtomicBool,
    /// Whether the program has ended one of its directions, or both.
    pub(crate) is_shut: AtomicBool,
    /// Wakes programs that give more than there is room for.
    pub(crate) room: RoomBell,
    /// Whether the watcher has the outcome.
    is_over: AtomicBool,
    pub(crate) way: Arc<WayToPump>,
}

/// How a pipe's session is.
#[derive(Default)]
pub(crate) struct SessionState {
    pub(crate) session: Option<Session>,
    /// The reason of its end, and whether the other end reported it.
    pub(crate) closed: Option<(CloseReason, bool)>,
    /// Whether this end wants it cut.
    pub(crate) is_cut: bool,
}

/// An order to the thread of a pump.
pub(crate) enum Order {
    /// Something of a pipe has changed.
    Look(Arc<Shared>),
    /// A pipe has its descriptor.
    Attach(Arc<Shared>, OwnedFd),
    /// Waits until the other ends have taken what descriptors gave, and then notifies the sender. Bytes given later do
    /// not count.
    Drain(Sender<()>),
    /// The last of its handles and of its pipes is gone: it ends.
    Forsaken,
}

/// The way of orders to the thread of a pump. Each pipe has it, so that the thread lives as long as a pipe does.
pub(crate) struct WayToPump {
    pub(crate) orders: Sender<Order>,
    pub(crate) bell: Arc<ThreadWaker>,
    pub(crate) spares: Spares,
}

impl WayToPump {
    pub(crate) fn send(&self, order: Order) {
        // Without the thread pipes are over.
        if self.orders.send(order).is_ok() {
            self.bell.ring();
        }
    }
}

impl Drop for WayToPump {
    fn drop(&mut self) {
        self.send(Order::Forsaken);
    }
}

impl Shared {
    pub(crate) fn new(number: u64, options: PipeOptions, watch: Box<dyn Watch>, way: Arc<WayToPump>) -> Arc<Self> {
        Arc::new(Self {
            number,
            options,
            outgoing: Lock::new(Outgoing::new(options.keeps.get())),
            incoming: Lock::new(Incoming::new(options.ahead.get())),
            session: Lock::default(),
            local: Lock::over_leaves(DescriptorState::default()),
            watch,
            is_reported: AtomicBool::new(false),
            is_stalled: AtomicBool::new(false),
            is_watched: AtomicBool::new(false),
            is_shut: AtomicBool::new(false),
            room: RoomBell::default(),
            is_over: AtomicBool::new(false),
            way,
        })
    }

    /// Its session, once it is open. Ask for it after adding what it should send: an earlier caller may find no
    /// session, and requests of the other end in between would be missed.
    pub(crate) fn session(&self) -> Option<Session> {
        self.session.lock().session.clone()
    }

    /// Has the pump look at it.
    pub(crate) fn tell(self: &Arc<Self>) {
        if !self.is_reported.swap(true, Ordering::AcqRel) {
            self.way.send(Order::Look(Arc::clone(self)));
        }
    }

    /// The pump looks now: later events make it look again.
    pub(crate) fn heard(&self) {
        self.is_reported.store(false, Ordering::Release);
    }

    /// The watcher has the outcome.
    pub(crate) fn on_over(&self) {
        self.is_over.store(true, Ordering::Release);
    }

    /// Whether it was.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// This end wants the session cut.
    pub(crate) fn cut(self: &Arc<Self>) {
        let session = {
            let mut state = self.session.lock();
            state.is_cut = true;
            state.session.clone()
        };
        if let Some(session) = session {
            session.close(CloseReason::Stopped);
        }
        self.room.ring();
        self.tell();
    }
}

impl Pipe {
    /// Gives it its descriptor: a stream socket, blocking or not. Bytes flow from now on, as far as the session is open.
    /// A pipe takes one; another is closed.
    pub fn attach(&self, descriptor: OwnedFd) {
        self.attach_after(&[], descriptor);
    }

    /// Attaches a descriptor; `first` is sent to the other end before the descriptor's bytes.
    pub fn attach_after(&self, first: &[u8], descriptor: OwnedFd) {
        if !first.is_empty() {
            let serve = self.shared.outgoing.lock().push(first);
            let session = self.session();
            if let (Some(session), Some(serve)) = (session, serve) {
                session.serve(BYTES, serve);
            }
        }
        self.shared.way.send(Order::Attach(Arc::clone(&self.shared), descriptor));
    }

    /// Cuts it: both descriptors are reset, whatever is under way.
    pub fn cut(&self) {
        self.shared.cut();
    }

    /// Its session, once it is open.
    pub fn session(&self) -> Option<Session> {
        self.shared.session()
    }

    /// Waits until the other end has taken all that the descriptor gave, and its end, or the session is over; no longer
    /// than `most`. Whether all was taken.
    pub fn wait_taken(&self, most: Duration) -> bool {
        let until = Instant::now().checked_add(most);
        loop {
            if self.shared.outgoing.lock().is_over() {
                return true;
            }
            let is_closed = self.shared.session.lock().closed.is_some();
            if is_closed || until.is_some_and(|until| until <= Instant::now()) {
                return self.shared.outgoing.lock().is_over();
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Whether the watcher has the outcome: no work of it is in progress.
    pub fn is_over(&self) -> bool {
        self.shared.is_over()
    }

    /// How far it is.
    pub fn status(&self) -> PipeStatus {
        let (written, written_taken) = {
            let outgoing = self.shared.outgoing.lock();
            (outgoing.written(), outgoing.taken())
        };
        let (came, came_taken, is_ended) = {
            let incoming = self.shared.incoming.lock();
            (incoming.came(), incoming.taken(), incoming.is_over())
        };
        let closed = self.shared.session.lock().closed.map(|(reason, _)| reason);
        PipeStatus { written, written_taken, came, came_taken, is_ended, closed }
    }
}
