//! A TCP connection that a bridge holds, and how it fares.

use std::io;
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use fairwave_host::{CloseReason, Lock, Session};
use fairwave_pipe::{Watch, reset};
use rustix::net::sockopt;

/// Prints a message about connections to the user. It is called on threads of the network: it must not block for long.
pub(crate) type Tell = Arc<dyn Fn(&str) + Send + Sync>;

/// Counts a connection for as long as it lives.
pub(crate) struct Counted(Arc<AtomicUsize>);

impl Counted {
    /// Counts one more, unless there are `most` already.
    pub(crate) fn new(count: &Arc<AtomicUsize>, most: usize) -> Option<Self> {
        let counted = Self(Arc::clone(count));
        // Dropped, it takes itself off again.
        (count.fetch_add(1, Ordering::SeqCst) < most).then_some(counted)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Makes a socket one whose end by accident, that of the process among them, is a reset; and that sends at once what it
/// is given.
pub(crate) fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    sockopt::set_socket_linger(stream, Some(Duration::ZERO))?;
    Ok(())
}

/// Hears how the connection of a pipe fares.
pub(crate) struct Follower {
    /// Its name in messages.
    name: String,
    tell: Tell,
    is_open: AtomicBool,
    counted: Lock<Option<Counted>>,
}

impl Follower {
    pub(crate) fn new(name: String, tell: Tell, counted: Counted) -> Self {
        Self { name, tell, is_open: AtomicBool::new(false), counted: Lock::new(Some(counted)) }
    }

    fn over(&self) {
        drop(self.counted.lock().take());
    }
}

impl Watch for Follower {
    fn on_open(&self, session: &Session) {
        tracing::info!(connection = %self.name, carrier = %session.facts().carrier, "open");
        self.is_open.store(true, Ordering::SeqCst);
    }

    fn on_cut(&self, descriptor: Option<OwnedFd>, reason: CloseReason) {
        // If it never was open, the end that opened it reports it.
        let is_said =
            !self.is_open.load(Ordering::SeqCst) || matches!(reason, CloseReason::Stopped | CloseReason::Done);
        if !is_said {
            (self.tell)(&format!("{}: {reason}", self.name));
        }
        if let Some(descriptor) = descriptor {
            reset(descriptor);
        }
        self.over();
    }

    fn on_end(&self, descriptor: Option<OwnedFd>) {
        drop(descriptor);
        tracing::info!(connection = %self.name, "ended");
        self.over();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counted__are_no_more_than_there_may_be() {
        let count = Arc::default();
        let [first, second, third] = [(); 3].map(|()| Counted::new(&count, 2));
        assert!(first.is_some() && second.is_some() && third.is_none());
        assert_eq!(count.load(Ordering::SeqCst), 2);
        drop(first);
        assert!(Counted::new(&count, 2).is_some());
        assert_eq!(count.load(Ordering::SeqCst), 1);
    }
}
