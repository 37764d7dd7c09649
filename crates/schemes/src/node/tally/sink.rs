//! The half of a remote resource: a sink, or a router on the way.

mod driver;

use std::collections::BTreeMap;

use fairwave_units::{Rate, Time};

use super::fill::{Claimant, Fill};
use super::headroom::{RecentHeadroom, head_bps};
use super::ledger::GrantLedger;
use super::message::{ClaimMessage, GrantMessage, GrantTo, SessionTerms, as_bps, as_limit};
use super::options::{ASK_AGAIN, TallyOptions};
use super::plain::{MOST_STEPS, PlainSource};
use super::settle::{Settling, settle};
use super::use_check::UseCheck;

/// One receiving capacity and the grants of its sessions.
///
/// The driver brings claims ([`on_claim`](Self::on_claim)) and what came ([`received`](Self::received)), and calls
/// [`tick`](Self::tick) once per control interval; it carries the messages that come out to the sources. A tick before
/// [`next_tick`](Self::next_tick) changes nothing and may be left out.
///
/// The sum of what is reserved is at most the capacity and the headroom (and a twentieth, beside plain GTP), whatever messages are lost; after
/// [`set_capacity`](Self::set_capacity) lowered the capacity, as soon as the cuts are confirmed.
#[derive(Clone, Debug)]
pub struct SinkNode {
    capacity_bps: f64,
    options: TallyOptions,
    rows: BTreeMap<u64, SinkRow>,
    /// Sessions that ended, and until when their late claims are ignored.
    tombstones: BTreeMap<u64, Time>,
    headroom: RecentHeadroom,
    recovers_until: Option<Time>,
    next_tick: Time,
    /// What came beyond what is reserved in the last interval.
    excess_bps: f64,
}

#[derive(Clone, Debug)]
struct SinkRow {
    terms: SessionTerms,
    claim_bps: f64,
    /// What the application here takes at the most.
    ceiling_bps: f64,
    is_application_limited: bool,
    claim_heard: u64,
    ledger: GrantLedger,
    offer_bps: f64,
    use_check: UseCheck,
    heard: Time,
    said: Time,
    asked: Time,
    owes_answer: bool,
    /// The session was not heard of for two leases; its numbers are kept until then.
    freed_until: Option<Time>,
    /// The largest rate reserved since the last tick.
    reserved_since_tick_bps: f64,
    /// Its source runs plain GTP.
    plain: Option<Box<PlainSource>>,
}

impl SinkNode {
    /// A node without sessions.
    pub fn new(capacity: Rate, options: TallyOptions) -> Self {
        Self {
            capacity_bps: capacity.as_bps(),
            options,
            rows: BTreeMap::new(),
            tombstones: BTreeMap::new(),
            headroom: RecentHeadroom::default(),
            recovers_until: None,
            next_tick: Time::ZERO,
            excess_bps: 0.0,
        }
    }

    /// A node that lost all that it knew. For two leases it grants nothing and collects what is in force: rates go on
    /// as they were, newcomers wait.
    pub fn restarted(capacity: Rate, options: TallyOptions, now: Time) -> Self {
        Self { recovers_until: Some(now.saturating_add(options.two_leases())), ..Self::new(capacity, options) }
    }

    /// Another capacity from now on.
    pub fn set_capacity(&mut self, capacity: Rate) {
        self.capacity_bps = capacity.as_bps();
        self.next_tick = Time::ZERO;
    }

    /// Before this a tick would change nothing.
    pub fn next_tick(&self) -> Time {
        self.next_tick
    }

    /// The most that may still come of a session; `None` if it has no row.
    pub fn reserved(&self, session: u64) -> Option<Rate> {
        self.rows.get(&session).map(|row| Rate::nearest_bps(row.ledger.reserved_bps()))
    }

    /// The most that may still come of all sessions together.
    pub fn reserved_sum(&self) -> Rate {
        Rate::nearest_bps(self.rows.values().map(|row| row.ledger.reserved_bps()).sum())
    }

    /// Whether it was restarted and still collects what is in force.
    pub fn is_recovering(&self) -> bool {
        self.recovers_until.is_some()
    }

    /// A claim arrives. A session that is not known yet is opened with `terms`.
    pub fn on_claim(
        &mut self,
        now: Time,
        session: u64,
        terms: &SessionTerms,
        claim: &ClaimMessage,
        out: &mut Vec<GrantTo>,
    ) {
        if claim.is_bye {
            let until = now.saturating_add(self.options.two_leases());
            self.tombstones.entry(session).or_insert(until);
            self.rows.remove(&session);
            self.next_tick = Time::ZERO;
            out.push(GrantTo { session, message: self.sign_of_life(claim.number, false) });
            return;
        }
        if self.tombstones.contains_key(&session) {
            return;
        }
        let is_recovering = self.is_recovering();
        let row = self.rows.entry(session).or_insert_with(|| SinkRow::new(terms, now));
        let is_newer = claim.number > row.claim_heard;
        row.heard = now;
        row.owes_answer |= claim.wants_answer;
        let before = (row.claim_bps, row.is_application_limited, row.ledger.reserved_bps());
        let was_freed = row.freed_until.take().is_some();
        if is_recovering {
            // What it hears first may be older than a cut that is in force: the newest counts. Nobody had more than
            // the capacity.
            if is_newer {
                let cap_bps = self.capacity_bps * (1.0 + self.options.headroom);
                row.ledger.adopt(claim.in_force, claim.rate_in_force.as_bps().min(cap_bps));
            }
        } else if claim.in_force > row.ledger.last() && row.claim_heard == 0 {
            row.ledger.go_on_above(claim.in_force);
        } else {
            row.ledger.confirm(claim.in_force);
        }
        if is_newer {
            row.claim_heard = claim.number;
            row.claim_bps = as_bps(claim.claim);
            row.is_application_limited = claim.is_application_limited && row.claim_bps < f64::INFINITY;
        }
        row.use_check.on_due(row.due_bps());
        let after = (row.claim_bps, row.is_application_limited, row.ledger.reserved_bps());
        if was_freed || after != before || row.owes_answer {
            self.next_tick = Time::ZERO;
        }
    }

    /// Data of a session came: what is due by its claim is checked against it.
    pub fn received(&mut self, session: u64, bits: f64) {
        if let Some(row) = self.rows.get_mut(&session) {
            row.use_check.on_received(bits);
            if let Some(plain) = &mut row.plain {
                plain.on_received(bits);
            }
        }
    }

    pub(super) fn insert_plain(&mut self, now: Time, session: u64, terms: &SessionTerms, plain: PlainSource) {
        self.rows
            .insert(session, SinkRow { plain: Some(Box::new(plain)), owes_answer: false, ..SinkRow::new(terms, now) });
        self.next_tick = Time::ZERO;
    }

    pub(super) fn with_plain(&mut self, session: u64, change: impl FnOnce(&mut PlainSource)) {
        if let Some(plain) = self.rows.get_mut(&session).and_then(|row| row.plain.as_mut()) {
            change(plain);
        }
    }

    pub(super) fn remove_plain(&mut self, session: u64) {
        if self.rows.get(&session).is_some_and(|row| row.plain.is_some()) {
            self.rows.remove(&session);
            self.next_tick = Time::ZERO;
        }
    }

    /// One control interval is over: new grants and offers, and what has to be said again.
    pub fn tick(&mut self, now: Time, out: &mut Vec<GrantTo>) {
        if now < self.next_tick {
            return;
        }
        self.end_what_is_over(now);
        for row in self.rows.values_mut() {
            if let Some(plain) = &mut row.plain {
                plain.on_tick(now, row.terms.rtt, &mut row.ledger);
            }
        }
        if self.is_recovering() {
            self.tick_in_recovery(now, out);
            return;
        }
        self.excess_bps = self.check_use(now);
        self.share_and_tell(now, out);
    }

    /// Grants and offers anew, by what is known of the use of claims, and what has to be said again.
    fn share_and_tell(&mut self, now: Time, out: &mut Vec<GrantTo>) {
        let (sessions, rows): (Vec<u64>, Vec<Claimant>) =
            self.live().map(|(session, row)| (session, row.claimant())).unzip();
        let fill = Fill::new(self.capacity_bps, &rows);
        let weights: f64 = rows.iter().map(|row| row.weight).sum();
        let ceilings = self.live().map(|(_, row)| row.ceiling_bps);
        let offer = |(row, ceiling_bps): (&Claimant, f64)| self.options.up(fill.offer_bps(row).min(ceiling_bps));
        let offers: Vec<f64> = rows.iter().zip(ceilings).map(offer).collect();
        let claimed: f64 = rows.iter().map(|row| fill.share_bps(row)).sum();
        let steps = self.plain_steps(&offers, (self.capacity_bps - claimed).max(0.0));
        let mut headroom_bps = steps.iter().sum::<f64>().min(MOST_STEPS * self.capacity_bps);
        let mut settling = Vec::with_capacity(rows.len());
        let live = self.live().map(|(_, row)| row);
        for (((row, claimant), offer_bps), step_bps) in live.zip(&rows).zip(&offers).zip(&steps) {
            let mut target_bps = fill.share_bps(claimant) + step_bps;
            if row.is_limited_by_application() {
                let share = claimant.weight / weights;
                let head = head_bps(self.options.headroom, target_bps, self.capacity_bps, share);
                headroom_bps += head;
                target_bps = target_bps.max((target_bps + head).min(*offer_bps));
            }
            let (granted_bps, reserved_bps) = (row.ledger.granted_bps(), row.ledger.reserved_bps());
            // Who is not heard keeps the grant as it is: no cut would be heard either, and no raise confirmed.
            if self.is_silent_to(row, now) {
                target_bps = granted_bps;
            }
            let (weight, minimum_bps) = (claimant.weight, fill.minimum_bps(claimant));
            settling.push(Settling { target_bps, granted_bps, reserved_bps, weight, minimum_bps });
        }
        self.headroom.on_tick(now, headroom_bps);
        let reserved: f64 = settling.iter().map(|row| row.reserved_bps).sum();
        let grants = settle(self.budget_bps() - reserved - self.excess_bps, &settling);
        for ((session, grant_bps), offer_bps) in sessions.into_iter().zip(grants).zip(offers) {
            self.tell(now, session, self.options.down(grant_bps), offer_bps, out);
        }
        self.set_next_tick(now);
    }

    /// How far beyond what came the sessions of plain GTP may go: all together by a twentieth of the capacity, and what
    /// nobody claims.
    fn plain_steps(&self, offers: &[f64], unclaimed_bps: f64) -> Vec<f64> {
        let step =
            |(row, offer_bps): (&SinkRow, &f64)| row.plain.as_ref().map_or(0.0, |plain| plain.step_bps(*offer_bps));
        let mut steps: Vec<f64> = self.live().map(|(_, row)| row).zip(offers).map(step).collect();
        let sum: f64 = steps.iter().sum();
        let most = MOST_STEPS * self.capacity_bps + unclaimed_bps;
        if sum > most {
            for step in &mut steps {
                *step *= most / sum;
            }
        }
        steps
    }

    /// The capacity, and the largest headroom of the last one to two seconds.
    fn budget_bps(&self) -> f64 {
        let steps = if self.rows.values().any(|row| row.plain.is_some()) { MOST_STEPS } else { 0.0 };
        self.capacity_bps + self.headroom.most_bps().min((self.options.headroom + steps) * self.capacity_bps)
    }

    fn live(&self) -> impl Iterator<Item = (u64, &SinkRow)> {
        self.rows.iter().filter(|(_, row)| row.freed_until.is_none()).map(|(session, row)| (*session, row))
    }

    /// A sink that went on talking to a session that it no longer hears would keep that source's lease alive, and
    /// could never give its share away.
    fn is_silent_to(&self, row: &SinkRow, now: Time) -> bool {
        row.plain.is_none() && now.since(row.heard) > self.options.lease.half()
    }

    fn end_what_is_over(&mut self, now: Time) {
        let two_leases = self.options.two_leases();
        self.tombstones.retain(|_, until| *until > now);
        self.rows.retain(|_, row| row.freed_until.is_none_or(|until| until > now));
        for row in self.rows.values_mut().filter(|row| row.freed_until.is_none()) {
            if row.plain.is_some() {
                continue;
            }
            if now.since(row.heard) >= two_leases {
                row.ledger.free();
                row.freed_until = Some(now.saturating_add(two_leases));
            }
            row.ledger.expire(now, &self.options);
        }
        if self.recovers_until.is_some_and(|until| now >= until) {
            self.recovers_until = None;
        }
    }

    /// Who sends less than due, and the sum of what comes beyond what is reserved.
    fn check_use(&mut self, now: Time) -> f64 {
        let mut excess_bps = 0.0;
        for row in self.rows.values_mut() {
            let reserved_bps = row.ledger.reserved_bps();
            excess_bps += row.use_check.excess_bps(now, row.reserved_since_tick_bps, &self.options, reserved_bps);
            let due_bps = row.due_bps();
            row.use_check.on_tick(now, due_bps, &self.options);
            row.reserved_since_tick_bps = row.ledger.reserved_bps();
        }
        excess_bps
    }

    /// Tells what changed, what was not answered, what was asked, and the state after a silence.
    fn tell(&mut self, now: Time, session: u64, grant_bps: f64, offer_bps: f64, out: &mut Vec<GrantTo>) {
        let options = self.options;
        let Some(row) = self.rows.get_mut(&session) else { return };
        if let Some(plain) = &mut row.plain {
            out.push(plain.tell(now, session, grant_bps, &mut row.ledger));
            row.reserved_since_tick_bps = row.reserved_since_tick_bps.max(row.ledger.reserved_bps());
            return;
        }
        if now.since(row.heard) > options.lease.half() {
            row.owes_answer = false;
            return;
        }
        let granted_bps = row.ledger.granted_bps();
        let is_first = row.ledger.last() == 0;
        let is_news = is_first || options.is_news(grant_bps, granted_bps) || options.is_news(offer_bps, row.offer_bps);
        let is_unanswered = !row.ledger.is_confirmed() && now.since(row.said) >= options.retry(row.terms.rtt);
        let asks = now.since(row.heard) >= options.ask() && now.since(row.asked) >= ASK_AGAIN;
        let refreshes = now.since(row.said) >= options.refresh();
        if !(is_news || is_unanswered || asks || row.owes_answer || refreshes) {
            return;
        }
        let differs = grant_bps != granted_bps || offer_bps != row.offer_bps;
        if is_news || (refreshes && differs) {
            row.ledger.push(grant_bps);
            row.offer_bps = offer_bps;
            row.reserved_since_tick_bps = row.reserved_since_tick_bps.max(row.ledger.reserved_bps());
        }
        let wants_answer = !row.ledger.is_confirmed() || asks;
        if asks {
            row.asked = now;
        }
        row.said = now;
        row.owes_answer = false;
        let message = GrantMessage {
            number: row.ledger.last(),
            rate: Rate::nearest_bps(row.ledger.granted_bps()),
            offer: as_limit(row.offer_bps),
            claim_heard: row.claim_heard,
            lease: options.lease,
            wants_answer,
        };
        row.use_check.on_due(row.due_bps());
        out.push(GrantTo { session, message });
    }

    /// Only that it lives, to those that it heard.
    fn tick_in_recovery(&mut self, now: Time, out: &mut Vec<GrantTo>) {
        let options = self.options;
        let mut told = Vec::new();
        for (session, row) in self.rows.iter_mut().filter(|(_, row)| row.plain.is_none()) {
            row.use_check.on_tick(now, 0.0, &options);
            row.reserved_since_tick_bps = row.ledger.reserved_bps();
            if now.since(row.heard) > options.lease.half() {
                continue;
            }
            let asks = now.since(row.heard) >= options.ask() && now.since(row.asked) >= ASK_AGAIN;
            if row.owes_answer || asks || now.since(row.said) >= options.refresh() {
                row.said = now;
                row.owes_answer = false;
                if asks {
                    row.asked = now;
                }
                told.push((*session, row.claim_heard, asks));
            }
        }
        out.extend(
            told.into_iter().map(|(session, heard, asks)| GrantTo { session, message: self.sign_of_life(heard, asks) }),
        );
        self.next_tick = now;
    }

    fn sign_of_life(&self, claim_heard: u64, wants_answer: bool) -> GrantMessage {
        let lease = self.options.lease;
        GrantMessage { number: 0, rate: Rate::ZERO, offer: None, claim_heard, lease, wants_answer }
    }

    /// When the next of the timers runs out.
    fn set_next_tick(&mut self, now: Time) {
        let options = self.options;
        let mut next = Time::MAX;
        for row in self.rows.values() {
            next = next.min(row.next_tick(now, &options));
        }
        for until in self.tombstones.values() {
            next = next.min(*until);
        }
        self.next_tick = next;
    }
}

impl SinkRow {
    fn new(terms: &SessionTerms, now: Time) -> Self {
        Self {
            terms: *terms,
            claim_bps: 0.0,
            ceiling_bps: f64::INFINITY,
            is_application_limited: false,
            claim_heard: 0,
            ledger: GrantLedger::new(now),
            offer_bps: f64::INFINITY,
            use_check: UseCheck::new(now),
            heard: now,
            said: now,
            asked: now,
            owes_answer: true,
            freed_until: None,
            reserved_since_tick_bps: 0.0,
            plain: None,
        }
    }

    fn claimant(&self) -> Claimant {
        Claimant {
            claim_bps: match &self.plain {
                Some(plain) => plain.measured_bps(),
                None => self.use_check.measured_bps().unwrap_or(self.claim_bps),
            }
            .min(self.ceiling_bps),
            weight: self.terms.weight,
            minimum_bps: self.terms.minimum.as_bps(),
        }
    }

    fn is_limited_by_application(&self) -> bool {
        self.plain.is_none() && (self.is_application_limited || self.use_check.measured_bps().is_some())
    }

    /// What it has to send if it uses what it claims.
    fn due_bps(&self) -> f64 {
        self.claim_bps.min(self.ledger.least_bps())
    }

    fn next_tick(&self, now: Time, options: &TallyOptions) -> Time {
        if let Some(until) = self.freed_until {
            return until;
        }
        if self.plain.is_some() {
            // What comes is measured in every interval.
            return now;
        }
        let silent_from = self.heard.saturating_add(options.lease.half());
        let mut next = self.said.saturating_add(options.refresh());
        if !self.ledger.is_confirmed() {
            next = next.min(self.said.saturating_add(options.retry(self.terms.rtt)));
        }
        let ask = self.heard.saturating_add(options.ask()).max(self.asked.saturating_add(ASK_AGAIN));
        next = next.min(ask);
        if now > silent_from || next > silent_from {
            next = self.heard.saturating_add(options.two_leases());
        }
        self.use_check.next_tick(options).map_or(next, |check| next.min(check))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairwave_units::Duration;

    const C: f64 = 1e9;
    const TERMS: SessionTerms = SessionTerms { weight: 1.0, minimum: Rate::ZERO, rtt: Duration::from_millis(20) };

    fn claim(number: u64, in_force: u64, rate_in_force: f64) -> ClaimMessage {
        ClaimMessage {
            number,
            claim: None,
            is_application_limited: false,
            is_bye: false,
            wants_answer: false,
            in_force,
            rate_in_force: Rate::nearest_bps(rate_in_force),
        }
    }

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    /// Claims of sessions arrive, then a tick: what is told.
    fn told(sink: &mut SinkNode, now: Time, claims: &[(u64, ClaimMessage)]) -> Vec<(u64, f64)> {
        let mut out = Vec::new();
        for (session, claim) in claims {
            sink.on_claim(now, *session, &TERMS, claim, &mut out);
        }
        sink.tick(now, &mut out);
        out.iter().map(|grant| (grant.session, grant.message.rate.as_bps())).collect()
    }

    #[test]
    fn on_claim__while_it_recovers_the_newest_counts_and_none_had_more_than_the_capacity() {
        let mut sink = SinkNode::restarted(Rate::nearest_bps(C), TallyOptions::default(), Time::ZERO);
        assert_eq!(
            told(&mut sink, at(10), &[(1, claim(9, 5, 0.2 * C)), (2, claim(3, 7, 50.0 * C))]),
            [(1, 0.0), (2, 0.0)]
        );
        // An older message, from before a cut, comes late.
        told(&mut sink, at(20), &[(1, claim(8, 4, 0.6 * C))]);
        assert_eq!(sink.reserved(1), Some(Rate::nearest_bps(0.2 * C)));
        assert_eq!(sink.reserved(2), Some(Rate::nearest_bps(1.02 * C)));
        // Its own numbers go on above; in the first tick after two leases all is shared anew.
        told(&mut sink, at(7990), &[(1, claim(10, 5, 0.2 * C)), (2, claim(4, 7, 0.3 * C))]);
        assert!(sink.is_recovering());
        assert_eq!(told(&mut sink, at(8000), &[]), [(1, 0.5 * C), (2, 0.5 * C)]);
    }

    #[test]
    fn on_claim__a_grant_that_was_never_given_is_neither_in_force_nor_confirmed() {
        let mut sink = SinkNode::new(Rate::nearest_bps(C), TallyOptions::default());
        assert_eq!(told(&mut sink, at(10), &[(1, claim(1, 1_000_000, 50.0 * C))]), [(1, C)]);
        assert_eq!(sink.reserved(1), Some(Rate::nearest_bps(C)));
        // A cut to a half, and a confirmation of a number that is far above it.
        assert_eq!(told(&mut sink, at(30), &[(2, claim(1, 0, 0.0))]), [(1, 0.5 * C), (2, 0.0)]);
        told(&mut sink, at(50), &[(1, claim(2, u64::MAX, 0.0))]);
        assert_eq!(sink.reserved(1), Some(Rate::nearest_bps(C)));
        assert_eq!(sink.reserved_sum(), Rate::nearest_bps(C));
    }

    #[test]
    fn on_claim__late_messages_of_a_session_that_ended_open_nothing() {
        let mut sink = SinkNode::new(Rate::nearest_bps(C), TallyOptions::default());
        told(&mut sink, at(10), &[(1, claim(1, 0, 0.0))]);
        let bye = ClaimMessage { is_bye: true, ..claim(3, 1, C) };
        // The bye is answered, by a message that says no more than that.
        assert_eq!(told(&mut sink, at(30), &[(1, bye), (1, claim(2, 1, C))]), [(1, 0.0)]);
        assert_eq!((sink.reserved(1), sink.reserved_sum()), (None, Rate::ZERO));
        assert_eq!(told(&mut sink, at(50), &[(1, bye)]), [(1, 0.0)]);
    }

    #[test]
    fn tick__what_comes_beyond_what_is_reserved_is_taken_off_what_is_free() {
        let mut sink = SinkNode::new(Rate::nearest_bps(C), TallyOptions::default());
        told(&mut sink, at(0), &[(1, ClaimMessage { claim: Some(Rate::nearest_bps(0.2 * C)), ..claim(1, 0, 0.0) })]);
        // Session 1 has 0.2 C and sends 0.7 C; of the 0.8 C that nobody has reserved 0.5 C are taken.
        sink.received(1, 0.7 * C * 0.02);
        let grants = told(&mut sink, at(20), &[(2, claim(1, 0, 0.0))]);
        assert_eq!(grants, [(1, 0.2 * C), (2, 0.3 * C)]);
    }
}
