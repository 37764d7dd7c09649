//! How a pipe is set up.

use std::time::Duration;

use fairwave_units::Bytes;

/// How a pipe is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PipeOptions {
    /// Bytes that are requested ahead of what the descriptor has taken, at least 64 KiB: the memory of this end if the
    /// descriptor takes nothing. On a long path it bounds the rate, to this much per round trip.
    pub ahead: Bytes,
    /// Max bytes that this end keeps of what the descriptor gave and the other end has not taken, at least 64 KiB. The
    /// other end usually requests as much ahead.
    pub keeps: Bytes,
    /// How long a descriptor without a reader, after all that it gave was taken, waits for the other end's end.
    pub lingers: Duration,
}

impl Default for PipeOptions {
    // 60 s: what Linux gives an orphan of TCP (tcp_fin_timeout).
    fn default() -> Self {
        Self { ahead: Bytes::new(4 << 20), keeps: Bytes::new(5 << 20), lingers: Duration::from_secs(60) }
    }
}

/// Time without an answer after which opening a session for a program's stream has failed.
///
/// A busy host may take seconds to answer, and programs expect the patience of TCP: Linux gives up after 127 s
/// (`tcp_syn_retries`). The value is that of `Lasts::silent`, after which an open session is given up.
pub const OPENS_WITHIN: fairwave_units::Duration = fairwave_units::Duration::from_secs(30);

/// Min size of a request, bytes.
const LEAST: u64 = 64 << 10;

impl PipeOptions {
    /// With its least bounds.
    pub(crate) fn bounded(self) -> Self {
        let bounded = |bytes: Bytes| Bytes::new(bytes.get().clamp(LEAST, 1 << 40));
        Self { ahead: bounded(self.ahead), keeps: bounded(self.keeps), ..self }
    }
}
