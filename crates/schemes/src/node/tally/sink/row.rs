//! A sink's state of one session.

use fairwave_units::{Duration, Time};

use super::ledger::GrantLedger;
use super::plain::PlainSource;
use super::use_check::{Came, Passed, UseCheck};
use crate::node::tally::claimant::Claimant;
use crate::node::tally::lease::{ask, refresh};
use crate::node::tally::message::{GrantTo, SessionTerms};
use crate::node::tally::options::{ASK_AGAIN, TallyOptions};
use crate::node::tally::stamp::Stamp;

/// The state that every session needs: 64 bytes. Fields that few sessions need are in `rare`.
#[derive(Clone, Debug)]
pub(super) struct SinkRow {
    claim: Claim,
    pub(super) offer_bps: f64,
    pub(super) ledger: GrantLedger,
    rare: Option<Box<Rare>>,
    /// Number of the last claim.
    claim_heard: u32,
    pub(super) heard: Stamp,
    pub(super) said: Stamp,
    /// Arrivals in this control interval. For a constant rate the sum is accurate to one part in 10^5 for some hundred
    /// thousand packets.
    came_bits: f32,
}

/// A source's claim, zero or more; its sign encodes whether its own demand is the limit.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Claim(f64);

/// State that few sessions need.
#[derive(Clone, Debug)]
pub(super) struct Rare {
    weight: f64,
    minimum_bps: f64,
    /// Owner of the session; zero if it is in no group.
    group: u32,
    /// Maximum rate that the local application takes.
    pub(super) ceiling_bps: f64,
    /// Set if nothing was heard of the session for two leases; its numbers are kept until then.
    pub(super) freed_until: Option<Time>,
    /// Set if it was promised a rate in the handshake, and has not sent a claim.
    pub(super) promised_until: Option<Time>,
    pub(super) use_check: Option<UseCheck>,
    /// Set if its source runs plain GTP.
    pub(super) plain: Option<Box<PlainSource>>,
}

impl Claim {
    fn new(bps: f64, is_application_limited: bool) -> Self {
        let bps = bps.max(0.0);
        Self(if is_application_limited { -bps } else { bps })
    }

    fn bps(self) -> f64 {
        self.0.abs()
    }

    fn is_application_limited(self) -> bool {
        self.0.is_sign_negative()
    }
}

impl Rare {
    fn new() -> Self {
        Self {
            weight: 1.0,
            minimum_bps: 0.0,
            group: 0,
            ceiling_bps: f64::INFINITY,
            freed_until: None,
            promised_until: None,
            use_check: None,
            plain: None,
        }
    }

    fn is_empty(&self) -> bool {
        (self.weight, self.minimum_bps, self.group, self.ceiling_bps) == (1.0, 0.0, 0, f64::INFINITY)
            && self.freed_until.is_none()
            && self.promised_until.is_none()
            && self.use_check.is_none()
            && self.plain.is_none()
    }
}

impl SinkRow {
    pub(super) fn new(terms: &SessionTerms, now: Time) -> Self {
        let mut row = Self {
            claim: Claim::new(0.0, false),
            offer_bps: f64::INFINITY,
            ledger: GrantLedger::new(),
            rare: None,
            claim_heard: 0,
            heard: Stamp::of(now),
            said: Stamp::of(now),
            came_bits: 0.0,
        };
        row.ledger.set_owes_answer(true);
        row.set_terms(terms);
        row
    }

    pub(super) fn new_plain(terms: &SessionTerms, now: Time, plain: PlainSource) -> Self {
        let mut row = Self::new(terms, now);
        row.ledger.set_owes_answer(false);
        row.rare_mut(|rare| rare.plain = Some(Box::new(plain)));
        row
    }

    pub(super) fn rare(&self) -> Option<&Rare> {
        self.rare.as_deref()
    }

    /// Changes rare state; frees it if it is back at the defaults.
    pub(super) fn rare_mut<T>(&mut self, change: impl FnOnce(&mut Rare) -> T) -> T {
        let mut rare = self.rare.take().unwrap_or_else(|| Box::new(Rare::new()));
        let result = change(&mut rare);
        self.rare = Some(rare).filter(|rare| !rare.is_empty());
        result
    }

    /// Returns whether the weight or the minimum changed.
    pub(super) fn set_terms(&mut self, terms: &SessionTerms) -> bool {
        self.ledger.set_rtt(terms.rtt);
        if let Some(plain) = self.rare.as_mut().and_then(|rare| rare.plain.as_mut()) {
            plain.rtt = terms.rtt;
        }
        let (weight, minimum_bps) = (terms.weight, terms.minimum.as_bps());
        let is_other = (weight, minimum_bps) != self.weight_and_minimum();
        if is_other {
            self.rare_mut(|rare| (rare.weight, rare.minimum_bps) = (weight, minimum_bps));
        }
        is_other
    }

    fn weight_and_minimum(&self) -> (f64, f64) {
        self.rare().map_or((1.0, 0.0), |rare| (rare.weight, rare.minimum_bps))
    }

    /// Whose it is; zero if it is in no group.
    pub(super) fn group(&self) -> u32 {
        self.rare().map_or(0, |rare| rare.group)
    }

    /// Whether that is another than before.
    pub(super) fn set_group(&mut self, group: u32) -> bool {
        let is_other = group != self.group();
        if is_other {
            self.rare_mut(|rare| rare.group = group);
        }
        is_other
    }

    pub(super) fn plain(&self) -> Option<&PlainSource> {
        self.rare().and_then(|rare| rare.plain.as_deref())
    }

    /// Ends a control interval of a session whose source runs plain GTP.
    pub(super) fn end_plain_interval(&mut self, now: Time) {
        if let Some(plain) = self.rare.as_mut().and_then(|rare| rare.plain.as_mut()) {
            plain.on_tick(now, &mut self.ledger);
        }
    }

    /// The message to a source that runs plain GTP; `None` for others.
    pub(super) fn plain_message(&mut self, now: Time, session: u64, grant_bps: f64) -> Option<GrantTo> {
        let plain = self.rare.as_mut().and_then(|rare| rare.plain.as_mut());
        plain.map(|plain| plain.tell(now, session, grant_bps, &mut self.ledger))
    }

    pub(super) fn freed_until(&self) -> Option<Time> {
        self.rare().and_then(|rare| rare.freed_until)
    }

    /// Whether it was promised a rate in the handshake, and has not been heard of yet.
    pub(super) fn is_promised(&self) -> bool {
        self.rare().is_some_and(|rare| rare.promised_until.is_some())
    }

    pub(super) fn ceiling_bps(&self) -> f64 {
        self.rare().map_or(f64::INFINITY, |rare| rare.ceiling_bps)
    }

    /// The arrival rate that replaces a claim that is not trusted.
    fn measured_bps(&self) -> Option<f64> {
        self.rare().and_then(|rare| rare.use_check.as_ref()).and_then(UseCheck::measured_bps)
    }

    pub(super) fn claim_heard(&self) -> u64 {
        u64::from(self.claim_heard)
    }

    /// Stores a claim; its number is at most [`MAX_NUMBER`](crate::node::tally::message::MAX_NUMBER).
    pub(super) fn store_claim(&mut self, number: u64, claim_bps: f64, is_application_limited: bool) {
        self.claim_heard = number as u32;
        self.claim = Claim::new(claim_bps, is_application_limited && claim_bps < f64::INFINITY);
    }

    /// The current state, for detecting whether a claim changed anything.
    pub(super) fn state(&self) -> (f64, bool, f64) {
        (self.claim.bps(), self.claim.is_application_limited(), self.ledger.reserved_bps())
    }

    pub(super) fn receive(&mut self, bits: f64) {
        self.came_bits += bits as f32;
        if let Some(plain) = self.rare.as_mut().and_then(|rare| rare.plain.as_mut()) {
            plain.on_received(bits);
        }
    }

    /// Arrivals since the last call.
    pub(super) fn take_came_bits(&mut self) -> f64 {
        f64::from(std::mem::take(&mut self.came_bits))
    }

    pub(super) fn claimant(&self) -> Claimant {
        let Some(rare) = self.rare() else {
            return Claimant { claim_bps: self.claim.bps(), weight: 1.0, minimum_bps: 0.0 };
        };
        let claim_bps = match &rare.plain {
            Some(plain) => plain.measured_bps(),
            None => self.measured_bps().unwrap_or(self.claim.bps()),
        };
        Claimant { claim_bps: claim_bps.min(rare.ceiling_bps), weight: rare.weight, minimum_bps: rare.minimum_bps }
    }

    pub(super) fn is_limited_by_application(&self) -> bool {
        self.plain().is_none() && (self.claim.is_application_limited() || self.measured_bps().is_some())
    }

    /// The rate at which it has to send if it uses its claim.
    pub(super) fn due_bps(&self) -> f64 {
        if self.is_promised() {
            // It may never arrive.
            return 0.0;
        }
        self.claim.bps().min(self.ledger.least_bps())
    }

    /// Frees grants that leases have ended. Returns whether it was freed long enough ago to be forgotten.
    pub(super) fn expire(&mut self, now: Time, options: &TallyOptions) -> bool {
        if let Some(rare) = self.rare() {
            if let Some(until) = rare.freed_until {
                return until <= now;
            }
            if rare.plain.is_some() || rare.promised_until.is_some() {
                return false;
            }
        }
        let two_leases = self.ledger.lease().twice(options);
        if self.heard.age(now) >= two_leases {
            self.ledger.free();
            self.rare_mut(|rare| rare.freed_until = Some(now.saturating_add(two_leases)));
        }
        self.ledger.expire(now, options);
        false
    }

    /// Ends a control interval: returns the arrivals in it beyond the reserved rate.
    pub(super) fn end_interval(&mut self, now: Time, passed: Passed, options: &TallyOptions) -> f64 {
        self.end_plain_interval(now);
        let came = Came::new(passed, self.take_came_bits());
        let (reserved_bps, recent_bps) = (self.ledger.reserved_bps(), self.ledger.recent_bps());
        let excess_bps = came.excess_bps(recent_bps, options, reserved_bps);
        self.check_use(now, came, options);
        self.ledger.end_interval();
        excess_bps
    }

    /// Checks at the end of a control interval whether it uses its claim.
    fn check_use(&mut self, now: Time, came: Came, options: &TallyOptions) {
        let due_bps = self.due_bps();
        let is_watched = self.rare().is_some_and(|rare| rare.use_check.is_some());
        if is_watched || (options.verify.is_some() && came.is_below(due_bps, options)) {
            self.rare_mut(|rare| {
                let mut check = rare.use_check.take().unwrap_or_else(|| UseCheck::new(came));
                rare.use_check = check.on_tick(now, came, due_bps, options).then_some(check);
            });
        }
    }

    /// A claim or a grant changed the due rate.
    pub(super) fn note_due(&mut self) {
        let due_bps = self.due_bps();
        if let Some(check) = self.rare.as_mut().and_then(|rare| rare.use_check.as_mut()) {
            check.on_due(due_bps);
        }
    }

    /// The longest lease that may be in force.
    pub(super) fn lease(&self, options: &TallyOptions) -> Duration {
        self.ledger.lease().span(options)
    }

    /// Whether it requests a message from the other end now. A request is also a message: the next one follows a period
    /// after the last message.
    pub(super) fn asks(&self, now: Time, options: &TallyOptions) -> bool {
        self.heard.age(now) >= ask(self.lease(options)) && self.said.age(now) >= ASK_AGAIN
    }

    pub(super) fn is_unanswered(&self, now: Time, options: &TallyOptions) -> bool {
        self.ledger.retry(options).is_some_and(|retry| self.said.age(now) >= retry)
    }

    /// Time before which a tick does nothing for it.
    pub(super) fn next_tick(&self, now: Time, options: &TallyOptions) -> Time {
        if let Some(until) = self.freed_until() {
            return until;
        }
        if let Some(until) = self.rare().and_then(|rare| rare.promised_until) {
            return until;
        }
        if self.plain().is_some() {
            // Arrivals are measured in every interval.
            return now;
        }
        let (heard, said) = (self.heard.near(now), self.said.near(now));
        let lease = self.lease(options);
        let silent_from = heard.saturating_add(lease.half());
        let mut next = said.saturating_add(refresh(lease));
        if let Some(retry) = self.ledger.retry(options) {
            next = next.min(said.saturating_add(retry));
        }
        next = next.min(heard.saturating_add(ask(lease)).max(said.saturating_add(ASK_AGAIN)));
        if now > silent_from || next > silent_from {
            next = heard.saturating_add(self.ledger.lease().twice(options));
        }
        let check = self.rare().and_then(|rare| rare.use_check.as_ref());
        check.and_then(|check| check.next_tick(now, options)).map_or(next, |check| next.min(check))
    }
}

#[cfg(test)]
mod tests {
    use fairwave_units::Rate;

    use super::*;

    const TERMS: SessionTerms = SessionTerms { weight: 1.0, minimum: Rate::ZERO, rtt: Duration::from_millis(20) };

    #[test]
    fn row__of_a_usual_session_is_64_bytes_without_heap() {
        assert_eq!(std::mem::size_of::<SinkRow>(), 64);
        let mut row = SinkRow::new(&TERMS, Time::ZERO);
        assert!(row.rare().is_none());
        row.rare_mut(|rare| rare.ceiling_bps = 5.0);
        assert_eq!(row.claimant().claim_bps.min(row.ceiling_bps()), 0.0);
        row.rare_mut(|rare| rare.ceiling_bps = f64::INFINITY);
        assert!(row.rare().is_none());
    }

    #[test]
    fn store_claim__stores_rate_and_limit() {
        let mut row = SinkRow::new(&TERMS, Time::ZERO);
        for (bps, limited, state) in
            [(5.0, true, true), (0.0, true, true), (0.0, false, false), (f64::INFINITY, true, false)]
        {
            row.store_claim(1, bps, limited);
            assert_eq!(row.state(), (bps, state, 0.0));
        }
    }
}
