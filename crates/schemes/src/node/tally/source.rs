//! The half of a source.

mod driver;

use std::collections::BTreeMap;

use fairwave_units::{Duration, Rate, Time};

use super::caps::{Capped, caps};
use super::fill::{Claimant, Fill};
use super::gauge::{DemandGauge, Sent};
use super::headroom::head_bps;
use super::message::{ClaimMessage, ClaimTo, GrantMessage, SessionTerms, as_bps, as_limit};
use super::options::{ASK_AGAIN, TallyOptions};

/// One sending capacity, the claims of its sessions and the rates that they may send at.
///
/// The driver brings grants ([`on_grant`](Self::on_grant)) and what was sent ([`sent`](Self::sent)), and calls
/// [`tick`](Self::tick) once per control interval; it carries the messages that come out to the remote resources, and
/// keeps each session to its [`rate`](Self::rate), which changes with a grant, with a tick, and when a session ends.
#[derive(Clone, Debug)]
pub struct SourceNode {
    capacity_bps: f64,
    options: TallyOptions,
    sessions: BTreeMap<u64, SourceRow>,
    has_news: bool,
}

#[derive(Clone, Debug)]
struct SourceRow {
    terms: SessionTerms,
    declared_bps: Option<f64>,
    gauge: DemandGauge,
    /// What the source could give the session.
    offer_bps: f64,
    cap_bps: f64,
    remotes: Vec<RemoteHalf>,
    /// When the interval began that is measured now, and what was sent in it.
    since: Time,
    bits: f64,
    waited: bool,
    least_allowed_bps: f64,
    /// How often bye may still be said; `None` while it is open.
    byes_left: Option<u8>,
}

/// What a source knows of one remote resource of a session.
#[derive(Clone, Debug)]
struct RemoteHalf {
    offer_bps: f64,
    grant_bps: f64,
    /// Number of the grant in force; zero for none.
    in_force: u64,
    lease: Duration,
    /// The lease ran out.
    has_lapsed: bool,
    claim_bps: f64,
    is_application_limited: bool,
    /// Number of the last message.
    number: u64,
    /// Number of the message with the last news, and the largest number that was answered.
    news: u64,
    answered: u64,
    said: Time,
    heard: Time,
    asked: Time,
    is_over: bool,
    speaks: Speaks,
}

/// What the node of a remote resource speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Speaks {
    Tally,
    /// Its expected rate is all that it says, and it is told nothing.
    PlainGtp,
}

impl SourceNode {
    /// A node without sessions.
    pub fn new(capacity: Rate, options: TallyOptions) -> Self {
        Self { capacity_bps: capacity.as_bps(), options, sessions: BTreeMap::new(), has_news: false }
    }

    /// Another capacity, from the next tick on.
    pub fn set_capacity(&mut self, capacity: Rate) {
        self.capacity_bps = capacity.as_bps();
        self.has_news = true;
    }

    /// A session opens across so many remote resources; it claims at once, and sends from the next tick after its
    /// first grants on. `declared` is its demand, if it says so. An identifier is never used again.
    pub fn open(
        &mut self,
        now: Time,
        session: u64,
        terms: SessionTerms,
        declared: Option<Rate>,
        remotes: usize,
        out: &mut Vec<ClaimTo>,
    ) {
        let lease = self.options.lease;
        let row = SourceRow {
            terms,
            declared_bps: declared.map(Rate::as_bps),
            gauge: DemandGauge::new(),
            offer_bps: f64::INFINITY,
            cap_bps: 0.0,
            remotes: (0..remotes).map(|_| RemoteHalf::new(now, lease)).collect(),
            since: now,
            bits: 0.0,
            waited: false,
            least_allowed_bps: 0.0,
            byes_left: None,
        };
        self.sessions.insert(session, row);
        self.has_news = true;
        let rows: Vec<Claimant> = self.open_rows().map(|(_, row)| row.claimant()).collect();
        let newcomer = self.sessions.get_mut(&session).expect("inserted above");
        newcomer.offer_bps = Fill::new(self.capacity_bps, &rows).offer_bps(&newcomer.claimant());
        newcomer.claim_anew(now, session, &self.options, out);
    }

    /// A session ends: it sends nothing from now on, and says so.
    pub fn close(&mut self, now: Time, session: u64, out: &mut Vec<ClaimTo>) {
        let Some(row) = self.sessions.get_mut(&session) else { return };
        if row.byes_left.is_none() {
            row.byes_left = Some(8);
            row.cap_bps = 0.0;
            self.has_news = true;
            for half in &mut row.remotes {
                half.news = half.number + 1;
            }
            row.say_bye(now, session, out);
        }
    }

    /// Another declared demand; `None` from now on for one that nobody knows.
    pub fn declare(&mut self, session: u64, declared: Option<Rate>) {
        if let Some(row) = self.sessions.get_mut(&session) {
            row.declared_bps = declared.map(Rate::as_bps);
            self.has_news = true;
        }
    }

    /// So many bits of a session were sent, and whether any of its data waited meanwhile.
    pub fn sent(&mut self, session: u64, bits: f64, waited: bool) {
        if let Some(row) = self.sessions.get_mut(&session) {
            row.bits += bits;
            row.waited |= waited;
        }
    }

    /// The rate up to which a session may send now.
    pub fn rate(&self, session: u64) -> Rate {
        self.sessions.get(&session).map_or(Rate::ZERO, |row| Rate::nearest_bps(row.allowed_bps()))
    }

    /// What the source itself lets a session send: its part of the sending capacity.
    pub fn cap(&self, session: u64) -> Rate {
        self.sessions.get(&session).map_or(Rate::ZERO, |row| Rate::nearest_bps(row.cap_bps))
    }

    /// The least of a session's grants in force; `None` where it crosses no remote resource.
    pub fn granted(&self, session: u64) -> Option<Rate> {
        self.sessions.get(&session).and_then(|row| as_limit(row.granted_bps()))
    }

    /// What a session could have if it took all it can: the least offer of its own source and the remote resources;
    /// `None` for no limit.
    pub fn offer(&self, session: u64) -> Option<Rate> {
        self.sessions.get(&session).and_then(|row| as_limit(row.offer_bps.min(row.least_offer_bps())))
    }

    /// Whether a tick would find more than the time that passed.
    pub fn has_news(&self) -> bool {
        self.has_news
    }

    /// A grant arrives. What it says is in force at once, if its number is higher than what is in force.
    pub fn on_grant(&mut self, now: Time, session: u64, remote: usize, grant: &GrantMessage, out: &mut Vec<ClaimTo>) {
        let options = self.options;
        let Some(row) = self.sessions.get_mut(&session) else { return };
        let Some(half) = row.remotes.get_mut(remote) else { return };
        half.heard = now;
        half.answered = half.answered.max(grant.claim_heard);
        if row.byes_left.is_some() {
            half.is_over |= half.answered >= half.news;
            if row.remotes.iter().all(|half| half.is_over) {
                self.sessions.remove(&session);
            }
            return;
        }
        half.lease = grant.lease;
        let is_new = grant.number > half.in_force || (half.has_lapsed && grant.number == half.in_force);
        if grant.number > 0 && is_new {
            half.in_force = grant.number;
            half.has_lapsed = false;
            half.offer_bps = as_bps(grant.offer);
            half.grant_bps = grant.rate.as_bps();
            row.note_allowed();
            self.has_news = true;
            row.confirm(now, session, remote, &options, out);
        } else if grant.wants_answer {
            row.say(now, session, remote, false, &options, out);
        }
    }

    pub(super) fn set_plain(&mut self, session: u64) {
        for half in self.sessions.get_mut(&session).iter_mut().flat_map(|row| &mut row.remotes) {
            half.speaks = Speaks::PlainGtp;
        }
    }

    pub(super) fn take_feedback(&mut self, now: Time, session: u64, bps: f64) {
        let Some(row) = self.sessions.get_mut(&session) else { return };
        for half in row.remotes.iter_mut().filter(|half| half.speaks == Speaks::PlainGtp) {
            (half.heard, half.offer_bps, half.grant_bps) = (now, bps, bps);
            self.has_news = true;
        }
        row.note_allowed();
    }

    pub(super) fn remove_plain(&mut self, session: u64) {
        if self.sessions.get(&session).is_some_and(|row| row.remotes.iter().all(|half| half.speaks == Speaks::PlainGtp))
        {
            self.sessions.remove(&session);
            self.has_news = true;
        }
    }

    /// One control interval is over: demands, caps and claims anew, and what has to be said again.
    pub fn tick(&mut self, now: Time, out: &mut Vec<ClaimTo>) {
        let options = self.options;
        for row in self.sessions.values_mut().filter(|row| row.byes_left.is_none()) {
            self.has_news |= row.end_interval(now, &options);
        }
        self.share_and_tell(now, out);
    }

    /// Caps and claims anew, by demands as they were, and what has to be said again.
    fn share_and_tell(&mut self, now: Time, out: &mut Vec<ClaimTo>) {
        let options = self.options;
        if self.has_news {
            self.has_news = false;
            self.share_out();
        }
        for (session, row) in &mut self.sessions {
            if row.byes_left.is_some() {
                if row.remotes.iter().any(|half| now.since(half.said) >= options.retry(row.terms.rtt)) {
                    row.say_bye(now, *session, out);
                }
            } else {
                row.note_allowed();
                row.tell(now, *session, &options, out);
            }
        }
        self.sessions.retain(|_, row| row.byes_left != Some(0));
    }

    /// Offers and caps from claims and grants.
    fn share_out(&mut self) {
        let (capacity_bps, headroom) = (self.capacity_bps, self.options.headroom);
        let claims: Vec<Claimant> = self.open_rows().map(|(_, row)| row.claimant()).collect();
        let limits: Vec<Capped> = self.open_rows().map(|(_, row)| row.capped()).collect();
        let fill = Fill::new(capacity_bps, &claims);
        let weights: f64 = claims.iter().map(|row| row.weight).sum();
        let caps = caps(capacity_bps, &limits);
        let rows = self.sessions.values_mut().filter(|row| row.byes_left.is_none());
        for ((row, claimant), cap_bps) in rows.zip(&claims).zip(caps) {
            row.offer_bps = fill.offer_bps(claimant);
            row.cap_bps = cap_bps;
            if row.is_limited_by_application() {
                let head = head_bps(headroom, fill.share_bps(claimant), capacity_bps, claimant.weight / weights);
                row.cap_bps = cap_bps.max((cap_bps + head).min(row.offer_bps));
            }
        }
    }

    fn open_rows(&self) -> impl Iterator<Item = (u64, &SourceRow)> {
        self.sessions.iter().filter(|(_, row)| row.byes_left.is_none()).map(|(session, row)| (*session, row))
    }
}

impl SourceRow {
    fn demand_bps(&self) -> f64 {
        self.declared_bps.unwrap_or_else(|| self.gauge.demand_bps())
    }

    fn least_offer_bps(&self) -> f64 {
        self.remotes.iter().fold(f64::INFINITY, |least, half| least.min(half.offer_bps))
    }

    fn granted_bps(&self) -> f64 {
        self.remotes.iter().fold(f64::INFINITY, |least, half| least.min(half.grant_bps))
    }

    fn allowed_bps(&self) -> f64 {
        self.cap_bps.min(self.granted_bps())
    }

    fn note_allowed(&mut self) {
        self.least_allowed_bps = self.least_allowed_bps.min(self.allowed_bps());
    }

    /// Its own demand is what limits it. No demand, and no limit elsewhere, is no such thing.
    fn is_limited_by_application(&self) -> bool {
        let demand = self.demand_bps();
        self.declared_bps.is_none() && demand < f64::INFINITY && demand <= self.least_offer_bps()
    }

    /// What it takes of its source's capacity; nothing while a lease of it has run out, since it may send nothing then,
    /// and the others may.
    fn claimant(&self) -> Claimant {
        let has_lapsed = self.remotes.iter().any(|half| half.has_lapsed);
        Claimant {
            claim_bps: if has_lapsed { 0.0 } else { self.demand_bps().min(self.least_offer_bps()) },
            weight: self.terms.weight,
            minimum_bps: self.terms.minimum.as_bps(),
        }
    }

    fn capped(&self) -> Capped {
        let granted = self.granted_bps();
        let is_limited = self.is_limited_by_application();
        let is_known = is_limited || self.declared_bps.is_some();
        let limit_bps = if is_known { granted.min(self.demand_bps()) } else { granted };
        let minimum_bps = self.terms.minimum.as_bps();
        Capped { limit_bps, weight: self.terms.weight, minimum_bps, grows: !is_limited }
    }

    /// The interval's measurement, and leases that ran out; whether there is news.
    fn end_interval(&mut self, now: Time, options: &TallyOptions) -> bool {
        let mut has_news = false;
        for half in self.remotes.iter_mut().filter(|half| !half.has_lapsed && half.in_force > 0) {
            if now.since(half.heard) >= half.lease {
                half.has_lapsed = true;
                half.grant_bps = 0.0;
                has_news = true;
            }
        }
        let elapsed = now.since(self.since);
        let (bits, waited, least_allowed_bps) = (self.bits, self.waited, self.least_allowed_bps);
        let before = self.gauge.demand_bps();
        self.gauge.on_tick(now, &Sent { elapsed, bits, waited, least_allowed_bps }, options);
        (self.since, self.bits, self.waited, self.least_allowed_bps) = (now, 0.0, false, f64::INFINITY);
        has_news | (self.gauge.demand_bps() != before)
    }

    /// The most that it can use as far as everything but that remote resource goes.
    fn claim_bps(&self, remote: usize, options: &TallyOptions) -> f64 {
        let others = self.remotes.iter().enumerate().filter(|(other, _)| *other != remote);
        let least = others.fold(self.demand_bps().min(self.offer_bps), |least, (_, half)| least.min(half.offer_bps));
        options.up(least)
    }

    /// At once to all remote resources whose claim changed.
    fn claim_anew(&mut self, now: Time, session: u64, options: &TallyOptions, out: &mut Vec<ClaimTo>) {
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

    /// Confirms a grant at once. Where there are further remote resources it changes what is claimed of them.
    fn confirm(&mut self, now: Time, session: u64, remote: usize, options: &TallyOptions, out: &mut Vec<ClaimTo>) {
        let is_news = options.is_news(self.claim_bps(remote, options), self.remotes[remote].claim_bps);
        self.say(now, session, remote, is_news, options, out);
        if self.remotes.len() > 1 {
            self.claim_anew(now, session, options, out);
        }
    }

    /// What changed, what was not answered, and what is said or asked after a silence.
    fn tell(&mut self, now: Time, session: u64, options: &TallyOptions, out: &mut Vec<ClaimTo>) {
        for remote in 0..self.remotes.len() {
            let is_news = options.is_news(self.claim_bps(remote, options), self.remotes[remote].claim_bps);
            let half = &mut self.remotes[remote];
            if half.speaks == Speaks::PlainGtp {
                continue;
            }
            let retries = half.answered < half.news && now.since(half.said) >= options.retry(self.terms.rtt);
            let asks = now.since(half.heard) >= options.ask() && now.since(half.asked) >= ASK_AGAIN;
            if asks {
                half.asked = now;
            }
            if is_news || retries || asks || now.since(half.said) >= options.refresh() {
                self.say(now, session, remote, is_news, options, out);
                if asks && let Some(last) = out.last_mut() {
                    last.message.wants_answer = true;
                }
            }
        }
    }

    fn say(
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
        half.number += 1;
        if is_news {
            half.news = half.number;
        }
        half.said = now;
        out.push(ClaimTo { session, remote, message: half.message(false) });
    }

    fn say_bye(&mut self, now: Time, session: u64, out: &mut Vec<ClaimTo>) {
        self.byes_left = self.byes_left.map(|left| left.saturating_sub(1));
        for (remote, half) in self.remotes.iter_mut().enumerate().filter(|(_, half)| !half.is_over) {
            half.number += 1;
            half.said = now;
            out.push(ClaimTo { session, remote, message: half.message(true) });
        }
    }
}

impl RemoteHalf {
    fn new(now: Time, lease: Duration) -> Self {
        Self {
            offer_bps: f64::INFINITY,
            grant_bps: 0.0,
            in_force: 0,
            lease,
            has_lapsed: false,
            claim_bps: 0.0,
            is_application_limited: false,
            number: 0,
            news: 0,
            answered: 0,
            said: now,
            heard: now,
            asked: now,
            is_over: false,
            speaks: Speaks::Tally,
        }
    }

    fn message(&self, is_bye: bool) -> ClaimMessage {
        ClaimMessage {
            number: self.number,
            claim: as_limit(self.claim_bps),
            is_application_limited: self.is_application_limited,
            is_bye,
            wants_answer: self.answered < self.news,
            in_force: self.in_force,
            rate_in_force: Rate::nearest_bps(self.grant_bps),
        }
    }
}
