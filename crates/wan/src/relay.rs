//! The relay, which carries packets between spaces.
//!
//! Each host has one TUN device, a *port* of the relay. A packet takes the *way* up from its host's port, then the way
//! down to the port of its destination. One thread carries everything. A large packet of many segments from the kernel
//! (GSO) is carried whole, unless the fate of its segments differs: that is what makes the relay cheap.

mod backlog;
mod device;
mod ip_packet;
mod plan;
mod port;
mod relay_state;
mod report;
mod way;
mod wheel;

use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use plan::Plan;
pub use port::{Port, address, device, overflows};
use relay_state::Shared;
pub use report::{Flow, Report};
pub use way::{Direction, Way};

/// A network between the ports that it was started with, run by a separate thread until it is dropped.
pub struct Relay {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<io::Result<Report>>>,
}

impl Relay {
    /// Starts carrying packets between `ports`; random events follow from `seed`.
    ///
    /// # Errors
    ///
    /// If no thread can be started.
    pub fn start(ports: Vec<Port>, seed: u64) -> io::Result<Self> {
        let plan = Mutex::new(Plan::new(ports.len()));
        let pairs = |of| ports.iter().map(|_| ports.iter().map(|_| AtomicU64::new(of)).collect()).collect();
        let [delivered, most] = [0, u64::MAX].map(pairs);
        let (version, is_stopped) = (AtomicU64::new(0), AtomicBool::new(false));
        let [followed, waiting, taken] = [0; 3].map(AtomicU64::new);
        let shared = Arc::new(Shared { plan, version, is_stopped, followed, waiting, taken, delivered, most });
        let wheel = wheel::Wheel::new(ports, seed);
        let seen = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("relay".into()).spawn(move || wheel.run(&seen))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Changes one way of a port now. Packets that wait for its rate leave at the new one; others that are on it
    /// already are not affected. A port that does not exist has no ways.
    pub fn set(&self, port: usize, direction: Direction, way: Way) {
        self.set_at(Instant::now(), port, direction, way);
    }

    /// Changes it at that time, without further action of the caller.
    pub fn set_at(&self, at: Instant, port: usize, direction: Direction, way: Way) {
        self.shared.change(|plan| plan.set(at, port, direction, way));
    }

    /// Changes both ways of a port now.
    pub fn set_both(&self, port: usize, way: Way) {
        self.set(port, Direction::Up, way);
        self.set(port, Direction::Down, way);
    }

    /// Adds `extra` to the delay from one address to another: two sessions between the same hosts, each with its own
    /// address, may have different round-trip times.
    pub fn set_detour(&self, from: IpAddr, to: IpAddr, extra: Duration) {
        self.shared.change(|plan| plan.set_detour(from, to, extra));
    }

    /// Bytes of IP packets that one host received from another so far.
    pub fn delivered(&self, from: usize, to: usize) -> u64 {
        let row = self.shared.delivered.get(from).and_then(|row| row.get(to));
        row.map_or(0, |bytes| bytes.load(Ordering::Relaxed))
    }

    /// Drops what one host sends to another once this many bytes have been delivered: a cut at a byte, however late the
    /// caller's thread runs.
    pub fn deliver_at_most(&self, from: usize, to: usize, bytes: u64) {
        if let Some(most) = self.shared.most.get(from).and_then(|row| row.get(to)) {
            most.store(bytes, Ordering::Relaxed);
        }
    }

    /// Packets of all hosts that it has read so far.
    pub fn taken(&self) -> u64 {
        self.shared.taken.load(Ordering::Acquire)
    }

    /// Whether it has read this many packets and delivered all of them.
    pub fn has_carried(&self, packets: u64) -> bool {
        self.taken() >= packets && self.shared.waiting.load(Ordering::Acquire) == 0
    }

    /// Whether all changes that were made so far, and are due, are in force.
    pub fn is_up_to_date(&self) -> bool {
        self.shared.followed.load(Ordering::Acquire) == self.shared.version.load(Ordering::Acquire)
    }

    /// Ends it, and returns its report.
    ///
    /// # Errors
    ///
    /// If a device could not be read, for example because its space is gone.
    pub fn stop(mut self) -> io::Result<Report> {
        self.end().unwrap_or_else(|| Err(io::Error::other("the relay has ended before")))
    }

    fn end(&mut self) -> Option<io::Result<Report>> {
        self.shared.is_stopped.store(true, Ordering::Release);
        let joined = self.thread.take()?.join();
        Some(joined.unwrap_or_else(|_| Err(io::Error::other("the relay's thread panicked"))))
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let _ = self.end();
    }
}
