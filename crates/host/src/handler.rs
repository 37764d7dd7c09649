//! The application's side of a session.

use std::ops::Range;

use fairwave_proto::codec::{CloseReason, VoidReason};

use crate::session::Session;

/// Supplies the bytes of a session's streams at this end, and receives the bytes that arrive.
///
/// The network thread owns it and calls it: a slow call holds up all sessions of the process. Blocking work, above all
/// on a disk, belongs on a separate thread, which uses the session through its [`Session`].
pub trait Handler: Send {
    /// The session is there.
    fn on_open(&mut self, session: &Session) {
        let _ = session;
    }

    /// The peer asks for a range of a stream. Answer with [`Session::serve`] when its bytes can be lent, or with
    /// [`Session::refuse`]; parts of it can be answered apart. It may come again, also after it was served.
    fn on_request(&mut self, session: &Session, stream: u32, range: Range<u64>) {
        session.refuse(stream, range, VoidReason::Vanished);
    }

    /// Lends bytes of a range that was served: `take` gets them in one piece or in several, in order, together exactly
    /// as many as asked for. They may be asked for again as long as the session lives: what was lost goes again.
    fn lend(&mut self, stream: u32, range: Range<u64>, take: &mut dyn FnMut(&[u8])) -> Result<(), VoidReason> {
        let _ = (stream, range, take);
        Err(VoidReason::Vanished)
    }

    /// Whether the bytes that [`Handler::lend`] has just refused come later: they have left memory, and are served again
    /// when another thread has read them. Else they are void.
    fn comes_later(&mut self) -> bool {
        false
    }

    /// Bytes that were wanted came: each byte comes once for each time that it was wanted, in any order.
    fn on_data(&mut self, session: &Session, stream: u32, offset: u64, bytes: &[u8]) {
        let _ = (session, stream, offset, bytes);
    }

    /// A range that was wanted will not come.
    fn on_void(&mut self, session: &Session, stream: u32, range: Range<u64>, reason: VoidReason) {
        let _ = (session, stream, range, reason);
    }

    /// The session is over; nothing is called after that.
    fn on_closed(&mut self, session: &Session, reason: CloseReason, by_peer: bool) {
        let _ = (session, reason, by_peer);
    }
}
