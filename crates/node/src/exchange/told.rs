//! A node by claims and grants whose capacity the machine divides.

use fairwave_schemes::node::tally::{Standing, StandingGrant};
use fairwave_units::{Rate, Time};

use super::{Exchange, Half};
use crate::session::SessionId;

impl Exchange {
    /// The share of a capacity that sessions limited by their applications may have beyond it.
    pub fn headroom(&self) -> f64 {
        self.headroom
    }

    /// Somebody else divides the capacity from now on, or this node does again: what is granted stays in force.
    pub fn set_told(&mut self, is_told: bool) {
        self.react_at = None;
        match &mut self.half {
            Half::Source(source) => source.node.set_told(is_told),
            Half::Sink(sink) => sink.node.set_told(is_told),
        }
    }

    /// An interval is about to end: where each session stands, those with it that are over and of which something may
    /// still come. All together claim no more than `most`, if there is such a bound.
    pub fn look(&mut self, now: Time, most: Option<Rate>, standings: &mut Vec<(SessionId, Standing)>) {
        standings.clear();
        let say = |session, standing| standings.push((SessionId(session), standing));
        match &mut self.half {
            Half::Source(source) => source.node.look(now, most, say),
            Half::Sink(sink) => sink.node.look(now, most, say),
        }
        standings.sort_unstable_by_key(|(session, _)| *session);
    }

    /// The machine has divided, in the order of the sessions.
    pub fn settle(&mut self, now: Time, grants: &[StandingGrant]) {
        self.react_at = None;
        match &mut self.half {
            Half::Source(source) => source.node.settle(now, grants, &mut source.out),
            Half::Sink(sink) => sink.node.settle(now, grants, &mut sink.out),
        }
    }
}
