//! A source's state of one remote resource of a session.

use std::ops::{Deref, DerefMut};

use fairwave_units::{Duration, Rate, Time};

use crate::node::tally::message::{ClaimMessage, Promise, as_limit};
use crate::node::tally::stamp::Stamp;

/// The remote resources of a session, in the order of its path: usually only a sink, which needs no allocation.
#[derive(Clone, Debug)]
pub(super) enum Remotes {
    One(RemoteHalf),
    Several(Box<[RemoteHalf]>),
}

/// State of one remote resource. Numbers are at most [`MAX_NUMBER`](crate::node::tally::message::MAX_NUMBER).
#[derive(Clone, Debug)]
pub(super) struct RemoteHalf {
    pub(super) offer_bps: f64,
    pub(super) grant_bps: f64,
    pub(super) claim_bps: f64,
    /// Number of the grant in force; zero without one.
    pub(super) in_force: u32,
    /// Number of the last message.
    pub(super) number: u32,
    /// Number of the last message with news, and the largest number that was answered.
    pub(super) news: u32,
    pub(super) answered: u32,
    pub(super) said: Stamp,
    pub(super) heard: Stamp,
    /// Lease in ms, rounded down: a source may stop early.
    lease_ms: u32,
    /// The lease expired.
    pub(super) has_lapsed: bool,
    pub(super) is_application_limited: bool,
    pub(super) is_over: bool,
    pub(super) speaks: Speaks,
}

/// Protocol of a remote resource's node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speaks {
    Tally,
    /// Plain GTP: it sends only its expected rate, and receives no messages.
    PlainGtp,
}

impl Remotes {
    pub(super) fn new(now: Time, count: usize, lease: Duration) -> Self {
        match count {
            1 => Self::One(RemoteHalf::new(now, lease)),
            count => Self::Several((0..count).map(|_| RemoteHalf::new(now, lease)).collect()),
        }
    }
}

impl Deref for Remotes {
    type Target = [RemoteHalf];

    fn deref(&self) -> &[RemoteHalf] {
        match self {
            Self::One(half) => std::slice::from_ref(half),
            Self::Several(halves) => halves,
        }
    }
}

impl DerefMut for Remotes {
    fn deref_mut(&mut self) -> &mut [RemoteHalf] {
        match self {
            Self::One(half) => std::slice::from_mut(half),
            Self::Several(halves) => halves,
        }
    }
}

impl RemoteHalf {
    fn new(now: Time, lease: Duration) -> Self {
        let mut half = Self {
            offer_bps: f64::INFINITY,
            grant_bps: 0.0,
            claim_bps: 0.0,
            in_force: 0,
            number: 0,
            news: 0,
            answered: 0,
            said: Stamp::of(now),
            heard: Stamp::of(now),
            lease_ms: 0,
            has_lapsed: false,
            is_application_limited: false,
            is_over: false,
            speaks: Speaks::Tally,
        };
        half.set_lease(lease);
        half
    }

    /// Puts the sink's promise from the handshake in force, as its grant number 1.
    pub(super) fn take_promise(&mut self, promise: Promise) {
        (self.in_force, self.grant_bps, self.heard) = (1, promise.rate.as_bps(), Stamp::of(promise.since));
    }

    pub(super) fn set_lease(&mut self, lease: Duration) {
        self.lease_ms = u32::try_from(lease.as_nanos() / 1_000_000).unwrap_or(u32::MAX);
    }

    pub(super) fn lease(&self) -> Duration {
        Duration::from_millis(u64::from(self.lease_ms))
    }

    pub(super) fn message(&self, is_bye: bool) -> ClaimMessage {
        ClaimMessage {
            number: u64::from(self.number),
            claim: as_limit(self.claim_bps),
            is_application_limited: self.is_application_limited,
            is_bye,
            wants_answer: self.answered < self.news,
            in_force: u64::from(self.in_force),
            rate_in_force: Rate::nearest_bps(self.grant_bps),
        }
    }
}
