//! Hears how a session ends, whatever an application makes of it.

use std::ops::Range;

use fairwave_proto::codec::{CloseReason, VoidReason};

use crate::handler::Handler;
use crate::session::Session;

/// Called with how a session ended, and whether the peer reported it. It is called on the network thread: it must not
/// block.
pub type AtEnd = Box<dyn FnOnce(CloseReason, bool) + Send>;

struct EndObserver {
    handler: Box<dyn Handler>,
    tell: Option<AtEnd>,
}

/// Wraps a handler so that `tell` is called at the end of the session.
pub fn at_end(handler: Box<dyn Handler>, tell: AtEnd) -> Box<dyn Handler> {
    Box::new(EndObserver { handler, tell: Some(tell) })
}

impl Handler for EndObserver {
    fn on_open(&mut self, session: &Session) {
        self.handler.on_open(session);
    }

    fn on_request(&mut self, session: &Session, stream: u32, range: Range<u64>) {
        self.handler.on_request(session, stream, range);
    }

    fn lend(&mut self, stream: u32, range: Range<u64>, take: &mut dyn FnMut(&[u8])) -> Result<(), VoidReason> {
        self.handler.lend(stream, range, take)
    }

    fn comes_later(&mut self) -> bool {
        self.handler.comes_later()
    }

    fn on_data(&mut self, session: &Session, stream: u32, offset: u64, bytes: &[u8]) {
        self.handler.on_data(session, stream, offset, bytes);
    }

    fn on_void(&mut self, session: &Session, stream: u32, range: Range<u64>, reason: VoidReason) {
        self.handler.on_void(session, stream, range, reason);
    }

    fn on_closed(&mut self, session: &Session, reason: CloseReason, by_peer: bool) {
        self.handler.on_closed(session, reason, by_peer);
        if let Some(tell) = self.tell.take() {
            tell(reason, by_peer);
        }
    }
}
