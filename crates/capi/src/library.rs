//! The library's state in a process: its threads, its endpoints, and the sockets of the program.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::os::fd::{BorrowedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::time::Duration;

use fairwave_host::forks;
use fairwave_host::{Capacity, Endpoint, Lock, PathKind};
use fairwave_pipe::Pump;
use fairwave_units::Rate;

use crate::connector::Connector;
use crate::errno::Errno;
use crate::ours;
use crate::socket::{Node, Socket, SocketOptions, node_of};

/// The library's state in a process. It is made at the first call that needs it, and lives as long as the process.
pub(crate) struct Library {
    pub(crate) pump: Pump,
    pub(crate) connector: Connector,
    sockets: Lock<Sockets>,
    /// Endpoints that many sockets call from.
    endpoints: Lock<Vec<(EndpointKey, Endpoint)>>,
}

/// The sockets of a program.
#[derive(Default)]
struct Sockets {
    known: BTreeMap<Node, Arc<Socket>>,
    /// In the order in which they were added: the library does not see a program that closes its ends by `close`.
    order: VecDeque<Node>,
    /// How many of them there are when it is looked again which are over.
    look_at: usize,
}

/// Common properties of sockets that connect from one endpoint.
#[derive(Clone, Copy, PartialEq)]
struct EndpointKey {
    is_v6: bool,
    is_dedicated: bool,
    is_plain: bool,
    capacity: Option<Rate>,
}

/// The one of this process; null before the first call, and in a child that has not called yet.
static CURRENT: AtomicPtr<Library> = AtomicPtr::new(std::ptr::null_mut());
static IS_BEING_MADE: AtomicBool = AtomicBool::new(false);
static HAS_HOOKS: AtomicBool = AtomicBool::new(false);

/// Max wait for written bytes to be taken when the process exits.
const LINGERS: Duration = Duration::from_secs(5);
/// So many more sockets before it is looked which of them are over.
const FIRST_LOOK: usize = 1024;
/// Sockets that are over and may still be asked how that was.
const MAX_OVER: usize = 512;

/// The library of this process, if there is one.
#[expect(unsafe_code, reason = "it lives as long as the process, which the compiler cannot see")]
pub(crate) fn current() -> Option<&'static Library> {
    // SAFETY: it is set to what was leaked.
    unsafe { CURRENT.load(Ordering::Acquire).as_ref() }
}

/// The library of this process; it is made on first use.
pub(crate) fn library() -> Result<&'static Library, Errno> {
    loop {
        if let Some(library) = current() {
            return Ok(library);
        }
        if !IS_BEING_MADE.swap(true, Ordering::AcqRel) {
            break;
        }
        std::thread::yield_now();
    }
    // Another thread may have made it just now.
    let made = if current().is_some() { Ok(()) } else { make() };
    IS_BEING_MADE.store(false, Ordering::Release);
    made?;
    current().ok_or(Errno(libc::EIO))
}

fn make() -> Result<(), Errno> {
    let library = Library {
        pump: Pump::start()?,
        connector: Connector::start()?,
        sockets: Lock::default(),
        endpoints: Lock::default(),
    };
    set_hooks();
    CURRENT.store(Box::into_raw(Box::new(library)), Ordering::Release);
    Ok(())
}

#[expect(unsafe_code, reason = "hooks are the C library's")]
fn set_hooks() {
    // A child has those of its parent.
    if HAS_HOOKS.swap(true, Ordering::AcqRel) {
        return;
    }
    // SAFETY: both are functions that live as long as the process; where there is no room for them, a child keeps
    // copies of the library's descriptors, or a process does not linger.
    unsafe {
        libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(in_child));
        libc::atexit(at_exit);
    }
}

extern "C" fn before_fork() {
    forks::before_fork();
}

extern "C" fn after_fork() {
    forks::after_fork();
}

/// A child has no thread of the library: it starts afresh when it needs it. The sockets of its parent are plain
/// descriptors to it.
extern "C" fn in_child() {
    CURRENT.store(std::ptr::null_mut(), Ordering::Release);
    IS_BEING_MADE.store(false, Ordering::Release);
    ours::close_copies();
}

extern "C" fn at_exit() {
    // Nothing that it does may unwind into the C library.
    let _ = std::panic::catch_unwind(|| {
        if let Some(library) = current() {
            library.leave();
        }
    });
}

impl Library {
    /// The socket that a number leads to, if it is one.
    #[expect(unsafe_code, reason = "the number is the program's")]
    pub(crate) fn find(&self, number: RawFd) -> Option<Arc<Socket>> {
        if number < 0 {
            return None;
        }
        // SAFETY: it is asked what the number leads to, and nothing else.
        let node = node_of(unsafe { BorrowedFd::borrow_raw(number) }).ok()?;
        let socket = self.sockets.lock().known.get(&node).cloned()?;
        socket.seen_at(number);
        Some(socket)
    }

    /// There is one more.
    pub(crate) fn add(&self, socket: &Arc<Socket>) {
        let (before, to_look) = {
            let mut sockets = self.sockets.lock();
            let before = sockets.known.insert(socket.node, Arc::clone(socket));
            if before.is_none() {
                sockets.order.push_back(socket.node);
            }
            (before, sockets.all_to_look_at())
        };
        drop(before);
        self.forget_over(to_look);
    }

    /// Forgets the oldest of those that are over.
    fn forget_over(&self, sockets: Vec<Arc<Socket>>) {
        if sockets.is_empty() {
            return;
        }
        let over: Vec<Node> = sockets.iter().filter(|socket| socket.is_over()).map(|socket| socket.node).collect();
        let gone: Vec<Arc<Socket>> = {
            let mut table = self.sockets.lock();
            let oldest = over.iter().take(over.len().saturating_sub(MAX_OVER));
            let gone = oldest.filter_map(|node| table.known.remove(node)).collect();
            table.look_at = table.known.len() + FIRST_LOOK;
            gone
        };
        // Their contents are dropped without the lock.
        drop((gone, sockets));
    }

    /// A program closes its end by a call of the library.
    pub(crate) fn forget(&self, socket: &Socket) {
        let gone = self.sockets.lock().known.remove(&socket.node);
        drop(gone);
    }

    /// Drops sockets with their own ports that their programs have closed by a system call. Returns their number.
    pub(crate) fn forget_left_ports(&self) -> usize {
        let all: Vec<_> = self.sockets.lock().known.values().cloned().collect();
        let left: Vec<_> = all.into_iter().filter(|socket| socket.is_left_with_port()).collect();
        for socket in &left {
            self.forget(socket);
        }
        left.len()
    }

    /// An endpoint to call from.
    pub(crate) fn endpoint(&self, socket: &Socket, options: &SocketOptions, to: SocketAddr) -> Result<Endpoint, Errno> {
        let is_dedicated = options.path == PathKind::Dedicated;
        let (is_v6, is_plain, capacity) = (socket.is_v6, options.is_plain, options.capacity);
        let key = EndpointKey { is_v6, is_dedicated, is_plain, capacity };
        let known = |endpoints: &Vec<(EndpointKey, Endpoint)>| {
            endpoints.iter().find(|(other, _)| *other == key).map(|(_, endpoint)| endpoint.clone())
        };
        if let Some(endpoint) = known(&self.endpoints.lock()) {
            return Ok(endpoint);
        }
        let capacity = Capacity::find(capacity, Some(to.ip())).rate;
        let made = Endpoint::bind(&options.endpoint(None, capacity)).map_err(|error| Errno::from(&error))?;
        let mut endpoints = self.endpoints.lock();
        if let Some(endpoint) = known(&endpoints) {
            return Ok(endpoint);
        }
        endpoints.push((key, made.clone()));
        Ok(made)
    }

    /// The process exits: what was written is taken at the other ends first, if that takes no longer than a while, and
    /// they hear that this end is gone.
    fn leave(&self) {
        self.pump.drain(LINGERS);
        let endpoints = std::mem::take(&mut *self.endpoints.lock());
        let sockets: Vec<_> = self.sockets.lock().known.values().cloned().collect();
        let of_sockets = sockets.iter().filter_map(|socket| socket.state.lock().endpoint.take());
        for endpoint in endpoints.into_iter().map(|(_, endpoint)| endpoint).chain(of_sockets.collect::<Vec<_>>()) {
            endpoint.close();
        }
    }
}

impl Sockets {
    /// All of them, the oldest first, if it is time to look which are over.
    fn all_to_look_at(&mut self) -> Vec<Arc<Socket>> {
        let known = &self.known;
        if self.order.len() > 2 * known.len() + FIRST_LOOK {
            self.order.retain(|node| known.contains_key(node));
        }
        if known.len() < self.look_at.max(FIRST_LOOK) {
            return Vec::new();
        }
        // Only this thread looks; it sets the next look at the end.
        self.look_at = known.len() + FIRST_LOOK;
        self.order.iter().filter_map(|node| known.get(node).cloned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::socket::Stage;

    fn bare() -> Library {
        Library {
            pump: Pump::start().unwrap(),
            connector: Connector::start().unwrap(),
            sockets: Lock::default(),
            endpoints: Lock::default(),
        }
    }

    fn failed() -> Arc<Socket> {
        let (socket, _theirs) = Socket::new(false, Stage::Failed, SocketOptions::default()).unwrap();
        socket.state.lock().ours = None;
        socket
    }

    #[test]
    fn add__of_sockets_that_are_over_keeps_no_more_however_many_come() {
        let library = bare();
        let mut most = [0, 0];
        for _ in 0..12_000 {
            library.add(&failed());
            let sockets = library.sockets.lock();
            most = [most[0].max(sockets.known.len()), most[1].max(sockets.order.len())];
        }
        assert!(most[0] <= MAX_OVER + FIRST_LOOK, "{most:?}");
        assert!(most[1] <= 2 * most[0] + FIRST_LOOK + 1, "{most:?}");
    }

    /// Numbers of inodes are each device's own, and a file's may be a socket's.
    #[test]
    fn find__a_file_with_the_inode_of_a_socket_is_none() {
        use std::os::fd::{AsRawFd, OwnedFd};
        use std::os::unix::fs::MetadataExt;
        let library = bare();
        let file = std::fs::File::open(std::env::current_exe().unwrap()).unwrap();
        let (socket, theirs) = Socket::new(false, Stage::New, SocketOptions::default()).unwrap();
        let device = socket.node.0;
        let meta = file.metadata().unwrap();
        for node in [(device, meta.ino()), (meta.dev(), meta.ino())] {
            let (socket, _theirs) = Socket::new(false, Stage::New, SocketOptions::default()).unwrap();
            let mut socket = Arc::into_inner(socket).unwrap();
            socket.node = node;
            library.add(&Arc::new(socket));
        }
        assert!(library.find(OwnedFd::from(file).as_raw_fd()).is_none());
        library.add(&socket);
        assert!(library.find(theirs.as_raw_fd()).is_some());
        // Another socket, whatever its number.
        let (other, _ours) = std::os::unix::net::UnixStream::pair().unwrap();
        assert!(library.find(other.as_raw_fd()).is_none());
    }

    #[test]
    fn forget__leaves_nothing_behind() {
        let library = bare();
        for _ in 0..3 * FIRST_LOOK {
            let socket = failed();
            library.add(&socket);
            library.forget(&socket);
        }
        let sockets = library.sockets.lock();
        assert!(sockets.known.is_empty() && sockets.order.len() <= FIRST_LOOK + 1, "{}", sockets.order.len());
    }
}
