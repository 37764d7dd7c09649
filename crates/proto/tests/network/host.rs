//! A host, and the process that drives it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::ops::{Deref, DerefMut, Range};
use std::sync::OnceLock;

use fairwave_proto::codec::{Checksum, CloseReason, Header, PacketKind, Reader, SessionId, TicketId, is_handshake};
use fairwave_proto::handshake::PendingVisit;
use fairwave_proto::handshake::insecure::{Insecure, InsecureInitiator, InsecureResponder};
use fairwave_proto::{
    ControlPacket, DataPacket, Direction, Ecn, Event, ExchangeConfig, Host, HostConfig, IntervalRule, Lasts, Measured,
    NodeConfig, OpenRequest, Packet, PathControl, PathKind, PieceAt, Terms,
};
use fairwave_schemes::node::gtp_options::DRAIN;
use fairwave_schemes::node::tally::TallyOptions;
use fairwave_schemes::node::{Gtp, Reading};
use fairwave_schemes::scheme::Options;
use fairwave_units::{Bytes, Duration, Rate, Time};

use super::content;
use super::link::LOWER;
use super::test_random::mixed;
use super::{Datagram, Flow, Load};

pub(crate) const TICKET: (TicketId, u64) = (TicketId(1), 0x005e_c2e7);

/// Bytes that the program holds; set where an allocator counts them.
pub(crate) static LIVE_BYTES: OnceLock<fn() -> i64> = OnceLock::new();

fn live() -> i64 {
    LIVE_BYTES.get().map_or(0, |live| live())
}

/// How a host is set up, also after a restart.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    /// Of both directions, if they are known.
    pub(crate) capacity_bps: Option<f64>,
    pub(crate) path: PathKind,
    pub(crate) control: PathControl,
    pub(crate) piece_bytes: u32,
    pub(crate) probes_mtu: bool,
    pub(crate) fair_start: bool,
    pub(crate) drain: bool,
    /// Tally's; without it sessions share by GTP.
    pub(crate) exchange: Option<ExchangeConfig>,
    pub(crate) interval: IntervalRule,
    /// End of the first control interval; within 20 ms by the seed if `None`.
    pub(crate) phase: Option<Duration>,
    pub(crate) room: Bytes,
    pub(crate) buffer: Option<Bytes>,
    pub(crate) lasts: Lasts,
}

impl Default for Setup {
    /// Of unknown capacity on a dedicated path, with control intervals of 20 ms.
    fn default() -> Self {
        Self {
            capacity_bps: None,
            path: PathKind::Dedicated,
            control: PathControl::Bbr,
            piece_bytes: 1000,
            probes_mtu: false,
            fair_start: true,
            drain: false,
            exchange: None,
            interval: IntervalRule::Fixed(Duration::from_millis(20)),
            phase: None,
            room: Bytes::new(50_000_000),
            buffer: None,
            lasts: Lasts::default(),
        }
    }
}

/// Claims and grants as hosts on a network exchange them.
pub(crate) fn tally() -> ExchangeConfig {
    let options = TallyOptions { packet: Bytes::new(1500), ..TallyOptions::default() };
    ExchangeConfig { options, react: Some(Duration::from_millis(1)) }
}

impl Setup {
    /// An end node of this capacity.
    pub(crate) fn node(&self, capacity: Rate, phase: Duration) -> NodeConfig {
        let mut options = Options::default();
        DRAIN.set(&mut options, self.drain);
        NodeConfig {
            capacity,
            share: 1.0,
            interval: self.interval,
            phase,
            allocator: Box::new(Gtp::new(Reading::Adopted, &options)),
            exchange: self.exchange,
        }
    }

    pub(crate) fn config(&self, seed: u64) -> HostConfig<InsecureResponder> {
        let node = |turn: u64| {
            let phase = self.phase.unwrap_or_else(|| Duration::from_nanos(mixed(seed ^ turn) % 20_000_000));
            self.capacity_bps.map(|bps| self.node(Rate::nearest_bps(bps), phase))
        };
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&mixed(seed).to_le_bytes());
        HostConfig {
            lower_bytes: LOWER,
            piece_bytes: self.piece_bytes,
            send_bytes: Bytes::new(1),
            sending: node(1),
            receiving: node(2),
            fair_start: self.fair_start,
            room: self.room,
            buffer: self.buffer,
            seed: bytes,
            path: self.path,
            path_control: self.control,
            probes_mtu: self.probes_mtu,
            is_plain: false,
            lasts: self.lasts,
            crypto: InsecureResponder::new(seed, [TICKET]),
        }
    }
}

/// A hostile peer: what it makes of frames that come, and of packets that go.
pub(crate) trait Tamper {
    fn hear(&self, frames: &[u8]) -> Vec<u8>;
    fn say(&mut self, to: SocketAddr, session: SessionId, packet: Packet) -> Packet;
    /// One more packet that it sends.
    fn more(&mut self) -> Option<(SocketAddr, SessionId, Packet)>;
}

/// Changes what was measured, given the bytes of each session that were read and are not yet accounted for.
pub(crate) type Meter = Box<dyn FnMut(Time, Direction, &mut [Measured], &mut BTreeMap<SessionId, u64>)>;

/// A host and its process. It dereferences to the [`Host`].
pub(crate) struct TestHost {
    pub(crate) host: Host<Insecure>,
    pub(crate) setup: Setup,
    pub(crate) address: SocketAddr,
    /// Sessions, by which flow they serve.
    pub(crate) sessions: BTreeMap<SessionId, usize>,
    /// Times in which the process is not scheduled, in order: its timers and what comes wait until the end of each.
    pub(crate) pauses: Vec<Range<Time>>,
    /// In pauses the process does not read, and its timers run.
    pub(crate) pauses_reading_only: bool,
    /// Its clock moves in steps of this; zero for a continuous one.
    pub(crate) clock_step: Duration,
    /// Changes each packet, if it lies.
    pub(crate) tamper: Option<Box<dyn Tamper>>,
    pub(crate) meter: Option<Meter>,
    /// Bytes of memory that the host holds.
    pub(crate) held: i64,
    /// Events other than requests, and opened sessions at their sinks.
    pub(crate) events: Vec<Event>,
    /// Bytes of streams that came for the first time.
    pub(crate) delivered: u64,
    /// Bytes of IP packets with data that came, of whatever session.
    pub(crate) came: u64,
    /// Control packets that it sent.
    pub(crate) control_packets: u64,
    pub(super) wake: Option<Time>,
    read: BTreeMap<SessionId, u64>,
    /// Sessions that this host opened.
    initiated: BTreeSet<SessionId>,
    /// Peers that asked for a flow: address and name of the session.
    visits: BTreeMap<(SocketAddr, SessionId), usize>,
    nonces: u64,
    /// Outlives a restart, if the host resets sessions that it has forgotten.
    identity: Option<u64>,
    resets: Vec<(SocketAddr, Vec<u8>)>,
    room: Vec<u8>,
}

/// Contents of a data packet that arrived.
pub(super) struct Arrived {
    pub(super) session: SessionId,
    pub(super) piece: PieceAt,
    pub(super) fresh: u64,
    /// The bytes, of a sealed datagram.
    pub(super) bytes: Option<Vec<u8>>,
}

impl Deref for TestHost {
    type Target = Host<Insecure>;

    fn deref(&self) -> &Self::Target {
        &self.host
    }
}

impl DerefMut for TestHost {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.host
    }
}

impl TestHost {
    pub(crate) fn new(setup: Setup, address: SocketAddr, seed: u64) -> Self {
        let before = live();
        let host = Host::new(Time::ZERO, setup.config(seed));
        Self {
            held: live() - before,
            host,
            setup,
            address,
            sessions: BTreeMap::new(),
            pauses: Vec::new(),
            pauses_reading_only: false,
            clock_step: Duration::ZERO,
            tamper: None,
            meter: None,
            events: Vec::new(),
            delivered: 0,
            came: 0,
            control_packets: 0,
            wake: None,
            read: BTreeMap::new(),
            initiated: BTreeSet::new(),
            visits: BTreeMap::new(),
            nonces: seed,
            identity: None,
            resets: Vec::new(),
            room: vec![0; 10_000],
        }
    }

    /// A host that resets sessions that it has forgotten; to be set before its first session.
    pub(crate) fn with_resets(mut self, seed: u64) -> Self {
        self.identity = Some(seed);
        self.restart(Time::ZERO, seed);
        self
    }

    /// It forgets all that it knew.
    pub(crate) fn restart(&mut self, now: Time, seed: u64) {
        let mut config = self.setup.config(seed);
        if let Some(identity) = self.identity {
            config.crypto = config.crypto.with_resets(identity);
        }
        let before = live();
        self.host = Host::new(now, config);
        self.held = live() - before;
        self.sessions.clear();
        self.initiated.clear();
        self.visits.clear();
        self.nonces = seed;
    }

    /// Calls the host, and counts what it keeps of memory.
    pub(crate) fn at<T>(&mut self, does: impl FnOnce(&mut Host<Insecure>) -> T) -> T {
        let before = live();
        let outcome = does(&mut self.host);
        self.held += live() - before;
        outcome
    }

    /// Ends of its sessions, and whether they came from their peers.
    pub(crate) fn ends(&self) -> Vec<(SessionId, CloseReason, bool)> {
        let end = |event: &Event| match *event {
            Event::Closed { session, reason, by_peer, .. } => Some((session, reason, by_peer)),
            _ => None,
        };
        self.events.iter().filter_map(end).collect()
    }

    /// Time that its clock shows.
    pub(super) fn clock(&self, now: Time) -> Time {
        let step = self.clock_step.as_nanos().max(1);
        Time::from_nanos(now.as_nanos() / step * step)
    }

    /// When the process runs that is to run at a time.
    pub(crate) fn runs_at(&self, at: Time) -> Time {
        let next = self.pauses.partition_point(|pause| pause.end <= at);
        self.pauses.get(next).filter(|pause| pause.start <= at).map_or(at, |pause| pause.end)
    }

    /// The time at which its timers run next.
    pub(super) fn next_wake(&self) -> Option<Time> {
        let step = self.clock_step.as_nanos().max(1);
        let due = self.host.poll_timeout()?;
        let due = Time::from_nanos(due.as_nanos().div_ceil(step).saturating_mul(step));
        Some(if self.pauses_reading_only { due } else { self.runs_at(due) })
    }

    pub(super) fn connect(&mut self, now: Time, to: SocketAddr, at: usize, flow: &Flow) -> SessionId {
        self.nonces = self.nonces.wrapping_add(1);
        let crypto = InsecureInitiator::new(TICKET.0, TICKET.1, mixed(self.nonces));
        let greeting = (at as u64).to_be_bytes();
        let (sends, receives) = (!flow.is_fetched || flow.is_mutual, flow.is_fetched || flow.is_mutual);
        let request = OpenRequest { sends, receives, greeting: &greeting, options: flow.options };
        let session = self.at(|host| host.connect(now, to, crypto, &request)).expect("a host has room for it");
        self.initiated.insert(session);
        self.sessions.insert(session, at);
        session
    }

    /// The seal of a session's packets.
    fn seal(&self, session: SessionId, is_own: bool, kind: PacketKind) -> Option<Checksum> {
        let is_initiator = self.initiated.contains(&session);
        Some(self.host.keys(session)?.seal(is_initiator == is_own, kind))
    }

    /// A datagram came.
    pub(super) fn receive(&mut self, now: Time, datagram: Datagram, flows: &[Flow]) -> Option<Arrived> {
        let Datagram { from, ecn, load, .. } = datagram;
        let (packet, bytes) = match load {
            Load::Packet(packet) => (packet, None),
            Load::Sealed(datagram) => self.open(now, from, datagram)?,
        };
        match packet {
            Packet::Handshake(datagram) => {
                let mut visits = std::mem::take(&mut self.visits);
                let mut decide = |visit: &PendingVisit<Insecure>| {
                    let at = visit.greeting.first_chunk().map_or(usize::MAX, |at| u64::from_be_bytes(*at) as usize);
                    visits.insert((visit.from(), visit.peer), at);
                    Ok(flows.get(at).map_or_else(Terms::default, |flow| flow.options))
                };
                self.at(|host| host.handle_handshake(now, from, &datagram, &mut decide));
                self.visits = visits;
                None
            }
            Packet::Data(packet) => {
                if self.meter.is_some() {
                    *self.read.entry(packet.session).or_default() += u64::from(packet.datagram_bytes() + LOWER);
                }
                let fresh = self.at(|host| host.handle_data(now, from, ecn, &packet).bytes);
                self.delivered += fresh;
                (fresh > 0).then_some(Arrived { session: packet.session, piece: packet.piece, fresh, bytes })
            }
            Packet::Control(mut packet) => {
                if let Some(tamper) = &self.tamper {
                    packet.frames = tamper.hear(&packet.frames);
                }
                self.at(|host| host.handle_control(now, from, &packet));
                None
            }
        }
    }

    /// Opens a sealed datagram, if it is of a session with keys here.
    fn open(&mut self, now: Time, from: SocketAddr, mut datagram: Vec<u8>) -> Option<(Packet, Option<Vec<u8>>)> {
        if is_handshake(&datagram) {
            return Some((Packet::Handshake(datagram), None));
        }
        let header = Header::read(&mut Reader::new(&datagram)).ok()?;
        let Some(mut seal) = self.seal(header.session, false, header.kind) else {
            if self.identity.is_some() {
                let reset = self.at(|host| host.handle_stray(now, from, &header, &datagram));
                self.resets.extend(reset.map(|reset| (from, reset)));
            }
            return None;
        };
        match header.kind {
            PacketKind::Data => {
                let (packet, bytes) = DataPacket::open(&header, &mut seal, &mut datagram).ok()?;
                Some((Packet::Data(packet), Some(bytes.to_vec())))
            }
            PacketKind::Control => {
                Some((Packet::Control(ControlPacket::open(&header, &mut seal, &mut datagram).ok()?), None))
            }
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Time) {
        let Some(mut meter) = self.meter.take() else { return self.at(|host| host.handle_timeout(now)) };
        let mut read = std::mem::take(&mut self.read);
        self.host.handle_timeout_with(now, |direction, measured| meter(now, direction, measured, &mut read));
        (self.meter, self.read) = (Some(meter), read);
    }

    pub(super) fn poll_event(&mut self) -> Option<Event> {
        let event = self.at(Host::poll_event)?;
        if let Event::Open(opened) = &event
            && !opened.is_initiator
            && let Some(flow) = self.visits.remove(&(opened.address, opened.peer))
        {
            self.sessions.insert(opened.session, flow);
        }
        Some(event)
    }

    /// The next datagram to send.
    pub(super) fn poll_transmit(&mut self, now: Time, is_sealed: bool) -> Option<(SocketAddr, Ecn, Load)> {
        if let Some((to, reset)) = self.resets.pop() {
            return Some((to, Ecn::NotCapable, Load::Sealed(reset)));
        }
        loop {
            let (to, session, ecn, packet) =
                if let Some((to, session, packet)) = self.tamper.as_mut().and_then(|tamper| tamper.more()) {
                    (to, Some(session), Ecn::NotCapable, packet)
                } else {
                    let transmit = self.at(|host| host.poll_transmit(now))?;
                    // The bytes of a packet that goes are the driver's.
                    if let Packet::Control(ControlPacket { frames: bytes, .. }) | Packet::Handshake(bytes) =
                        &transmit.packet
                        && LIVE_BYTES.get().is_some()
                    {
                        self.held -= bytes.capacity().cast_signed() as i64;
                    }
                    let packet = match (&mut self.tamper, transmit.session) {
                        (Some(tamper), Some(session)) => tamper.say(transmit.to, session, transmit.packet),
                        _ => transmit.packet,
                    };
                    let ecn = if transmit.takes_marks { Ecn::Capable } else { Ecn::NotCapable };
                    (transmit.to, transmit.session, ecn, packet)
                };
            self.control_packets += u64::from(matches!(packet, Packet::Control(_)));
            let load =
                if is_sealed { self.encode(session, packet).map(Load::Sealed) } else { Some(Load::Packet(packet)) };
            if let Some(load) = load {
                return Some((to, ecn, load));
            }
        }
    }

    fn encode(&mut self, session: Option<SessionId>, packet: Packet) -> Option<Vec<u8>> {
        match packet {
            Packet::Handshake(bytes) => Some(bytes),
            Packet::Data(packet) => {
                let session = session?;
                let mut seal = self.seal(session, true, PacketKind::Data)?;
                let PieceAt { stream, length, offset } = packet.piece;
                let flow = self.sessions.get(&session).copied().unwrap_or(usize::MAX);
                let mut payload = vec![0; length as usize];
                content::fill(flow, stream, offset, &mut payload);
                let used = packet.seal(&mut seal, &mut self.room, &payload).ok()?;
                Some(self.room[..used].to_vec())
            }
            Packet::Control(packet) => {
                let mut seal = self.seal(session?, true, PacketKind::Control)?;
                let used = packet.seal(&mut seal, &mut self.room).ok()?;
                Some(self.room[..used].to_vec())
            }
        }
    }
}
