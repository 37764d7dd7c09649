//! How a pipe is set up.

use std::time::Duration;

use fairwave_units::Bytes;

/// How a pipe is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PipeOptions {
    /// Bytes that are wanted ahead of what the descriptor has taken, 64 KiB at the least: what this end holds of one that
    /// takes nothing. On a long path it bounds the rate, to so much a round trip.
    pub ahead: Bytes,
    /// Bytes that this end keeps at the most of what the descriptor gave and the other end has not taken, 64 KiB at the
    /// least. What the other end wants ahead is as a rule as much.
    pub keeps: Bytes,
    /// A descriptor that nobody reads any more, after all that it gave was taken, waits so long for the other end's end.
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

/// A request is as large as this at the least.
const LEAST: u64 = 64 << 10;

impl PipeOptions {
    /// With its least bounds.
    pub(crate) fn bounded(self) -> Self {
        let bounded = |bytes: Bytes| Bytes::new(bytes.get().clamp(LEAST, 1 << 40));
        Self { ahead: bounded(self.ahead), keeps: bounded(self.keeps), ..self }
    }
}
