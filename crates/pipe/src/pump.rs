//! One thread that moves the bytes of all pipes of a process.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use fairwave_host::{CloseReason, Handler, ThreadWaker};
use rustix::event::{Timespec, epoll};

use crate::end::{End, Next};
use crate::handler::PipeHandler;
use crate::options::PipeOptions;
use crate::pipe::{Order, Pipe, Shared, WayToPump};
use crate::spares::{SPARE_BYTES, Spares};
use crate::watch::Watch;

/// One thread that moves the bytes of all pipes of a process. Cheap to clone; the thread ends when no clone and no pipe
/// is left.
#[derive(Clone)]
pub struct Pump {
    way: Arc<WayToPump>,
    next: Arc<AtomicU64>,
}

/// The thread.
struct Worker {
    epoll: OwnedFd,
    bell: Arc<ThreadWaker>,
    orders: Receiver<Order>,
    ends: BTreeMap<u64, End>,
    /// Those that are to be looked at.
    due: BTreeSet<u64>,
    scratch: Vec<u8>,
    /// Those whose time to wait for the other end runs.
    waiting: BTreeSet<u64>,
    /// Those that have taken something of which the other end does not know.
    unreported: BTreeSet<u64>,
    /// Those whose end the other end may not know of.
    unheard: BTreeSet<u64>,
    /// When all three are looked at.
    look_at: Option<Instant>,
    /// Bytes that were moved since it last slept.
    moved: usize,
    drained: Option<Sender<()>>,
    is_forsaken: bool,
}

/// The number that epoll has for the bell; pipes count from one.
const BELL: u64 = 0;
/// Period of reporting taken bytes not yet reported, of repeating ends that may have been lost, and of checking pipes
/// that wait for an end that may never arrive.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// After this many bytes between two sleeps, more will arrive, and are cheaper taken together: at 4 Gb/s both ends took
/// 15 % less of the processor's time with a rest. At 10 Gb/s one brings 64 KiB, a sixth of what the system keeps of a
/// Unix socket.
pub(crate) const WORTH_A_REST: usize = 16 << 10;
const REST: Duration = Duration::from_micros(50);
/// Events of one call.
const EVENTS: usize = 256;

impl Pump {
    /// Starts the thread.
    pub fn start() -> io::Result<Self> {
        let (orders, ordered) = unbounded();
        let bell = ThreadWaker::new()?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, bell.as_fd(), epoll::EventData::new_u64(BELL), epoll::EventFlags::IN)?;
        let worker = Worker {
            epoll,
            bell: Arc::clone(&bell),
            orders: ordered,
            ends: BTreeMap::new(),
            due: BTreeSet::new(),
            scratch: Vec::with_capacity(SPARE_BYTES),
            waiting: BTreeSet::new(),
            unreported: BTreeSet::new(),
            unheard: BTreeSet::new(),
            look_at: None,
            moved: 0,
            drained: None,
            is_forsaken: false,
        };
        std::thread::Builder::new().name("fairwave-pump".to_owned()).spawn(move || worker.run())?;
        Ok(Self {
            way: Arc::new(WayToPump { orders, bell, spares: Spares::default() }),
            next: Arc::new(AtomicU64::new(BELL + 1)),
        })
    }

    /// A pipe for a session that is to be opened. The handler is that session's: it goes to
    /// [`Endpoint::connect`](fairwave_host::Endpoint::connect), or is what an
    /// [`Accept`](fairwave_host::Accept) gives; the session sends and receives. A handler that is dropped without a
    /// session is a cut.
    pub fn pipe(&self, options: PipeOptions, watch: Box<dyn Watch>) -> (Pipe, Box<dyn Handler>) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let shared = Shared::new(number, options.bounded(), watch, Arc::clone(&self.way));
        (Pipe { shared: Arc::clone(&shared) }, Box::new(PipeHandler { shared }))
    }

    /// Waits until all that programs have written into descriptors so far was taken at the other ends, no longer than
    /// `most`: whether it was. They cannot write more after this: their streams end here. It is for a process that is
    /// about to end.
    pub fn drain(&self, most: Duration) -> bool {
        let (tell, heard) = bounded(1);
        self.way.send(Order::Drain(tell));
        heard.recv_timeout(most).is_ok()
    }
}

impl Worker {
    fn run(mut self) {
        // Sleeps end some 50 us later than asked for by default.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let mut events = Vec::with_capacity(EVENTS);
        loop {
            while let Ok(order) = self.orders.try_recv() {
                self.on_order(order);
            }
            for number in std::mem::take(&mut self.due) {
                self.work(number);
            }
            if self.drained.is_some() && self.ends.values().all(End::is_drained) {
                // The caller may have gone.
                self.drained.take().map(|tell| tell.send(()).ok());
            }
            if self.is_forsaken {
                return;
            }
            self.sleep(&mut events);
        }
    }

    fn on_order(&mut self, order: Order) {
        match order {
            Order::Look(shared) => {
                if !shared.is_over() {
                    let number = shared.number;
                    self.ends.entry(number).or_insert_with(|| End::new(shared));
                    self.due.insert(number);
                }
            }
            Order::Attach(shared, descriptor) => self.attach(shared, descriptor),
            Order::Drain(tell) => {
                for (number, end) in &mut self.ends {
                    (end.is_readable, end.is_last) = (true, true);
                    self.due.insert(*number);
                }
                self.drained = Some(tell);
            }
            Order::Forsaken => self.is_forsaken = true,
        }
    }

    fn attach(&mut self, shared: Arc<Shared>, descriptor: OwnedFd) {
        if shared.is_over() {
            shared.watch.on_cut(Some(descriptor), CloseReason::Stopped);
            return;
        }
        let number = shared.number;
        let flags = epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::RDHUP | epoll::EventFlags::ET;
        if let Err(error) = epoll::add(&self.epoll, &descriptor, epoll::EventData::new_u64(number), flags) {
            tracing::warn!(%error, "cannot watch a descriptor");
            shared.cut();
        }
        self.ends.entry(number).or_insert_with(|| End::new(shared)).attach(descriptor);
        self.due.insert(number);
    }

    fn work(&mut self, number: u64) {
        let Some(end) = self.ends.get_mut(&number) else { return };
        let next = end.work(&mut self.scratch);
        self.moved += end.take_moved();
        if end.waits_until.is_some() {
            self.waiting.insert(number);
        }
        end.shared.is_watched.store(false, Ordering::SeqCst);
        if end.is_unreported() {
            end.shared.is_watched.store(true, Ordering::Release);
            self.unreported.insert(number);
        }
        if end.has_unheard_end() {
            self.unheard.insert(number);
        }
        match next {
            Next::Wait => {}
            Next::Again => {
                self.due.insert(number);
            }
            Next::Over => {
                end.shared.on_over();
                self.ends.remove(&number);
                self.waiting.remove(&number);
                self.unreported.remove(&number);
                self.unheard.remove(&number);
            }
        }
    }

    fn sleep(&mut self, events: &mut Vec<epoll::Event>) {
        if std::mem::take(&mut self.moved) >= WORTH_A_REST && self.due.is_empty() {
            // A ring during this does not wake it.
            std::thread::sleep(REST);
        }
        self.bell.hush();
        let is_busy = !self.due.is_empty() || !self.orders.is_empty();
        let is_to_look = !(self.waiting.is_empty() && self.unreported.is_empty() && self.unheard.is_empty());
        if self.look_at.is_none() && is_to_look {
            self.look_at = Instant::now().checked_add(LOOK_EVERY);
        }
        let look = self.look_at.map(|at| at.saturating_duration_since(Instant::now()));
        let most = if is_busy { Some(Duration::ZERO) } else { look };
        let timeout = most.and_then(|most| Timespec::try_from(most).ok());
        events.clear();
        // A signal also wakes it; pending work is looked for in any case.
        let _ = epoll::wait(&self.epoll, rustix::buffer::spare_capacity(events), timeout.as_ref());
        self.bell.wake(events.iter().any(|event| event.data.u64() == BELL));
        for event in events.iter() {
            let (number, flags) = (event.data.u64(), event.flags);
            let Some(end) = self.ends.get_mut(&number) else { continue };
            let has = |flag| flags.intersects(flag);
            if has(epoll::EventFlags::RDHUP | epoll::EventFlags::HUP | epoll::EventFlags::ERR) {
                end.shared.is_shut.store(true, Ordering::SeqCst);
                end.shared.room.ring();
            }
            end.is_hung_up |= has(epoll::EventFlags::HUP | epoll::EventFlags::ERR);
            end.is_reset |= has(epoll::EventFlags::ERR);
            end.is_readable |= has(epoll::EventFlags::IN | epoll::EventFlags::RDHUP) || end.is_hung_up;
            end.is_writable |= has(epoll::EventFlags::OUT) || end.is_hung_up;
            self.due.insert(number);
        }
        self.look();
    }

    /// Periodic work: reports taken bytes not yet reported, repeats ends that may have been lost, and cuts pipes that
    /// have waited long enough for the other end.
    fn look(&mut self) {
        let now = Instant::now();
        if self.look_at.is_none_or(|at| now < at) {
            return;
        }
        self.look_at = None;
        for number in std::mem::take(&mut self.unreported) {
            let Some(end) = self.ends.get(&number) else { continue };
            // Bytes taken from here on are reported by the next look.
            end.shared.is_watched.store(false, Ordering::Release);
            end.tell_rest();
        }
        self.unheard.retain(|number| self.ends.get(number).is_some_and(End::has_unheard_end));
        for number in &self.unheard {
            self.ends.get(number).into_iter().for_each(End::say_end_again);
        }
        for number in &self.waiting {
            if let Some(end) = self.ends.get(number).filter(|end| end.waits_until.is_some_and(|until| until <= now)) {
                end.shared.cut();
            }
        }
    }
}
