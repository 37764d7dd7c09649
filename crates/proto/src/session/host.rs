//! A host: three cores behind one face.

mod assigned;
mod facts;
mod finding;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::ops::Range;

use fairwave_node::{Direction, EndNode, IntervalRule, Looked, Terms};
use fairwave_schemes::Others;
use fairwave_units::{Bytes, Duration, Rate, Time};

use crate::handshake::{Crypto, HalfOpen, PendingVisit};
use crate::path::ecn::Ecn;
use crate::path::mtu::MIN_DATAGRAM;
use crate::path::path_kind::PathKind;
use crate::receive::inbound::{Inbound, InboundEvent, Taken};
use crate::receive::receiver::ReceiverSetup;
use crate::send::limits::RateTerm;
use crate::send::outbound::{Outbound, OutboundEvent};
use crate::send::sender::SenderSetup;
use crate::send::usage::Usage;
use crate::session::config::HostConfig;
use crate::session::control::{Control, ControlSetup};
use crate::session::control_event::ControlEvent;
use crate::session::event::Event;
use crate::session::grants::INTERVAL_OF_NONE;
use crate::session::opened::{Measured, OpenError, OpenRequest, Opened};
use crate::session::pause::MIN_PAUSE;
use crate::session::secure_random::SecureRandom;
use crate::wire::codec::{CloseReason, Frame, Frames, Header, PacketKind, Refusal, SessionId, VoidReason};
use crate::wire::packet::{ControlPacket, DATA_OVERHEAD, DataPacket, MAX_FRAME_BYTES, Packet, Transmit};

/// One end of all its sessions: what a driver drives, on a network or in a simulation, and what a newcomer reads first.
///
/// A driver does the same over and over:
///
/// 1. it hands in what arrived ([`Host::handle_data`], [`Host::handle_control`], [`Host::handle_handshake`]), what the
///    application wants ([`Host::want`], [`Host::serve`], ...), and the time ([`Host::handle_timeout`]);
/// 2. it takes all events ([`Host::poll_event`]) and sends all packets ([`Host::poll_transmit`]);
/// 3. it sleeps until [`Host::poll_timeout`], or until something arrives.
pub struct Host<C: Crypto> {
    /// All senders.
    outbound: Outbound,
    /// All receivers.
    inbound: Inbound,
    /// Peers and end nodes.
    control: Control<C>,
    sender: SenderSetup,
    receiver: ReceiverSetup,
    probes_mtu: bool,
    measured: Vec<Measured>,
    used: Vec<(SessionId, Usage)>,
    looked: Vec<Looked>,
    events: VecDeque<Event>,
}

/// Bytes by which a header of IPv6 is longer than one of IPv4.
const MORE_IN_V6: u32 = 20;

impl<C: Crypto> Host<C> {
    /// A host without sessions.
    pub fn new(now: Time, config: HostConfig<C::Responder>) -> Self {
        let HostConfig { lower_bytes, piece_bytes, send_bytes, room, seed, path_control, .. } = config;
        let sending = config.sending.map(|config| EndNode::new(now, Direction::Sending, config));
        let nodes = [sending, config.receiving.map(|config| EndNode::new(now, Direction::Receiving, config))];
        let (start, rtt) = (Rate::ZERO, None);
        let setup = ControlSetup {
            path: config.path,
            is_plain: config.is_plain,
            fair_start: config.fair_start,
            largest_packet: piece_bytes.saturating_add(DATA_OVERHEAD),
            lower_bytes,
            probes_mtu: config.probes_mtu,
            lasts: config.lasts,
        };
        let silence = config.lasts.silent;
        Self {
            outbound: Outbound::new(SecureRandom::new(seed, 0), path_control),
            inbound: Inbound::new(config.buffer),
            control: Control::new(nodes, setup, config.crypto, SecureRandom::new(seed, 1)),
            sender: SenderSetup {
                piece_bytes,
                lower_bytes,
                send_bytes,
                start,
                path: PathKind::Shared,
                weight: 1.0,
                group: 0,
                rtt,
                silence,
            },
            receiver: ReceiverSetup { lower_bytes, start, room, rtt, path: PathKind::Shared },
            probes_mtu: config.probes_mtu,
            measured: Vec::new(),
            used: Vec::new(),
            looked: Vec::new(),
            events: VecDeque::new(),
        }
    }

    /// Starts to open a session to the host at `to`: its name here. [`Event::Open`] follows, or [`Event::Failed`].
    pub fn connect(
        &mut self,
        now: Time,
        to: SocketAddr,
        crypto: C::Initiator,
        request: &OpenRequest<'_>,
    ) -> Result<SessionId, OpenError> {
        self.control.connect(now, to, crypto, request)
    }

    /// Whether the other end has answered a session that is being opened, if only with a cookie: its address is one
    /// that can be reached.
    pub fn is_answered(&self, session: SessionId) -> bool {
        self.control.handshakes.is_answered(session)
    }

    /// Changes what a session's end nodes know of it: whether that can be.
    pub fn set_options(&mut self, now: Time, session: SessionId, options: Terms) -> bool {
        let is_set = self.control.grants.set_options(&mut self.control.peers, session, options);
        if is_set {
            self.outbound.set_weight(now, session, options.weight);
        }
        is_set
    }

    /// Whose a session is: sessions of one group, such as those of one ticket, share what the group gets. Groups have
    /// equal shares of a capacity, if its rule knows groups, and of a path; in group 0, where each session starts, each
    /// has its own share of a path.
    pub fn set_group(&mut self, now: Time, session: SessionId, group: u32) {
        self.control.grants.set_group(&mut self.control.peers, session, group);
        self.outbound.set_group(now, session, group);
    }

    /// The sink wants a range of a stream.
    pub fn want(&mut self, now: Time, session: SessionId, stream: u32, range: Range<u64>) {
        self.inbound.want(now, session, stream, range);
    }

    /// The sink does not want a range any more.
    pub fn give_up(&mut self, session: SessionId, stream: u32, range: &Range<u64>) {
        self.inbound.give_up(session, stream, range);
    }

    /// Sets the max number of bytes that the sink of a session may have requested and not received.
    pub fn set_room(&mut self, now: Time, session: SessionId, room: Bytes) {
        self.inbound.set_room(now, session, room);
    }

    /// The source sends a range that was asked for.
    pub fn serve(&mut self, now: Time, session: SessionId, stream: u32, range: Range<u64>) {
        self.outbound.serve(now, session, stream, range);
    }

    /// The source cannot send a range that was asked for.
    pub fn refuse(&mut self, now: Time, session: SessionId, stream: u32, range: Range<u64>, reason: VoidReason) {
        self.outbound.refuse(session, stream, &range, reason);
        self.route(now);
    }

    /// The data packet that [`Host::poll_transmit`] has just given does not go: its source has not got the bytes,
    /// though they were asked for. It counts neither as sent nor as lost, and does not go again; its number and its
    /// place in the pace are used up. The sink hears that nothing of it will come. Once, and before anything else is
    /// asked of the host.
    pub fn withdraw(&mut self, now: Time, session: SessionId, packet: &DataPacket, reason: VoidReason) {
        self.outbound.withdraw(now, session, packet, reason);
        self.route(now);
    }

    /// The last packet that [`Host::poll_transmit`] gave did not go, since the application has its bytes only later: it
    /// serves them again.
    pub fn postpone(&mut self, now: Time, session: SessionId, packet: &DataPacket) {
        self.outbound.postpone(now, session, packet);
        self.route(now);
    }

    /// The source sends no faster than this: it is what its end node takes the session's desired rate for.
    pub fn set_desired(&mut self, now: Time, session: SessionId, desired: Rate) {
        self.outbound.set_limit(now, session, RateTerm::Demand, desired);
        self.control.grants.set_desired(&mut self.control.peers, session, desired);
    }

    /// Caps the sink's rate whatever its end node grants: its source is assigned the lesser of both, and its end node
    /// uses it as the session's desired rate. `None` for no cap.
    pub fn set_ceiling(&mut self, now: Time, session: SessionId, ceiling: Option<Rate>) {
        self.inbound.set_ceiling(now, session, ceiling);
        self.control.grants.set_ceiling(now, &mut self.control.peers, session, ceiling);
        self.route(now);
    }

    /// The tunnel that carries a session's packets ([`tunnel_address`](crate::tunnel_address)) is full: its data waits
    /// until the tunnel has room again. Sessions outside tunnels are not held.
    pub fn hold(&mut self, now: Time, session: SessionId, is_held: bool) {
        self.outbound.hold(now, session, is_held);
    }

    /// How long the control intervals of one direction are from now on, where its capacity is known.
    pub fn set_interval_rule(&mut self, direction: Direction, rule: IntervalRule) {
        if let Some(node) = self.control.grants.nodes.get_mut(direction) {
            node.schedule.set_rule(rule);
        }
    }

    /// Sets the rate that traffic without grants uses of the capacity of one direction, and its share; `None` if it has
    /// no part. A rule without groups ([`Groups`](fairwave_schemes::node::Groups) has them) ignores it.
    pub fn see_other(&mut self, direction: Direction, other: Option<Others>) {
        if let Some(node) = self.control.grants.nodes.get_mut(direction) {
            node.see_other(other);
        }
    }

    /// More arrived than this host could process; `read` is the rate that it read.
    pub fn on_overflow(&mut self, read: Rate) {
        if let Some(node) = self.control.grants.nodes.get_mut(Direction::Receiving) {
            node.capacity.on_overflow(read);
        }
    }

    /// The system refuses datagrams of such a size (EMSGSIZE).
    pub fn on_too_large(&mut self, now: Time, session: SessionId, datagram_bytes: u32) {
        self.control.peers.on_too_large(now, session, datagram_bytes);
        self.route(now);
    }

    /// Asks the peer of a session for an answer.
    pub fn probe(&mut self, now: Time, session: SessionId) {
        self.control.peers.probe(now, session);
    }

    /// The secrets of this host: tickets come and go.
    pub fn crypto(&mut self) -> &mut C::Responder {
        self.control.handshakes.crypto()
    }

    /// How many sessions may be half open, where it is not as many as by default.
    pub fn set_half_open(&mut self, most: HalfOpen) {
        self.control.handshakes.set_most(most);
    }

    /// Ends a session.
    pub fn close(&mut self, now: Time, session: SessionId, reason: CloseReason) {
        self.control.close(now, session, reason);
        self.route(now);
    }

    /// Whether it has ended a session whose peer may not know it: the peer has not answered, and gets the frame again.
    pub fn is_telling_ends(&self) -> bool {
        self.control.peers.is_telling_ends()
    }

    /// A data packet came, whose seal is good, with this ECN field: what it brought.
    #[inline]
    pub fn handle_data(&mut self, now: Time, from: SocketAddr, ecn: Ecn, packet: &DataPacket) -> Taken {
        let taken = self.inbound.handle_data(now, from, ecn, packet);
        if taken.is_from_elsewhere {
            let number = (PacketKind::Data, packet.number);
            self.control.peers.locate(now, packet.session, from, number, packet.datagram_bytes());
        }
        taken
    }

    /// The parts of a session's last data packet that were wanted and came for the first time, in no order.
    #[inline]
    pub fn parts(&self, session: SessionId) -> &[Range<u64>] {
        self.inbound.parts(session)
    }

    /// A control packet came, whose seal is good: whether it is one more of an open session. Else it came before, or
    /// too late.
    pub fn handle_control(&mut self, now: Time, from: SocketAddr, packet: &ControlPacket) -> bool {
        if !self.control.accept(now, from, packet) {
            return false;
        }
        // A session opens with its first packet, whose frames are for the cores that then know of it.
        self.route(now);
        self.outbound.on_heard(now, packet.session);
        self.inbound.on_control(packet.session, packet.datagram_bytes().saturating_add(self.lower_bytes(from)));
        // The rest is padding of a path MTU probe.
        let frames = packet.frames.get(..MAX_FRAME_BYTES).unwrap_or(&packet.frames);
        for frame in Frames::new(frames) {
            // Frames of a later version are skipped, with the rest of the packet.
            let Ok(frame) = frame else { break };
            match frame {
                Frame::Feedback { expected_bps } => {
                    if self.control.grants.on_feedback(now, &self.control.peers, packet.session, expected_bps) {
                        self.outbound.handle_frame(now, packet.session, &frame);
                    }
                }
                Frame::Request { .. } | Frame::Timing { .. } | Frame::Losses(_) | Frame::Marks(_) => {
                    self.outbound.handle_frame(now, packet.session, &frame);
                }
                Frame::Sent { .. } | Frame::Void { .. } => self.inbound.handle_frame(now, packet.session, &frame),
                Frame::Grant(_) | Frame::Claim(_) | Frame::Probe(_) | Frame::Echo(_) | Frame::Close(_) => {
                    self.control.handle_frame(now, from, packet.session, &frame);
                }
            }
        }
        self.outbound.end_packet(now, packet.session);
        self.control.peers.end_packet(packet.session);
        self.route(now);
        true
    }

    /// A packet came that is not of a session with keys here, by its header. It may be a reset, which ends a session of
    /// another name and raises an event. Otherwise returns the answer to its sender, if any: a reset.
    pub fn handle_stray(&mut self, now: Time, from: SocketAddr, header: &Header, datagram: &[u8]) -> Option<Vec<u8>> {
        let lower_bytes = self.lower_bytes(from);
        let answer = self.control.handle_stray(now, (from, lower_bytes), header, datagram);
        self.route(now);
        answer
    }

    /// A datagram of the handshake came. `decide` judges requests for sessions.
    pub fn handle_handshake(
        &mut self,
        now: Time,
        from: SocketAddr,
        datagram: &[u8],
        decide: &mut dyn FnMut(&PendingVisit<C>) -> Result<Terms, Refusal>,
    ) {
        self.control.handle_handshake(now, from, datagram, decide);
        self.route(now);
    }

    /// The keys that seal the packets of a session, also of one that is half open: it opens with its first control
    /// packet. A driver whose keys change as they are used takes them when the session opens ([`Host::take_keys`]), and
    /// on the event that it closes gives back the keys needed to close it ([`Host::return_keys`]): no older ones are
    /// kept here.
    pub fn keys(&self, session: SessionId) -> Option<&C::Keys> {
        self.control.keys(session)
    }

    /// The keys of a session that is open or closing, to seal with.
    pub fn keys_mut(&mut self, session: SessionId) -> Option<&mut C::Keys> {
        self.control.peers.keys_mut(session)
    }

    /// Takes the keys of a session that has opened.
    pub fn take_keys(&mut self, session: SessionId) -> Option<C::Keys> {
        self.control.peers.take_keys(session)
    }

    /// Gives back the keys that a closing session reports its end with.
    pub fn return_keys(&mut self, session: SessionId, keys: C::Keys) {
        self.control.peers.return_keys(session, keys);
    }

    /// Does what is due. Harmless too early or too late.
    pub fn handle_timeout(&mut self, now: Time) {
        self.handle_timeout_with(now, |_, _| {});
    }

    /// Like [`Host::handle_timeout`], but `meter` may change the measured rates of a direction's sessions before its
    /// end node sees them: for experiments with other meters.
    pub fn handle_timeout_with(&mut self, now: Time, mut meter: impl FnMut(Direction, &mut [Measured])) {
        if self.poll_timeout().is_some_and(|due| now.since(due) >= MIN_PAUSE) {
            self.outbound.on_pause(now);
            self.inbound.on_pause(now);
        }
        while let Some(direction) = self.control.grants.nodes.due(now) {
            match direction {
                Direction::Sending => self.outbound.measure(now, &mut self.measured),
                Direction::Receiving => self.inbound.measure(now, &mut self.measured),
            }
            meter(direction, &mut self.measured);
            self.see_used(now, direction);
            self.see_paths(now, direction);
            self.control.grants.tick(now, &mut self.control.peers, direction, &self.measured);
        }
        while let Some(direction) = self.control.grants.nodes.due_for_news(now) {
            self.control.grants.react(now, &mut self.control.peers, direction);
        }
        self.route(now);
        self.outbound.handle_timeout(now);
        self.inbound.handle_timeout(now);
        self.control.handle_timeout(now);
        self.route(now);
    }

    /// When to come with [`Host::handle_timeout`], and then with [`Host::poll_transmit`]. Ask again after each call.
    pub fn poll_timeout(&self) -> Option<Time> {
        let timeouts = [self.outbound.poll_timeout(), self.inbound.poll_timeout(), self.control.poll_timeout()];
        timeouts.into_iter().flatten().min()
    }

    /// The next packet to send now. Call until it returns `None`.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Transmit> {
        if let Some(transmit) = self.control.poll_transmit(now) {
            if let Some(session) = transmit.session {
                let wire_bytes = transmit.packet.datagram_bytes().saturating_add(self.lower_bytes(transmit.to));
                self.outbound.on_control(now, session, wire_bytes);
            }
            return Some(transmit);
        }
        let (session, to, takes_marks, packet) = self.outbound.poll_transmit(now)?;
        Some(Transmit { to, session: Some(session), takes_marks, packet: Packet::Data(packet) })
    }

    /// The next event. Call until it returns `None`.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Bytes of IP and UDP around a datagram of that peer.
    pub fn lower_bytes(&self, peer: SocketAddr) -> u32 {
        let is_v6 = matches!(peer, SocketAddr::V6(peer) if peer.ip().to_ipv4_mapped().is_none());
        self.sender.lower_bytes.saturating_add(if is_v6 { MORE_IN_V6 } else { 0 })
    }

    /// Routes the output of each core to the cores that it concerns.
    fn route(&mut self, now: Time) {
        loop {
            if let Some(event) = self.control.peers.poll_event() {
                self.on_control(now, event);
            } else if let Some(event) = self.outbound.poll_event() {
                self.on_outbound(now, event);
            } else if let Some(event) = self.inbound.poll_event() {
                match event {
                    InboundEvent::Say { session, frames, has_news } => {
                        if has_news {
                            self.control.peers.on_news(now, session);
                        }
                        self.control.peers.say(session, frames);
                    }
                    InboundEvent::Void { session, stream, range, reason } => {
                        self.events.push_back(Event::Void { session, stream, range, reason });
                    }
                }
            } else {
                return;
            }
        }
    }

    fn on_control(&mut self, now: Time, event: ControlEvent) {
        match event {
            ControlEvent::Opened(opened) => {
                let Opened { session, peer, address, rtt, path, weight, .. } = opened;
                let largest = if self.probes_mtu { MIN_DATAGRAM } else { opened.largest_packet };
                let piece_bytes = self.sender.piece_bytes.min(largest.saturating_sub(DATA_OVERHEAD));
                let lower_bytes = self.lower_bytes(address);
                if opened.sends {
                    let start = opened.start_send;
                    let setup = SenderSetup { piece_bytes, lower_bytes, start, path, weight, rtt, ..self.sender };
                    self.outbound.open(now, session, peer, address, setup);
                    if self.control.grants.nodes.get(Direction::Sending).is_none() {
                        self.outbound.grant(now, session, Rate::nearest_bps(f64::MAX), INTERVAL_OF_NONE);
                    }
                }
                if opened.receives {
                    let setup = ReceiverSetup { lower_bytes, start: opened.start_receive, rtt, path, ..self.receiver };
                    self.inbound.open(now, session, address, setup);
                    if self.control.grants.nodes.get(Direction::Receiving).is_none() {
                        self.inbound.set_expected(now, session, None, Duration::ZERO);
                    }
                }
                self.events.push_back(Event::Open(opened));
            }
            ControlEvent::Failed { session, error } => self.events.push_back(Event::Failed { session, error }),
            ControlEvent::Grant { session, direction: Direction::Sending, rate, interval } => {
                self.outbound.grant(now, session, rate, interval);
            }
            ControlEvent::Grant { session, direction: Direction::Receiving, rate, interval } => {
                // A session that no node limits has no rate for its requests.
                let rate = Some(rate).filter(|rate| rate.as_bps() < f64::MAX);
                self.inbound.set_expected(now, session, rate, interval);
            }
            ControlEvent::SinkGrant { session, rate } => {
                self.outbound.set_limit(now, session, RateTerm::Sink, rate);
            }
            ControlEvent::Moved { session, address } => {
                self.outbound.move_to(now, session, address);
                self.inbound.set_address(session, address);
            }
            ControlEvent::Size { session, datagram_bytes } => {
                let piece_bytes = self.sender.piece_bytes.min(datagram_bytes.saturating_sub(DATA_OVERHEAD));
                self.outbound.set_piece(now, session, piece_bytes);
            }
            ControlEvent::Rtt { session, rtt, least } => self.inbound.set_rtt(session, rtt, least),
            ControlEvent::Closed { session, reason, by_peer } => {
                let sent = self.outbound.close(now, session).unwrap_or_default();
                let received = self.inbound.close(session).unwrap_or_default();
                self.events.push_back(Event::Closed { session, reason, by_peer, counts: (sent, received) });
            }
        }
    }

    fn on_outbound(&mut self, now: Time, event: OutboundEvent) {
        match event {
            OutboundEvent::Say { session, frames } => self.control.peers.say(session, frames),
            OutboundEvent::Reported { session, arrived, lost } => {
                self.control.peers.on_reported(now, session, arrived, lost);
            }
            OutboundEvent::Probe { session } => self.control.peers.probe(now, session),
            OutboundEvent::Close { session, reason } => self.control.close(now, session, reason),
            OutboundEvent::Requested { session, stream, range } => {
                self.events.push_back(Event::Requested { session, stream, range });
            }
        }
    }
}

#[cfg(test)]
mod tests;
