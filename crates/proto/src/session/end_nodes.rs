//! Both end nodes of a host.

use fairwave_node::{AssignedGrant, Direction, EndNode, Exchange, Flow, Looked, TickOutcome};
use fairwave_units::{Duration, Rate, Time};

use crate::send::usage::Usage;
use crate::session::opened::Measured;
use crate::wire::codec::{Ahead, NO_LIMIT_BPS, SessionId};
use crate::wire::features::Features;

/// The end nodes of the directions whose capacity is known.
pub(crate) struct EndNodes {
    nodes: [Option<EndNode>; 2],
}

/// All directions, in the order of their numbers.
pub(crate) const BOTH: [Direction; 2] = [Direction::Sending, Direction::Receiving];

/// What a node granted, and for how long.
pub(crate) type Granted = (Duration, Vec<TickOutcome>);

impl EndNodes {
    pub(crate) fn new(nodes: [Option<EndNode>; 2]) -> Self {
        Self { nodes }
    }

    pub(crate) fn get(&self, direction: Direction) -> Option<&EndNode> {
        self.nodes[direction as usize].as_ref()
    }

    pub(crate) fn get_mut(&mut self, direction: Direction) -> Option<&mut EndNode> {
        self.nodes[direction as usize].as_mut()
    }

    /// Sets the node of a direction; returns the one before.
    pub(crate) fn replace(&mut self, direction: Direction, node: Option<EndNode>) -> Option<EndNode> {
        std::mem::replace(&mut self.nodes[direction as usize], node)
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut EndNode> {
        self.nodes.iter_mut().flatten()
    }

    /// What shares the capacity of a direction by claims and grants.
    pub(crate) fn exchange(&self, direction: Direction) -> Option<&Exchange> {
        self.get(direction).and_then(|node| node.divider.exchange())
    }

    pub(crate) fn exchange_mut(&mut self, direction: Direction) -> Option<&mut Exchange> {
        self.get_mut(direction).and_then(|node| node.divider.exchange_mut())
    }

    /// This host's features, for its peers.
    pub(crate) fn features(&self) -> Features {
        let exchanges = |direction| self.exchange(direction).is_some();
        Features { claims: exchanges(Direction::Sending), grants: exchanges(Direction::Receiving) }
    }

    /// Changes what the nodes know of a session, which may be in one of them or in both: whether one took it.
    pub(crate) fn change(&mut self, session: SessionId, change: impl Fn(&mut Flow)) -> bool {
        self.all_mut().filter_map(|node| node.change(session, &change).then_some(())).count() > 0
    }

    pub(crate) fn leave(&mut self, session: SessionId) {
        self.all_mut().for_each(|node| _ = node.leave(session));
    }

    /// Nothing comes any more of a session that has left, or that will not be.
    pub(crate) fn forget(&mut self, session: SessionId) {
        self.all_mut().for_each(|node| node.forget(session));
    }

    /// A session that a start was promised to will not be.
    pub(crate) fn take_back_start(&mut self, session: SessionId) {
        self.all_mut().for_each(|node| node.take_back_start(session));
    }

    /// The node whose control interval is over.
    pub(crate) fn due(&self, now: Time) -> Option<Direction> {
        let next = |direction: Direction| self.get(direction).and_then(EndNode::next_tick);
        BOTH.into_iter().find(|direction| next(*direction).is_some_and(|at| at <= now))
    }

    /// The node that had news a moment ago.
    pub(crate) fn due_for_news(&self, now: Time) -> Option<Direction> {
        let react_at = |direction: Direction| self.get(direction).and_then(EndNode::react_at);
        BOTH.into_iter().find(|direction| react_at(*direction).is_some_and(|at| at <= now))
    }

    /// When a node with sessions has something to do.
    pub(crate) fn next_timeout(&self) -> Option<Time> {
        let used = || self.nodes.iter().flatten().filter(|node| !node.table.is_empty());
        used().filter_map(EndNode::next_tick).chain(used().filter_map(EndNode::react_at)).min()
    }

    /// Passes the use of a node's sessions in the interval that ends now.
    pub(crate) fn see_used(&mut self, direction: Direction, used: &[(SessionId, Usage)]) {
        if let Some(exchange) = self.exchange_mut(direction) {
            for (session, Usage { bytes, waits }) in used {
                exchange.see_used(*session, *bytes, *waits);
            }
        }
    }

    /// A control interval of a node has ended, with the sessions' rates in the order of their names.
    pub(crate) fn tick(&mut self, now: Time, direction: Direction, measured: &[Measured]) -> Option<Granted> {
        let node = self.get_mut(direction)?;
        see_queue(node, measured);
        let outcomes = node.tick(now, |session| rate_of(measured, session)).to_vec();
        Some((node.schedule.interval(), outcomes))
    }

    /// A node does what its news ask for, between two control intervals.
    pub(crate) fn react(&mut self, now: Time, direction: Direction) -> Option<Granted> {
        let node = self.get_mut(direction)?;
        let outcomes = node.react(now).to_vec();
        Some((node.schedule.interval(), outcomes))
    }

    /// Collects the use of an assigned node's sessions; `measured` is in the order of their names.
    pub(crate) fn look(&mut self, now: Time, direction: Direction, measured: &[Measured], looked: &mut Vec<Looked>) {
        looked.clear();
        let Some(node) = self.get_mut(direction).filter(|node| node.assignment().is_some()) else { return };
        see_queue(node, measured);
        node.look_assigned(
            now,
            |session| rate_of(measured, session),
            |row| {
                let waiting = of(measured, row.session).and_then(|measured| measured.waiting);
                looked.push(Looked { waiting, ..row });
            },
        );
    }

    /// Assigns grants to an assigned node's sessions, in the order of their names.
    pub(crate) fn settle(&mut self, now: Time, direction: Direction, grants: &[AssignedGrant]) -> Option<Granted> {
        let node = self.get_mut(direction).filter(|node| node.assignment().is_some())?;
        let outcomes = node.settle_assigned(now, grants).to_vec();
        Some((node.schedule.interval(), outcomes))
    }

    /// This end of a direction as a fair start takes it; `None` if a session starts there with nothing.
    pub(crate) fn promise_start(
        &mut self,
        direction: Direction,
        session: SessionId,
        weight: f64,
        has_fair_start: bool,
    ) -> Option<(Rate, f64)> {
        // A node that sends only what was granted starts with nothing, whatever the other end would give.
        let starts = has_fair_start || self.exchange(direction).is_some();
        let node = self.get_mut(direction).filter(|node| starts && knows_capacity(node))?;
        Some(node.promise_start(session, weight))
    }

    /// Whether the capacity of a direction is known.
    pub(crate) fn knows_capacity(&self, direction: Direction) -> bool {
        self.get(direction).is_some_and(knows_capacity)
    }

    /// The claim and the promise that this host sends ahead of a requested session, each if the peer takes it. A sink's
    /// promise is reserved from now on.
    pub(crate) fn ahead(&mut self, now: Time, flow: &Flow, takes_claim: bool, takes_promise: bool) -> Ahead {
        let bps = |rate: Option<Rate>| rate.map_or(0, |rate| (rate.as_bps() as u64).min(NO_LIMIT_BPS));
        let source = self.exchange_mut(Direction::Sending).filter(|_| takes_claim);
        let claim_bps = bps(source.and_then(|exchange| exchange.quote(flow)));
        let sink = self.get_mut(Direction::Receiving).filter(|_| takes_promise);
        Ahead { claim_bps, promise_bps: bps(sink.and_then(|node| node.promise(now, flow))) }
    }
}

/// A machine that assigns grants may not know the capacity.
fn knows_capacity(node: &EndNode) -> bool {
    node.assignment().is_none_or(|assigned| assigned.capacity.is_some())
}

fn see_queue(node: &mut EndNode, measured: &[Measured]) {
    if let Some(waiting) = measured.iter().filter_map(|measured| measured.waiting).max() {
        node.see_queue(waiting);
    }
}

fn of(measured: &[Measured], session: SessionId) -> Option<&Measured> {
    measured.binary_search_by_key(&session, |measured| measured.session).ok().and_then(|at| measured.get(at))
}

/// The measured rate of a session; zero for one that was not measured.
pub(crate) fn rate_of(measured: &[Measured], session: SessionId) -> Rate {
    of(measured, session).map_or(Rate::ZERO, |measured| measured.rate)
}
