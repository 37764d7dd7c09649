//! All senders of a host.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::ops::Range;

use fairwave_units::{Duration, Rate, Time};

use crate::path::path_facts::PathFacts;
use crate::path::path_kind::PathKind;
use crate::path::{Division, PathControl, PathId, PathMember, Paths};
use crate::send::limits::RateTerm;
use crate::send::round_robin::RoundRobin;
use crate::send::sender::{Sender, SenderCounts, SenderSetup};
use crate::send::stall_detector::StallDetector;
use crate::send::usage::Usage;
use crate::send::verdict::{Repairs, Settlement};
use crate::session::alarms::Alarms;
use crate::session::hold::Hold;
use crate::session::opened::Measured;
use crate::session::secure_random::SecureRandom;
use crate::session::slots::{Slots, slot};
use crate::wire::codec::{CloseReason, Frame, SessionId, VoidReason};
use crate::wire::packet::{DataPacket, frames};
use crate::wire::tunnel::tunnel_of;

/// The core of a host that sends data.
///
/// Its inputs are the end node's grants ([`Outbound::set_limit`]) and the sinks' frames ([`Outbound::handle_frame`]);
/// it returns packets when they are due ([`Outbound::poll_transmit`]).
#[derive(Debug)]
pub(crate) struct Outbound {
    senders: Slots<Sender>,
    /// Shared paths.
    paths: Paths,
    division: Division,
    /// Whose rates are to be divided as soon as it is their turn.
    undivided: Vec<PathId>,
    /// When packets are due.
    paces: Alarms,
    /// Whose packets are due, and have not gone.
    turns: RoundRobin,
    /// When senders are looked after.
    checks: Alarms,
    events: VecDeque<OutboundEvent>,
    chance: SecureRandom,
    repairs: Repairs,
    quiet: StallDetector,
}

/// Requests of a sender to its host.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum OutboundEvent {
    /// Frames for the peer.
    Say {
        /// The session.
        session: SessionId,
        /// A body of frames.
        frames: Vec<u8>,
    },
    /// The sink asks for a range.
    Requested {
        /// The session.
        session: SessionId,
        /// The stream.
        stream: u32,
        /// The range.
        range: Range<u64>,
    },
    /// A report settled packets larger than 1200 bytes: how many arrived, and how many were lost.
    Reported {
        /// The session.
        session: SessionId,
        /// Those that arrived.
        arrived: u64,
        /// Those that were lost.
        lost: u64,
    },
    /// The peer is to be asked whether it is there.
    Probe {
        /// The session.
        session: SessionId,
    },
    /// The session is to be closed.
    Close {
        /// The session.
        session: SessionId,
        /// Why.
        reason: CloseReason,
    },
}

/// Interval of checks of senders with data in flight.
const CHECK_EVERY: Duration = Duration::from_millis(5);

impl Outbound {
    /// Without sessions; what shared paths are used by.
    pub(crate) fn new(mut chance: SecureRandom, control: PathControl) -> Self {
        Self {
            senders: Slots::default(),
            paths: Paths::new(control, chance.bits()),
            division: Division::default(),
            undivided: Vec::new(),
            paces: Alarms::default(),
            turns: RoundRobin::default(),
            checks: Alarms::default(),
            events: VecDeque::new(),
            chance,
            repairs: Repairs::default(),
            quiet: StallDetector::default(),
        }
    }

    /// A session that sends opens: `peer` is its name at the sink, which is at `to`.
    pub(crate) fn open(&mut self, now: Time, session: SessionId, peer: SessionId, to: SocketAddr, setup: SenderSetup) {
        let slot = slot(session);
        let member = has_model(to, setup.path).then(|| {
            let id = self.paths.join(now, to, slot, setup.rtt, setup.full_packet());
            PathMember::new(id, setup.weight, 0)
        });
        let path = member.as_ref().map(PathMember::id);
        self.senders.insert(session, Sender::new(now, peer, to, setup, member));
        self.checks.set(slot, Some(now.saturating_add(CHECK_EVERY)));
        if let Some(path) = path {
            self.divide_now(now, path);
        }
    }

    /// A session closes: what it has done, if it was here.
    pub(crate) fn close(&mut self, now: Time, session: SessionId) -> Option<SenderCounts> {
        let sender = self.senders.remove(session)?;
        self.paces.set(slot(session), None);
        self.checks.set(slot(session), None);
        if let Some(member) = sender.member() {
            self.paths.leave(member.id(), slot(session), member.in_flight());
            self.divide_now(now, member.id());
        }
        Some(sender.counts)
    }

    /// The application sends a range that the sink asked for.
    pub(crate) fn serve(&mut self, now: Time, session: SessionId, stream: u32, range: Range<u64>) {
        if let Some(sender) = self.senders.get_mut(session) {
            let wanted = sender.wants();
            sender.serve(now, stream, range);
            if let Some(path) = self.path_of(session).filter(|_| !wanted) {
                self.divide(now, path);
            }
            self.rearm(now, session);
        }
    }

    /// A session's weight among those of its path is another one.
    pub(crate) fn set_weight(&mut self, now: Time, session: SessionId, weight: f64) {
        let path = self.senders.get_mut(session).and_then(|sender| sender.set_weight(weight));
        if let Some(path) = path {
            self.divide_now(now, path);
        }
    }

    /// A session is of another group: see [`Host::set_group`](crate::Host::set_group).
    pub(crate) fn set_group(&mut self, now: Time, session: SessionId, group: u32) {
        let path = self.senders.get_mut(session).and_then(|sender| sender.set_group(group));
        if let Some(path) = path {
            self.divide_now(now, path);
        }
    }

    /// The application cannot send a range.
    pub(crate) fn refuse(&mut self, session: SessionId, stream: u32, range: &Range<u64>, reason: VoidReason) {
        let Some(sender) = self.senders.get_mut(session) else { return };
        sender.cancel(stream, range);
        let (offset, length) = (range.start, range.end.saturating_sub(range.start));
        let void = Frame::Void { stream: u64::from(stream), offset, length, reason };
        self.events.push_back(OutboundEvent::Say { session, frames: frames(&[void]) });
    }

    /// The last packet that [`Outbound::poll_transmit`] gave did not go, since the application has not got its bytes.
    pub(crate) fn withdraw(&mut self, now: Time, session: SessionId, packet: &DataPacket, reason: VoidReason) {
        if let Some(sender) = self.senders.get_mut(session) {
            let path = sender.member().map(PathMember::id).and_then(|id| self.paths.get_mut(id));
            sender.withdraw(now, packet, path);
        }
        self.refuse(session, packet.piece.stream, &packet.piece.range(), reason);
        self.rearm(now, session);
    }

    /// The last packet that [`Outbound::poll_transmit`] gave did not go: the application has its bytes later, and
    /// serves them again.
    pub(crate) fn postpone(&mut self, now: Time, session: SessionId, packet: &DataPacket) {
        if let Some(sender) = self.senders.get_mut(session) {
            let path = sender.member().map(PathMember::id).and_then(|id| self.paths.get_mut(id));
            sender.withdraw(now, packet, path);
        }
        self.rearm(now, session);
    }

    /// Sets a term of a session's rate.
    pub(crate) fn set_limit(&mut self, now: Time, session: SessionId, limit: RateTerm, rate: Rate) {
        if let Some(sender) = self.senders.get_mut(session) {
            sender.limit(now, limit, rate);
            self.rearm(now, session);
        }
    }

    /// The tunnel that carries a session's packets is full, or has room again.
    pub(crate) fn hold(&mut self, now: Time, session: SessionId, is_held: bool) {
        if let Some(sender) = self.senders.get_mut(session) {
            sender.hold(now, is_held);
            self.rearm(now, session);
        }
    }

    /// A session's end node grants it a rate until its next tick, an interval later.
    pub(crate) fn grant(&mut self, now: Time, session: SessionId, rate: Rate, interval: Duration) {
        if let Some(sender) = self.senders.get_mut(session) {
            sender.grant(now, rate, interval);
            self.rearm(now, session);
        }
    }

    /// A control packet of `wire_bytes` on the wire goes to a session's sink: data make room for it.
    pub(crate) fn on_control(&mut self, now: Time, session: SessionId, wire_bytes: u32) {
        if let Some(sender) = self.senders.get_mut(session) {
            sender.on_control(now, wire_bytes);
            self.rearm(now, session);
        }
    }

    /// A sealed packet of a session's sink came.
    pub(crate) fn on_heard(&mut self, now: Time, session: SessionId) {
        if let Some(sender) = self.senders.get_mut(session) {
            let path = sender.member().map(PathMember::id).and_then(|id| self.paths.get_mut(id));
            sender.on_heard(now, path);
        }
    }

    /// A session's sink is at another address: what was known of its path is void.
    pub(crate) fn move_to(&mut self, now: Time, session: SessionId, to: SocketAddr) {
        let Some(sender) = self.senders.get_mut(session) else { return };
        let slot = slot(session);
        let before = sender.member().map(PathMember::id);
        sender.move_to(now, to);
        let has_model = has_model(to, sender.setup().path);
        // RFC 9000 s9.4: where nothing but the port is another, the path is as a rule the same.
        if has_model && before.is_some_and(|before| self.paths.leads_to(before, to)) {
            return self.rearm(now, session);
        }
        let packet = sender.setup().full_packet();
        let id = has_model.then(|| self.paths.join(now, to, slot, None, packet));
        let in_flight = sender.change_path(now, id);
        if let Some(before) = before {
            self.paths.leave(before, slot, in_flight);
            self.divide_now(now, before);
        }
        if let Some(id) = id {
            self.divide_now(now, id);
        }
        self.rearm(now, session);
    }

    /// Sets the max number of data bytes in a packet of a session.
    pub(crate) fn set_piece(&mut self, now: Time, session: SessionId, piece_bytes: u32) {
        if let Some(sender) = self.senders.get_mut(session) {
            sender.set_piece(now, piece_bytes);
            self.rearm(now, session);
        }
    }

    /// Handles a frame from a sink to its source.
    pub(crate) fn handle_frame(&mut self, now: Time, session: SessionId, frame: &Frame<'_>) {
        let Some(sender) = self.senders.get_mut(session) else { return };
        match *frame {
            Frame::Request { stream, offset, length } => {
                let Ok(stream) = u32::try_from(stream) else { return };
                let range = offset..offset.saturating_add(length);
                self.events.push_back(OutboundEvent::Requested { session, stream, range });
                return;
            }
            Frame::Feedback { expected_bps } => sender.on_feedback(now, expected_bps),
            Frame::Timing { stamp_us, held_us } => return sender.on_timing(now, stamp_us, held_us),
            Frame::Marks(counts) => return sender.on_marks(counts),
            Frame::Losses(ref report) => {
                let path = sender.member().map(PathMember::id).and_then(|id| self.paths.get_mut(id));
                if let Err(reason) = sender.on_report(now, report, &mut self.repairs, path) {
                    self.events.push_back(OutboundEvent::Close { session, reason });
                    return;
                }
            }
            Frame::Grant(_)
            | Frame::Claim(_)
            | Frame::Void { .. }
            | Frame::Sent { .. }
            | Frame::Probe(_)
            | Frame::Echo(_)
            | Frame::Close(_) => return,
        }
        self.rearm(now, session);
    }

    /// All frames of a packet were handed in: reports in it are answered.
    pub(crate) fn end_packet(&mut self, now: Time, session: SessionId) {
        let Some(sender) = self.senders.get_mut(session) else { return };
        let id = sender.member().map(PathMember::id);
        let path = id.and_then(|id| self.paths.get_mut(id)).map(|path| (path, slot(session)));
        let has_news = path.is_some() && sender.reported.is_some();
        if let Some(Settlement { arrived, lost, .. }) = sender.end_report(now, path) {
            self.events.push_back(OutboundEvent::Reported { session, arrived, lost });
        }
        if let Some((settled, next)) = sender.poll_sent(now, true) {
            let frames = frames(&[Frame::Sent { settled, next }]);
            self.events.push_back(OutboundEvent::Say { session, frames });
        }
        if let Some(id) = id.filter(|_| has_news) {
            self.divide(now, id);
            self.rearm(now, session);
        }
    }

    /// Looks after the senders whose time has come. Harmless too early or too late.
    pub(crate) fn handle_timeout(&mut self, now: Time) {
        self.divide_due(now);
        while let Some(slot) = self.checks.pop(now) {
            let Some((session, sender)) = self.senders.at_mut(slot) else { continue };
            if let Some((settled, next)) = sender.poll_sent(now, false) {
                let frames = frames(&[Frame::Sent { settled, next }]);
                self.events.push_back(OutboundEvent::Say { session, frames });
            }
            match sender.listen(now) {
                Ok(true) => self.events.push_back(OutboundEvent::Probe { session }),
                Ok(false) => {}
                Err(reason) => {
                    self.events.push_back(OutboundEvent::Close { session, reason });
                    continue;
                }
            }
            let check = sender.is_busy().then(|| now.saturating_add(CHECK_EVERY));
            self.checks.set(slot, check.into_iter().chain(sender.listens_at()).min());
            // A rate that silence took away may be back.
            if !self.turns.contains(slot) {
                self.paces.set(slot, sender.wake_at(now));
            }
        }
    }

    /// When to come again.
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        let pace = self.turns.since().or(self.paces.next());
        pace.into_iter().chain(self.checks.next()).min()
    }

    /// The next data packet that is due: the session's name here, where to, whether it takes marks, and the packet.
    #[inline]
    pub(crate) fn poll_transmit(&mut self, now: Time) -> Option<(SessionId, SocketAddr, bool, DataPacket)> {
        if !self.undivided.is_empty() {
            self.divide_due(now);
        }
        loop {
            while let Some(slot) = self.paces.pop(now) {
                self.turns.enter(now, slot);
            }
            let slot = self.turns.first()?;
            let Some((session, sender)) = self.senders.at_mut(slot) else {
                self.turns.leave();
                continue;
            };
            let id = sender.member().map(PathMember::id);
            let path = id.and_then(|id| self.paths.get_mut(id));
            let packet = sender.transmit(now, &mut self.chance, path);
            let again = sender.wake_at(now);
            let is_through = packet.is_some() && !sender.wants();
            match packet {
                Some(packet) if again.is_some_and(|at| at <= now) => self.turns.on_sent(packet.datagram_bytes()),
                _ => {
                    self.turns.leave();
                    self.paces.set(slot, again);
                }
            }
            if let Some(packet) = packet {
                let (to, takes_marks) = (sender.to, sender.takes_marks());
                self.check_soon(slot, now);
                if let Some(id) = id.filter(|_| is_through) {
                    self.divide(now, id);
                }
                return Some((session, to, takes_marks, packet));
            }
        }
    }

    /// The next request of a sender. Call until it returns `None`.
    pub(crate) fn poll_event(&mut self) -> Option<OutboundEvent> {
        self.events.pop_front()
    }

    /// This host runs again, after a pause.
    pub(crate) fn on_pause(&mut self, now: Time) {
        self.quiet.on_pause(now);
    }

    /// A control interval of the end node is over: what each session sent in it goes into `measured`,
    /// in the order of their names.
    pub(crate) fn measure(&mut self, now: Time, measured: &mut Vec<Measured>) {
        let has_data = self.senders.iter_mut().any(|(_, sender)| sender.has_data());
        let evidence = self.quiet.tick(now, has_data);
        measured.clear();
        measured.extend(self.senders.iter_mut().map(|(session, sender)| Measured {
            session,
            rate: sender.measure(now, evidence),
            waiting: None,
        }));
        measured.sort_unstable_by_key(|measured| measured.session);
    }

    /// Usage of sessions in the interval that ends now, for a node with claims.
    pub(crate) fn use_up(&mut self, now: Time, used: &mut Vec<(SessionId, Usage)>) {
        used.clear();
        used.extend(self.senders.iter_mut().map(|(session, sender)| (session, sender.usage(now))));
    }

    /// A term of a session's rate.
    pub(crate) fn limit(&self, session: SessionId, limit: RateTerm) -> Option<Rate> {
        self.senders.get(session).map(|sender| sender.limits().get(limit))
    }

    /// The limit of a session for most of the last second.
    pub(crate) fn held_by(&mut self, now: Time, session: SessionId) -> Option<Hold> {
        self.senders.get_mut(session).map(|sender| sender.held_by(now))
    }

    /// Whether packets of a session set out with ECT(0).
    pub(crate) fn takes_marks(&self, session: SessionId) -> bool {
        self.senders.get(session).is_some_and(Sender::takes_marks)
    }

    /// Facts about a session's path.
    pub(crate) fn path_facts(&mut self, now: Time, session: SessionId) -> Option<PathFacts> {
        self.senders.get_mut(session).map(|sender| sender.path_facts(now))
    }

    /// Counters of a session.
    pub(crate) fn counts(&self, session: SessionId) -> Option<SenderCounts> {
        self.senders.get(session).map(|sender| sender.counts)
    }

    /// Packets of a session whose fate is not settled.
    pub(crate) fn under_way(&self, session: SessionId) -> usize {
        self.senders.get(session).map_or(0, Sender::under_way)
    }

    fn path_of(&self, session: SessionId) -> Option<PathId> {
        self.senders.get(session)?.member().map(PathMember::id)
    }

    /// Divides the rate of a path among its sessions, by what each could send; soon, if that was done just now.
    fn divide(&mut self, now: Time, id: PathId) {
        let Some(path) = self.paths.get_mut(id) else { return };
        if path.takes_turn(now) {
            self.divide_now(now, id);
        } else if !self.undivided.contains(&id) {
            self.undivided.push(id);
        }
    }

    fn divide_due(&mut self, now: Time) {
        for at in (0..self.undivided.len()).rev() {
            let id = self.undivided[at];
            if self.paths.get_mut(id).is_none_or(|path| path.takes_turn(now)) {
                self.undivided.swap_remove(at);
                self.divide_now(now, id);
            }
        }
    }

    fn divide_now(&mut self, now: Time, id: PathId) {
        let Some(path) = self.paths.get_mut(id) else { return };
        let claims = self.division.claims();
        claims.clear();
        let mut is_behind = false;
        for slot in path.members() {
            let Some((_, sender)) = self.senders.at_mut(slot) else { continue };
            is_behind |= sender.is_behind();
            claims.push(sender.claim());
        }
        if !self.division.divide(path.rate()) || is_behind {
            path.on_unclaimed();
        }
        for (slot, portion) in path.members().zip(self.division.portions()) {
            let Some((_, sender)) = self.senders.at_mut(slot) else { continue };
            sender.set_portion(now, path, *portion);
            if !self.turns.contains(slot) {
                self.paces.set(slot, sender.wake_at(now));
            }
        }
    }

    fn rearm(&mut self, now: Time, session: SessionId) {
        let slot = slot(session);
        if let Some(sender) = self.senders.get(session) {
            if !self.turns.contains(slot) {
                self.paces.set(slot, sender.wake_at(now));
            }
            if sender.is_busy() {
                self.check_soon(slot, now);
            }
        }
    }

    /// Sees to it that a sender is looked after within this period.
    #[inline]
    fn check_soon(&mut self, slot: u32, now: Time) {
        let soon = now.saturating_add(CHECK_EVERY);
        if self.checks.get(slot).is_none_or(|at| at > soon) {
            self.checks.set(slot, Some(soon));
        }
    }
}

/// Whether a path has a model: where others use it, and no tunnel has one in its place.
fn has_model(to: SocketAddr, path: PathKind) -> bool {
    path == PathKind::Shared && tunnel_of(to).is_none()
}

#[cfg(test)]
mod tests;
