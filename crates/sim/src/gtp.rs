//! GTP packet by packet: a `fairwave_proto::Host` per node, connected by the simulated network.
//!
//! The sink of a session requests its data, so the sink is the initiator. Data and the source's messages take the
//! session's forward path; the sink's messages take the return path. Addresses identify the ends of a packet: every
//! session has its own pair.

pub(crate) mod parcel;
pub(crate) mod session;
mod setup;
mod wire;
mod yielding;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};

use fairwave_proto::codec::{CloseReason, SessionId, TicketId};
use fairwave_proto::handshake::insecure::{Insecure, InsecureInitiator};
use fairwave_proto::{
    Direction, Ecn, Event as Heard, Host, IntervalRule, OpenError, OpenRequest, Packet as Content, Transmit,
};
use fairwave_scenario::TraceKind;
use fairwave_scenario::report::KnownRates;
use fairwave_units::{Duration, Rate};

use crate::event::SimEvent;
use crate::flow::SimFlow;
use crate::packet::{SimPacket, SimPacketKind};
use crate::pending_timer::PendingTimer;
use crate::transit::Transit;
use parcel::GtpParcel;
use session::{GtpEnd, GtpSession};
use wire::DatagramCodec;
use yielding::Yielding;

pub(crate) use setup::KIND;

/// The hosts of all nodes that have sessions of GTP.
#[derive(Default)]
pub(crate) struct GtpHosts {
    hosts: Vec<HostAt>,
    /// Index of the host of each node that has one.
    places: BTreeMap<u32, u32>,
    wire: DatagramCodec,
}

struct HostAt {
    host: Host<Insecure>,
    timer: PendingTimer,
    /// The flows of its sessions, by their names here.
    flows: BTreeMap<SessionId, u32>,
    /// Round-trip times of its sessions, without queueing, with their numbers: they set its interval if the scenario
    /// has "rtt"; otherwise `None`.
    rtts: Option<BTreeMap<Duration, u32>>,
    /// Time that a full packet takes at each of its capacities, sending and receiving.
    packet_times: [Duration; 2],
    /// Its capacities that it shares with other traffic.
    yields: Vec<Yielding>,
    /// Bytes of IP and UDP around a datagram.
    lower_bytes: u32,
}

/// The demand of an application, unlimited by default.
fn desired(rate: Option<Rate>) -> Rate {
    rate.unwrap_or(Rate::nearest_bps(f64::MAX))
}

/// The address of one end of a session: a scenario has fewer sessions than 10.0.0.0/8 has addresses.
fn address(flow: u32, is_source: bool) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::from_bits(10 << 24 | flow), if is_source { SOURCE_PORT } else { SINK_PORT }))
}

const SOURCE_PORT: u16 = 1;
const SINK_PORT: u16 = 2;

/// The session whose end has this address, and whether that is its source.
fn end_at(address: SocketAddr) -> (u32, bool) {
    let SocketAddr::V4(address) = address else { return (0, false) };
    (address.ip().to_bits() & 0x00ff_ffff, address.port() == SOURCE_PORT)
}

impl HostAt {
    /// Adds or removes a session.
    fn count(&mut self, rtt: Duration, is_there: bool) {
        let Some(rtts) = &mut self.rtts else { return };
        let count = rtts.entry(rtt).or_default();
        *count = if is_there { *count + 1 } else { count.saturating_sub(1) };
        if *count == 0 {
            rtts.remove(&rtt);
        }
        // Without sessions the interval does not change.
        let Some((&largest, _)) = rtts.last_key_value() else { return };
        let sessions = self.flows.len() as u64;
        for (direction, packet) in [Direction::Sending, Direction::Receiving].into_iter().zip(self.packet_times) {
            // An interval in which most sessions send no packet measures nothing: it leaves time for one packet of each
            // at its share.
            let round = Duration::from_nanos(packet.as_nanos().saturating_mul(sessions));
            self.host.set_interval_rule(direction, IntervalRule::Fixed(largest.max(round)));
        }
    }
}

/// The session of a flow between hosts.
fn session_of<'a>(transit: &'a mut Transit<'_>, flow: u32) -> &'a mut GtpSession {
    transit.flows[flow].source.gtp_mut().expect("hosts have sessions of GTP alone")
}

impl GtpHosts {
    /// A session starts: its sink connects to its source.
    pub(crate) fn start(&mut self, transit: &mut Transit<'_>, flow: u32) {
        let now = transit.now();
        let gtp = session_of(transit, flow);
        if gtp.is_stopped {
            return;
        }
        let (at, options) = (gtp.sink.host, gtp.sink.options);
        gtp.attempts += 1;
        let nonce = u64::from(flow) << 32 | u64::from(gtp.attempts);
        let request = OpenRequest { sends: false, receives: true, greeting: &[], options };
        let crypto = InsecureInitiator::new(TICKET.0, TICKET.1, nonce);
        let name = self.hosts[at as usize].host.connect(now, address(flow, true), crypto, &request);
        if name == Err(OpenError::TooMany) {
            // A host keeps a session for a while after its end: the next one waits until it is removed.
            return transit.agenda.schedule(now.saturating_add(ASKS_AGAIN), SimEvent::Start(flow));
        }
        let name = name.expect("what a scenario takes for options of a session, a host takes, too");
        self.hosts[at as usize].flows.insert(name, flow);
        session_of(transit, flow).sink.session = Some(name);
        self.attend(transit, at);
    }

    /// A session stops: its source closes it, or its sink if there is no source yet.
    pub(crate) fn stop(&mut self, transit: &mut Transit<'_>, flow: u32) {
        let now = transit.now();
        let gtp = session_of(transit, flow);
        gtp.is_stopped = true;
        let ends = [(gtp.source.host, gtp.source.session), (gtp.sink.host, gtp.sink.session)];
        if let Some((host, Some(session))) = ends.into_iter().find(|(_, session)| session.is_some()) {
            self.hosts[host as usize].host.close(now, session, CloseReason::Stopped);
            self.attend(transit, host);
        }
    }

    /// The demand of a session changes.
    pub(crate) fn change_demand(&mut self, transit: &mut Transit<'_>, flow: u32) {
        let now = transit.now();
        let gtp = session_of(transit, flow);
        let (rate, next, host) = (desired(gtp.demand.at(now)), gtp.demand.next_change(now), gtp.source.host);
        if let Some(session) = gtp.source.session {
            self.hosts[host as usize].host.set_desired(now, session, rate);
            self.attend(transit, host);
        }
        if let Some(next) = next {
            transit.agenda.schedule(next, SimEvent::Demand(flow));
        }
    }

    /// A host's timer.
    pub(crate) fn on_timer(&mut self, transit: &mut Transit<'_>, at: u32) {
        let now = transit.now();
        let host = &mut self.hosts[at as usize];
        if !host.timer.fires(now) {
            return;
        }
        for yielding in &mut host.yields {
            yielding.tell(now, &mut host.host, &mut transit.network);
        }
        host.host.handle_timeout(now);
        self.attend(transit, at);
    }

    /// A packet of GTP reaches its end.
    pub(crate) fn arrive(&mut self, transit: &mut Transit<'_>, packet: SimPacket) {
        let now = transit.now();
        let is_data = packet.kind == SimPacketKind::DATA;
        let from_source = packet.kind != SimPacketKind::PLAIN_ACK;
        let flow = &mut transit.flows[packet.flow];
        if is_data {
            flow.counts.arrived += 1;
        } else {
            flow.counts.acks_arrived += 1;
        }
        if let Some(delays) = &mut flow.delays {
            if is_data {
                delays.on_data(now, packet.stamp);
            } else if !from_source {
                delays.on_message(now, packet.stamp);
            }
        }
        let Some(session) = flow.source.gtp_mut() else { return };
        session.arrived_bytes += u64::from(packet.bytes) * u64::from(from_source);
        let at = session.end(!from_source).host;
        let host = &mut self.hosts[at as usize].host;
        let content = match transit.contents.parcels.take(packet.number) {
            GtpParcel::Value(content) => content,
            GtpParcel::Bytes(datagram) => {
                let keys = |name| host.keys(name).map(|keys| (*keys, !from_source));
                let (content, room) = self.wire.open(packet.flow, &keys, datagram);
                transit.contents.parcels.reuse(room);
                // Belongs to a session that is over.
                let Some(content) = content else { return };
                content
            }
        };
        let from = address(packet.flow, from_source);
        match &content {
            Content::Data(data) => {
                session.delivered_bytes += host.handle_data(now, from, Ecn::NotCapable, data).bytes;
                if session.size_bytes.is_some_and(|size| session.delivered_bytes >= size) && flow.completed.is_none() {
                    flow.completed = Some(now);
                    if let Some(name) = session.sink.session {
                        host.close(now, name, CloseReason::Done);
                    }
                    transit.note_end(packet.flow, now);
                }
            }
            Content::Control(control) => _ = host.handle_control(now, from, control),
            Content::Handshake(datagram) => {
                let options = session.source.options;
                host.handle_handshake(now, from, datagram, &mut |_| Ok(options));
            }
        }
        self.attend(transit, at);
    }

    /// Handles a host's events, sends its packets, and schedules its timer.
    fn attend(&mut self, transit: &mut Transit<'_>, at: u32) {
        let now = transit.now();
        loop {
            let host = &mut self.hosts[at as usize].host;
            if let Some(heard) = host.poll_event() {
                self.on_host_event(transit, at, heard);
            } else if let Some(transmit) = host.poll_transmit(now) {
                self.carry(transit, at, transmit);
            } else {
                break;
            }
        }
        let host = &mut self.hosts[at as usize];
        if let Some(deadline) = host.host.poll_timeout()
            && let Some(deadline) = host.timer.arm(deadline, now)
        {
            transit.agenda.schedule(deadline, SimEvent::Host(at));
        }
    }

    /// Handles an event of a host.
    fn on_host_event(&mut self, transit: &mut Transit<'_>, at: u32, heard: Heard) {
        let now = transit.now();
        match heard {
            Heard::Open(opened) => {
                let session = opened.session;
                let (flow, peer_is_source) = end_at(opened.address);
                let gtp = session_of(transit, flow);
                let is_stopped = gtp.is_stopped;
                let (rate, size) = (gtp.demand.at(now), gtp.size_bytes.unwrap_or(ENDLESS));
                gtp.end(!peer_is_source).session = Some(session);
                let rtt = gtp.rtt;
                let place = &mut self.hosts[at as usize];
                place.count(rtt, true);
                let HostAt { host, flows, .. } = place;
                flows.insert(session, flow);
                if is_stopped {
                    host.close(now, session, CloseReason::Stopped);
                } else if peer_is_source {
                    host.want(now, session, 0, 0..size);
                } else {
                    host.set_desired(now, session, desired(rate));
                }
            }
            Heard::Requested { session, stream, range } => {
                self.hosts[at as usize].host.serve(now, session, stream, range);
            }
            Heard::Closed { session, .. } => {
                if let Some(flow) = self.hosts[at as usize].flows.remove(&session) {
                    let gtp = session_of(transit, flow);
                    let rtt = gtp.rtt;
                    for is_source in [true, false] {
                        let end = gtp.end(is_source);
                        if end.host == at && end.session == Some(session) {
                            end.session = None;
                        }
                    }
                    self.hosts[at as usize].count(rtt, false);
                }
            }
            Heard::Failed { session, .. } => {
                if let Some(flow) = self.hosts[at as usize].flows.remove(&session) {
                    let gtp = session_of(transit, flow);
                    gtp.sink.session = None;
                    self.start(transit, flow);
                }
            }
            // Sources here have all data that are requested.
            Heard::Void { .. } => {}
        }
    }

    fn carry(&mut self, transit: &mut Transit<'_>, at: u32, transmit: Transmit) {
        let Transmit { to, session: name, packet: content, .. } = transmit;
        let (index, to_source) = end_at(to);
        let bytes = content.datagram_bytes() + self.hosts[at as usize].lower_bytes;
        let flow = &mut transit.flows[index];
        let Some(session) = flow.source.gtp_mut() else { return };
        let (kind, what, number) = if let Content::Data(data) = &content {
            let is_again = session.is_again(data.piece.offset, data.piece.length);
            flow.counts.sent += 1;
            flow.counts.resent += u64::from(is_again);
            (SimPacketKind::DATA, if is_again { TraceKind::Resent } else { TraceKind::Sent }, data.number)
        } else {
            let messages = &mut session.messages[usize::from(to_source)];
            *messages += 1;
            (if to_source { SimPacketKind::PLAIN_ACK } else { SimPacketKind::NOTICE }, TraceKind::Sent, *messages - 1)
        };
        let stage = flow.routes[usize::from(to_source)].begin;
        let parcel = if session.is_wire {
            let room = transit.contents.parcels.room();
            let keys = name.and_then(|name| self.hosts[at as usize].host.keys(name));
            GtpParcel::Bytes(self.wire.seal(index, keys.map(|keys| (*keys, to_source)), &content, room))
        } else {
            GtpParcel::Value(content)
        };
        let place = transit.contents.parcels.keep(number, parcel);
        let packet = SimPacket { number: place, stamp: transit.now(), flow: index, bytes, stage, kind };
        transit.launch(packet, what);
    }

    /// The rates of a session as known to its end nodes.
    pub(crate) fn known_rates(&self, flow: &SimFlow) -> KnownRates {
        let Some(session) = flow.source.gtp() else { return KnownRates::NONE };
        let host = |end: &GtpEnd| &self.hosts[end.host as usize].host;
        let ruled = |end: &GtpEnd| end.session.filter(|_| end.is_ruled);
        let of_source = session.source.session.and_then(|name| host(&session.source).source_rates(name));
        let of_sink = ruled(&session.sink).and_then(|name| host(&session.sink).sink_rates(name));
        let own = of_source.filter(|_| session.source.is_ruled);
        let bps = |rate: Option<Rate>| rate.map_or(f64::NAN, Rate::as_bps);
        KnownRates {
            source_expected: bps(own.map(|rates| rates.expected)),
            sink_expected: bps(of_source.and_then(|rates| rates.sink_expected).filter(|_| session.sink.is_ruled)),
            // f64::min returns the other number if one is NaN.
            target: bps(own.map(|rates| rates.target)).min(bps(of_sink.map(|rates| rates.target))),
            measured: bps(of_sink.or(own).map(|rates| rates.measured)),
        }
    }
}

/// The ticket that all sources accept.
const TICKET: (TicketId, u64) = (TicketId(1), 1);

/// Retry period of a session whose host has no room.
const ASKS_AGAIN: Duration = Duration::from_millis(100);

/// Bytes of a stream that never ends.
const ENDLESS: u64 = 1 << 60;
