//! One session as a hostile peer has it: its keys, its numbers, and a socket.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fairwave_host::{Keyring, Ticket};
use fairwave_proto::codec::{
    CloseReason, Frame, Frames, HEADER_BYTES, Header, PIECE_BYTES, PacketKind, Piece, Reader, SessionId, TAG_BYTES,
    Writer, is_handshake, open_datagram, seal_datagram,
};
use fairwave_proto::{
    ControlPacket, Event, Host, HostConfig, Lasts, OpenRequest, Opened, Packet, PathControl, PathKind, Terms, Transmit,
};
use fairwave_testing::LIMIT;
use fairwave_units::{Bytes, Time};

use crate::crypto::{Noise, NoiseInitiator, NoiseResponder, OpenKeys, Pair, SessionKeys};

/// A client's greeting for a get: no earlier session, version 1.
pub(crate) const GET: &[u8] = &[0, 1, 1];
/// A client's greeting for a put.
pub(crate) const PUT: &[u8] = &[0, 1, 2];

/// Poll interval of the socket while nothing arrives.
const STEP: Duration = Duration::from_millis(5);
/// Its cores have used lower numbers in opening the session.
const FIRST_NUMBER: u64 = 1000;

/// A peer with an open session.
pub(crate) struct Peer {
    socket: UdpSocket,
    to: SocketAddr,
    /// Its name at this end, and at the other.
    names: (SessionId, SessionId),
    /// The keys of data, of control.
    keys: [Pair; 2],
    /// The next numbers: of data, of control.
    pub(crate) next: [u64; 2],
}

/// Authenticated messages of the peer.
#[allow(dead_code, reason = "cases look at what they need")]
#[derive(Debug)]
pub(crate) enum Heard {
    /// A piece of a stream.
    Data { number: u64, stream: u32, offset: u64, bytes: Vec<u8> },
    /// Frames, as they were sealed.
    Control(Vec<u8>),
}

impl Peer {
    /// Opens a session to the issuer of a ticket, with a greeting.
    pub(crate) fn call(ticket: &Ticket, (sends, receives): (bool, bool), greeting: &[u8]) -> Self {
        let mut cores = Cores::new(bind());
        let to = ticket.addresses[0];
        let request = OpenRequest { sends, receives, greeting, options: Terms::default() };
        cores.host.connect(cores.now(), to, NoiseInitiator::new(ticket), &request).expect("the greeting fits");
        cores.open()
    }

    /// Waits at a socket until somebody with a ticket of the keyring calls, and lets it in.
    pub(crate) fn answer(socket: UdpSocket, keyring: Arc<Keyring>) -> Self {
        let mut cores = Cores::new(socket);
        cores.host.crypto().listen(keyring);
        cores.open()
    }

    /// Seals frames and sends them.
    pub(crate) fn say(&mut self, frames: &[Frame<'_>]) {
        let mut room = vec![0; 60_000];
        let mut writer = Writer::new(&mut room);
        for frame in frames {
            frame.write(&mut writer).expect("a datagram has room for them");
        }
        let used = writer.used();
        self.say_bytes(&room[..used]);
    }

    /// Sends bytes that need not be frames.
    pub(crate) fn say_bytes(&mut self, body: &[u8]) {
        let number = self.next[1];
        self.next[1] += 1;
        self.send(PacketKind::Control, number, body);
    }

    /// Seals a piece of a stream and sends it, under the next number.
    pub(crate) fn give(&mut self, stream: u32, offset: u64, bytes: &[u8]) {
        let number = self.next[0];
        self.next[0] += 1;
        let mut body = vec![0; PIECE_BYTES + bytes.len()];
        let piece = Piece { stamp_us: 0, stream, offset, bytes };
        piece.write(&mut Writer::new(&mut body)).expect("there is room");
        self.send(PacketKind::Data, number, &body);
    }

    /// Seals anything as a packet of a kind and number, and sends it.
    pub(crate) fn send(&mut self, kind: PacketKind, number: u64, body: &[u8]) {
        let mut datagram = vec![0; HEADER_BYTES + body.len() + TAG_BYTES];
        let header = Header { kind, session: self.names.1, number };
        let sealer = &mut self.keys[index(kind)].sealer;
        seal_datagram(&header, sealer, &mut datagram, body, |_| Ok(())).expect("there is room");
        // Datagrams that the system has no room for are lost, as any may be.
        let _ = self.socket.send_to(&datagram, self.to);
    }

    /// The next packet of this session, if one comes within a time.
    pub(crate) fn hear(&mut self, within: Duration) -> Option<Heard> {
        let until = Instant::now() + within;
        let mut room = vec![0; 1 << 16];
        while Instant::now() < until {
            let Some((length, _)) = receive(&self.socket, &mut room) else { continue };
            let datagram = &mut room[..length];
            let Ok(header) = Header::read(&mut Reader::new(datagram)) else { continue };
            if header.session != self.names.0 {
                continue;
            }
            let opener = &mut self.keys[index(header.kind)].opener;
            let Ok(mut body) = open_datagram(&header, opener, datagram) else { continue };
            return Some(match header.kind {
                PacketKind::Control => Heard::Control(body.rest().to_vec()),
                PacketKind::Data => {
                    let Piece { stream, offset, bytes, .. } = Piece::read(&mut body).expect("it is honest");
                    Heard::Data { number: header.number, stream, offset, bytes: bytes.to_vec() }
                }
            });
        }
        None
    }

    /// Waits for a frame that `wanted` makes something of.
    pub(crate) fn hear_frame<T>(&mut self, mut wanted: impl FnMut(&Frame<'_>) -> Option<T>) -> Option<T> {
        let until = Instant::now() + LIMIT;
        while Instant::now() < until {
            let Some(Heard::Control(frames)) = self.hear(STEP) else { continue };
            if let Some(found) = Frames::new(&frames).flatten().find_map(|frame| wanted(&frame)) {
                return Some(found);
            }
        }
        None
    }

    /// Waits for the other end to end the session: why it does.
    pub(crate) fn hear_close(&mut self) -> Option<CloseReason> {
        self.hear_frame(|frame| if let Frame::Close(reason) = frame { Some(*reason) } else { None })
    }
}

/// The public cores, up to an open session.
struct Cores {
    host: Host<Noise>,
    socket: UdpSocket,
    began: Instant,
    opened: Option<(Opened, OpenKeys)>,
}

impl Cores {
    fn new(socket: UdpSocket) -> Self {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).expect("the system has randomness");
        let local = socket.local_addr().expect("it is bound");
        let config = HostConfig {
            lower_bytes: 28,
            piece_bytes: 1100,
            send_bytes: Bytes::new(1),
            sending: None,
            receiving: None,
            fair_start: false,
            room: Bytes::new(1 << 20),
            buffer: None,
            seed,
            path: PathKind::Shared,
            path_control: PathControl::Bbr,
            probes_mtu: false,
            is_plain: false,
            lasts: Lasts::default(),
            crypto: NoiseResponder::new(local).expect("the system has randomness"),
        };
        Self { host: Host::new(Time::ZERO, config), socket, began: Instant::now(), opened: None }
    }

    fn now(&self) -> Time {
        Time::from_nanos(self.began.elapsed().as_nanos() as u64)
    }

    /// Drives the cores until both ends have the session.
    fn open(mut self) -> Peer {
        let mut room = vec![0; 1 << 16];
        let mut is_heard = false;
        while !(is_heard && self.opened.is_some()) {
            assert!(self.began.elapsed() < LIMIT, "the handshake is proper");
            let now = self.now();
            self.host.handle_timeout(now);
            self.take_events();
            while let Some(transmit) = self.host.poll_transmit(now) {
                self.send(&transmit);
            }
            let Some((length, from)) = receive(&self.socket, &mut room) else { continue };
            let datagram = &mut room[..length];
            if is_handshake(datagram) {
                self.host.handle_handshake(now, from, datagram, &mut |_| Ok(Terms::default()));
            } else {
                is_heard |= self.on_control(from, datagram);
            }
            self.take_events();
        }
        let (opened, keys) = self.opened.expect("looked for above");
        Peer {
            keys: [keys.data, keys.control],
            socket: self.socket,
            to: opened.address,
            names: (opened.session, opened.peer),
            next: [FIRST_NUMBER; 2],
        }
    }

    fn take_events(&mut self) {
        while let Some(event) = self.host.poll_event() {
            match event {
                Event::Open(opened) => {
                    let keys = self.host.take_keys(opened.session).and_then(SessionKeys::open);
                    self.opened = Some((opened, keys.expect("it has opened just now")));
                }
                Event::Failed { error, .. } => panic!("the handshake is proper: {error}"),
                _ => {}
            }
        }
    }

    /// A control packet came: whether it is one of the session.
    fn on_control(&mut self, from: SocketAddr, datagram: &mut [u8]) -> bool {
        let Ok(header) = Header::read(&mut Reader::new(datagram)) else { return false };
        if header.kind != PacketKind::Control {
            return false;
        }
        let packet = if let Some((_, keys)) = &mut self.opened {
            ControlPacket::open(&header, &mut keys.control.opener, datagram)
        } else {
            let Some(mut keys) = self.host.keys(header.session) else { return false };
            ControlPacket::open(&header, &mut keys, datagram)
        };
        let Ok(packet) = packet else { return false };
        let now = self.now();
        self.host.handle_control(now, from, &packet);
        true
    }

    fn send(&mut self, transmit: &Transmit) {
        let bytes = match &transmit.packet {
            Packet::Handshake(bytes) => bytes.clone(),
            Packet::Control(packet) => {
                let Some((_, keys)) = &mut self.opened else { return };
                let mut datagram = vec![0; packet.datagram_bytes() as usize];
                packet.seal(&mut keys.control.sealer, &mut datagram).expect("there is room");
                datagram
            }
            // It was asked for nothing yet.
            Packet::Data(_) => return,
        };
        let _ = self.socket.send_to(&bytes, transmit.to);
    }
}

/// A socket at a separate port.
pub(crate) fn bind() -> UdpSocket {
    UdpSocket::bind("127.0.0.1:0").expect("a port is free")
}

fn receive(socket: &UdpSocket, room: &mut [u8]) -> Option<(usize, SocketAddr)> {
    socket.set_read_timeout(Some(STEP)).expect("it is not zero");
    match socket.recv_from(room) {
        Ok(received) => Some(received),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => None,
        // ICMP errors of earlier datagrams.
        Err(_) => None,
    }
}

fn index(kind: PacketKind) -> usize {
    usize::from(kind == PacketKind::Control)
}
