//! What the two ends of a session tell each other. Each message carries the whole state: the last one wins, and none
//! has to arrive.

use fairwave_units::{Duration, Rate, Time};

/// No message has a larger number, and one that has is not heard. An honest node says some ten things a second of a
/// session at the most, and gets there after years.
pub(super) const LARGEST_NUMBER: u64 = (u32::MAX / 2) as u64;

/// What a sink, or a router on the way, tells a source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GrantMessage {
    /// Number of the grant, from 1. Zero: the sender lives, and the rates mean nothing.
    pub number: u64,
    /// The rate up to which the session may send.
    pub rate: Rate,
    /// What the sender could give the session if it took all it can; `None` for no limit.
    pub offer: Option<Rate>,
    /// Number of the last claim heard.
    pub claim_heard: u64,
    /// How long the grant is good without another word.
    pub lease: Duration,
    /// Whether an answer is wanted.
    pub wants_answer: bool,
}

/// What a source tells a sink, or a router on the way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClaimMessage {
    /// Number of the message, from 1.
    pub number: u64,
    /// The most that the session can use as far as everything but the receiver goes; `None` for no limit.
    pub claim: Option<Rate>,
    /// Whether the session's own demand is what limits it.
    pub is_application_limited: bool,
    /// Whether the session has ended. All its data were sent before.
    pub is_bye: bool,
    /// Whether an answer is wanted.
    pub wants_answer: bool,
    /// Number of the grant in force: it confirms that one.
    pub in_force: u64,
    /// The rate in force; zero if the lease ran out.
    pub rate_in_force: Rate,
}

/// What a sink said with its answer to the hello of a session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Promise {
    /// The rate of its grant number 1.
    pub rate: Rate,
    /// When the hello that it answers went for the first time: the lease runs from then on.
    pub since: Time,
}

/// What both ends know of a session from its opening.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SessionTerms {
    /// Share relative to the other sessions, above zero.
    pub weight: f64,
    /// Guaranteed rate.
    pub minimum: Rate,
    /// The round-trip time, for repeating what is not answered.
    pub rtt: Duration,
}

/// A claim and where it goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClaimTo {
    /// The session.
    pub session: u64,
    /// Which of the session's remote resources, in the order of its way.
    pub remote: usize,
    /// What to tell it.
    pub message: ClaimMessage,
}

/// A grant and where it goes: to the source of the session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GrantTo {
    /// The session.
    pub session: u64,
    /// What to tell its source.
    pub message: GrantMessage,
}

/// A limit as a number: infinity for none.
pub(super) fn as_bps(limit: Option<Rate>) -> f64 {
    limit.map_or(f64::INFINITY, Rate::as_bps)
}

/// A number as a limit.
pub(super) fn as_limit(bps: f64) -> Option<Rate> {
    (bps < f64::INFINITY).then(|| Rate::nearest_bps(bps))
}
