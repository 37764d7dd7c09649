//! A small network in user space, between hosts in namespaces: delay, loss, reordering, duplication, blackholes, an
//! MTU, a rate that may change, with a queue and marks (ECN). The kernel's own means for that (netem) is missing on many machines.
//!
//! Each host has one TUN device, a *port* of the relay. A packet takes the *way* up from its host's port, then the way
//! down to the port that its destination names. One thread carries everything. What the kernel hands over as one large
//! packet of many segments (GSO) stays one, unless the fate of its segments differs: that is what makes the relay
//! cheap.

mod backlog;
mod fate;
mod packet;
mod port;
mod report;
mod wheel;

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

pub(crate) use fate::Way;
pub(crate) use port::{Port, address, device, overflows};
pub(crate) use report::Report;

/// What runs it is a thread of its own; dropping it ends that.
pub(crate) struct Relay {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<io::Result<Report>>>,
}

/// What others may change while it runs.
struct Shared {
    ways: Mutex<Vec<[Way; 2]>>,
    /// Counts the changes.
    version: AtomicU64,
    is_stopped: AtomicBool,
    /// Bytes of IP packets that came out, by the port that they came from and the one that they went to.
    delivered: Vec<Vec<AtomicU64>>,
}

/// From a host's port into the network, or out of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    Up,
    Down,
}

impl Relay {
    /// Begins to carry between `ports`; what is left to chance follows from `seed`.
    pub(crate) fn start(ports: Vec<Port>, seed: u64) -> io::Result<Self> {
        let ways = Mutex::new(vec![<[Way; 2]>::default(); ports.len()]);
        let delivered = ports.iter().map(|_| ports.iter().map(|_| AtomicU64::new(0)).collect()).collect();
        let (version, is_stopped) = (AtomicU64::new(0), AtomicBool::new(false));
        let shared = Arc::new(Shared { ways, version, is_stopped, delivered });
        let wheel = wheel::Wheel::new(ports, seed);
        let seen = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("relay".into()).spawn(move || wheel.run(&seen))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Changes one way of a port. Packets that wait for its rate leave at the new one; others that are on it already are
    /// not touched.
    pub(crate) fn set(&self, port: usize, direction: Direction, way: Way) {
        self.shared.ways.lock().expect("no holder panics")[port][direction as usize] = way;
        self.shared.version.fetch_add(1, Ordering::Release);
    }

    /// Changes both ways of a port.
    pub(crate) fn set_both(&self, port: usize, way: Way) {
        self.set(port, Direction::Up, way);
        self.set(port, Direction::Down, way);
    }

    /// Bytes of IP packets that one host got from another so far.
    pub(crate) fn delivered(&self, from: usize, to: usize) -> u64 {
        self.shared.delivered[from][to].load(Ordering::Relaxed)
    }

    /// Ends it: what it did.
    pub(crate) fn stop(mut self) -> io::Result<Report> {
        self.shared.is_stopped.store(true, Ordering::Release);
        let thread = self.thread.take().expect("only this and drop take it");
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.shared.is_stopped.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
