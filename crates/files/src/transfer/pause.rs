//! The reason why a transfer has no session.

use std::time::Instant;

/// A transfer without a session, that opens another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pause {
    /// Sessions that had followed another by then. With the attempt, this numbers the pauses of a transfer.
    pub reconnects: u64,
    /// Why the session ended, or why the last attempt to open another one failed.
    pub reason: String,
    /// Number of the current or next attempt, from 1.
    pub attempt: u32,
    /// Delay until then; `None` while it runs.
    pub next_in: Option<fairwave_units::Duration>,
    /// When it will give up.
    pub gives_up_in: fairwave_units::Duration,
}

/// A pause with its times as times of day.
#[derive(Clone, Debug)]
pub(crate) struct Break {
    pub(crate) reconnects: u64,
    pub(crate) reason: String,
    pub(crate) attempt: u32,
    pub(crate) next: Option<Instant>,
    pub(crate) gives_up: Instant,
}

impl Break {
    /// Its place among the pauses of a transfer.
    pub(super) fn number(&self) -> (u64, u32) {
        (self.reconnects, self.attempt)
    }

    pub(crate) fn as_of_now(&self) -> Pause {
        let left = |at: Instant| {
            let left = at.saturating_duration_since(Instant::now());
            fairwave_units::Duration::from_nanos(u64::try_from(left.as_nanos()).unwrap_or(u64::MAX))
        };
        Pause {
            reconnects: self.reconnects,
            reason: self.reason.clone(),
            attempt: self.attempt,
            next_in: self.next.map(left),
            gives_up_in: left(self.gives_up),
        }
    }
}
