//! A node by claims and grants whose capacity the machine divides.

use fairwave_schemes::Grant;
use fairwave_schemes::node::tally::Standing;
use fairwave_units::{Rate, Time};

use super::{Exchange, Half};
use crate::assigned::AssignedGrant;
use crate::session::SessionId;
use crate::share::unlimited;

impl Exchange {
    /// The share of a capacity that sessions limited by their applications may have beyond it.
    pub(crate) fn headroom(&self) -> f64 {
        self.headroom
    }

    /// Somebody else divides the capacity from now on, or this node does again: what is granted stays in force.
    pub(crate) fn set_assigned(&mut self, is_assigned: bool) {
        self.react_at = None;
        match &mut self.half {
            Half::Source(source) => source.node.set_assigned(is_assigned),
            Half::Sink(sink) => sink.node.set_assigned(is_assigned),
        }
    }

    /// An interval is about to end: the standing of each session in their order, with that of sessions that are over and
    /// of which data may still come. All together claim no more than `most`, if there is such a bound.
    pub(crate) fn look(&mut self, now: Time, most: Option<Rate>) -> Vec<(SessionId, Standing)> {
        let mut standings = Vec::new();
        let say = |session, standing| standings.push((SessionId(session), standing));
        match &mut self.half {
            Half::Source(source) => source.node.look(now, most, say),
            Half::Sink(sink) => sink.node.look(now, most, say),
        }
        standings.sort_unstable_by_key(|(session, _)| *session);
        standings
    }

    /// The machine has divided, in the order of the sessions: their rates count times `part`.
    pub(crate) fn settle(&mut self, now: Time, grants: &[AssignedGrant], part: f64) {
        self.react_at = None;
        let endless = Grant { expected: unlimited(), target: unlimited() };
        let scaled = |grant: Grant| Grant { expected: grant.expected * part, ..grant };
        let grants: Vec<(u64, Grant)> =
            grants.iter().map(|grant| (grant.session.0, grant.grant.map_or(endless, scaled))).collect();
        match &mut self.half {
            Half::Source(source) => source.node.settle(now, &grants, &mut source.out),
            Half::Sink(sink) => sink.node.settle(now, &grants, &mut sink.out),
        }
    }
}
