//! Who hears how a pipe fares.

use std::os::fd::OwnedFd;

use fairwave_host::{CloseReason, Session};

/// Told how a pipe fares, on the thread of the pump or of the network: no call may wait.
pub trait Watch: Send + Sync {
    /// Its session is open at this end. An end that opened it hears a moment later whether the other has it open, too.
    fn on_open(&self, session: &Session) {
        let _ = session;
    }

    /// It was cut: bytes that one of the ends wrote are lost, or may be. Who has the other end of the descriptor is not
    /// to take that for the end of the stream. The descriptor is there if one was attached. This is also called where
    /// the session was never open.
    fn on_cut(&self, descriptor: Option<OwnedFd>, reason: CloseReason) {
        let _ = reason;
        if let Some(descriptor) = descriptor {
            reset(descriptor);
        }
    }

    /// It was cut, and the descriptor has not taken all that came before: [`Watch::on_cut`] follows when it has. What its
    /// program writes from now on is lost, and one that waits to write is not to wait until somebody reads. A TCP
    /// connection has no word for that; a Unix socket says that the pipe is broken.
    fn on_cutting(&self, descriptor: &OwnedFd) {
        // Where the system refuses, its program waits.
        let _ = rustix::net::shutdown(descriptor, rustix::net::Shutdown::Read);
    }

    /// Both of its streams came to their ends, and each byte was taken; or the other end went away when it owed nothing
    /// and was owed nothing. The descriptor is there to be closed: it was told the end.
    fn on_end(&self, descriptor: Option<OwnedFd>) {
        drop(descriptor);
    }
}

/// Nobody hears it: a cut resets the descriptor.
impl Watch for () {}

/// Closes a socket so that its other end sees a reset: of TCP with RST; a Unix socket has none, and its other end sees
/// ECONNRESET only if it has written something that was not read.
#[expect(clippy::needless_pass_by_value, reason = "closed locally")]
pub fn reset(descriptor: OwnedFd) {
    // Where the system refuses, the other end sees the end of the stream: there is nothing else to be had.
    let _ = rustix::net::sockopt::set_socket_linger(&descriptor, Some(std::time::Duration::ZERO));
}
