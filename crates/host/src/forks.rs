//! A table of the descriptors that are sockets of endpoints, for processes that fork.
//!
//! A child has copies of all descriptors of its parent, and a port stays bound while any process has its socket: a
//! child that outlives the endpoint closes its copies. It may not take a lock there; this table has none.

use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};

const WORDS: usize = 1024;

/// A bit for each descriptor below 65536. Those above are not known.
static SOCKETS: [AtomicU64; WORDS] = [const { AtomicU64::new(0) }; WORDS];

/// That a descriptor is a socket of an endpoint. It goes before the descriptor does: the number may be another's then.
pub(crate) struct SocketMark {
    number: RawFd,
}

impl SocketMark {
    pub(crate) fn new(socket: &impl AsRawFd) -> Self {
        let number = socket.as_raw_fd();
        if let Some((word, bit)) = place(number) {
            word.fetch_or(bit, Ordering::SeqCst);
        }
        Self { number }
    }
}

impl Drop for SocketMark {
    fn drop(&mut self) {
        if let Some((word, bit)) = place(self.number) {
            word.fetch_and(!bit, Ordering::SeqCst);
        }
    }
}

/// In a child of a process with endpoints, which has copies of their sockets: their numbers, each once. Nothing of this
/// process uses them, and it should close them. It is safe to call in a handler of `pthread_atfork`.
pub fn take_sockets() -> impl Iterator<Item = RawFd> {
    SOCKETS.iter().zip((0..).step_by(64)).flat_map(|(word, first): (_, RawFd)| {
        let bits = word.swap(0, Ordering::SeqCst);
        (0..64).filter(move |at| bits >> at & 1 == 1).map(move |at| first + at)
    })
}

fn place(number: RawFd) -> Option<(&'static AtomicU64, u64)> {
    let number = usize::try_from(number).ok()?;
    Some((SOCKETS.get(number / 64)?, 1 << (number % 64)))
}
