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

use fairwave_node::{Direction, EndNode, Flow, SessionOptions, TickOutcome, Word};
use fairwave_units::{Duration, Rate, Time};

use crate::handshake::handshakes::Handshakes;
use crate::handshake::{Crypto, HalfOpen, HandshakeError};
use crate::path::mtu::{Mtu, MtuProbe};
use crate::path::path_kind::PathKind;
use crate::session::alarms::Alarms;
use crate::session::closing::ClosingSession;
use crate::session::lasts::Lasts;
use crate::session::opened::{Measured, Opened};
use crate::session::peer::Peer;
use crate::session::rates::SessionRates;
use crate::session::rtt::Rtt;
use crate::session::secure_random::SecureRandom;
use crate::session::slots::{SessionNames, Slots, slot};
use crate::wire::codec::{CloseReason, Frame, NO_LIMIT_BPS, PacketKind, SessionId};
use crate::wire::packet::{CONTROL_OVERHEAD, ControlPacket, DataPacket, MOST_FRAME_BYTES, Packet, Transmit, frames};

pub(crate) use assigned::INTERVAL_OF_NONE;

/// The core of a host that knows its peers: it opens and closes sessions, numbers all control packets, and runs the two
/// end nodes.
///
/// At a tick it asks for the measured rates ([`Control::due`], [`Control::tick`]), and sets the rate of each session
/// from then on ([`ControlEvent::Grant`]).
pub(crate) struct Control<C: Crypto> {
    names: SessionNames,
    door: Handshakes<C>,
    setup: ControlSetup,
    peers: Slots<Peer<C::Keys>>,
    nodes: [Option<EndNode>; 2],
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

const BOTH: [Direction; 2] = [Direction::Sending, Direction::Receiving];

/// While data flow, and while none do.
const PROBE_EVERY: Duration = Duration::from_millis(200);
const IDLE_PROBE_EVERY: Duration = Duration::from_secs(5);
/// Measured rates decay and never reach zero: below this a session is idle.
const IDLE_BPS: f64 = 1000.0;
/// A probe that is not answered is given up for the next.
const PROBE_PATIENCE: Duration = Duration::from_secs(1);
/// Probes in a row without an answer that are unlikely to be chance: at 30 % loss both ways, 1 of 15 times.
const UNHEARD_PROBES: u32 = 4;
/// Bytes of a probe's frame.
const PROBE_BYTES: u32 = 9;
/// A peer is looked after no more often than that.
const LEAST_STEP: Duration = Duration::from_millis(1);

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
            door: Handshakes::new(crypto, setup.lasts.opening),
            setup,
            peers: Slots::default(),
            nodes,
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
        self.door.crypto()
    }

    /// How many sessions may be half open, where it is not as many as by default.
    pub(crate) fn set_half_open(&mut self, most: HalfOpen) {
        self.door.set_most(most);
    }

    /// Changes what a session's end nodes know of it: whether that can be.
    pub(crate) fn set_options(&mut self, session: SessionId, options: SessionOptions) -> bool {
        if let Some(peer) = self.peers.get_mut(session).filter(|_| options.check().is_ok()) {
            peer.options = options;
        }
        // It may be in one of them or in both.
        self.change(session, |flow| flow.options = options)
    }

    /// Whose a session is.
    pub(crate) fn set_group(&mut self, session: SessionId, group: u32) {
        if let Some(peer) = self.peers.get_mut(session) {
            peer.group = group;
        }
        self.change(session, |flow| flow.group = group);
    }

    /// This host ends a session.
    pub(crate) fn close(&mut self, now: Time, session: SessionId, reason: CloseReason) {
        if self.door.give_up(session) {
            self.take_back(session);
            self.events.push_back(ControlEvent::Closed { session, reason, by_peer: false });
        }
        let Some(peer) = self.peers.get_mut(session) else { return };
        if peer.closing.is_some() {
            return;
        }
        peer.closing = Some(ClosingSession::by_this_end(now, reason));
        self.leave(session);
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
        if matches!(frame, Frame::Echo(_)) {
            // Any answer, however late, proves that this end's messages arrive.
            peer.unheard = None;
        }
        match *frame {
            // Many in one packet are one question: no answer is larger than what it answers.
            Frame::Probe(value) => peer.asked = Some(value),
            Frame::Echo(value) if peer.place.as_mut().is_some_and(|place| place.on_echo(now, from, value)) => {
                peer.opened.address = from;
                peer.rtt = Rtt::default();
                peer.probe_at = now;
                self.events.push_back(ControlEvent::Moved { session, address: from });
                if let Some(mtu) = &mut peer.mtu {
                    mtu.restart(now);
                    let datagram_bytes = mtu.size();
                    self.events.push_back(ControlEvent::Size { session, datagram_bytes });
                }
                self.alarms.hasten(slot(session), now);
            }
            Frame::Echo(value) if peer.mtu.as_mut().is_some_and(|mtu| mtu.on_echo(now, value)) => {
                let datagram_bytes = peer.mtu.as_ref().map_or(0, Mtu::size);
                self.events.push_back(ControlEvent::Size { session, datagram_bytes });
                self.alarms.hasten(slot(session), now);
            }
            Frame::Echo(value) => {
                let Some((_, sent)) = peer.probe.take_if(|(probe, _)| *probe == value) else { return };
                peer.rtt.on_sample(now, now.since(sent));
                let (rtt, least) = (peer.rtt.smoothed(), peer.rtt.min());
                self.change(session, |flow| flow.rtt = rtt);
                self.events.push_back(ControlEvent::Rtt { session, rtt, least });
            }
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
        if let Some(mtu) = self.peers.get_mut(session).and_then(|peer| peer.mtu.as_mut())
            && mtu.on_report(now, arrived, lost)
        {
            let datagram_bytes = mtu.size();
            self.events.push_back(ControlEvent::Size { session, datagram_bytes });
        }
    }

    /// The system refuses datagrams of such a size (EMSGSIZE).
    pub(crate) fn on_too_large(&mut self, now: Time, session: SessionId, datagram_bytes: u32) {
        if let Some(mtu) = self.peers.get_mut(session).and_then(|peer| peer.mtu.as_mut()) {
            mtu.on_too_large(now, datagram_bytes);
            let datagram_bytes = mtu.size();
            self.events.push_back(ControlEvent::Size { session, datagram_bytes });
        }
    }

    /// Sends frames to the peer of a session. Frames of the same time share as few packets as hold them.
    pub(crate) fn say(&mut self, session: SessionId, frames: Vec<u8>) {
        let Some(peer) = self.peers.get_mut(session) else { return };
        if peer.unsaid.is_empty() {
            peer.unsaid = frames;
            self.unsaid.push_back(session);
        } else if peer.unsaid.len() + frames.len() <= MOST_FRAME_BYTES {
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
            peer.probe = Some((value, now));
            peer.unanswered.get_or_insert(now);
            let (_, probes) = peer.unheard.get_or_insert((now, 0));
            *probes = probes.saturating_add(1);
            self.say(session, frames(&[Frame::Probe(value)]));
        }
    }

    /// The node whose control interval is over.
    pub(crate) fn due(&self, now: Time) -> Option<Direction> {
        BOTH.into_iter()
            .find(|direction| self.node(*direction).is_some_and(|node| node.next_tick().is_some_and(|at| at <= now)))
    }

    /// A control interval of a node has ended, with the sessions' rates in the order of their names: grants follow as
    /// events, and go to the sources of the data that this host receives.
    pub(crate) fn tick(&mut self, now: Time, direction: Direction, measured: &[Measured]) {
        let Some(node) = &mut self.nodes[direction as usize] else { return };
        if let Some(waiting) = measured.iter().filter_map(|measured| measured.waiting).max() {
            node.see_queue(waiting);
        }
        let of = |session| {
            let at = measured.binary_search_by_key(&session, |measured| measured.session);
            at.ok().and_then(|at| measured.get(at)).map_or(Rate::ZERO, |measured| measured.rate)
        };
        let outcomes = node.tick(now, of).to_vec();
        let interval = node.beat.interval();
        self.say_words(direction);
        self.follow(now, direction, interval, &outcomes);
    }

    /// Passes a node's outcomes to the other cores, and to the sources of the data that this host receives.
    fn follow(&mut self, now: Time, direction: Direction, interval: Duration, outcomes: &[TickOutcome]) {
        for outcome in outcomes {
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
        if let Some(node) = self.node_mut(Direction::Sending) {
            node.change(session, |flow| flow.desired = desired);
        }
    }

    /// Sets the max rate of a sink's application, whatever its end node grants; `None` if unlimited.
    pub(crate) fn set_ceiling(&mut self, now: Time, session: SessionId, ceiling: Option<Rate>) {
        let Some(peer) = self.peers.get_mut(session) else { return };
        if peer.ceiling == ceiling || peer.closing.is_some() || !peer.opened.receives {
            return;
        }
        (peer.ceiling, peer.told) = (ceiling, None);
        let node = self.node_mut(Direction::Receiving);
        let granted = node.and_then(|node| {
            node.change(session, |flow| flow.desired = ceiling);
            node.table.expected(session)
        });
        if !self.exchanges(session, Direction::Receiving) {
            self.feed_back(now, session, granted);
        }
    }

    /// Looks after the peers whose time has come. Harmless too early or too late.
    pub(crate) fn handle_timeout(&mut self, now: Time) {
        if self.door.next_timeout().is_some_and(|at| at <= now) {
            let (failed, gone) = self.door.handle_timeout(now);
            for (session, error) in failed {
                self.fail(session, error);
            }
            for session in gone {
                self.names.give_back(session);
                self.nodes.iter_mut().flatten().for_each(|node| node.take_back_start(session));
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
                // A responder knows that it has a session from the first packet on: one has to arrive.
                let patience = if peer.is_heard { PROBE_PATIENCE } else { PROBE_EVERY };
                let is_due = peer.probe.map_or(now >= peer.probe_at, |(_, sent)| now.since(sent) >= patience);
                if is_due {
                    let is_active = peer.rates.iter().any(|rates| rates.measured.as_bps() > IDLE_BPS);
                    let every = if is_active || peer.rtt.known().is_none() { PROBE_EVERY } else { IDLE_PROBE_EVERY };
                    peer.probe_at = now.saturating_add(every);
                    self.probe(now, session);
                }
                self.lift(now, session);
                self.explore(now, session).min(now.saturating_add(PROBE_EVERY)).max(now.saturating_add(LEAST_STEP))
            };
            self.alarms.set(slot, Some(again));
        }
    }

    /// Asks the places where an initiator may be, and the path for the datagrams that it takes; when to do so again.
    fn explore(&mut self, now: Time, session: SessionId) -> Time {
        let Some(peer) = self.peers.get_mut(session) else { return Time::MAX };
        let chance = &mut self.chance;
        let mut again = Time::MAX;
        if let Some(place) = &mut peer.place {
            let bytes = self.setup.lower_bytes + CONTROL_OVERHEAD + PROBE_BYTES;
            let probe = place.poll_probe(now, bytes);
            again = again.min(place.next_at().unwrap_or(Time::MAX));
            if let Some((to, value)) = probe {
                let packet = peer.packet(session, frames(&[Frame::Probe(value)]));
                self.transmits.push_back(Transmit { to, ..packet });
            }
        }
        let rtt = peer.rtt.smoothed();
        if let Some(mtu) = &mut peer.mtu {
            let probe = mtu.poll_probe(now, rtt, || chance.bits());
            again = again.min(mtu.next_at(rtt));
            if let Some(MtuProbe { size, value }) = probe {
                let mut frames = frames(&[Frame::Probe(value)]);
                frames.resize(size.saturating_sub(CONTROL_OVERHEAD) as usize, 0);
                self.transmits.push_back(peer.packet(session, frames));
            }
        }
        again
    }

    /// When to come again.
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        let nodes = || self.nodes.iter().flatten().filter(|node| !node.table.is_empty());
        let (ticks, reacts) = (nodes().filter_map(EndNode::next_tick), nodes().filter_map(EndNode::react_at));
        ticks.chain(reacts).chain(self.alarms.next()).chain(self.door.next_timeout()).min()
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
            let (to, datagram) = self.door.poll_transmit(now)?;
            Some(Transmit { to, session: None, takes_marks: false, packet: Packet::Handshake(datagram) })
        })
    }

    /// The next event. Call until it returns `None`.
    pub(crate) fn poll_event(&mut self) -> Option<ControlEvent> {
        self.events.pop_front()
    }

    /// The end node of one direction, if its capacity is known.
    pub(crate) fn node(&self, direction: Direction) -> Option<&EndNode> {
        self.nodes[direction as usize].as_ref()
    }

    /// The end node, to report overflows and changes of its capacity.
    pub(crate) fn node_mut(&mut self, direction: Direction) -> Option<&mut EndNode> {
        self.nodes[direction as usize].as_mut()
    }

    /// A session's rates at its node's last tick.
    pub(crate) fn rates(&self, session: SessionId, direction: Direction) -> Option<SessionRates> {
        self.peers.get(session).map(|peer| peer.rates[direction as usize])
    }

    /// The round-trip time of a session, if there was a sample.
    pub(crate) fn rtt(&self, session: SessionId) -> Option<Duration> {
        self.peers.get(session).and_then(|peer| peer.rtt.known())
    }

    /// The least, the smoothed and the last round-trip time of a session.
    pub(crate) fn rtts(&self, session: SessionId) -> Option<(Option<Duration>, Option<Duration>, Option<Duration>)> {
        self.peers.get(session).map(|peer| (peer.rtt.least(), peer.rtt.known(), peer.rtt.latest()))
    }

    /// The largest datagram that a session's path takes as far as is known, where data take it from here.
    pub(crate) fn datagram_bytes(&self, session: SessionId) -> Option<u32> {
        self.peers.get(session).and_then(|peer| peer.mtu.as_ref()).map(Mtu::size)
    }

    /// The address of a session's peer.
    pub(crate) fn address(&self, session: SessionId) -> Option<SocketAddr> {
        self.peers.get(session).map(|peer| peer.opened.address)
    }

    /// For how long a session's peer has said nothing.
    pub(crate) fn silent_for(&self, now: Time, session: SessionId) -> Option<Duration> {
        self.peers.get(session).map(|peer| now.since(peer.heard))
    }

    /// For how long a session's peer has owed an answer, and has been silent. Peers that owe no answer may be silent.
    pub(crate) fn unanswered_for(&self, now: Time, session: SessionId) -> Option<Duration> {
        self.peers.get(session).map(|peer| peer.unanswered.map_or(Duration::ZERO, |since| now.since(since)))
    }

    /// For how long a session's peer has answered nothing that it was asked, though it may be heard: after some
    /// questions, since each of them may get lost.
    pub(crate) fn unheard_for(&self, now: Time, session: SessionId) -> Option<Duration> {
        let unheard = |(since, probes)| if probes < UNHEARD_PROBES { Duration::ZERO } else { now.since(since) };
        self.peers.get(session).map(|peer| peer.unheard.map_or(Duration::ZERO, unheard))
    }

    /// Changes what the end nodes know of a session, which may be in one of them or in both: whether one took it.
    fn change(&mut self, session: SessionId, change: impl Fn(&mut Flow)) -> bool {
        let changed = |node: &mut EndNode| node.change(session, &change).then_some(());
        self.nodes.iter_mut().flatten().filter_map(changed).count() > 0
    }

    fn leave(&mut self, session: SessionId) {
        for node in self.nodes.iter_mut().flatten() {
            node.leave(session);
        }
    }

    fn forget(&mut self, session: SessionId) {
        self.leave(session);
        self.nodes.iter_mut().flatten().for_each(|node| node.forget(session));
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
