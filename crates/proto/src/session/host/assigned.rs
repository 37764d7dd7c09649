//! A host whose end nodes are the machine's.

use fairwave_node::{AssignedGrant, Assignment, Direction, EndNode, Looked, NodeConfig};
use fairwave_units::{Rate, Time};

use super::Host;
use crate::handshake::Crypto;

impl<C: Crypto> Host<C> {
    /// Sets the end node of a direction, also for open sessions: each keeps its rate. Without an end node only the
    /// sessions' paths set their rates.
    pub fn set_node(&mut self, now: Time, direction: Direction, config: Option<NodeConfig>) {
        let node = config.map(|config| EndNode::new(now, direction, config));
        match direction {
            _ if self.control.grants.nodes.get(direction).is_some() => self.measured.clear(),
            Direction::Sending => self.outbound.measure(now, &mut self.measured),
            Direction::Receiving => self.inbound.measure(now, &mut self.measured),
        }
        self.control.grants.set_node(now, &mut self.control.peers, direction, node, &self.measured);
        self.route(now);
    }

    /// Hands the end node of a direction, if there is one, to a machine: it does not tick by itself any more. The
    /// driver assigns each session's grant ([`Host::settle`]), and reads each session's use ([`Host::look`]). Call it
    /// again when the assignment changes. A node with claims and grants keeps its ledgers: past grants, and the traffic
    /// that may still arrive by them.
    pub fn assign(&mut self, direction: Direction, by: Assignment) {
        if let Some(node) = self.control.grants.nodes.get_mut(direction) {
            node.assign(by);
        }
    }

    /// Returns the assigned end node of a direction to a capacity of this host, with all sessions as they are; a node
    /// that is not assigned gets this capacity.
    pub fn divide_itself(&mut self, now: Time, direction: Direction, capacity: Rate) {
        if let Some(node) = self.control.grants.nodes.get_mut(direction) {
            node.divide_itself(now, capacity);
        }
    }

    /// Whether the sessions of a direction share by claims and grants.
    pub fn gives_grants(&self, direction: Direction) -> bool {
        self.control.grants.nodes.exchange(direction).is_some()
    }

    /// A node that shares by claims and grants hears what its sessions used since it last did.
    pub(super) fn see_used(&mut self, now: Time, direction: Direction) {
        if self.control.grants.nodes.exchange(direction).is_some() {
            match direction {
                Direction::Sending => self.outbound.use_up(now, &mut self.used),
                Direction::Receiving => self.inbound.use_up(&mut self.used),
            }
            self.control.grants.nodes.see_used(direction, &self.used);
        }
    }

    /// An interval is about to end: what each session of an assigned node used since the last look, in the order of their
    /// names.
    pub fn look(&mut self, now: Time, direction: Direction) -> &[Looked] {
        match direction {
            Direction::Sending => self.outbound.measure(now, &mut self.measured),
            Direction::Receiving => self.inbound.measure(now, &mut self.measured),
        }
        self.see_used(now, direction);
        self.control.grants.nodes.look(now, direction, &self.measured, &mut self.looked);
        &self.looked
    }

    /// The machine's node has granted these rates, in the order of the sessions' names, until the next such call. A
    /// session that none is for keeps what it has.
    pub fn settle(&mut self, now: Time, direction: Direction, grants: &[AssignedGrant]) {
        self.control.grants.settle(now, &mut self.control.peers, direction, grants);
        self.route(now);
    }
}
