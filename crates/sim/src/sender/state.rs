//! State of a sender, and its next step.

use fairwave_units::Time;

/// State of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SenderState {
    /// No loss is being repaired.
    Open,
    /// Loss is being repaired until `point` is acknowledged; the window was cut once for it.
    Recovery { point: u64, partial_acks: u32, is_rescued: bool },
    /// The timer expired at `at`, when `first` was the first unacknowledged number; packets lost below `point` are
    /// being sent again in slow start. `is_judged`: an acknowledgement has shown whether the time-out was spurious.
    TimedOut { first: u64, point: u64, at: Time, is_judged: bool },
}

/// Result of a timer event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimerOutcome {
    /// The timer had been moved or stopped.
    Moved,
    /// It expired, and the window was cut.
    Cut,
    /// It expired again for the same packet; nothing was left to cut.
    Again,
    /// The reordering timer of RFC 8985 expired and found losses: the window was cut.
    Lost,
    /// The reordering timer or that of a probe expired, without a cut.
    Early,
}

/// The next packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// A packet never sent before.
    New(u64),
    /// A packet sent again.
    Again(u64),
}
