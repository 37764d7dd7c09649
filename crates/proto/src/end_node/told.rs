//! An end node whose grants come from outside: several processes share the capacity, and one of them divides it.

use fairwave_schemes::Grant;
use fairwave_units::{Rate, Time};

use super::{EndNode, TickOutcome};
use crate::codec::SessionId;
use crate::told::{Told, ToldGrant, ToldNode};

/// Of a session that no node holds.
pub(super) const NO_LIMIT: f64 = f64::MAX;

impl EndNode {
    /// From now on grants come from outside: the node has no ticks. What its sessions were granted stays in force until
    /// then. One that is told already is told something newer.
    pub(crate) fn be_told(&mut self, by: ToldNode) {
        let bound = self.told.map_or(self.capacity, |told| told.bound);
        let looked_weights = self.told.map_or(0.0, |told| told.looked_weights);
        self.told = Some(Told { by, bound, looked_weights });
        // An overflow lowers what there is to receive for this host alone.
        self.capacity = by.capacity.map_or(bound, |capacity| capacity.min(bound));
        self.interval = by.interval;
    }

    /// From now on it divides a capacity itself, with the sessions that it has: its first tick is an interval from now.
    pub(crate) fn be_own(&mut self, now: Time, capacity: Rate) {
        self.told = None;
        self.capacity = capacity;
        self.interval = self.rule.interval(self.table.largest_rtt());
        self.next_tick = now.saturating_add(self.interval);
        self.last_tick = None;
    }

    /// Whether grants come from outside.
    pub(crate) fn is_told(&self) -> bool {
        self.told.is_some()
    }

    /// Whether it is known what there is to share.
    pub(crate) fn knows_capacity(&self) -> bool {
        self.told.is_none_or(|told| told.by.capacity.is_some())
    }

    /// All weights that share the capacity of a told node.
    pub(super) fn told_weights(&self) -> Option<f64> {
        let told = self.told?;
        // Who joined here since the machine was last told of this host's sessions is not among its weights.
        Some(told.by.weights + (self.table.weights() - told.looked_weights).max(0.0))
    }

    /// What each session used in the interval that ends about now comes from `measured`; what of it counts follows in
    /// the order of the sessions' names, and is to be told to the machine.
    pub(crate) fn look_told(
        &mut self,
        now: Time,
        measured: impl FnMut(SessionId) -> Rate,
        mut tell: impl FnMut(&crate::flow_table::Flow, Rate, Rate),
    ) {
        self.look(now, measured);
        for (entry, row) in self.table.iter_mut().zip(&self.rows) {
            tell(&entry.flow, row.measured, entry.granted.current());
        }
        let weights = self.table.weights();
        if let Some(told) = &mut self.told {
            told.looked_weights = weights;
        }
    }

    /// The machine has granted: `grants` are in the order of the sessions' names. A session that none is for keeps what
    /// it has. Where their sum is more than this host's own limit, or than what its socket could take of late, all are
    /// scaled down alike.
    pub(crate) fn settle_told(&mut self, now: Time, grants: &[ToldGrant]) -> &[TickOutcome] {
        let elapsed = self.last_tick.map_or(fairwave_units::Duration::ZERO, |last| now.since(last));
        self.recover(elapsed);
        self.last_tick = Some(now);
        let sum: f64 = grants.iter().filter_map(|grant| grant.expected).map(Rate::as_bps).sum();
        let most = self.capacity().as_bps();
        let part = if sum > most { most / sum } else { 1.0 };
        self.outcomes.clear();
        let mut grants = grants.iter().peekable();
        for (at, entry) in self.table.iter_mut().enumerate() {
            let session = entry.flow.session;
            while grants.next_if(|grant| grant.session < session).is_some() {}
            let Some(grant) = grants.next_if(|grant| grant.session == session) else { continue };
            let expected = grant.expected.map_or(Rate::nearest_bps(NO_LIMIT), |expected| expected * part);
            entry.granted.grant(now, expected);
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
}
