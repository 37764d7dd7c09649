//! Connections that have not said yet who they are.

use std::collections::VecDeque;
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fairwave_host::Lock;

/// So many at once: any user may come to a port of loopback. A program may open as many connections as a far end takes,
/// and they all come before the first of them has had its turn to speak.
pub(crate) const MAX_UNKNOWN: usize = crate::far::MAX_CONNECTIONS;

/// Tells one from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Came(u64);

/// Connections that have not identified themselves. The oldest is closed when there are too many: a legitimate one
/// identifies itself at once, and a waiting one does not keep others out.
#[derive(Default)]
pub(crate) struct Unknown {
    next: AtomicU64,
    waiting: Lock<VecDeque<(Came, Arc<TcpStream>)>>,
}

impl Unknown {
    /// One more came.
    pub(crate) fn add(&self, stream: TcpStream) -> Came {
        let came = Came(self.next.fetch_add(1, Ordering::Relaxed));
        let oldest = {
            let mut waiting = self.waiting.lock();
            waiting.push_back((came, Arc::new(stream)));
            if waiting.len() > MAX_UNKNOWN { waiting.pop_front() } else { None }
        };
        if let Some((_, stream)) = oldest {
            // Its thread waits for input, and ends.
            let _ = stream.shutdown(Shutdown::Both);
        }
        came
    }

    /// There is no room for another: the oldest goes.
    pub(crate) fn let_go(&self) {
        let oldest = self.waiting.lock().pop_front();
        if let Some((_, stream)) = oldest {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// One that is still there, to be heard.
    pub(crate) fn get(&self, came: Came) -> Option<Arc<TcpStream>> {
        self.waiting.lock().iter().find(|(other, _)| *other == came).map(|(_, stream)| Arc::clone(stream))
    }

    /// One that is still there, and is unknown no longer. Nobody has it then but who calls.
    pub(crate) fn take(&self, came: Came) -> Option<TcpStream> {
        let mut waiting = self.waiting.lock();
        let index = waiting.iter().position(|(other, _)| *other == came)?;
        waiting.remove(index).and_then(|(_, stream)| Arc::into_inner(stream))
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    use super::*;

    #[test]
    fn add__lets_go_of_the_oldest_of_too_many() {
        let limit = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let unknown = Unknown::default();
        let came: Vec<_> = (0..=MAX_UNKNOWN)
            .map(|_| {
                let there = TcpStream::connect(at).unwrap();
                drop(listener.accept().unwrap());
                unknown.add(there)
            })
            .collect();
        let is_there: Vec<_> = came.iter().map(|came| unknown.get(*came).is_some()).collect();
        assert_eq!(is_there.iter().position(|is_there| *is_there), Some(1));
        assert!(came[1..].iter().all(|came| unknown.take(*came).is_some()));
    }
}
