//! An end node whose grants come from outside: several processes share the capacity, and one of them divides it.

use fairwave_schemes::Grant;
use fairwave_schemes::node::tally::{Claimant, Standing, StandingGrant, weigh_by_group};
use fairwave_units::{Rate, Time};

use super::{EndNode, TickOutcome};
use crate::exchange::Exchange;
use crate::flow_table::Flow;
use crate::session::SessionId;
use crate::told::{Told, ToldGrant, ToldNode};

/// A session of GTP that uses this share of its grant is limited by it.
const USES_GRANT: f64 = 0.8;
/// Of a session that no node holds.
pub(super) const NO_LIMIT: f64 = f64::MAX;

impl EndNode {
    /// From now on grants are assigned from outside: the node has no ticks. Its sessions' grants stay in force until
    /// then. At a node that is already assigned this updates the assignment.
    pub fn be_told(&mut self, by: ToldNode) {
        let bound = self.told.map_or(self.capacity, |told| told.bound);
        if self.told.is_none() {
            self.table.iter_mut().for_each(|entry| entry.is_heard = false);
            if let Some(exchange) = &mut self.exchange {
                exchange.set_told(true);
            }
        }
        self.told = Some(Told { by, bound });
        // An overflow lowers only this host's receiving capacity.
        self.capacity = by.capacity.map_or(bound, |capacity| capacity.min(bound));
        self.interval = by.interval;
        let capacity = self.capacity();
        if let Some(exchange) = &mut self.exchange {
            exchange.set_capacity(capacity);
        }
    }

    /// From now on it divides a capacity itself, with the sessions that it has: its first tick is an interval from now.
    pub fn be_own(&mut self, now: Time, capacity: Rate) {
        self.told = None;
        if let Some(exchange) = &mut self.exchange {
            exchange.set_told(false);
        }
        self.capacity = capacity;
        self.interval = self.rule.interval(self.table.largest_rtt());
        self.next_tick = now.saturating_add(self.interval);
        self.last_tick = None;
    }

    /// Whether grants come from outside.
    pub fn is_told(&self) -> bool {
        self.told.is_some()
    }

    /// Whether the capacity is known.
    pub fn knows_capacity(&self) -> bool {
        self.told.is_none_or(|told| told.by.capacity.is_some())
    }

    /// `measured` holds each session's use in the interval that ends about now; returns the rates that count, in the
    /// order of the sessions' names, to be reported to the machine.
    pub fn look_told(
        &mut self,
        now: Time,
        measured: impl FnMut(SessionId) -> Rate,
        mut tell: impl FnMut(LookedFlow<'_>),
    ) {
        self.look(now, measured);
        let standings = self.standings(now);
        let weights = self.told_weights(&standings);
        let mut standings = standings.into_iter().peekable();
        for ((entry, row), weight) in self.table.iter_mut().zip(&self.rows).zip(weights) {
            let (session, mut standing) = (entry.flow.session, None);
            while let Some((of, said)) = standings.next_if(|(of, _)| *of <= session) {
                if of == session {
                    standing = Some(said);
                } else {
                    tell(LookedFlow::over(of, said));
                }
            }
            let (measured, expected) = (row.measured, entry.granted.current());
            tell(LookedFlow { session, flow: Some(&entry.flow), weight, measured, expected, standing });
        }
        standings.for_each(|(of, said)| tell(LookedFlow::over(of, said)));
    }

    /// The weights by which one level among all sessions of the machine, or of a user, gives each group of sessions
    /// here what one session of weight 1 has: the machine knows no groups of sessions.
    fn told_weights(&self, standings: &[(SessionId, Standing)]) -> Vec<f64> {
        let endless = f64::INFINITY;
        let mut used_bps = 0.0;
        let (mut groups, mut claims) = (Vec::with_capacity(self.rows.len()), Vec::with_capacity(self.rows.len()));
        for (entry, row) in self.table.iter().zip(&self.rows) {
            used_bps += row.measured.as_bps();
            groups.push(entry.group);
            let at = standings.binary_search_by_key(&entry.flow.session, |(session, _)| *session);
            let claim_bps = match at {
                Ok(at) => standings[at].1.claim.map_or(endless, Rate::as_bps),
                // A session that uses its grant could use more.
                Err(_) if row.measured < entry.granted.current() * USES_GRANT => row.measured.as_bps(),
                Err(_) => endless,
            };
            claims.push(Claimant { claim_bps, weight: row.weight, minimum_bps: row.minimum.as_bps() });
        }
        weigh_by_group(used_bps, &groups, &mut claims);
        claims.into_iter().map(|claim| claim.weight).collect()
    }

    /// This host's own limit, if it is less than the machine's capacity, which the machine divides.
    fn own_limit(&self) -> Option<Rate> {
        let bound = self.told.map_or(self.capacity, |told| told.bound);
        let most = self.lowered.map_or(bound, |lowered| lowered.min(bound));
        let machine = self.told.and_then(|told| told.by.capacity);
        Some(most).filter(|most| *most < machine.unwrap_or(Rate::nearest_bps(NO_LIMIT)))
    }

    /// Reservations of the sessions of a node with claims and grants, in the order of their names.
    fn standings(&mut self, now: Time) -> Vec<(SessionId, Standing)> {
        let mut standings = Vec::new();
        let most = self.own_limit();
        if let Some(exchange) = &mut self.exchange {
            for (entry, row) in self.table.iter_mut().zip(&self.rows) {
                exchange.see_measured(now, entry.flow.session, row.measured);
            }
            exchange.look(now, most, &mut standings);
        }
        standings
    }

    /// Applies the machine's `grants`, in the order of the sessions' names. A session without one keeps its own. If
    /// their sum is more than this host's own limit, or than its socket could take recently, all are scaled down alike.
    /// The machine's capacity is not such a limit: grants are steps ahead of the sessions' use, and those of sessions
    /// that cannot take them would keep the others from free capacity.
    pub fn settle_told(&mut self, now: Time, grants: &[ToldGrant]) -> &[TickOutcome] {
        let elapsed = self.last_tick.map_or(fairwave_units::Duration::ZERO, |last| now.since(last));
        self.recover(elapsed);
        self.last_tick = Some(now);
        let sum: f64 = grants.iter().filter_map(|grant| grant.expected).map(Rate::as_bps).sum();
        // By claims the machine grants its capacity and the headroom.
        let headroom = self.exchange.as_ref().map_or(0.0, Exchange::headroom);
        let most = self.own_limit().map_or(f64::INFINITY, |most| most.as_bps() * (1.0 + headroom));
        let part = if sum > most { most / sum } else { 1.0 };
        self.outcomes.clear();
        if self.exchange.is_some() {
            self.settle_exchange(now, grants, part);
            return &self.outcomes;
        }
        let capacity = self.capacity();
        let mut grants = grants.iter().peekable();
        for (at, entry) in self.table.iter_mut().enumerate() {
            let session = entry.flow.session;
            while grants.next_if(|grant| grant.session < session).is_some() {}
            let Some(grant) = grants.next_if(|grant| grant.session == session) else { continue };
            // No session uses more than there is.
            let granted = |expected: Rate| (expected * part).min(capacity);
            let expected = grant.expected.map_or(Rate::nearest_bps(NO_LIMIT), granted);
            entry.granted.grant(now, expected);
            entry.is_heard = true;
            self.outcomes.push(TickOutcome {
                session,
                measured: self.rows.get(at).map_or(Rate::ZERO, |row| row.measured),
                grant: Grant { expected, target: grant.target * part },
                allowed: expected,
                remote: None,
                exceeds_grant: grant.exceeds || grant.expected.is_some() && entry.exceeds_grant(self.interval),
            });
        }
        &self.outcomes
    }

    /// Applies grants to ledgers, at a node with claims and grants.
    fn settle_exchange(&mut self, now: Time, grants: &[ToldGrant], part: f64) {
        let Some(exchange) = &mut self.exchange else { return };
        let told = |grant: &ToldGrant| {
            let no_limit = Rate::nearest_bps(NO_LIMIT);
            let (rate, offer) = grant.expected.map_or((no_limit, no_limit), |rate| (rate * part, grant.target));
            StandingGrant { session: grant.session.0, rate, offer }
        };
        let standing: Vec<StandingGrant> = grants.iter().map(told).collect();
        exchange.settle(now, &standing);
        let mut grants = grants.iter().peekable();
        for (at, entry) in self.table.iter_mut().enumerate() {
            let session = entry.flow.session;
            while grants.next_if(|grant| grant.session < session).is_some() {}
            let grant = grants.next_if(|grant| grant.session == session);
            entry.is_heard |= grant.is_some();
            let measured = self.rows.get(at).map_or(Rate::ZERO, |row| row.measured);
            let outcome = TickOutcome::of_rates(session, measured, exchange.rates(session));
            entry.granted.grant(now, outcome.allowed);
            let exceeds_grant = grant.is_some_and(|grant| grant.exceeds) || entry.exceeds_grant(self.interval);
            self.outcomes.push(TickOutcome { exceeds_grant, ..outcome });
        }
    }
}

/// The report of an assigned node on one session.
#[derive(Clone, Copy, Debug)]
pub struct LookedFlow<'a> {
    /// The session.
    pub session: SessionId,
    /// Its state; `None` if the session has ended.
    pub flow: Option<&'a Flow>,
    /// Its share relative to the other sessions of the machine.
    pub weight: f64,
    /// The part of its rate that counts.
    pub measured: Rate,
    /// Its grant in force.
    pub expected: Rate,
    /// Its reservation, at a node with claims and grants.
    pub standing: Option<Standing>,
}

impl LookedFlow<'_> {
    fn over(session: SessionId, standing: Standing) -> Self {
        Self {
            session,
            flow: None,
            weight: 1.0,
            measured: Rate::ZERO,
            expected: standing.granted,
            standing: Some(standing),
        }
    }
}
