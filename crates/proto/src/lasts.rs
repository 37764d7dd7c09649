//! When sessions are over.

use fairwave_units::Duration;

/// How long a session lasts at the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lasts {
    /// Without a word from the peer: then it is closed for
    /// [`CloseReason::Silence`](crate::codec::CloseReason::Silence).
    pub silent: Duration,
    /// With the keys of one handshake: then it is closed for [`CloseReason::Keys`](crate::codec::CloseReason::Keys),
    /// by the end that sees it first.
    pub keys: Duration,
}

impl Default for Lasts {
    /// 30 s, and a day.
    fn default() -> Self {
        Self { silent: Duration::from_secs(30), keys: Duration::from_secs(24 * 3600) }
    }
}
