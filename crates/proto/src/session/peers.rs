//! The peers of a host's sessions.

use std::collections::VecDeque;
use std::net::SocketAddr;

use fairwave_node::{Direction, Share, TickOutcome};
use fairwave_units::{Duration, Rate, Time};

use crate::session::alarms::Alarms;
use crate::session::closing::ClosingSession;
use crate::session::control_event::ControlEvent;
use crate::session::peer::Peer;
use crate::session::peer::probing::{Echo, PROBE_EVERY};
use crate::session::secure_random::SecureRandom;
use crate::session::slots::{Slots, slot};
use crate::wire::codec::{CloseReason, Frame, PacketKind, SessionId};
use crate::wire::packet::{MAX_FRAME_BYTES, Transmit, frames};

/// The other ends of all sessions that are open or closing, the frames for them, and the events for the other cores.
pub(crate) struct Peers<K> {
    table: Slots<Peer<K>>,
    /// When peers are looked after.
    pub(crate) alarms: Alarms,
    transmits: VecDeque<Transmit>,
    /// Sessions with frames to send to their peers.
    unsaid: VecDeque<SessionId>,
    events: VecDeque<ControlEvent>,
    pub(crate) chance: SecureRandom,
    /// Bytes of IP and UDP around a datagram.
    lower_bytes: u32,
}

/// A peer is looked after no more often than that.
const MIN_STEP: Duration = Duration::from_millis(1);

impl<K> Peers<K> {
    /// Without sessions.
    pub(crate) fn new(chance: SecureRandom, lower_bytes: u32) -> Self {
        Self {
            table: Slots::default(),
            alarms: Alarms::default(),
            transmits: VecDeque::new(),
            unsaid: VecDeque::new(),
            events: VecDeque::new(),
            chance,
            lower_bytes,
        }
    }

    /// The other end of a session.
    pub(crate) fn get(&self, session: SessionId) -> Option<&Peer<K>> {
        self.table.get(session)
    }

    pub(crate) fn get_mut(&mut self, session: SessionId) -> Option<&mut Peer<K>> {
        self.table.get_mut(session)
    }

    /// The peer in a slot.
    pub(crate) fn at_mut(&mut self, slot: u32) -> Option<(SessionId, &mut Peer<K>)> {
        self.table.at_mut(slot)
    }

    /// The peers, in the order of their slots, with the events.
    pub(crate) fn all_mut(&mut self) -> (impl Iterator<Item = (SessionId, &mut Peer<K>)>, &mut VecDeque<ControlEvent>) {
        (self.table.iter_mut(), &mut self.events)
    }

    /// A session is open: it is looked after from now on.
    pub(crate) fn open(&mut self, now: Time, peer: Peer<K>) {
        let opened = peer.opened;
        self.table.insert(opened.session, peer);
        self.events.push_back(ControlEvent::Opened(opened));
        self.alarms.set(slot(opened.session), Some(now));
    }

    pub(crate) fn remove(&mut self, session: SessionId) -> Option<Peer<K>> {
        self.alarms.set(slot(session), None);
        self.table.remove(session)
    }

    /// Mutable keys of a session that is open or closing.
    pub(crate) fn keys_mut(&mut self, session: SessionId) -> Option<&mut K> {
        self.get_mut(session)?.keys.as_mut()
    }

    /// The driver takes them.
    pub(crate) fn take_keys(&mut self, session: SessionId) -> Option<K> {
        self.get_mut(session)?.keys.take()
    }

    /// The driver gives back what its session closes with. They go if that is over already.
    pub(crate) fn return_keys(&mut self, session: SessionId, keys: K) {
        if let Some(peer) = self.get_mut(session) {
            peer.keys = Some(keys);
        }
    }

    /// Whether both ends of a session exchange claims and grants of that direction.
    pub(crate) fn exchanges(&self, session: SessionId, direction: Direction) -> bool {
        self.get(session).is_some_and(|peer| peer.exchanges[direction as usize])
    }

    /// A packet shows where a session's initiator is.
    pub(crate) fn locate(
        &mut self,
        now: Time,
        session: SessionId,
        from: SocketAddr,
        number: (PacketKind, u64),
        datagram_bytes: u32,
    ) {
        let bytes = self.lower_bytes + datagram_bytes;
        let chance = &mut self.chance;
        if let Some(place) = self.table.get_mut(session).and_then(|peer| peer.place.as_mut()) {
            place.on_packet(now, from, number, bytes, || chance.bits());
            if let Some(at) = place.next_at() {
                self.alarms.hasten(slot(session), at);
            }
        }
    }

    /// The peer answered a probe. Returns its smoothed round-trip time if that is new.
    pub(crate) fn on_echo(&mut self, now: Time, from: SocketAddr, session: SessionId, value: u64) -> Option<Duration> {
        match self.table.get_mut(session)?.on_echo(now, from, value) {
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
                self.events.push_back(ControlEvent::Rtt { session, rtt, least });
                return Some(rtt);
            }
            Echo::Late => {}
        }
        None
    }

    /// All frames of a packet were handed in.
    pub(crate) fn end_packet(&mut self, session: SessionId) {
        if let Some(value) = self.get_mut(session).and_then(|peer| peer.asked.take()) {
            self.say(session, frames(&[Frame::Echo(value)]));
        }
    }

    /// A report settled full packets of a session: `arrived` of them arrived, `lost` were lost.
    pub(crate) fn on_reported(&mut self, now: Time, session: SessionId, arrived: u64, lost: u64) {
        let mtu = self.get_mut(session).and_then(|peer| peer.mtu.as_mut());
        let size = mtu.and_then(|mtu| mtu.on_report(now, arrived, lost).then(|| mtu.size()));
        self.push_size(session, size);
    }

    /// The system refuses datagrams of such a size (EMSGSIZE).
    pub(crate) fn on_too_large(&mut self, now: Time, session: SessionId, datagram_bytes: u32) {
        let mtu = self.get_mut(session).and_then(|peer| peer.mtu.as_mut());
        let size = mtu.map(|mtu| {
            mtu.on_too_large(now, datagram_bytes);
            mtu.size()
        });
        self.push_size(session, size);
    }

    /// Data came from a session's source.
    pub(crate) fn on_news(&mut self, now: Time, session: SessionId) {
        if let Some(peer) = self.get_mut(session) {
            peer.news_at = now;
        }
    }

    /// Sends frames to the peer of a session. Frames of the same time share as few packets as hold them.
    pub(crate) fn say(&mut self, session: SessionId, frames: Vec<u8>) {
        let Some(peer) = self.table.get_mut(session) else { return };
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

    /// Tells a source what it may send: the least of what this end's node grants, if there is one, and the ceiling.
    pub(crate) fn feed_back(&mut self, now: Time, session: SessionId, granted: Option<Rate>) {
        if let Some(expected_bps) = self.get_mut(session).and_then(|peer| peer.feedback(now, granted)) {
            self.say(session, frames(&[Frame::Feedback { expected_bps }]));
        }
    }

    /// Asks the peer of a session for an answer.
    pub(crate) fn probe(&mut self, now: Time, session: SessionId) {
        let value = self.chance.bits();
        if let Some(peer) = self.get_mut(session) {
            peer.on_probe(now, value);
            self.say(session, frames(&[Frame::Probe(value)]));
        }
    }

    /// Looks for a new address of a peer and for larger datagrams: when to come again.
    pub(crate) fn explore(&mut self, now: Time, session: SessionId) -> Option<Time> {
        let (chance, lower_bytes) = (&mut self.chance, self.lower_bytes);
        let peer = self.table.get_mut(session)?;
        let again = peer.explore(now, session, lower_bytes, || chance.bits(), &mut self.transmits);
        Some(again.min(now.saturating_add(PROBE_EVERY)).max(now.saturating_add(MIN_STEP)))
    }

    /// An open session is over, by this host or by its peer: whether it was open.
    pub(crate) fn close(&mut self, now: Time, session: SessionId, reason: CloseReason, by_peer: bool) -> bool {
        let Some(peer) = self.table.get_mut(session).filter(|peer| peer.closing.is_none()) else { return false };
        peer.closing = Some(if by_peer {
            ClosingSession::by_peer(now, reason, peer.rtt.smoothed())
        } else {
            ClosingSession::by_this_end(now, reason)
        });
        self.alarms.set(slot(session), Some(now));
        self.events.push_back(ControlEvent::Closed { session, reason, by_peer });
        true
    }

    /// Whether this host has closed a session whose peer may not know it.
    pub(crate) fn is_telling_ends(&self) -> bool {
        self.table.iter().any(|(_, peer)| peer.closing.is_some_and(|closing| closing.is_telling()))
    }

    pub(crate) fn push(&mut self, event: ControlEvent) {
        self.events.push_back(event);
    }

    fn push_size(&mut self, session: SessionId, size: Option<u32>) {
        self.events.extend(size.map(|datagram_bytes| ControlEvent::Size { session, datagram_bytes }));
    }

    /// Passes a node's grant for a session to the other cores.
    pub(crate) fn push_grant(&mut self, direction: Direction, interval: Duration, outcome: &TickOutcome) {
        let TickOutcome { session, share: Share { allowed: rate, remote, .. }, .. } = *outcome;
        self.push(ControlEvent::Grant { session, direction, rate, interval });
        if let Some(rate) = remote {
            self.push(ControlEvent::SinkGrant { session, rate });
        }
    }

    /// The next event. Call until it returns `None`.
    pub(crate) fn poll_event(&mut self) -> Option<ControlEvent> {
        self.events.pop_front()
    }

    /// Sends a packet of no session.
    pub(crate) fn push_transmit(&mut self, transmit: Transmit) {
        self.transmits.push_back(transmit);
    }

    /// The next packet to send.
    pub(crate) fn poll_transmit(&mut self) -> Option<Transmit> {
        while let Some(session) = self.unsaid.pop_front() {
            if let Some(peer) = self.table.get_mut(session) {
                let frames = std::mem::take(&mut peer.unsaid);
                self.transmits.push_back(peer.packet(session, frames));
            }
        }
        self.transmits.pop_front()
    }
}
