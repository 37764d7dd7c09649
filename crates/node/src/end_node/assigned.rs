//! An end node whose grants are assigned: several processes share the capacity, and the machine's daemon divides it.

use fairwave_schemes::node::tally::{Claimant, Standing, weigh_by_group};
use fairwave_schemes::{Grant, Row};
use fairwave_units::{Duration, Rate, Time};

use super::{EndNode, TickOutcome};
use crate::assigned::{Assigned, AssignedGrant, Assignment, Looked};
use crate::divider::Divider;
use crate::exchange::Exchange;
use crate::flow_table::FlowTable;
use crate::session::SessionId;
use crate::share::{Share, unlimited};
use fairwave_schemes::Terms;

/// A session of GTP that uses this share of its grant is limited by it.
const USES_GRANT: f64 = 0.8;

impl EndNode {
    /// From now on grants are assigned: the node has no ticks. Its sessions' grants stay in force until then. At a node
    /// that is already assigned this updates the assignment.
    pub fn assign(&mut self, by: Assignment) {
        let bound = self.machine.map_or(self.capacity.configured(), |machine| machine.bound);
        let is_new = self.machine.replace(Assigned { by, bound }).is_none();
        if is_new {
            self.table.iter_mut().for_each(|entry| entry.is_heard = false);
        }
        // An overflow lowers only this host's receiving capacity.
        self.capacity.set(by.capacity.map_or(bound, |capacity| capacity.min(bound)));
        self.schedule.set_interval(by.interval);
        if let Some(exchange) = self.divider.exchange_mut() {
            if is_new {
                exchange.set_assigned(true);
            }
            exchange.set_capacity(self.capacity.usable());
        }
    }

    /// From now on it divides a capacity itself, with the sessions that it has: its first tick is an interval from now.
    /// A node that is not assigned gets this capacity from its next tick on.
    pub fn divide_itself(&mut self, now: Time, capacity: Rate) {
        self.capacity.set(capacity);
        if self.machine.take().is_some() {
            if let Some(exchange) = self.divider.exchange_mut() {
                exchange.set_assigned(false);
            }
            self.schedule.restart(now, self.table.largest_rtt());
        }
    }

    /// The machine's assignment, if it divides the capacity.
    pub fn assignment(&self) -> Option<&Assignment> {
        self.machine.as_ref().map(|machine| &machine.by)
    }

    /// `measured` holds each session's use in the interval that ends about now; returns the rates that count, in the
    /// order of the sessions' names, to be reported to the machine.
    pub fn look_assigned(
        &mut self,
        now: Time,
        measured: impl FnMut(SessionId) -> Rate,
        mut report: impl FnMut(Looked),
    ) {
        self.look(now, measured);
        let most = self.machine.and_then(|machine| machine.own_limit(&self.capacity));
        // Reservations, in the order of the sessions' names.
        let standings = match &mut self.divider {
            Divider::Rule(_) => Vec::new(),
            Divider::Claims(exchange) => {
                exchange.see_measured(now, &self.table);
                exchange.look(now, most)
            }
        };
        let weights = weights_at_machine(&self.table, &self.rows, &standings);
        let mut standings = standings.into_iter().peekable();
        for (entry, weight) in self.table.iter().zip(weights) {
            let (session, mut standing) = (entry.flow.session, None);
            while let Some((of, said)) = standings.next_if(|(of, _)| *of <= session) {
                if of == session {
                    standing = Some(said);
                } else {
                    report(lingering(of, said));
                }
            }
            report(Looked {
                session,
                measured: entry.measured,
                terms: Terms { weight, ..entry.flow.terms },
                rtt: entry.flow.rtt,
                waiting: None,
                expected: entry.granted.current(),
                standing,
                is_over: false,
            });
        }
        standings.for_each(|(of, said)| report(lingering(of, said)));
    }

    /// Applies the machine's `grants`, in the order of the sessions' names. A session without one keeps its own. If
    /// their sum is more than this host's own limit, or than its socket could take recently, all are scaled down alike.
    /// The machine's capacity is not such a limit: grants are steps ahead of the sessions' use, and those of sessions
    /// that cannot take them would keep the others from free capacity.
    pub fn settle_assigned(&mut self, now: Time, grants: &[AssignedGrant]) -> &[TickOutcome] {
        self.capacity.recover(self.schedule.elapsed(now));
        self.schedule.note_tick(now);
        let sum: f64 = grants.iter().filter_map(|grant| grant.grant).map(|grant| grant.expected.as_bps()).sum();
        // By claims the machine grants its capacity and the headroom.
        let headroom = self.divider.exchange().map_or(0.0, Exchange::headroom);
        let most = self.machine.and_then(|machine| machine.own_limit(&self.capacity));
        let most = most.map_or(f64::INFINITY, |most| most.as_bps() * (1.0 + headroom));
        let part = if sum > most { most / sum } else { 1.0 };
        if let Divider::Claims(exchange) = &mut self.divider {
            exchange.settle(now, grants, part);
        }
        // No session of a rule uses more than there is.
        let capacity = self.capacity.usable();
        let endless = Share::of_grant(Grant { expected: unlimited(), target: unlimited() });
        let by_rule = |grant: Grant| {
            Share::of_grant(Grant { expected: (grant.expected * part).min(capacity), target: grant.target * part })
        };
        self.shares.clear();
        let mut grants = grants.iter().peekable();
        for entry in self.table.iter_mut() {
            let session = entry.flow.session;
            while grants.next_if(|grant| grant.session < session).is_some() {}
            let grant = grants.next_if(|grant| grant.session == session);
            entry.is_heard |= grant.is_some();
            let share = match &self.divider {
                Divider::Rule(_) => grant.map(|grant| grant.grant.map_or(endless, by_rule)),
                Divider::Claims(exchange) => Some(exchange.share(session).unwrap_or_default()),
            };
            let exceeds = grant.is_some_and(|grant| grant.exceeds);
            self.shares.push(share.map(|share| Share { exceeds, ..share }));
        }
        self.settle(now);
        &self.outcomes
    }
}

/// The weights by which one level among all sessions of the machine, or of a user, gives each group of sessions here
/// what one session of weight 1 has: the machine knows no groups of sessions.
fn weights_at_machine(flows: &FlowTable, rows: &[Row], standings: &[(SessionId, Standing)]) -> Vec<f64> {
    let endless = f64::INFINITY;
    let mut used_bps = 0.0;
    let (mut groups, mut claims) = (Vec::with_capacity(rows.len()), Vec::with_capacity(rows.len()));
    for (entry, row) in flows.iter().zip(rows) {
        used_bps += row.measured.as_bps();
        groups.push(row.terms.group);
        let at = standings.binary_search_by_key(&entry.flow.session, |(session, _)| *session);
        let claim_bps = match at {
            Ok(at) => standings[at].1.claim.map_or(endless, Rate::as_bps),
            // A session that uses its grant could use more.
            Err(_) if row.measured < entry.granted.current() * USES_GRANT => row.measured.as_bps(),
            Err(_) => endless,
        };
        claims.push(Claimant { claim_bps, weight: row.terms.weight, minimum_bps: row.terms.minimum.as_bps() });
    }
    weigh_by_group(used_bps, &groups, &mut claims);
    claims.into_iter().map(|claim| claim.weight).collect()
}

/// A session that has ended.
fn lingering(session: SessionId, standing: Standing) -> Looked {
    Looked {
        session,
        measured: Rate::ZERO,
        terms: Terms::default(),
        rtt: Duration::ZERO,
        waiting: None,
        expected: standing.granted,
        standing: Some(standing),
        is_over: true,
    }
}
