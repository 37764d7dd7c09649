//! End nodes that come and go while sessions are open, and those whose grants come from outside.

use fairwave_node::{AssignedGrant, Assignment, Beginning, Direction, EndNode, Flow, Looked};
use fairwave_units::{Duration, Rate, Time};

use super::{Control, ControlEvent};
use crate::handshake::Crypto;
use crate::session::opened::Measured;

/// A source without an end node gives its sinks as long to answer as one whose node has the shortest interval.
pub(crate) const INTERVAL_OF_NONE: Duration = Duration::from_millis(10);

impl<C: Crypto> Control<C> {
    /// A direction has this node from now on, or none: all sessions that are open share it, each with what it has.
    /// A session that no node has held has what was measured of it.
    pub(crate) fn set_node(
        &mut self,
        now: Time,
        direction: Direction,
        mut node: Option<EndNode>,
        measured: &[Measured],
    ) {
        let before = self.nodes[direction as usize].take();
        for (session, peer) in self.peers.iter_mut() {
            let takes_part = match direction {
                Direction::Sending => peer.opened.sends,
                Direction::Receiving => peer.opened.receives,
            };
            if !takes_part || peer.closing.is_some() {
                continue;
            }
            peer.exchanges[direction as usize] = false;
            let Some(node) = &mut node else {
                // Nothing holds it any more at this end.
                let rate = Rate::nearest_bps(f64::MAX);
                self.events.push_back(ControlEvent::Grant { session, direction, rate, interval: INTERVAL_OF_NONE });
                continue;
            };
            let desired = match direction {
                Direction::Sending => peer.desired,
                Direction::Receiving => peer.ceiling,
            };
            let rtt = peer.rtt.known().unwrap_or(Duration::ZERO);
            let has = before.as_ref().and_then(|before| before.table.expected(session));
            let at = measured.binary_search_by_key(&session, |measured| measured.session).ok();
            let uses = at.map_or(Rate::ZERO, |at| measured[at].rate);
            let start = has.filter(|rate| rate.as_bps() < f64::MAX).unwrap_or(uses);
            let flow = Flow { desired, group: peer.group, ..Flow::new(session, peer.options, rtt) };
            // Its handshake said that this end gives and takes no grants. Names differ, and the options were checked.
            let _ = node.join(now, flow, start, Beginning::Plain);
        }
        self.nodes[direction as usize] = node;
    }

    /// From now on the node of a direction, if there is one, receives its grants from outside.
    pub(crate) fn assign(&mut self, direction: Direction, by: Assignment) {
        if let Some(node) = self.node_mut(direction) {
            node.assign(by);
        }
    }

    /// Collects the use of an assigned node's sessions; `measured` is in the order of their names.
    pub(crate) fn look(&mut self, now: Time, direction: Direction, measured: &[Measured], looked: &mut Vec<Looked>) {
        looked.clear();
        let Some(node) = self.node_mut(direction).filter(|node| node.assignment().is_some()) else { return };
        if let Some(waiting) = measured.iter().filter_map(|measured| measured.waiting).max() {
            node.see_queue(waiting);
        }
        let of = |session| measured.binary_search_by_key(&session, |measured: &Measured| measured.session).ok();
        let rate = |session| of(session).map_or(Rate::ZERO, |at| measured[at].rate);
        node.look_assigned(now, rate, |row| {
            let waiting = of(row.session).and_then(|at| measured[at].waiting);
            looked.push(Looked { waiting, ..row });
        });
    }

    /// Assigns grants to an assigned node's sessions, in the order of their names.
    pub(crate) fn settle(&mut self, now: Time, direction: Direction, grants: &[AssignedGrant]) {
        let Some(node) = self.node_mut(direction).filter(|node| node.assignment().is_some()) else { return };
        let outcomes = node.settle_assigned(now, grants).to_vec();
        let interval = node.beat.interval();
        self.say_words(direction);
        self.follow(now, direction, interval, &outcomes);
    }
}
