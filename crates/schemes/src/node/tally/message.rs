//! Messages between the two ends of a session. Each message carries the whole state: the last one replaces the earlier
//! ones, and any may be lost.

use fairwave_units::{Duration, Rate, Time};

/// Maximum message number; messages with larger numbers are ignored. An honest node sends at most about ten messages a
/// second per session, and reaches it after years.
pub(super) const MAX_NUMBER: u64 = (u32::MAX / 2) as u64;

/// A message from a sink, or a router on the path, to a source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GrantMessage {
    /// Number of the grant, from 1. Zero is a keep-alive whose rates have no meaning.
    pub number: u64,
    /// The rate up to which the session may send.
    pub rate: Rate,
    /// The rate that the sender could give the session if it took as much as possible; `None` if unlimited.
    pub offer: Option<Rate>,
    /// Number of the last claim received.
    pub claim_heard: u64,
    /// Lifetime of the grant without another message.
    pub lease: Duration,
    /// Whether the sender requests an answer.
    pub wants_answer: bool,
}

/// A message from a source to a sink, or a router on the path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClaimMessage {
    /// Number of the message, from 1.
    pub number: u64,
    /// The session's maximum use as far as everything except the receiver allows; `None` if unlimited.
    pub claim: Option<Rate>,
    /// Whether the session is limited by its own demand.
    pub is_application_limited: bool,
    /// Whether the session has ended. All its data were sent before.
    pub is_bye: bool,
    /// Whether the sender requests an answer.
    pub wants_answer: bool,
    /// Number of the grant in force, which this message confirms.
    pub in_force: u64,
    /// The rate in force; zero if the lease expired.
    pub rate_in_force: Rate,
}

/// A sink's grant in its answer to the hello of a session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Promise {
    /// The rate of its grant number 1.
    pub rate: Rate,
    /// Time at which the hello was first sent: the start of the lease.
    pub since: Time,
}

/// Terms of a session that both ends know from its opening.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SessionTerms {
    /// Weight relative to the other sessions, above zero.
    pub weight: f64,
    /// Guaranteed rate.
    pub minimum: Rate,
    /// The round-trip time, from which retransmission periods follow.
    pub rtt: Duration,
}

/// A claim and its destination.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClaimTo {
    /// The session.
    pub session: u64,
    /// Index of the session's remote resource, in the order of its path.
    pub remote: usize,
    /// The message.
    pub message: ClaimMessage,
}

/// A grant and its destination: the source of the session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GrantTo {
    /// The session.
    pub session: u64,
    /// The message for its source.
    pub message: GrantMessage,
}

/// A limit as a number: infinity if unlimited.
pub(super) fn as_bps(limit: Option<Rate>) -> f64 {
    limit.map_or(f64::INFINITY, Rate::as_bps)
}

/// A number as a limit.
pub(super) fn as_limit(bps: f64) -> Option<Rate> {
    (bps < f64::INFINITY).then(|| Rate::nearest_bps(bps))
}
