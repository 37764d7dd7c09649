//! A source's state of one session.

use fairwave_units::{Duration, Rate, Time};

use super::remote::{Remotes, Speaks};
use crate::node::tally::claimant::Capped;
use crate::node::tally::claimant::Claimant;
use crate::node::tally::gauge::{DemandGauge, Sent};
use crate::node::tally::lease::{ask, refresh};
use crate::node::tally::message::{ClaimTo, MAX_NUMBER, SessionTerms};
use crate::node::tally::options::{ASK_AGAIN, TallyOptions};
use crate::node::tally::stamp::Stamp;

/// The state that every session needs. Fields that few sessions need are in `rare`.
#[derive(Clone, Debug)]
pub(super) struct SourceRow {
    gauge: DemandGauge,
    /// The source's own offer to the session.
    pub(super) offer_bps: f64,
    pub(super) cap_bps: f64,
    pub(super) remotes: Remotes,
    /// Sent bits in this control interval, and the minimum allowed rate at any moment of it.
    bits: f64,
    least_allowed_bps: f64,
    rare: Option<Box<Rare>>,
    /// The round-trip time in ms, rounded up, at most 65 s, from which the retransmission period follows.
    rtt_ms: u16,
    waited: bool,
}

/// State that few sessions need, or all for a short time.
#[derive(Clone, Debug, PartialEq)]
struct Rare {
    weight: f64,
    minimum_bps: f64,
    /// Whose it is; zero if it is in no group.
    group: u32,
    declared_bps: Option<f64>,
    /// Remaining byes; `None` while it is open.
    byes_left: Option<u8>,
    /// Time of opening, until the first control interval is over.
    opened: Option<Time>,
}

impl Rare {
    fn new() -> Self {
        Self { weight: 1.0, minimum_bps: 0.0, group: 0, declared_bps: None, byes_left: None, opened: None }
    }
}

impl SourceRow {
    pub(super) fn new(
        now: Time,
        terms: &SessionTerms,
        declared: Option<Rate>,
        remotes: usize,
        lease: Duration,
    ) -> Self {
        let rare = Rare { opened: Some(now), declared_bps: declared.map(Rate::as_bps), ..Rare::new() };
        let mut row = Self {
            gauge: DemandGauge::new(),
            offer_bps: f64::INFINITY,
            cap_bps: 0.0,
            bits: 0.0,
            least_allowed_bps: 0.0,
            remotes: Remotes::new(now, remotes, lease),
            rare: Some(Box::new(rare)),
            rtt_ms: 0,
            waited: false,
        };
        row.set_terms(terms);
        row
    }

    fn rare(&self) -> Option<&Rare> {
        self.rare.as_deref()
    }

    /// Changes rare state; frees it if it is back at the defaults.
    fn rare_mut(&mut self, change: impl FnOnce(&mut Rare)) {
        let mut rare = self.rare.take().unwrap_or_else(|| Box::new(Rare::new()));
        change(&mut rare);
        self.rare = Some(rare).filter(|rare| **rare != Rare::new());
    }

    /// Returns whether the weight or the minimum changed.
    pub(super) fn set_terms(&mut self, terms: &SessionTerms) -> bool {
        self.rtt_ms = u16::try_from(terms.rtt.as_nanos().div_ceil(1_000_000)).unwrap_or(u16::MAX);
        let (weight, minimum_bps) = (terms.weight, terms.minimum.as_bps());
        let is_other = (weight, minimum_bps) != self.weight_and_minimum();
        if is_other {
            self.rare_mut(|rare| (rare.weight, rare.minimum_bps) = (weight, minimum_bps));
        }
        is_other
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

    pub(super) fn set_declared(&mut self, declared: Option<Rate>) {
        self.rare_mut(|rare| rare.declared_bps = declared.map(Rate::as_bps));
    }

    pub(super) fn on_sent(&mut self, bits: f64, waited: bool) {
        self.bits += bits;
        self.waited |= waited;
    }

    /// Whether it has not been closed.
    pub(super) fn is_open(&self) -> bool {
        self.rare().is_none_or(|rare| rare.byes_left.is_none())
    }

    pub(super) fn has_sent_all_byes(&self) -> bool {
        self.rare().is_some_and(|rare| rare.byes_left == Some(0))
    }

    pub(super) fn is_bye_due(&self, now: Time, options: &TallyOptions) -> bool {
        self.remotes.iter().any(|half| half.said.age(now) >= self.retry(options))
    }

    /// Closes it: it sends nothing any more.
    pub(super) fn start_byes(&mut self) {
        self.rare_mut(|rare| rare.byes_left = Some(8));
        self.cap_bps = 0.0;
        for half in self.remotes.iter_mut() {
            half.news = half.number + 1;
        }
    }

    fn retry(&self, options: &TallyOptions) -> Duration {
        options.retry(Duration::from_millis(u64::from(self.rtt_ms)))
    }

    fn weight_and_minimum(&self) -> (f64, f64) {
        self.rare().map_or((1.0, 0.0), |rare| (rare.weight, rare.minimum_bps))
    }

    fn declared_bps(&self) -> Option<f64> {
        self.rare().and_then(|rare| rare.declared_bps)
    }

    fn demand_bps(&self) -> f64 {
        self.declared_bps().unwrap_or_else(|| self.gauge.demand_bps())
    }

    pub(super) fn least_offer_bps(&self) -> f64 {
        self.remotes.iter().fold(f64::INFINITY, |least, half| least.min(half.offer_bps))
    }

    pub(super) fn granted_bps(&self) -> f64 {
        self.remotes.iter().fold(f64::INFINITY, |least, half| least.min(half.grant_bps))
    }

    pub(super) fn allowed_bps(&self) -> f64 {
        self.cap_bps.min(self.granted_bps())
    }

    pub(super) fn note_allowed(&mut self) {
        self.least_allowed_bps = self.least_allowed_bps.min(self.allowed_bps());
    }

    /// Whether it is limited by its own demand. A session without a demand and without another limit is not.
    pub(super) fn is_limited_by_application(&self) -> bool {
        let demand = self.demand_bps();
        self.declared_bps().is_none() && demand < f64::INFINITY && demand <= self.least_offer_bps()
    }

    /// Its claim to its source's capacity; zero while a lease has expired, since it may send nothing then, and others
    /// may.
    pub(super) fn claimant(&self) -> Claimant {
        let has_lapsed = self.remotes.iter().any(|half| half.has_lapsed);
        let claim_bps = if has_lapsed { 0.0 } else { self.demand_bps().min(self.least_offer_bps()) };
        let (weight, minimum_bps) = self.weight_and_minimum();
        Claimant { claim_bps, weight, minimum_bps }
    }

    pub(super) fn capped(&self) -> Capped {
        let granted = self.granted_bps();
        let is_limited = self.is_limited_by_application();
        let is_known = is_limited || self.declared_bps().is_some();
        let limit_bps = if is_known { granted.min(self.demand_bps()) } else { granted };
        let (weight, minimum_bps) = self.weight_and_minimum();
        Capped { limit_bps, weight, minimum_bps, grows: !is_limited }
    }

    /// Evaluates the interval's measurement and expired leases; returns whether there is news.
    pub(super) fn end_interval(&mut self, now: Time, interval_from: Time, options: &TallyOptions) -> bool {
        let mut has_news = false;
        for half in self.remotes.iter_mut().filter(|half| !half.has_lapsed && half.in_force > 0) {
            if half.heard.age(now) >= half.lease() {
                half.has_lapsed = true;
                half.grant_bps = 0.0;
                has_news = true;
            }
        }
        let opened = self.rare().and_then(|rare| rare.opened);
        if opened.is_some() {
            self.rare_mut(|rare| rare.opened = None);
        }
        let elapsed = now.since(opened.unwrap_or(interval_from));
        let (bits, waited, least_allowed_bps) = (self.bits, self.waited, self.least_allowed_bps);
        let before = self.gauge.demand_bps();
        self.gauge.on_tick(now, &Sent { elapsed, bits, waited, least_allowed_bps }, options);
        (self.bits, self.waited, self.least_allowed_bps) = (0.0, false, f64::INFINITY);
        has_news | (self.gauge.demand_bps() != before)
    }

    /// Its maximum use as far as everything except that remote resource allows.
    fn claim_bps(&self, remote: usize, options: &TallyOptions) -> f64 {
        let others = self.remotes.iter().enumerate().filter(|(other, _)| *other != remote);
        let least = others.fold(self.demand_bps().min(self.offer_bps), |least, (_, half)| least.min(half.offer_bps));
        options.up(least)
    }

    /// Sends claims immediately to all remote resources whose claim changed.
    pub(super) fn send_changed_claims(
        &mut self,
        now: Time,
        session: u64,
        options: &TallyOptions,
        out: &mut Vec<ClaimTo>,
    ) {
        for remote in 0..self.remotes.len() {
            let half = &self.remotes[remote];
            if half.speaks == Speaks::PlainGtp {
                continue;
            }
            if half.number == 0 || options.is_news(self.claim_bps(remote, options), half.claim_bps) {
                self.say(now, session, remote, true, options, out);
            }
        }
    }

    /// Confirms a grant immediately. If there are further remote resources it changes their claims.
    pub(super) fn confirm(
        &mut self,
        now: Time,
        session: u64,
        remote: usize,
        options: &TallyOptions,
        out: &mut Vec<ClaimTo>,
    ) {
        let is_news = options.is_news(self.claim_bps(remote, options), self.remotes[remote].claim_bps);
        self.say(now, session, remote, is_news, options, out);
        if self.remotes.len() > 1 {
            self.send_changed_claims(now, session, options, out);
        }
    }

    /// Sends changes, retransmissions, and refreshes or requests after a silence.
    pub(super) fn tell(&mut self, now: Time, session: u64, options: &TallyOptions, out: &mut Vec<ClaimTo>) {
        let retry = self.retry(options);
        for remote in 0..self.remotes.len() {
            let is_news = options.is_news(self.claim_bps(remote, options), self.remotes[remote].claim_bps);
            let half = &mut self.remotes[remote];
            if half.speaks == Speaks::PlainGtp {
                continue;
            }
            let retries = half.answered < half.news && half.said.age(now) >= retry;
            // A request is also a message: the next one follows a period after the last message.
            let asks = half.heard.age(now) >= ask(half.lease()) && half.said.age(now) >= ASK_AGAIN;
            if is_news || retries || asks || half.said.age(now) >= refresh(half.lease()) {
                self.say(now, session, remote, is_news, options, out);
                if asks && let Some(last) = out.last_mut() {
                    last.message.wants_answer = true;
                }
            }
        }
    }

    pub(super) fn say(
        &mut self,
        now: Time,
        session: u64,
        remote: usize,
        is_news: bool,
        options: &TallyOptions,
        out: &mut Vec<ClaimTo>,
    ) {
        let (claim_bps, is_application_limited) = (self.claim_bps(remote, options), self.is_limited_by_application());
        let half = &mut self.remotes[remote];
        (half.claim_bps, half.is_application_limited) = (claim_bps, is_application_limited);
        half.number = (half.number + 1).min(MAX_NUMBER as u32);
        if is_news {
            half.news = half.number;
        }
        half.said = Stamp::of(now);
        out.push(ClaimTo { session, remote, message: half.message(false) });
    }

    pub(super) fn send_bye(&mut self, now: Time, session: u64, out: &mut Vec<ClaimTo>) {
        self.rare_mut(|rare| rare.byes_left = rare.byes_left.map(|left| left.saturating_sub(1)));
        for (remote, half) in self.remotes.iter_mut().enumerate().filter(|(_, half)| !half.is_over) {
            half.number = (half.number + 1).min(MAX_NUMBER as u32);
            half.said = Stamp::of(now);
            out.push(ClaimTo { session, remote, message: half.message(true) });
        }
    }
}
