//! Both ends of a Homa message, and the hosts that all messages of a node share (Montazeri et al., SIGCOMM 2018; after
//! HomaModule for Linux). A session of finite size is a message.
//!
//! A source sends its first bytes at once and the rest as the receiver grants them; of its messages the one with the
//! least remaining bytes goes first, a packet at a time at the rate of its link. The receiver requests what is missing
//! after a silence.
//!
//! Ours: a tick is a round-trip time and the time in which the link carries the bytes that may be incoming, since a wait
//! behind these is not a loss. The wait doubles with each repetition, and packets are requested of the first message
//! only. A source without a reply repeats its first packet, and no message is aborted.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::rc::Rc;

use fairwave_schemes::session::homa::{
    HomaGrant, HomaReceiver, MAX_INCOMING_BYTES, OVERCOMMIT, UNSCHEDULED_BYTES, unscheduled_level,
};
use fairwave_units::{Duration, Rate, Time};

use crate::error::SimError;
use crate::flow::FlowOptions;
use crate::gtp::GtpHosts;
use crate::homa_hosts::{HomaHosts, HomaSender};
use crate::kind::{NewSession, SourceKind};
use crate::messages::Messages;
use crate::rated::{Out, Rated};
use crate::receiver::WindowReceiver;
use crate::transit::Transit;

/// Sessions that are messages of Homa.
pub(crate) const KIND: SourceKind = SourceKind::new(|scheme| scheme.name == "homa", add);

/// Ticks of silence until missing packets are requested (HomaModule: `resend_ticks`).
const RESEND_TICKS: u64 = 5;
/// Doublings of the wait at most.
const MAX_DOUBLINGS: u32 = 6;
/// Bytes of the contents of a grant or a request.
const GRANT_BYTES: u32 = 8;

fn add(transit: &mut Transit<'_>, _: &GtpHosts, asked: &NewSession<'_>) -> Result<(), SimError> {
    let NewSession { scenario, session, choice, size_packets, data_bytes, message_bytes, homa } = *asked;
    if session.size.is_none() {
        let (session, scheme) = (session.name.clone(), choice.scheme.name);
        let hint = "each session is a message: size = \"1 MB\"";
        return Err(SimError::Incomplete { session, scheme, what: "a size", hint });
    }
    let [from, to] = [session.from, session.to].map(|node| &scenario.nodes[node as usize]);
    {
        let mut hosts = homa.borrow_mut();
        hosts.senders.entry(session.from).or_insert_with(|| HomaSender::new(from.send));
        let capacity_bps = to.receive.map(Rate::as_bps);
        let overcommit = OVERCOMMIT.of(&choice.options);
        hosts
            .receivers
            .entry(session.to)
            .or_insert_with(|| (HomaReceiver::new(overcommit, capacity_bps), BTreeMap::new()));
    }
    let drains = to.receive.and_then(|rate| Duration::from_secs_f64(MAX_INCOMING_BYTES as f64 * 8.0 / rate.as_bps()));
    let tick = session.rtt + drains.unwrap_or_default();
    let silence = Duration::from_nanos(tick.as_nanos().saturating_mul(RESEND_TICKS));
    let message = HomaMessage {
        hosts: Rc::clone(homa),
        flow: transit.flows.sessions().len() as u32,
        from: session.from,
        to: session.to,
        size_packets,
        payload: scenario.packet.payload.get().max(1),
        data_bytes,
        message_bytes,
        silence,
        source: MessageSource::default(),
        sink: MessageSink::default(),
    };
    transit.add_session(message.into(), asked.bytes(), None, asked.active(), FlowOptions::default());
    Ok(())
}

/// A message.
pub(crate) struct HomaMessage {
    hosts: Rc<RefCell<HomaHosts>>,
    flow: u32,
    from: u32,
    to: u32,
    size_packets: u64,
    /// Bytes of a packet: of its data, and on the wire; and of a message without contents.
    payload: u64,
    data_bytes: u32,
    message_bytes: u32,
    /// Silence after which packets are requested, or the first one is repeated.
    silence: Duration,
    source: MessageSource,
    sink: MessageSink,
}

/// The source's state of a message.
#[derive(Default)]
struct MessageSource {
    has_begun: bool,
    is_over: bool,
    /// Packets that were sent, and that may be.
    next: u64,
    granted: u64,
    level: u8,
    again: VecDeque<Range<u64>>,
    /// Time of the last packet or message, and repetitions since the last message.
    active_at: Time,
    repeats: u32,
}

/// The sink's state of a message.
#[derive(Default)]
struct MessageSink {
    delivered: u64,
    /// Packets that the source may send.
    granted: u64,
    /// Last arrival or request, from the first packet on.
    active_at: Option<Time>,
    /// Requests since the last arrival.
    requests: u32,
    to_source: Messages<ToSource>,
}

/// Messages to the source.
enum ToSource {
    /// It may send the packets below a number, at a level.
    Grant { below: u64, level: u8 },
    /// It has to send these packets again.
    Resend(Vec<Range<u64>>),
    /// All have arrived.
    Ack,
}

impl HomaMessage {
    fn size_bytes(&self) -> u64 {
        self.size_packets * self.payload
    }

    fn packets(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.payload).min(self.size_packets)
    }

    /// Sends a packet if it is this message's turn, and wakes the message whose turn is next.
    fn pump(&mut self, now: Time, out: &mut Vec<Out>) {
        let hosts = Rc::clone(&self.hosts);
        let mut hosts = hosts.borrow_mut();
        let Some(sender) = hosts.senders.get_mut(&self.from) else { return };
        self.enlist(sender);
        if sender.free_at <= now && sender.best() == Some(self.flow) {
            let is_unscheduled = self.source.next < self.packets(UNSCHEDULED_BYTES);
            let again = crate::netblt::next(&mut self.source.again);
            let is_again = again.is_some();
            let number = again.unwrap_or(self.source.next);
            self.source.next = self.source.next.max(number + 1);
            self.source.active_at = now;
            let level =
                if is_unscheduled || is_again { unscheduled_level(self.size_bytes()) } else { self.source.level };
            out.push(Out::Ranked { number, is_again, level });
            sender.occupy(now, self.data_bytes);
            self.enlist(sender);
        }
        if let Some(flow) = sender.best() {
            out.push(Out::Wake { flow, at: sender.free_at.max(now) });
        }
    }

    /// Tells the sender whether the message may send.
    fn enlist(&self, sender: &mut HomaSender) {
        let source = &self.source;
        let may_send =
            source.has_begun && !source.is_over && (source.next < source.granted || !source.again.is_empty());
        if may_send {
            sender.ready.insert(self.flow, self.size_packets - source.next);
        } else {
            sender.ready.remove(&self.flow);
        }
    }

    fn message(&mut self, now: Time, message: ToSource, out: &mut Vec<Out>) {
        let ranges = if let ToSource::Resend(ranges) = &message { ranges.len() as u32 } else { 1 };
        let message = self.sink.to_source.push(message);
        let bytes = self.message_bytes + GRANT_BYTES * ranges;
        out.push(Out::ToSource { message, bytes });
        if let Some(sender) = self.hosts.borrow_mut().senders.get_mut(&self.to) {
            sender.occupy(now, bytes);
        }
    }

    fn grant(&mut self, now: Time, grant: HomaGrant, out: &mut Vec<Out>) {
        let below = self.packets(grant.offset);
        self.sink.granted = self.sink.granted.max(below);
        self.message(now, ToSource::Grant { below, level: grant.level }, out);
    }

    fn is_complete(&self) -> bool {
        self.sink.delivered >= self.size_packets
    }

    /// The wait after this number of repetitions.
    fn wait(&self, repeats: u32) -> Duration {
        Duration::from_nanos(self.silence.as_nanos().saturating_mul(1 << repeats.min(MAX_DOUBLINGS)))
    }

    /// When the sink requests what is missing: it expects packets, and none came for a while.
    fn request_at(&self) -> Option<Time> {
        let expects = self.sink.delivered < self.sink.granted && !self.is_complete();
        self.sink.active_at.filter(|_| expects).map(|at| at.saturating_add(self.wait(self.sink.requests)))
    }

    /// When the source repeats its first packet: it has sent all that it may, and heard nothing for a while.
    fn repeat_at(&self) -> Option<Time> {
        let source = &self.source;
        let waits = source.has_begun && !source.is_over && source.next >= source.granted && source.again.is_empty();
        // A request of the sink comes first.
        waits.then(|| source.active_at.saturating_add(self.wait(source.repeats + 1)))
    }
}

impl Rated for HomaMessage {
    fn size_packets(&self) -> u64 {
        self.size_packets
    }

    fn stop(&mut self) {
        self.source.is_over = true;
        if let Some(sender) = self.hosts.borrow_mut().senders.get_mut(&self.from) {
            sender.ready.remove(&self.flow);
        }
    }

    fn on_wake(&mut self, now: Time, receiver: &WindowReceiver, out: &mut Vec<Out>) {
        if !self.source.has_begun {
            self.source.has_begun = true;
            self.source.granted = self.packets(UNSCHEDULED_BYTES);
            self.source.active_at = now;
        }
        let pending =
            self.hosts.borrow_mut().receivers.get_mut(&self.to).and_then(|(_, grants)| grants.remove(&self.flow));
        if let Some(grant) = pending {
            self.grant(now, grant, out);
        }
        if self.request_at().is_some_and(|at| at <= now) {
            self.sink.active_at = Some(now);
            let first =
                |hosts: &HomaHosts| hosts.receivers.get(&self.to).is_some_and(|(at, _)| at.expects_first(self.flow));
            let is_first = first(&self.hosts.borrow());
            if is_first {
                self.sink.requests += 1;
                let ranges: Vec<_> = receiver.missing_below(self.sink.granted).collect();
                self.message(now, ToSource::Resend(ranges), out);
            }
        }
        if self.repeat_at().is_some_and(|at| at <= now) {
            self.source.repeats += 1;
            self.source.again.push_back(0..1);
        }
        self.pump(now, out);
    }

    fn wake(&self) -> Option<Time> {
        self.request_at().into_iter().chain(self.repeat_at()).min()
    }

    fn on_data(&mut self, now: Time, _: u64, receiver: &WindowReceiver, out: &mut Vec<Out>) {
        let is_new = receiver.delivered_packets() > self.sink.delivered;
        self.sink.delivered = receiver.delivered_packets();
        self.sink.active_at = Some(now);
        self.sink.requests = 0;
        self.sink.granted = self.sink.granted.max(self.packets(UNSCHEDULED_BYTES));
        if self.is_complete() {
            self.message(now, ToSource::Ack, out);
        }
        if !is_new {
            return;
        }
        let (size, flow) = (self.size_bytes(), self.flow);
        let mut own = Vec::new();
        if let Some((at, pending)) = self.hosts.borrow_mut().receivers.get_mut(&self.to) {
            for grant in at.on_data(now, flow, self.from, size, self.payload) {
                if grant.message == flow {
                    own.push(grant);
                } else {
                    pending.insert(grant.message, grant);
                    out.push(Out::Wake { flow: grant.message, at: now });
                }
            }
        }
        for grant in own {
            self.grant(now, grant, out);
        }
    }

    fn at_source(&mut self, now: Time, message: u64, _: &WindowReceiver, out: &mut Vec<Out>) {
        let Some(message) = self.sink.to_source.take(message) else { return };
        self.source.active_at = now;
        self.source.repeats = 0;
        match message {
            ToSource::Grant { below, level } => {
                self.source.granted = self.source.granted.max(below);
                self.source.level = level;
            }
            ToSource::Resend(ranges) => {
                let sent = self.source.next;
                // A request also grants. Packets that were not sent yet are not sent twice.
                let below = ranges.last().map_or(0, |range| range.end);
                self.source.granted = self.source.granted.max(below);
                let ranges = ranges.into_iter().map(|range| range.start..range.end.min(sent));
                self.source.again = ranges.filter(|range| !range.is_empty()).collect();
            }
            ToSource::Ack => self.source.is_over = true,
        }
        self.pump(now, out);
    }

    fn at_sink(&mut self, _: Time, _: u64, _: &WindowReceiver, _: &mut Vec<Out>) {}
}
