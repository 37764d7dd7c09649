//! End nodes that find out how much of their capacity there is.

use fairwave_node::Direction;
use fairwave_schemes::node::PathTotals;
use fairwave_units::Time;

use super::Host;
use crate::handshake::Crypto;

impl<C: Crypto> Host<C> {
    /// From now on both end nodes treat their configured capacity as an upper bound: if all sessions of a node lose or
    /// queue alike, it allocates less ([`CapacityFinder`](fairwave_schemes::node::CapacityFinder)). No effect if a
    /// capacity is unknown or divided elsewhere.
    pub fn find_capacity(&mut self) {
        for direction in [Direction::Sending, Direction::Receiving] {
            if let Some(node) = self.control.grants.nodes.get_mut(direction) {
                node.capacity.find();
            }
        }
    }

    /// Passes the fate of their sessions' packets to end nodes that ask for it.
    pub(super) fn see_paths(&mut self, now: Time, direction: Direction) {
        if !self.control.grants.nodes.get(direction).is_some_and(|node| node.capacity.finds()) {
            return;
        }
        for measured in &self.measured {
            let facts = match direction {
                Direction::Sending => self.outbound.path_facts(now, measured.session),
                Direction::Receiving => self.inbound.path_facts(now, measured.session),
            };
            let Some(facts) = facts else { continue };
            // A sink sees how long packets waited on their way; a source knows only round trips.
            let waiting = facts.waiting.or_else(|| facts.queueing());
            let (arrived, lost, arrived_bytes) = (facts.all.arrived, facts.all.lost, facts.all.arrived_bytes);
            let totals = PathTotals { arrived, lost, arrived_bytes, waiting };
            if let Some(node) = self.control.grants.nodes.get_mut(direction) {
                node.capacity.see_path(measured.session, totals);
            }
        }
    }
}
