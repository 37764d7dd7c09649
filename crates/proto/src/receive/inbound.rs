//! All receivers of a host.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::ops::Range;

use fairwave_units::{Bytes, Duration, Rate, Time};

use crate::path::ecn::Ecn;
use crate::path::path_facts::PathFacts;
use crate::receive::receiver::{Receiver, ReceiverCounts, ReceiverSetup};
use crate::receive::socket_share::SocketShare;
use crate::send::stall_detector::StallDetector;
use crate::send::usage::Usage;
use crate::session::alarms::Alarms;
use crate::session::hold::Hold;
use crate::session::opened::Measured;
use crate::session::slots::{Slots, slot};
use crate::wire::codec::{Frame, SessionId, VoidReason};
use crate::wire::packet::DataPacket;

/// The core of a host that receives data.
///
/// It is given data packets as they come ([`Inbound::handle_data`]) and what sources say ([`Inbound::handle_frame`]),
/// and answers with frames for them: reports and requests.
#[derive(Debug, Default)]
pub(crate) struct Inbound {
    receivers: Slots<Receiver>,
    alarms: Alarms,
    crowd: SocketShare,
    /// When those that want something are counted again.
    count_at: Time,
    events: VecDeque<InboundEvent>,
    lost: Vec<Range<u64>>,
    pages: Vec<Vec<u8>>,
    quiet: StallDetector,
}

/// Requests of a receiver to its host.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum InboundEvent {
    /// Frames for the peer.
    Say {
        /// The session.
        session: SessionId,
        /// A body of frames.
        frames: Vec<u8>,
        /// Whether data came since its last message.
        has_news: bool,
    },
    /// A range that was wanted will not come.
    Void {
        /// The session.
        session: SessionId,
        /// The stream.
        stream: u32,
        /// The range.
        range: Range<u64>,
        /// Why.
        reason: VoidReason,
    },
}

/// The effect of a data packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Requested bytes that arrive for the first time. If 0, the packet is of no use.
    pub bytes: u64,
    /// Whether the packet came for the first time and counts: a duplicate, by any sender, is not part of the session.
    pub is_new: bool,
    /// Whether it is newer than all before, and came from an address that is not the session's: `Control` should know.
    pub(crate) is_from_elsewhere: bool,
}

/// Interval of counting sessions with open requests.
const COUNT_EVERY: Duration = Duration::from_millis(20);

impl Inbound {
    /// Without sessions, at a host whose system buffers this many bytes of input; `None` if everything is read as it
    /// comes.
    pub(crate) fn new(buffer: Option<Bytes>) -> Self {
        Self { crowd: SocketShare { buffer, ..SocketShare::default() }, ..Self::default() }
    }

    /// A session that receives opens; its source is at `from`.
    pub(crate) fn open(&mut self, now: Time, session: SessionId, from: SocketAddr, setup: ReceiverSetup) {
        self.receivers.insert(session, Receiver::new(now, from, setup));
    }

    /// A session closes: what it has seen, if it was here.
    pub(crate) fn close(&mut self, session: SessionId) -> Option<ReceiverCounts> {
        let receiver = self.receivers.remove(session)?;
        self.alarms.set(slot(session), None);
        Some(receiver.counts())
    }

    /// The application wants a range of a stream, also one that it had and that turned out to be wrong.
    pub(crate) fn want(&mut self, now: Time, session: SessionId, stream: u32, range: Range<u64>) {
        if let Some(receiver) = self.receivers.get_mut(session) {
            self.crowd.sessions += u32::from(receiver.requests().is_complete());
            receiver.want(stream, range);
            self.alarms.set(slot(session), Some(now));
        }
    }

    /// The application does not want a range any more.
    pub(crate) fn give_up(&mut self, session: SessionId, stream: u32, range: &Range<u64>) {
        if let Some(receiver) = self.receivers.get_mut(session) {
            receiver.give_up(stream, range);
        }
    }

    /// The end node grants a session a rate; `None` if it sets no limit.
    pub(crate) fn set_expected(&mut self, now: Time, session: SessionId, expected: Option<Rate>, interval: Duration) {
        if let Some(receiver) = self.receivers.get_mut(session)
            && receiver.set_expected(now, expected, interval)
        {
            // The request of now is sent together with the grant.
            self.alarms.hasten(slot(session), now);
        }
    }

    /// Sets the max rate of a session's application, whatever the end node grants; `None` if unlimited.
    pub(crate) fn set_ceiling(&mut self, now: Time, session: SessionId, ceiling: Option<Rate>) {
        if let Some(receiver) = self.receivers.get_mut(session) {
            receiver.set_ceiling(now, ceiling);
        }
    }

    /// That max rate.
    pub(crate) fn ceiling(&self, session: SessionId) -> Option<Rate> {
        self.receivers.get(session).and_then(Receiver::ceiling)
    }

    /// Sets the max number of bytes that a session may have requested and not received.
    pub(crate) fn set_room(&mut self, now: Time, session: SessionId, room: Bytes) {
        if let Some(receiver) = self.receivers.get_mut(session) {
            receiver.set_room(room);
            self.alarms.set(slot(session), Some(now));
        }
    }

    /// The round-trip time of a session, and the least one recently.
    pub(crate) fn set_rtt(&mut self, session: SessionId, rtt: Duration, least: Duration) {
        if let Some(receiver) = self.receivers.get_mut(session) {
            receiver.set_rtt(rtt, least);
        }
    }

    /// A session's source is at another address.
    pub(crate) fn set_address(&mut self, session: SessionId, from: SocketAddr) {
        if let Some(receiver) = self.receivers.get_mut(session) {
            receiver.from = from;
        }
    }

    /// A data packet came, whose seal is good.
    #[inline]
    pub(crate) fn handle_data(&mut self, now: Time, from: SocketAddr, ecn: Ecn, packet: &DataPacket) -> Taken {
        let Some(receiver) = self.receivers.get_mut(packet.session) else { return Taken::default() };
        let (next, packets) = (receiver.next(), receiver.counts().packets);
        let bytes = receiver.on_data(now, ecn, packet);
        let is_new = receiver.counts().packets > packets;
        self.crowd.asked_bytes = self.crowd.asked_bytes.saturating_sub(bytes);
        let is_from_elsewhere = receiver.from != from && packet.number >= next && receiver.next() > next;
        let slot = slot(packet.session);
        if is_new && self.alarms.get(slot).is_none() {
            self.alarms.set(slot, Some(now));
        }
        Taken { bytes, is_new, is_from_elsewhere }
    }

    /// The parts of a session's last data packet that were wanted and came for the first time, in no order.
    pub(crate) fn parts(&self, session: SessionId) -> &[Range<u64>] {
        self.receivers.get(session).map_or(&[], |receiver| receiver.requests().parts())
    }

    /// A control packet of a session's source of `wire_bytes` on the wire came: it counts in its rate.
    pub(crate) fn on_control(&mut self, session: SessionId, wire_bytes: u32) {
        if let Some(receiver) = self.receivers.get_mut(session) {
            receiver.on_control(wire_bytes);
        }
    }

    /// Handles a frame from a source to its sink.
    pub(crate) fn handle_frame(&mut self, now: Time, session: SessionId, frame: &Frame<'_>) {
        let Some(receiver) = self.receivers.get_mut(session) else { return };
        match *frame {
            Frame::Sent { settled, next } => {
                receiver.on_sent(settled, next);
                if self.alarms.get(slot(session)).is_none() {
                    self.alarms.set(slot(session), Some(now));
                }
            }
            Frame::Void { stream, offset, length, reason } => {
                let Ok(stream) = u32::try_from(stream) else { return };
                let range = offset..offset.saturating_add(length);
                if receiver.give_up(stream, &range) > 0 {
                    self.events.push_back(InboundEvent::Void { session, stream, range, reason });
                }
            }
            _ => {}
        }
    }

    /// Looks after the receivers whose time has come. Harmless too early or too late.
    pub(crate) fn handle_timeout(&mut self, now: Time) {
        if self.crowd.buffer.is_some() && self.count_at <= now {
            self.count_at = now.saturating_add(COUNT_EVERY);
            (self.crowd.sessions, self.crowd.asked_bytes) = (0, 0);
            for (_, receiver) in self.receivers.iter() {
                self.crowd.sessions += u32::from(!receiver.requests().is_complete());
                self.crowd.asked_bytes += receiver.asked_beyond_path().get();
            }
        }
        while let Some(slot) = self.alarms.pop(now) {
            let Some((session, receiver)) = self.receivers.at_mut(slot) else { continue };
            let (asked, has_news) = (receiver.requests().asked().get(), receiver.has_news());
            let again = receiver.speak(now, self.crowd, &mut self.lost, &mut self.pages);
            self.crowd.asked_bytes += receiver.requests().asked().get().saturating_sub(asked);
            let says = self.pages.drain(..).map(|frames| InboundEvent::Say { session, frames, has_news });
            self.events.extend(says);
            // Never at once again, whatever the time.
            self.alarms.set(slot, again.filter(|again| *again > now));
        }
    }

    /// When to come again.
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        self.alarms.next()
    }

    /// The next request of a receiver. Call until it returns `None`.
    pub(crate) fn poll_event(&mut self) -> Option<InboundEvent> {
        self.events.pop_front()
    }

    /// This host runs again, after a pause.
    pub(crate) fn on_pause(&mut self, now: Time) {
        self.quiet.on_pause(now);
    }

    /// A control interval of the end node is over: what each session's source sent in it goes into `measured`,
    /// in the order of their names.
    pub(crate) fn measure(&mut self, now: Time, measured: &mut Vec<Measured>) {
        let has_data = self.receivers.iter_mut().any(|(_, receiver)| receiver.has_data());
        let evidence = self.quiet.tick(now, has_data);
        measured.clear();
        measured.extend(self.receivers.iter_mut().map(|(session, receiver)| Measured {
            session,
            rate: receiver.measure(now, evidence),
            waiting: receiver.waiting(),
        }));
        measured.sort_unstable_by_key(|measured| measured.session);
    }

    /// Usage of sessions in the interval that ends now, for a node with claims.
    pub(crate) fn use_up(&mut self, used: &mut Vec<(SessionId, Usage)>) {
        used.clear();
        used.extend(self.receivers.iter_mut().map(|(session, receiver)| (session, receiver.usage())));
    }

    /// Whether all that was wanted has come.
    #[cfg(test)]
    pub(crate) fn is_complete(&self, session: SessionId) -> bool {
        self.receivers.get(session).is_none_or(|receiver| receiver.requests().is_complete())
    }

    /// Packets of a session whose fate its source has not settled, as far as this end knows.
    pub(crate) fn under_way(&self, session: SessionId) -> u64 {
        self.receivers.get(session).map_or(0, Receiver::span)
    }

    /// The limit of a session at this end, if known here.
    pub(crate) fn held_by(&self, session: SessionId) -> Option<Hold> {
        self.receivers.get(session).and_then(Receiver::held_by)
    }

    /// Facts about the path of a session's incoming data.
    pub(crate) fn path_facts(&mut self, now: Time, session: SessionId) -> Option<PathFacts> {
        self.receivers.get_mut(session).map(|receiver| receiver.path_facts(now))
    }

    /// Counters of a session.
    pub(crate) fn counts(&self, session: SessionId) -> Option<ReceiverCounts> {
        self.receivers.get(session).map(Receiver::counts)
    }
}
