//! The half at a remote resource: a sink, or a router on the path.

mod assigned;
mod driver;
mod ledger;
mod plain;
mod promise;
mod promises;
mod row;
mod use_check;

use std::collections::BTreeMap;

use fairwave_units::{Rate, Time};

use super::by_group::weigh_by_group;
use super::claimant::Claimant;
use super::fill::Fill;
use super::headroom::{RecentHeadroom, head_bps};
use super::lease::{Lease, refresh};
use super::message::{ClaimMessage, GrantMessage, GrantTo, MAX_NUMBER, SessionTerms, as_bps, as_limit};
use super::options::TallyOptions;
use super::plain_step::{MAX_STEPS, scale_steps};
use super::rows::Rows;
use super::settle::{Cost, Settling};
use super::stamp::Stamp;
pub(super) use plain::PlainSource;
use promises::Promises;
use row::SinkRow;
use use_check::Passed;

/// One receiving capacity and the grants of its sessions.
///
/// The driver delivers claims ([`on_claim`](Self::on_claim)) and reports arrived data ([`received`](Self::received)),
/// and calls [`tick`](Self::tick) once per control interval; it carries the returned messages to the sources. A tick
/// before [`next_tick`](Self::next_tick) changes nothing and may be skipped.
///
/// The sum of the reserved rates is at most the capacity plus the headroom (plus a twentieth with plain GTP), whichever
/// messages are lost; after [`set_capacity`](Self::set_capacity) lowered the capacity, once the cuts are confirmed.
#[derive(Clone, Debug)]
pub struct SinkNode {
    capacity_bps: f64,
    options: TallyOptions,
    rows: Rows<SinkRow>,
    /// Sessions that ended, and the time until which their late claims are ignored.
    tombstones: BTreeMap<u64, Time>,
    headroom: RecentHeadroom,
    recovers_until: Option<Time>,
    next_tick: Time,
    /// Start of the control interval.
    interval_from: Time,
    /// Arrivals beyond the reserved rates in the last interval.
    excess_bps: f64,
    promises: Promises,
    /// Target lease of its grants, by the number of its sessions.
    lease: Lease,
    /// Whether the capacity is divided elsewhere.
    is_assigned: bool,
}

/// Claims of the rows that are not freed, in their order, with weights by which groups share the capacity first.
struct Claims {
    rows: Vec<Claimant>,
    weights: f64,
    has_plain: bool,
}

/// Target of a row's grant, and its offer.
struct Aim {
    target_bps: f64,
    offer_bps: f64,
}

impl Aim {
    fn settling(&self, row: &SinkRow, claim: &Claimant, fill: &Fill) -> Settling {
        let (granted_bps, reserved_bps) = (row.ledger.granted_bps(), row.ledger.reserved_bps());
        let (weight, minimum_bps) = (claim.weight, fill.minimum_bps(claim));
        Settling { target_bps: self.target_bps, granted_bps, reserved_bps, weight, minimum_bps }
    }
}

impl SinkNode {
    /// A node without sessions.
    pub fn new(capacity: Rate, options: TallyOptions) -> Self {
        Self {
            capacity_bps: capacity.as_bps(),
            options,
            rows: Rows::new(),
            tombstones: BTreeMap::new(),
            headroom: RecentHeadroom::default(),
            recovers_until: None,
            next_tick: Time::ZERO,
            interval_from: Time::ZERO,
            excess_bps: 0.0,
            promises: Promises::new(capacity.as_bps()),
            lease: Lease::default(),
            is_assigned: false,
        }
    }

    /// A node that lost its state, and gave no longer leases than the options allow. For two leases it grants nothing
    /// and collects the rates in force: rates stay unchanged, newcomers wait.
    pub fn restarted(capacity: Rate, options: TallyOptions, now: Time) -> Self {
        Self {
            recovers_until: Some(now.saturating_add(Lease::default().twice(&options))),
            ..Self::new(capacity, options)
        }
    }

    /// Changes the capacity.
    pub fn set_capacity(&mut self, capacity: Rate) {
        self.promises.take_off(self.capacity_bps - capacity.as_bps().min(self.capacity_bps));
        self.capacity_bps = capacity.as_bps();
        self.next_tick = Time::ZERO;
    }

    /// Time before which a tick changes nothing.
    pub fn next_tick(&self) -> Time {
        self.next_tick
    }

    /// The maximum rate that may still arrive from a session; `None` if it has no row.
    pub fn reserved(&self, session: u64) -> Option<Rate> {
        self.rows.get(session).map(|row| Rate::nearest_bps(row.ledger.reserved_bps()))
    }

    /// The maximum rate that may still arrive from all sessions together.
    pub fn reserved_sum(&self) -> Rate {
        Rate::nearest_bps(self.rows.values().map(|row| row.ledger.reserved_bps()).sum())
    }

    /// Whether it was restarted and still collects the rates in force.
    pub fn is_recovering(&self) -> bool {
        self.recovers_until.is_some()
    }

    /// A claim arrives. An unknown session is opened with `terms`.
    pub fn on_claim(
        &mut self,
        now: Time,
        session: u64,
        terms: &SessionTerms,
        claim: &ClaimMessage,
        out: &mut Vec<GrantTo>,
    ) {
        if claim.is_bye {
            let lease = self.rows.get(session).map(|row| row.ledger.lease()).unwrap_or_default();
            let until = now.saturating_add(lease.twice(&self.options));
            self.tombstones.entry(session).or_insert(until);
            self.remove(session);
            self.next_tick = Time::ZERO;
            out.push(GrantTo { session, message: self.sign_of_life(claim.number, false) });
            return;
        }
        // Numbers that no honest end reaches are ignored.
        if self.tombstones.contains_key(&session) || claim.number.max(claim.in_force) > MAX_NUMBER {
            return;
        }
        let is_recovering = self.is_recovering();
        let was_promised = self.promises.on_heard(session);
        let row = self.rows.get_or_insert_with(session, || SinkRow::new(terms, now));
        if was_promised {
            row.rare_mut(|rare| rare.promised_until = None);
        }
        let is_newer = claim.number > row.claim_heard();
        row.heard = Stamp::of(now);
        row.ledger.set_owes_answer(row.ledger.owes_answer() || claim.wants_answer || was_promised);
        let before = row.state();
        let was_freed = row.freed_until().is_some();
        if was_freed {
            row.rare_mut(|rare| rare.freed_until = None);
        }
        if is_recovering {
            // The first message may be older than a cut that is in force: the newest counts. No session had more than
            // the capacity.
            if is_newer {
                let cap_bps = self.capacity_bps * (1.0 + self.options.headroom);
                row.ledger.adopt(claim.in_force, claim.rate_in_force.as_bps().min(cap_bps));
            }
        } else if claim.in_force > row.ledger.last() && row.claim_heard() == 0 {
            // This node has forgotten giving that number: numbers continue above it. Nothing is in force, as the lease
            // expired before the node could forget.
            row.ledger.adopt(claim.in_force, 0.0);
        } else {
            row.ledger.confirm(claim.in_force);
        }
        if is_newer {
            row.store_claim(claim.number, as_bps(claim.claim), claim.is_application_limited);
        }
        row.note_due();
        if was_freed || row.state() != before || row.ledger.owes_answer() {
            self.next_tick = Time::ZERO;
        }
    }

    /// Data of a session arrived: its claim is checked against them.
    pub fn received(&mut self, session: u64, bits: f64) {
        if let Some(row) = self.rows.get_mut(session) {
            row.receive(bits);
        }
    }

    pub(super) fn insert_plain(&mut self, now: Time, session: u64, terms: &SessionTerms, plain: PlainSource) {
        self.rows.insert(session, SinkRow::new_plain(terms, now, plain));
        self.next_tick = Time::ZERO;
    }

    pub(super) fn with_plain(&mut self, session: u64, change: impl FnOnce(&mut PlainSource)) {
        if let Some(row) = self.rows.get_mut(session).filter(|row| row.plain().is_some()) {
            row.rare_mut(|rare| {
                if let Some(plain) = &mut rare.plain {
                    change(plain);
                }
            });
        }
    }

    /// Closes a session whose source runs plain GTP: all its data have arrived.
    pub fn close_plain(&mut self, session: u64) {
        if self.rows.get(session).is_some_and(|row| row.plain().is_some()) {
            self.remove(session);
            self.next_tick = Time::ZERO;
        }
    }

    /// Ends a control interval: new grants and offers, and due retransmissions.
    pub fn tick(&mut self, now: Time, out: &mut Vec<GrantTo>) {
        if now < self.next_tick {
            return;
        }
        if self.recovers_until.is_some_and(|until| now < until) {
            self.expire(now);
            for row in self.rows.values_mut() {
                row.end_plain_interval(now);
            }
            self.tick_in_recovery(now, out);
            return;
        }
        let passed = Passed::new(std::mem::replace(&mut self.interval_from, now), now);
        self.share_and_send(now, Some(passed), out);
    }

    /// Computes grants and offers, and the messages due: after a control interval has `passed`, with the use of claims
    /// in it; otherwise with the known use.
    ///
    /// It visits the rows three times, and keeps little of each in between: with many rows, memory access takes most of
    /// the time.
    fn share_and_send(&mut self, now: Time, passed: Option<Passed>, out: &mut Vec<GrantTo>) {
        let Claims { rows: claims, weights, has_plain } = self.look_over(now, passed);
        let fill = Fill::new(self.capacity_bps, &claims);
        let (_, rows) = self.rows.settled();
        let live = || rows.iter().filter(|row| row.freed_until().is_none());
        let offer = |row: &SinkRow, claim: &Claimant| self.options.up(fill.offer_bps(claim).min(row.ceiling_bps()));
        let steps = if has_plain { self.plain_steps(&fill, live(), &claims, offer) } else { Vec::new() };
        let mut headroom_bps = steps.iter().sum::<f64>().min(MAX_STEPS * self.capacity_bps);
        let mut aims = Vec::with_capacity(claims.len());
        let (mut cost, mut reserved_sum_bps) = (Cost::default(), 0.0);
        for (place, (row, claim)) in live().zip(&claims).enumerate() {
            let mut target_bps = fill.share_bps(claim) + steps.get(place).copied().unwrap_or(0.0);
            let offer_bps = offer(row, claim);
            if row.is_limited_by_application() {
                let share = claim.weight / weights;
                let head = head_bps(self.options.headroom, target_bps, self.capacity_bps, share);
                headroom_bps += head;
                target_bps = target_bps.max((target_bps + head).min(offer_bps));
            }
            // The grant of a silent source is unchanged: neither a cut would arrive, nor the confirmation of a raise.
            if is_silent_to(row, now, &self.options) {
                target_bps = row.ledger.granted_bps();
            }
            let aim = Aim { target_bps, offer_bps };
            let settling = aim.settling(row, claim, &fill);
            reserved_sum_bps += settling.reserved_bps;
            cost.see(&settling);
            aims.push(aim);
        }
        self.headroom.on_tick(now, headroom_bps);
        self.lease = self.lease.for_sessions(claims.len(), &self.options);
        let rise = cost.rise(self.budget_bps(has_plain) - reserved_sum_bps - self.excess_bps, || {
            let all = live().zip(&claims).zip(&aims).map(|((row, claim), aim)| aim.settling(row, claim, &fill));
            all.filter(Settling::costs).collect()
        });
        let ends = self.tombstones.values().copied().chain(self.promises.next_end());
        let mut next_tick = ends.fold(Time::MAX, Time::min);
        let mut wanted_bps = 0.0;
        let mut aims = claims.iter().zip(aims);
        let (sessions, rows) = self.rows.settled_mut();
        for (session, row) in sessions.iter().zip(rows) {
            if let Some(until) = row.freed_until() {
                next_tick = next_tick.min(until);
                continue;
            }
            let (claim, aim) = aims.next().expect("one for each live row");
            let settling = aim.settling(row, claim, &fill);
            let grant_bps = rise.grant_bps(&settling);
            wanted_bps += aim.target_bps.max(settling.reserved_bps).max(grant_bps);
            tell(row, now, *session, (self.options.down(grant_bps), aim.offer_bps), self.lease, &self.options, out);
            next_tick = next_tick.min(row.next_tick(now, &self.options));
        }
        self.next_tick = next_tick;
        self.promises.set_spare(self.capacity_bps - self.excess_bps - wanted_bps);
    }

    /// Expires leases; at the end of a control interval evaluates arrivals; and returns the claims of the rows that are
    /// not freed.
    fn look_over(&mut self, now: Time, passed: Option<Passed>) -> Claims {
        self.expire_other_state(now);
        let options = self.options;
        let (_, rows) = self.rows.settled_mut();
        let mut claims = Claims { rows: Vec::with_capacity(rows.len()), weights: 0.0, has_plain: false };
        let (mut is_any_over, mut has_groups, mut excess_bps) = (false, false, 0.0);
        for row in rows {
            if row.expire(now, &options) {
                is_any_over = true;
                continue;
            }
            if let Some(passed) = passed {
                excess_bps += row.end_interval(now, passed, &options);
            }
            if row.freed_until().is_none() {
                claims.has_plain |= row.plain().is_some();
                has_groups |= row.group() != 0;
                claims.rows.push(row.claimant());
            }
        }
        if passed.is_some() {
            self.excess_bps = excess_bps;
        }
        self.forget_freed(now, is_any_over);
        if has_groups {
            self.weigh(&mut claims.rows);
        }
        claims.weights = claims.rows.iter().map(|claim| claim.weight).sum();
        claims
    }

    /// Adjusts the weights of the rows that are not freed: groups share the capacity first, and then the sessions of
    /// each.
    fn weigh(&self, claims: &mut [Claimant]) {
        let live = self.rows.values().filter(|row| row.freed_until().is_none());
        let groups: Vec<u32> = live.map(SinkRow::group).collect();
        weigh_by_group(self.capacity_bps, &groups, claims);
    }

    /// Steps of the sessions of plain GTP beyond their arrivals: in total a twentieth of the capacity plus the
    /// unclaimed capacity. Empty without such sessions.
    fn plain_steps<'a>(
        &self,
        fill: &Fill,
        live: impl Iterator<Item = &'a SinkRow>,
        claims: &[Claimant],
        offer: impl Fn(&SinkRow, &Claimant) -> f64,
    ) -> Vec<f64> {
        let claimed: f64 = claims.iter().map(|claim| fill.share_bps(claim)).sum();
        let step =
            |(row, claim): (&SinkRow, &Claimant)| row.plain().map_or(0.0, |plain| plain.step_bps(offer(row, claim)));
        let mut steps: Vec<f64> = live.zip(claims).map(step).collect();
        scale_steps(self.capacity_bps, claimed, &mut steps);
        steps
    }

    /// The capacity, and the largest headroom of the last one to two seconds.
    fn budget_bps(&self, has_plain: bool) -> f64 {
        let steps = if has_plain { MAX_STEPS } else { 0.0 };
        self.capacity_bps + self.headroom.most_bps().min((self.options.headroom + steps) * self.capacity_bps)
    }

    /// Removes a session; returns whether it had a row.
    fn remove(&mut self, session: u64) -> bool {
        let reserved_bps = self.rows.get(session).map_or(0.0, |row| row.ledger.reserved_bps());
        self.promises.give_back(session, reserved_bps);
        self.rows.remove(session)
    }

    fn expire(&mut self, now: Time) {
        self.expire_other_state(now);
        let options = self.options;
        let mut is_any_over = false;
        for row in self.rows.settled_mut().1 {
            is_any_over |= row.expire(now, &options);
        }
        self.forget_freed(now, is_any_over);
    }

    fn expire_other_state(&mut self, now: Time) {
        self.end_promises(now);
        self.tombstones.retain(|_, until| *until > now);
        self.rows.settle();
        if self.recovers_until.is_some_and(|until| now >= until) {
            self.recovers_until = None;
        }
    }

    fn forget_freed(&mut self, now: Time, is_any_over: bool) {
        if is_any_over {
            self.rows.retain(|row| row.freed_until().is_none_or(|until| until > now));
            self.rows.settle();
        }
    }

    /// Sends keep-alives only, to the sessions that were heard.
    fn tick_in_recovery(&mut self, now: Time, out: &mut Vec<GrantTo>) {
        let options = self.options;
        let mut alive = Vec::new();
        for (session, row) in self.rows.iter_mut().filter(|(_, row)| row.plain().is_none()) {
            row.take_came_bits();
            row.ledger.end_interval();
            if row.heard.age(now) > row.lease(&options).half() {
                continue;
            }
            let asks = row.asks(now, &options);
            if row.ledger.owes_answer() || asks || row.said.age(now) >= refresh(row.lease(&options)) {
                row.said = Stamp::of(now);
                row.ledger.set_owes_answer(false);
                alive.push((session, row.claim_heard(), asks));
            }
        }
        out.extend(
            alive
                .into_iter()
                .map(|(session, heard, asks)| GrantTo { session, message: self.sign_of_life(heard, asks) }),
        );
        (self.next_tick, self.interval_from) = (now, now);
        self.promises.set_spare(0.0);
    }

    fn sign_of_life(&self, claim_heard: u64, wants_answer: bool) -> GrantMessage {
        let lease = self.options.lease;
        GrantMessage { number: 0, rate: Rate::ZERO, offer: None, claim_heard, lease, wants_answer }
    }
}

/// A sink that kept sending to a session that it no longer hears would keep that source's lease alive, and could never
/// reuse its share.
fn is_silent_to(row: &SinkRow, now: Time, options: &TallyOptions) -> bool {
    row.plain().is_none() && (row.is_promised() || row.heard.age(now) > row.lease(options).half())
}

/// Sends a grant and an offer if they changed, were not answered, were requested, or after a silence.
fn tell(
    row: &mut SinkRow,
    now: Time,
    session: u64,
    (grant_bps, offer_bps): (f64, f64),
    wanted: Lease,
    options: &TallyOptions,
    out: &mut Vec<GrantTo>,
) {
    if let Some(grant) = row.plain_message(now, session, grant_bps) {
        out.push(grant);
        return;
    }
    if is_silent_to(row, now, options) {
        row.ledger.set_owes_answer(false);
        return;
    }
    let granted_bps = row.ledger.granted_bps();
    let is_first = row.ledger.last() == 0;
    let is_news = is_first || options.is_news(grant_bps, granted_bps) || options.is_news(offer_bps, row.offer_bps);
    let asks = row.asks(now, options);
    let refreshes = row.said.age(now) >= refresh(row.lease(options));
    if !(is_news || asks || row.ledger.owes_answer() || refreshes || row.is_unanswered(now, options)) {
        return;
    }
    let lease = row.ledger.next_lease(wanted);
    let differs = grant_bps != granted_bps || offer_bps != row.offer_bps || lease != row.ledger.sent_lease();
    if is_news || (refreshes && differs) {
        row.ledger.push(now, grant_bps, lease);
        row.offer_bps = offer_bps;
    }
    row.said = Stamp::of(now);
    row.ledger.set_owes_answer(false);
    let message = GrantMessage {
        number: row.ledger.last(),
        rate: Rate::nearest_bps(row.ledger.granted_bps()),
        offer: as_limit(row.offer_bps),
        claim_heard: row.claim_heard(),
        lease: row.ledger.sent_lease().span(options),
        wants_answer: asks || !row.ledger.is_confirmed(),
    };
    row.note_due();
    out.push(GrantTo { session, message });
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

    /// Claims of sessions arrive, then a tick: the grants sent.
    fn grants_after(sink: &mut SinkNode, now: Time, claims: &[(u64, ClaimMessage)]) -> Vec<(u64, f64)> {
        let mut out = Vec::new();
        for (session, claim) in claims {
            sink.on_claim(now, *session, &TERMS, claim, &mut out);
        }
        sink.tick(now, &mut out);
        out.iter().map(|grant| (grant.session, grant.message.rate.as_bps())).collect()
    }

    #[test]
    fn on_claim__newest_counts_during_recovery_up_to_the_capacity() {
        let mut sink = SinkNode::restarted(Rate::nearest_bps(C), TallyOptions::default(), Time::ZERO);
        assert_eq!(
            grants_after(&mut sink, at(10), &[(1, claim(9, 5, 0.2 * C)), (2, claim(3, 7, 50.0 * C))]),
            [(1, 0.0), (2, 0.0)]
        );
        // An older message, from before a cut, arrives late.
        grants_after(&mut sink, at(20), &[(1, claim(8, 4, 0.6 * C))]);
        assert_eq!(sink.reserved(1), Some(Rate::nearest_bps(0.2 * C)));
        assert_eq!(sink.reserved(2), Some(Rate::nearest_bps(1.02 * C)));
        // Numbers continue above its own; in the first tick after two leases the whole capacity is divided.
        grants_after(&mut sink, at(7990), &[(1, claim(10, 5, 0.2 * C)), (2, claim(4, 7, 0.3 * C))]);
        assert!(sink.is_recovering());
        assert_eq!(grants_after(&mut sink, at(8000), &[]), [(1, 0.5 * C), (2, 0.5 * C)]);
    }

    #[test]
    fn on_claim__ignores_confirmations_of_unknown_grants() {
        let mut sink = SinkNode::new(Rate::nearest_bps(C), TallyOptions::default());
        assert_eq!(grants_after(&mut sink, at(10), &[(1, claim(1, 1_000_000, 50.0 * C))]), [(1, C)]);
        assert_eq!(sink.reserved(1), Some(Rate::nearest_bps(C)));
        // A cut to a half, and a confirmation of a number that is far above it.
        assert_eq!(grants_after(&mut sink, at(30), &[(2, claim(1, 0, 0.0))]), [(1, 0.5 * C), (2, 0.0)]);
        grants_after(&mut sink, at(50), &[(1, claim(2, u64::MAX, 0.0))]);
        assert_eq!(sink.reserved(1), Some(Rate::nearest_bps(C)));
        assert_eq!(sink.reserved_sum(), Rate::nearest_bps(C));
    }

    #[test]
    fn on_claim__late_messages_do_not_reopen_a_session() {
        let mut sink = SinkNode::new(Rate::nearest_bps(C), TallyOptions::default());
        grants_after(&mut sink, at(10), &[(1, claim(1, 0, 0.0))]);
        let bye = ClaimMessage { is_bye: true, ..claim(3, 1, C) };
        // The bye is answered, by a message without further content.
        assert_eq!(grants_after(&mut sink, at(30), &[(1, bye), (1, claim(2, 1, C))]), [(1, 0.0)]);
        assert_eq!((sink.reserved(1), sink.reserved_sum()), (None, Rate::ZERO));
        assert_eq!(grants_after(&mut sink, at(50), &[(1, bye)]), [(1, 0.0)]);
    }

    #[test]
    fn tick__excess_arrivals_reduce_the_free_capacity() {
        let mut sink = SinkNode::new(Rate::nearest_bps(C), TallyOptions::default());
        grants_after(
            &mut sink,
            at(0),
            &[(1, ClaimMessage { claim: Some(Rate::nearest_bps(0.2 * C)), ..claim(1, 0, 0.0) })],
        );
        // Session 1 has 0.2 C and sends 0.7 C; of the 0.8 C that are not reserved 0.5 C are in use.
        sink.received(1, 0.7 * C * 0.02);
        let grants = grants_after(&mut sink, at(20), &[(2, claim(1, 0, 0.0))]);
        assert_eq!(grants, [(1, 0.2 * C), (2, 0.3 * C)]);
    }
}
