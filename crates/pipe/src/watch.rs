//! Receives the events of a pipe.

use std::os::fd::OwnedFd;

use fairwave_host::{CloseReason, Session};

/// Receives the events of a pipe on the thread of the pump or of the network: no call may wait.
pub trait Watch: Send + Sync {
    /// Its session is open at this end. An end that opened it learns a moment later whether the other also has it open.
    fn on_open(&self, session: &Session) {
        let _ = session;
    }

    /// It was cut: bytes that one of the ends wrote are lost, or may be. The program at the other end of the descriptor
    /// must not see this as the end of the stream. The descriptor is present if one was attached. This is also called
    /// if the session was never open.
    fn on_cut(&self, descriptor: Option<OwnedFd>, reason: CloseReason) {
        let _ = reason;
        if let Some(descriptor) = descriptor {
            reset(descriptor);
        }
    }

    /// It was cut, and the descriptor has not taken all that arrived earlier: [`Watch::on_cut`] follows when it has.
    /// Later writes of its program are lost, and a waiting write should not wait for a reader. A TCP connection has no
    /// signal for that; a Unix socket reports a broken pipe.
    fn on_cutting(&self, descriptor: &OwnedFd) {
        // If the system refuses, its program waits.
        let _ = rustix::net::shutdown(descriptor, rustix::net::Shutdown::Read);
    }

    /// Both of its streams ended, and each byte was taken; or the other end closed when neither end owed anything. The
    /// descriptor is passed on to be closed: it has the end.
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
    // If the system refuses, the other end sees the end of the stream: there is no alternative.
    let _ = rustix::net::sockopt::set_socket_linger(&descriptor, Some(std::time::Duration::ZERO));
}
