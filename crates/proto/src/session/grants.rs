//! Claims and grants between a host's end nodes and its peers.

use fairwave_node::{AssignedGrant, Beginning, Direction, EndNode, Flow, Terms, TickOutcome, Word};
use fairwave_units::{Duration, Rate, Time};

use crate::session::control_event::ControlEvent;
use crate::session::end_nodes::{BOTH, EndNodes, Granted, rate_of};
use crate::session::opened::Measured;
use crate::session::peer::Peer;
use crate::session::peers::Peers;
use crate::wire::codec::{CloseReason, Frame, NO_LIMIT_BPS, SessionId};
use crate::wire::packet::frames;

/// Both end nodes, and their messages for peers.
pub(crate) struct Grants {
    pub(crate) nodes: EndNodes,
    /// Messages of the nodes for peers.
    words: Vec<(SessionId, Word)>,
}

/// A source without an end node gives its sinks as long to answer as one whose node has the shortest interval.
pub(crate) const INTERVAL_OF_NONE: Duration = Duration::from_millis(10);

impl Grants {
    pub(crate) fn new(nodes: [Option<EndNode>; 2]) -> Self {
        Self { nodes: EndNodes::new(nodes), words: Vec::new() }
    }

    /// A session that starts joins the nodes of its directions, each with its rate and its `Beginning`.
    pub(crate) fn join<K>(&mut self, now: Time, peer: &mut Peer<K>, flow: Flow, beginnings: [Beginning; 2]) {
        let opened = peer.opened;
        let takes_part = [(opened.sends, opened.start_send), (opened.receives, opened.start_receive)];
        let parts = takes_part.into_iter().zip(beginnings);
        for ((direction, exchanges), part) in BOTH.into_iter().zip(&mut peer.exchanges).zip(parts) {
            let ((takes_part, start), begins) = part;
            if let Some(node) = self.nodes.get_mut(direction).filter(|_| takes_part) {
                node.resume(now);
                *exchanges = node.divider.exchange().is_some() && begins != Beginning::Plain;
                // Names differ, and the options are checked when they come in.
                let _ = node.join(now, flow, start, begins);
            }
        }
    }

    /// The rates that a session starts with are known to this end.
    pub(crate) fn begin<K>(&mut self, peers: &mut Peers<K>, session: SessionId) {
        for direction in BOTH {
            let Some(node) = self.nodes.get(direction) else { continue };
            let interval = node.schedule.interval();
            let share = node.divider.exchange().and_then(|exchange| exchange.share(session));
            let Some(share) = share.filter(|share| share.allowed > Rate::ZERO) else { continue };
            if let Some(peer) = peers.get_mut(session) {
                peer.rates[direction as usize].set_grant(share.grant);
            }
            let outcome = TickOutcome { session, measured: Rate::ZERO, share };
            peers.push_grant(direction, interval, &outcome);
        }
        for direction in BOTH {
            self.say_words(peers, direction);
        }
    }

    /// Changes what a session's end nodes know of it: whether that can be.
    pub(crate) fn set_options<K>(&mut self, peers: &mut Peers<K>, session: SessionId, options: Terms) -> bool {
        if let Some(peer) = peers.get_mut(session).filter(|_| options.check().is_ok()) {
            peer.terms = options.with_bounds_of(&peer.terms);
        }
        self.nodes.change(session, |flow| flow.terms = options.with_bounds_of(&flow.terms))
    }

    /// Whose a session is.
    pub(crate) fn set_group<K>(&mut self, peers: &mut Peers<K>, session: SessionId, group: u32) {
        if let Some(peer) = peers.get_mut(session) {
            peer.terms.group = group;
        }
        self.nodes.change(session, |flow| flow.terms.group = group);
    }

    /// The application of a source wants to send no faster than this.
    pub(crate) fn set_desired<K>(&mut self, peers: &mut Peers<K>, session: SessionId, desired: Rate) {
        let desired = Some(desired).filter(|desired| desired.as_bps() < NO_LIMIT_BPS as f64);
        if let Some(peer) = peers.get_mut(session) {
            peer.desired = desired;
        }
        if let Some(node) = self.nodes.get_mut(Direction::Sending) {
            node.change(session, |flow| flow.terms.desired = desired);
        }
    }

    /// Sets the max rate of a sink's application, whatever its end node grants; `None` if unlimited.
    pub(crate) fn set_ceiling<K>(
        &mut self,
        now: Time,
        peers: &mut Peers<K>,
        session: SessionId,
        ceiling: Option<Rate>,
    ) {
        let Some(peer) = peers.get_mut(session) else { return };
        if peer.ceiling == ceiling || peer.closing.is_some() || !peer.opened.receives {
            return;
        }
        (peer.ceiling, peer.reported) = (ceiling, None);
        let node = self.nodes.get_mut(Direction::Receiving);
        let granted = node.and_then(|node| {
            node.change(session, |flow| flow.terms.desired = ceiling);
            node.table.expected(session)
        });
        if !peers.exchanges(session, Direction::Receiving) {
            peers.feed_back(now, session, granted);
        }
    }

    /// A control interval of a node has ended, with the sessions' rates in the order of their names: grants follow as
    /// events, and go to the sources of the data that this host receives.
    pub(crate) fn tick<K>(&mut self, now: Time, peers: &mut Peers<K>, direction: Direction, measured: &[Measured]) {
        let granted = self.nodes.tick(now, direction, measured);
        self.follow(now, peers, direction, granted);
    }

    /// Assigns grants to an assigned node's sessions, in the order of their names.
    pub(crate) fn settle<K>(
        &mut self,
        now: Time,
        peers: &mut Peers<K>,
        direction: Direction,
        grants: &[AssignedGrant],
    ) {
        let granted = self.nodes.settle(now, direction, grants);
        self.follow(now, peers, direction, granted);
    }

    /// Passes a node's outcomes to the other cores, and to the sources of the data that this host receives.
    fn follow<K>(&mut self, now: Time, peers: &mut Peers<K>, direction: Direction, granted: Option<Granted>) {
        let Some((interval, outcomes)) = granted else { return };
        self.say_words(peers, direction);
        for outcome in &outcomes {
            let (session, rate) = (outcome.session, outcome.share.grant.expected);
            let Some(peer) = peers.get_mut(session) else { continue };
            peer.rates[direction as usize].measured = outcome.measured;
            peer.rates[direction as usize].set_grant(outcome.share.grant);
            let exchanges = peer.exchanges[direction as usize];
            peers.push_grant(direction, interval, outcome);
            if outcome.share.exceeds {
                self.close(now, peers, session, (CloseReason::ExceedsGrant, false));
            } else if direction == Direction::Receiving && !exchanges {
                peers.feed_back(now, session, Some(rate));
            }
        }
    }

    /// A session is over, by this host or by its peer.
    pub(crate) fn close<K>(
        &mut self,
        now: Time,
        peers: &mut Peers<K>,
        session: SessionId,
        (reason, by_peer): (CloseReason, bool),
    ) {
        if !peers.close(now, session, reason, by_peer) {
            return;
        }
        self.nodes.leave(session);
        if by_peer {
            // It sends nothing after that word: what was reserved for it is free.
            self.nodes.forget(session);
        }
    }

    /// A node does what its news ask for, between two control intervals.
    pub(crate) fn react<K>(&mut self, now: Time, peers: &mut Peers<K>, direction: Direction) {
        let Some((interval, outcomes)) = self.nodes.react(now, direction) else { return };
        self.say_words(peers, direction);
        for outcome in outcomes {
            if let Some(peer) = peers.get_mut(outcome.session) {
                peer.rates[direction as usize].set_grant(outcome.share.grant);
                peers.push_grant(direction, interval, &outcome);
            }
        }
    }

    /// A grant or a claim came from a peer that exchanges them; what others say of them is skipped.
    pub(crate) fn on_word<K>(&mut self, now: Time, peers: &mut Peers<K>, session: SessionId, frame: &Frame<'_>) {
        let direction = if matches!(frame, Frame::Grant(_)) { Direction::Sending } else { Direction::Receiving };
        let is_open = peers.get(session).is_some_and(|peer| peer.closing.is_none());
        if !is_open || !peers.exchanges(session, direction) {
            return;
        }
        let Some(exchange) = self.nodes.exchange_mut(direction) else { return };
        match frame {
            Frame::Grant(grant) => {
                exchange.on_grant(now, session, grant);
                let remote = exchange.share(session).and_then(|share| share.remote);
                self.say_words(peers, direction);
                if let Some(rate) = remote {
                    peers.push(ControlEvent::SinkGrant { session, rate });
                }
            }
            Frame::Claim(claim) => exchange.on_claim(now, session, claim),
            _ => {}
        }
    }

    /// A sink reports its expected rate: returns whether it is that of a sink without grants. A source whose node
    /// shares by claims handles it as a grant.
    pub(crate) fn on_feedback<K>(
        &mut self,
        now: Time,
        peers: &Peers<K>,
        session: SessionId,
        expected_bps: u64,
    ) -> bool {
        if peers.exchanges(session, Direction::Sending) {
            return false;
        }
        if let Some(exchange) = self.nodes.exchange_mut(Direction::Sending) {
            exchange.on_feedback(now, session, crate::wire::codec::rate(expected_bps));
        }
        true
    }

    /// If no end node limits what may be received, this repeats that nothing limits it, or only the ceiling.
    pub(crate) fn lift<K>(&self, now: Time, peers: &mut Peers<K>, session: SessionId) {
        let receives = peers.get(session).is_some_and(|peer| peer.opened.receives);
        if receives && self.nodes.get(Direction::Receiving).is_none() {
            peers.feed_back(now, session, None);
        }
    }

    /// The nodes tell peers what they have to.
    fn say_words<K>(&mut self, peers: &mut Peers<K>, direction: Direction) {
        if let Some(exchange) = self.nodes.exchange_mut(direction) {
            exchange.take_words(&mut self.words);
        }
        for (session, word) in self.words.drain(..) {
            if peers.get(session).is_some_and(|peer| peer.closing.is_none()) {
                let frame = match word {
                    Word::Claim(claim) => Frame::Claim(claim),
                    Word::Grant(grant) => Frame::Grant(grant),
                };
                peers.say(session, frames(&[frame]));
            }
        }
    }

    /// A direction has this node from now on, or none: all sessions that are open share it, each with what it has.
    /// A session that no node has held has what was measured of it.
    pub(crate) fn set_node<K>(
        &mut self,
        now: Time,
        peers: &mut Peers<K>,
        direction: Direction,
        mut node: Option<EndNode>,
        measured: &[Measured],
    ) {
        let before = self.nodes.replace(direction, None);
        let (sessions, events) = peers.all_mut();
        for (session, peer) in sessions {
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
                events.push_back(ControlEvent::Grant { session, direction, rate, interval: INTERVAL_OF_NONE });
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
