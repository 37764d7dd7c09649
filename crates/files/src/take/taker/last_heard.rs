//! Whether anything comes from the other end.

use std::time::{Duration, Instant};

/// How many bytes came on the session, and since when there are no more.
pub(super) struct LastHeard {
    bytes: u64,
    since: Instant,
}

/// When nothing comes for longer, somebody should know.
const QUIET: Duration = Duration::from_secs(1);

impl LastHeard {
    pub(super) fn new() -> Self {
        Self { bytes: 0, since: Instant::now() }
    }

    /// Records the bytes received so far. If nothing is requested, nothing has to arrive.
    pub(super) fn listen(&mut self, bytes: u64, is_asked: bool) {
        if bytes != self.bytes || !is_asked {
            (self.bytes, self.since) = (bytes, Instant::now());
        }
    }

    /// Whether nothing has come for so long that somebody should know.
    pub(super) fn is_quiet(&self) -> bool {
        self.since.elapsed() > QUIET
    }
}
