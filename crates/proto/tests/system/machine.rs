//! A host on the wire: every packet goes through codec and seal.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use fairwave_proto::codec::{Checksum, CloseReason, Header, PacketKind, Reader, SessionId, TicketId, is_handshake};
use fairwave_proto::handshake::insecure::{Insecure, InsecureInitiator, InsecureResponder};
use fairwave_proto::{
    ControlPacket, DataPacket, Ecn, Event, ExchangeConfig, Host, HostConfig, IntervalRule, Lasts, NodeConfig,
    OpenRequest, Packet, PathControl, PathKind, PieceAt, SessionOptions,
};
use fairwave_schemes::node::{Gtp, Reading};
use fairwave_schemes::scheme::{OptionValue, Options};
use fairwave_units::{Bytes, Duration, Rate, Time};

use crate::content;
use crate::memory;
use crate::random::mixed;
use crate::trick::Trick;

pub(crate) const TICKET: (TicketId, u64) = (TicketId(1), 0x005e_c2e7);
pub(crate) const OPTIONS: SessionOptions = SessionOptions { weight: 1.0, alpha: 0.1, beta: 0.2, minimum: Rate::ZERO };
pub(crate) const LOWER: u32 = 28;

/// How a machine is set up, also after a restart.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    /// Of both directions, if they are known.
    pub(crate) capacity_bps: Option<f64>,
    pub(crate) path: PathKind,
    pub(crate) piece_bytes: u32,
    pub(crate) probes_mtu: bool,
    pub(crate) fair_start: bool,
    pub(crate) drain: bool,
    /// Whether its sessions tell claims and are given grants, and how.
    pub(crate) exchange: Option<ExchangeConfig>,
    pub(crate) interval: IntervalRule,
    pub(crate) room: Bytes,
}

pub(crate) struct Machine {
    pub(crate) host: Host<Insecure>,
    pub(crate) setup: Setup,
    pub(crate) address: SocketAddr,
    /// Sessions, by which transfer they serve.
    pub(crate) sessions: BTreeMap<SessionId, usize>,
    /// Those that this host wanted.
    initiated: BTreeSet<SessionId>,
    /// Who asked for which transfer: his address and his name for the session.
    visits: BTreeMap<(SocketAddr, SessionId), usize>,
    nonces: u64,
    payload: Vec<u8>,
    room: Vec<u8>,
    /// Bytes of memory that the host holds.
    pub(crate) held: i64,
    /// How it lies, if it does.
    pub(crate) trick: Option<Trick>,
    /// What outlives a restart, if it answers packets of sessions that it has forgotten.
    identity: Option<u64>,
    answers: Vec<(SocketAddr, Vec<u8>)>,
}

/// What arrived with a data packet.
pub(crate) struct Arrived {
    pub(crate) session: SessionId,
    pub(crate) piece: PieceAt,
    pub(crate) bytes: Vec<u8>,
}

impl Setup {
    fn host(&self, now: Time, seed: u64, identity: Option<u64>) -> Host<Insecure> {
        let mut options = Options::default();
        options.set("drain", OptionValue::Flag(self.drain));
        let node = |turn: u64| {
            let phase = Duration::from_nanos(mixed(seed ^ turn) % 20_000_000);
            self.capacity_bps.map(|bps| NodeConfig {
                capacity: Rate::nearest_bps(bps),
                share: 1.0,
                interval: self.interval,
                phase,
                allocator: Box::new(Gtp::new(Reading::Adopted, &options)),
                exchange: self.exchange,
            })
        };
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&mixed(seed).to_le_bytes());
        let responder = InsecureResponder::new(seed, [TICKET]);
        let config = HostConfig {
            lower_bytes: LOWER,
            piece_bytes: self.piece_bytes,
            send_bytes: Bytes::new(1),
            sending: node(1),
            receiving: node(2),
            fair_start: self.fair_start,
            room: self.room,
            buffer: None,
            seed: bytes,
            path: self.path,
            path_control: PathControl::Bbr,
            probes_mtu: self.probes_mtu,
            is_plain: false,
            lasts: Lasts::default(),
            crypto: identity.map_or(responder.clone(), |identity| responder.with_resets(identity)),
        };
        Host::new(now, config)
    }
}

impl Machine {
    pub(crate) fn new(setup: Setup, address: SocketAddr, seed: u64) -> Self {
        let mut held = 0;
        let host = memory::counted(&mut held, || setup.host(Time::ZERO, seed, None));
        Self {
            host,
            setup,
            address,
            sessions: BTreeMap::new(),
            initiated: BTreeSet::new(),
            visits: BTreeMap::new(),
            nonces: seed,
            payload: Vec::new(),
            room: vec![0; 10_000],
            held,
            trick: None,
            identity: None,
            answers: Vec::new(),
        }
    }

    /// The same before its first session, as one that answers packets of sessions that it has forgotten.
    pub(crate) fn with_resets(mut self, seed: u64) -> Self {
        self.identity = Some(seed);
        self.restart(Time::ZERO, seed);
        self
    }

    /// It forgets all that it knew.
    pub(crate) fn restart(&mut self, now: Time, seed: u64) {
        self.held = 0;
        self.host = memory::counted(&mut self.held, || self.setup.host(now, seed, self.identity));
        self.sessions.clear();
        self.initiated.clear();
        self.visits.clear();
        self.nonces = seed;
    }

    /// Begins to open a session for a transfer.
    pub(crate) fn connect(&mut self, now: Time, to: SocketAddr, transfer: usize, receives: bool) -> Option<SessionId> {
        self.nonces = self.nonces.wrapping_add(1);
        let crypto = InsecureInitiator::new(TICKET.0, TICKET.1, mixed(self.nonces));
        let greeting = (transfer as u64).to_be_bytes();
        let wish = OpenRequest { sends: !receives, receives, greeting: &greeting, options: OPTIONS };
        let host = &mut self.host;
        let session = memory::counted(&mut self.held, || host.connect(now, to, crypto, &wish)).ok()?;
        self.initiated.insert(session);
        self.sessions.insert(session, transfer);
        Some(session)
    }

    /// What a session's packets are sealed with.
    fn seal(&self, session: SessionId, is_own: bool, kind: PacketKind) -> Option<Checksum> {
        let is_initiator = self.initiated.contains(&session);
        Some(self.host.keys(session)?.seal(is_initiator == is_own, kind))
    }

    /// A datagram came: what is new of it.
    pub(crate) fn receive(&mut self, now: Time, from: SocketAddr, datagram: &mut [u8]) -> Option<Arrived> {
        if is_handshake(datagram) {
            let visits = &mut self.visits;
            let mut decide = |visit: &fairwave_proto::handshake::PendingVisit<Insecure>| {
                let greeting =
                    visit.greeting.first_chunk().map_or(usize::MAX, |bytes| u64::from_be_bytes(*bytes) as usize);
                visits.insert((visit.from(), visit.peer), greeting);
                Ok(OPTIONS)
            };
            let host = &mut self.host;
            memory::counted(&mut self.held, || host.handle_handshake(now, from, datagram, &mut decide));
            return None;
        }
        let header = Header::read(&mut Reader::new(datagram)).ok()?;
        let Some(mut seal) = self.seal(header.session, false, header.kind) else {
            if self.identity.is_some() {
                let host = &mut self.host;
                let answer = memory::counted(&mut self.held, || host.handle_stray(now, from, &header, datagram));
                self.answers.extend(answer.map(|answer| (from, answer)));
            }
            return None;
        };
        let session = header.session;
        let host = &mut self.host;
        match header.kind {
            PacketKind::Data => {
                let (packet, bytes) = DataPacket::open(&header, &mut seal, datagram).ok()?;
                let new = memory::counted(&mut self.held, || host.handle_data(now, from, Ecn::Capable, &packet).bytes);
                (new > 0).then(|| Arrived { session, piece: packet.piece, bytes: bytes.to_vec() })
            }
            PacketKind::Control => {
                let mut packet = ControlPacket::open(&header, &mut seal, datagram).ok()?;
                if let Some(trick) = &self.trick {
                    packet.frames = trick.hear(&packet.frames);
                }
                memory::counted(&mut self.held, || host.handle_control(now, from, &packet));
                None
            }
        }
    }

    pub(crate) fn handle_timeout(&mut self, now: Time) {
        let host = &mut self.host;
        memory::counted(&mut self.held, || host.handle_timeout(now));
    }

    pub(crate) fn poll_event(&mut self) -> Option<Event> {
        let host = &mut self.host;
        let event = memory::counted(&mut self.held, || host.poll_event())?;
        match &event {
            Event::Open(opened) if !opened.is_initiator => {
                if let Some(transfer) = self.visits.remove(&(opened.address, opened.peer)) {
                    self.sessions.insert(opened.session, transfer);
                }
            }
            _ => {}
        }
        Some(event)
    }

    /// The next datagram to send, and where to.
    pub(crate) fn poll_transmit(&mut self, now: Time) -> Option<(SocketAddr, Vec<u8>)> {
        if let Some(answer) = self.answers.pop() {
            return Some(answer);
        }
        loop {
            if let Some((to, session, packet)) = self.trick.as_mut().and_then(Trick::more) {
                if let Some(datagram) = self.encode(Some(session), packet) {
                    return Some((to, datagram));
                }
                continue;
            }
            let host = &mut self.host;
            let transmit = memory::counted(&mut self.held, || host.poll_transmit(now))?;
            // What goes with it is the driver's.
            if let Packet::Control(ControlPacket { frames: bytes, .. }) | Packet::Handshake(bytes) = &transmit.packet {
                self.held -= bytes.capacity().cast_signed() as i64;
            }
            let packet = match (&mut self.trick, transmit.session) {
                (Some(trick), Some(session)) => trick.say(transmit.to, session, transmit.packet),
                _ => transmit.packet,
            };
            if let Some(datagram) = self.encode(transmit.session, packet) {
                return Some((transmit.to, datagram));
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
                let transfer = self.sessions.get(&session).copied().unwrap_or(usize::MAX);
                self.payload.resize(length as usize, 0);
                content::fill(transfer, stream, offset, &mut self.payload);
                let used = packet.seal(&mut seal, &mut self.room, &self.payload).ok()?;
                Some(self.room[..used].to_vec())
            }
            Packet::Control(packet) => {
                let mut seal = self.seal(session?, true, PacketKind::Control)?;
                let used = packet.seal(&mut seal, &mut self.room).ok()?;
                Some(self.room[..used].to_vec())
            }
        }
    }

    pub(crate) fn close(&mut self, now: Time, session: SessionId) {
        let host = &mut self.host;
        memory::counted(&mut self.held, || host.close(now, session, CloseReason::Done));
    }
}
