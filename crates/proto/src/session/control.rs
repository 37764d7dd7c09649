//! State shared by a host's sessions: their peers, and the grants of the end nodes.

mod assigned;
mod closing;
mod exchange;
mod opening;
mod promise;
mod stray;
mod telling;

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use fairwave_node::{AssignedGrant, Direction, EndNode, Terms, Word};
use fairwave_units::{Duration, Rate, Time};

use crate::handshake::handshakes::Handshakes;
use crate::handshake::{Crypto, HalfOpen, HandshakeError};
use crate::path::path_kind::PathKind;
use crate::session::alarms::Alarms;
use crate::session::closing::ClosingSession;
use crate::session::end_nodes::{EndNodes, Granted};
use crate::session::lasts::Lasts;
use crate::session::opened::{Measured, Opened};
use crate::session::peer::Peer;
use crate::session::peer::probing::{Echo, PROBE_EVERY};
use crate::session::secure_random::SecureRandom;
use crate::session::slots::{SessionNames, Slots, slot};
use crate::wire::codec::{CloseReason, Frame, NO_LIMIT_BPS, PacketKind, SessionId};
use crate::wire::packet::{CONTROL_OVERHEAD, ControlPacket, DataPacket, MAX_FRAME_BYTES, Packet, Transmit, frames};

pub(crate) use assigned::INTERVAL_OF_NONE;

/// The core of a host that knows its peers: it opens and closes sessions, numbers all control packets, and runs the two
/// end nodes.
///
/// At a tick it asks for the measured rates ([`EndNodes::due`], [`Control::tick`]), and sets the rate of each session
/// from then on ([`ControlEvent::Grant`]).
pub(crate) struct Control<C: Crypto> {
    names: SessionNames,
    handshakes: Handshakes<C>,
    setup: ControlSetup,
    peers: Slots<Peer<C::Keys>>,
    pub(crate) nodes: EndNodes,
    /// When peers are looked after.
    alarms: Alarms,
    transmits: VecDeque<Transmit>,
    /// Sessions with frames to send to their peers.
    unsaid: VecDeque<SessionId>,
    events: VecDeque<ControlEvent>,
    chance: SecureRandom,
    /// Sessions that their responders can reset, by the id of the reset.
    resets: BTreeMap<SessionId, SessionId>,
    /// Messages of the nodes for peers.
    words: Vec<(SessionId, Word)>,
}

/// How the core is set up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ControlSetup {
    /// The assumed kind of this host's paths, if it knows its capacity.
    pub(crate) path: PathKind,
    pub(crate) is_plain: bool,
    pub(crate) fair_start: bool,
    pub(crate) largest_packet: u32,
    /// Bytes of IP and UDP around a datagram.
    pub(crate) lower_bytes: u32,
    /// Whether to look for larger datagrams than every path takes.
    pub(crate) probes_mtu: bool,
    pub(crate) lasts: Lasts,
}

/// Events for the other cores, or the application.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ControlEvent {
    /// A session is there.
    Opened(Opened),
    /// A session that this host wanted will not be.
    Failed {
        /// The name that it would have had.
        session: SessionId,
        /// Why.
        error: HandshakeError,
    },
    /// An end node grants a session a rate, until its next tick.
    Grant {
        /// The session.
        session: SessionId,
        /// Of which node.
        direction: Direction,
        /// The rate.
        rate: Rate,
        /// The node's interval.
        interval: Duration,
    },
    /// A session's peer is at another address: all that was known of its path is void.
    Moved {
        /// The session.
        session: SessionId,
        /// Its address.
        address: SocketAddr,
    },
    /// The largest datagram that a session's path takes, as far as is known.
    Size {
        /// The session.
        session: SessionId,
        /// Bytes.
        datagram_bytes: u32,
    },
    /// The grant of a session's sink that is in force.
    SinkGrant {
        /// The session.
        session: SessionId,
        /// The rate.
        rate: Rate,
    },
    /// The round-trip time of a session.
    Rtt {
        /// The session.
        session: SessionId,
        /// Smoothed.
        rtt: Duration,
        /// The least of the last ten to twenty seconds.
        least: Duration,
    },
    /// A session is over.
    Closed {
        /// The session.
        session: SessionId,
        /// Why.
        reason: CloseReason,
        /// Whether the peer reported it.
        by_peer: bool,
    },
}

/// A peer is looked after no more often than that.
const MIN_STEP: Duration = Duration::from_millis(1);

impl<C: Crypto> Control<C> {
    /// Without sessions, with an end node for each direction whose capacity is known.
    pub(crate) fn new(
        nodes: [Option<EndNode>; 2],
        setup: ControlSetup,
        crypto: C::Responder,
        chance: SecureRandom,
    ) -> Self {
        Self {
            names: SessionNames::default(),
            handshakes: Handshakes::new(crypto, setup.lasts.opening),
            setup,
            peers: Slots::default(),
            nodes: EndNodes::new(nodes),
            alarms: Alarms::default(),
            transmits: VecDeque::new(),
            unsaid: VecDeque::new(),
            events: VecDeque::new(),
            chance,
            resets: BTreeMap::new(),
            words: Vec::new(),
        }
    }

    /// The secrets of this host: tickets come and go.
    pub(crate) fn crypto(&mut self) -> &mut C::Responder {
        self.handshakes.crypto()
    }

    /// How many sessions may be half open, where it is not as many as by default.
    pub(crate) fn set_half_open(&mut self, most: HalfOpen) {
        self.handshakes.set_most(most);
    }

    /// Changes what a session's end nodes know of it: whether that can be.
    pub(crate) fn set_options(&mut self, session: SessionId, options: Terms) -> bool {
        if let Some(peer) = self.peers.get_mut(session).filter(|_| options.check().is_ok()) {
            peer.terms = options.with_bounds_of(&peer.terms);
        }
        self.nodes.change(session, |flow| flow.terms = options.with_bounds_of(&flow.terms))
    }

    /// Whose a session is.
    pub(crate) fn set_group(&mut self, session: SessionId, group: u32) {
        if let Some(peer) = self.peers.get_mut(session) {
            peer.terms.group = group;
        }
        self.nodes.change(session, |flow| flow.terms.group = group);
    }

    /// This host ends a session.
    pub(crate) fn close(&mut self, now: Time, session: SessionId, reason: CloseReason) {
        if self.handshakes.give_up(session) {
            self.take_back(session);
            self.events.push_back(ControlEvent::Closed { session, reason, by_peer: false });
        }
        let Some(peer) = self.peers.get_mut(session) else { return };
        if peer.closing.is_some() {
            return;
        }
        peer.closing = Some(ClosingSession::by_this_end(now, reason));
        self.nodes.leave(session);
        self.alarms.set(slot(session), Some(now));
        self.events.push_back(ControlEvent::Closed { session, reason, by_peer: false });
    }

    /// A control packet came, whose seal is good: whether its frames count.
    pub(crate) fn accept(&mut self, now: Time, from: SocketAddr, packet: &ControlPacket) -> bool {
        if self.peers.get(packet.session).is_none() {
            self.confirm(now, packet.session);
        }
        let Some(peer) = self.peers.get_mut(packet.session) else { return false };
        if !peer.replay.accept(packet.number) {
            return false;
        }
        (peer.heard, peer.is_heard, peer.unanswered) = (now, true, None);
        let is_open = peer.closing.is_none();
        let bytes = CONTROL_OVERHEAD + packet.frames.len() as u32;
        self.locate(now, packet.session, from, (PacketKind::Control, packet.number), bytes);
        if !is_open {
            self.on_late_packet(now, packet.session, &packet.frames);
        }
        is_open
    }

    /// A data packet came that is newer than all before, from an address that is not its session's.
    pub(crate) fn on_data_from_elsewhere(&mut self, now: Time, from: SocketAddr, packet: &DataPacket) {
        self.locate(now, packet.session, from, (PacketKind::Data, packet.number), packet.datagram_bytes());
    }

    /// A packet shows where a session's initiator is.
    fn locate(
        &mut self,
        now: Time,
        session: SessionId,
        from: SocketAddr,
        number: (PacketKind, u64),
        datagram_bytes: u32,
    ) {
        let bytes = self.setup.lower_bytes + datagram_bytes;
        let chance = &mut self.chance;
        if let Some(place) = self.peers.get_mut(session).and_then(|peer| peer.place.as_mut()) {
            place.on_packet(now, from, number, bytes, || chance.bits());
            if let Some(at) = place.next_at() {
                self.alarms.hasten(slot(session), at);
            }
        }
    }

    /// Handles a frame of the peer for this core.
    pub(crate) fn handle_frame(&mut self, now: Time, from: SocketAddr, session: SessionId, frame: &Frame<'_>) {
        let Some(peer) = self.peers.get_mut(session) else { return };
        match *frame {
            // Many in one packet are one question: no answer is larger than what it answers.
            Frame::Probe(value) => peer.asked = Some(value),
            Frame::Echo(value) => match peer.on_echo(now, from, value) {
                Echo::Moved(size) => {
                    self.events.push_back(ControlEvent::Moved { session, address: from });
                    self.push_size(session, size);
                    self.alarms.hasten(slot(session), now);
                }
                Echo::Size(size) => {
                    self.push_size(session, Some(size));
                    self.alarms.hasten(slot(session), now);
                }
                Echo::Rtt(rtt, least) => {
                    self.nodes.change(session, |flow| flow.rtt = rtt);
                    self.events.push_back(ControlEvent::Rtt { session, rtt, least });
                }
                Echo::Late => {}
            },
            Frame::Grant(_) | Frame::Claim(_) => self.on_word(now, session, frame),
            Frame::Close(reason) => self.on_close(now, session, reason),
            _ => {}
        }
    }

    /// All frames of a packet were handed in.
    pub(crate) fn end_packet(&mut self, session: SessionId) {
        if let Some(value) = self.peers.get_mut(session).and_then(|peer| peer.asked.take()) {
            self.say(session, frames(&[Frame::Echo(value)]));
        }
    }

    /// A report settled full packets of a session: `arrived` of them arrived, `lost` were lost.
    pub(crate) fn on_reported(&mut self, now: Time, session: SessionId, arrived: u64, lost: u64) {
        let mtu = self.peers.get_mut(session).and_then(|peer| peer.mtu.as_mut());
        let size = mtu.and_then(|mtu| mtu.on_report(now, arrived, lost).then(|| mtu.size()));
        self.push_size(session, size);
    }

    /// The system refuses datagrams of such a size (EMSGSIZE).
    pub(crate) fn on_too_large(&mut self, now: Time, session: SessionId, datagram_bytes: u32) {
        let mtu = self.peers.get_mut(session).and_then(|peer| peer.mtu.as_mut());
        let size = mtu.map(|mtu| {
            mtu.on_too_large(now, datagram_bytes);
            mtu.size()
        });
        self.push_size(session, size);
    }

    fn push_size(&mut self, session: SessionId, size: Option<u32>) {
        self.events.extend(size.map(|datagram_bytes| ControlEvent::Size { session, datagram_bytes }));
    }

    /// Sends frames to the peer of a session. Frames of the same time share as few packets as hold them.
    pub(crate) fn say(&mut self, session: SessionId, frames: Vec<u8>) {
        let Some(peer) = self.peers.get_mut(session) else { return };
        if peer.unsaid.is_empty() {
            peer.unsaid = frames;
            self.unsaid.push_back(session);
        } else if peer.unsaid.len() + frames.len() <= MAX_FRAME_BYTES {
            peer.unsaid.extend_from_slice(&frames);
        } else {
            let full = std::mem::replace(&mut peer.unsaid, frames);
            self.transmits.push_back(peer.packet(session, full));
        }
    }

    /// Asks the peer of a session for an answer.
    pub(crate) fn probe(&mut self, now: Time, session: SessionId) {
        let value = self.chance.bits();
        if let Some(peer) = self.peers.get_mut(session) {
            peer.on_probe(now, value);
            self.say(session, frames(&[Frame::Probe(value)]));
        }
    }

    /// A control interval of a node has ended, with the sessions' rates in the order of their names: grants follow as
    /// events, and go to the sources of the data that this host receives.
    pub(crate) fn tick(&mut self, now: Time, direction: Direction, measured: &[Measured]) {
        let granted = self.nodes.tick(now, direction, measured);
        self.follow(now, direction, granted);
    }

    /// Assigns grants to an assigned node's sessions, in the order of their names.
    pub(crate) fn settle(&mut self, now: Time, direction: Direction, grants: &[AssignedGrant]) {
        let granted = self.nodes.settle(now, direction, grants);
        self.follow(now, direction, granted);
    }

    /// Passes a node's outcomes to the other cores, and to the sources of the data that this host receives.
    fn follow(&mut self, now: Time, direction: Direction, granted: Option<Granted>) {
        let Some((interval, outcomes)) = granted else { return };
        self.say_words(direction);
        for outcome in &outcomes {
            let (session, rate) = (outcome.session, outcome.share.grant.expected);
            let Some(peer) = self.peers.get_mut(session) else { continue };
            peer.rates[direction as usize].measured = outcome.measured;
            peer.rates[direction as usize].set_grant(outcome.share.grant);
            let exchanges = peer.exchanges[direction as usize];
            self.push_grant(direction, interval, outcome);
            if outcome.share.exceeds {
                self.close(now, session, CloseReason::ExceedsGrant);
            } else if direction == Direction::Receiving && !exchanges {
                self.feed_back(now, session, Some(rate));
            }
        }
    }

    /// The application of a source wants to send no faster than this.
    pub(crate) fn set_desired(&mut self, session: SessionId, desired: Rate) {
        let desired = Some(desired).filter(|desired| desired.as_bps() < NO_LIMIT_BPS as f64);
        if let Some(peer) = self.peers.get_mut(session) {
            peer.desired = desired;
        }
        if let Some(node) = self.nodes.get_mut(Direction::Sending) {
            node.change(session, |flow| flow.terms.desired = desired);
        }
    }

    /// Sets the max rate of a sink's application, whatever its end node grants; `None` if unlimited.
    pub(crate) fn set_ceiling(&mut self, now: Time, session: SessionId, ceiling: Option<Rate>) {
        let Some(peer) = self.peers.get_mut(session) else { return };
        if peer.ceiling == ceiling || peer.closing.is_some() || !peer.opened.receives {
            return;
        }
        (peer.ceiling, peer.reported) = (ceiling, None);
        let node = self.nodes.get_mut(Direction::Receiving);
        let granted = node.and_then(|node| {
            node.change(session, |flow| flow.terms.desired = ceiling);
            node.table.expected(session)
        });
        if !self.exchanges(session, Direction::Receiving) {
            self.feed_back(now, session, granted);
        }
    }

    /// Looks after the peers whose time has come. Harmless too early or too late.
    pub(crate) fn handle_timeout(&mut self, now: Time) {
        if self.handshakes.next_timeout().is_some_and(|at| at <= now) {
            let (failed, gone) = self.handshakes.handle_timeout(now);
            for (session, error) in failed {
                self.fail(session, error);
            }
            for session in gone {
                self.names.give_back(session);
                self.nodes.take_back_start(session);
            }
        }
        while let Some(slot) = self.alarms.pop(now) {
            let Some((session, peer)) = self.peers.at_mut(slot) else { continue };
            let again = if peer.closing.is_some() {
                let Some(again) = self.step_closing(now, session) else { continue };
                again
            } else if now.since(peer.heard) >= self.setup.lasts.silent {
                self.close(now, session, CloseReason::Silence);
                continue;
            } else if now.since(peer.opened_at) >= self.setup.lasts.keys {
                self.close(now, session, CloseReason::Keys);
                continue;
            } else {
                if peer.takes_probe(now) {
                    self.probe(now, session);
                }
                self.lift(now, session);
                let Some(peer) = self.peers.get_mut(session) else { continue };
                let (chance, lower_bytes) = (&mut self.chance, self.setup.lower_bytes);
                let again = peer.explore(now, session, lower_bytes, || chance.bits(), &mut self.transmits);
                again.min(now.saturating_add(PROBE_EVERY)).max(now.saturating_add(MIN_STEP))
            };
            self.alarms.set(slot, Some(again));
        }
    }

    /// When to come again.
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        self.nodes.next_timeout().into_iter().chain(self.alarms.next()).chain(self.handshakes.next_timeout()).min()
    }

    /// The next control packet or handshake to send.
    pub(crate) fn poll_transmit(&mut self, now: Time) -> Option<Transmit> {
        while let Some(session) = self.unsaid.pop_front() {
            if let Some(peer) = self.peers.get_mut(session) {
                let frames = std::mem::take(&mut peer.unsaid);
                self.transmits.push_back(peer.packet(session, frames));
            }
        }
        self.transmits.pop_front().or_else(|| {
            let (to, datagram) = self.handshakes.poll_transmit(now)?;
            Some(Transmit { to, session: None, takes_marks: false, packet: Packet::Handshake(datagram) })
        })
    }

    /// The next event. Call until it returns `None`.
    pub(crate) fn poll_event(&mut self) -> Option<ControlEvent> {
        self.events.pop_front()
    }

    /// The other end of a session.
    pub(crate) fn peer(&self, session: SessionId) -> Option<&Peer<C::Keys>> {
        self.peers.get(session)
    }

    fn forget(&mut self, session: SessionId) {
        self.nodes.leave(session);
        self.nodes.forget(session);
        if let Some(peer) = self.peers.remove(session) {
            self.names.give_back(session);
            // A responder may have said the same of another session.
            if let Some(reset) = peer.reset.filter(|reset| self.resets.get(&reset.id) == Some(&session)) {
                self.resets.remove(&reset.id);
            }
        }
        self.alarms.set(slot(session), None);
    }
}
