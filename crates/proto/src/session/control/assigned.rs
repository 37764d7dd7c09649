//! End nodes that come and go while sessions are open.

use fairwave_node::{Beginning, Direction, EndNode, Flow, Terms};
use fairwave_units::{Duration, Rate, Time};

use super::{Control, ControlEvent};
use crate::handshake::Crypto;
use crate::session::end_nodes::rate_of;
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
        let before = self.nodes.replace(direction, None);
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
            let uses = rate_of(measured, session);
            let start = has.filter(|rate| rate.as_bps() < f64::MAX).unwrap_or(uses);
            let flow = Flow::new(session, Terms { desired, ..peer.terms }, rtt);
            // Its handshake said that this end gives and takes no grants. Names differ, and the options were checked.
            let _ = node.join(now, flow, start, Beginning::Plain);
        }
        self.nodes.replace(direction, node);
    }
}
