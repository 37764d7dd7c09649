//! When sessions, and attempts to open them, are over.

use fairwave_units::Duration;

/// How long a session lasts at most, and an attempt to open one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lasts {
    /// Without a word from the peer: then it is closed for
    /// [`CloseReason::Silence`](crate::wire::codec::CloseReason::Silence).
    pub silent: Duration,
    /// With the keys of one handshake: then it is closed for [`CloseReason::Keys`](crate::wire::codec::CloseReason::Keys),
    /// by the end that sees it first.
    pub keys: Duration,
    /// Without an answer to the handshake: then opening the session has failed.
    pub opening: Duration,
}

impl Default for Lasts {
    /// 30 s, a day, and 5 s.
    fn default() -> Self {
        Self { silent: Duration::from_secs(30), keys: Duration::from_secs(24 * 3600), opening: Duration::from_secs(5) }
    }
}
