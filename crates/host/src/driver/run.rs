//! The thread of an endpoint.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crossbeam_channel::Receiver;
use fairwave_proto::codec::{CloseReason, Header, PacketKind, Reader, SessionId, is_handshake};
use fairwave_proto::handshake::{HandshakeError, PendingVisit};
use fairwave_proto::{ControlPacket, DataPacket, Event, Host, Opened, Packet, PieceAt, Transmit, tunnel_of};
use fairwave_units::{Duration, Rate, Time};
use rustix::event::{PollFd, PollFlags};

use super::address::canonical;
use super::attempts::Attempts;
use super::clock::Clock;
use super::entry::{OpenSession, OpenSessions};
use super::inbox::{DatagramPath, Inbox};
use super::outbox::{BatchWay, Outbox};
use super::overflow::{Overflow, OverflowVerdict, ReadCount};
use super::socket::Socket;
use super::tunnel::Tunnel;
use super::tunnels::Tunnels;
use super::visits::{Accepted, Reception, Visits};
use crate::carrier::{Carrier, Carriers};
use crate::commands::{Commands, SessionCommand};
use crate::crypto::{Noise, OpenKeys, SessionKeys};
use crate::membership::{MemberSession, Membership};
use crate::network_thread::NetworkThread;
use crate::orders::{EndpointOrder, EndpointShared};
use crate::session::{Session, SessionFacts};
use crate::sys::{exact_timers, wait_for};
use crate::thread_waker::ThreadWaker;

/// Drives the cores of one endpoint: it does over and over what [`Host`] asks of its driver, and sleeps in between.
pub(crate) struct Driver {
    pub(super) clock: Clock,
    pub(super) host: Host<Noise>,
    pub(super) socket: Socket,
    pub(super) inbox: Inbox,
    pub(super) outbox: Outbox,
    pub(super) tunnels: Tunnels,
    /// Buffer for one read of a tunnel.
    pub(super) tunnel_room: Vec<u8>,
    /// Allowed carriers of the sessions that are opened here.
    pub(super) carriers: Carriers,
    pub(super) entries: OpenSessions,
    pub(super) attempts: Attempts,
    /// Visitors that open sessions here.
    pub(super) visits: Visits,
    pub(super) bell: Arc<ThreadWaker>,
    pub(super) commands: Commands,
    pub(super) incoming: Receiver<(SessionId, SessionCommand)>,
    pub(super) orders: Receiver<EndpointOrder>,
    pub(super) shared: Arc<EndpointShared>,
    pub(super) is_plain: bool,
    pub(super) publish_at: Time,
    pub(super) arrivals: Arrivals,
    /// Packets that went when there was last anything to send.
    pub(super) sent_at_once: usize,
    pub(super) overflow: Overflow,
    pub(super) verdict: OverflowVerdict,
    /// The address of this host that a handshake came to, while it is answered.
    pub(super) answer_from: Option<IpAddr>,
    /// Deadline of a stop.
    pub(super) stops_at: Option<Time>,
    /// Its place at the machine's table, where it wants one.
    pub(super) membership: Option<Membership>,
}

/// The rate of arrivals, which bounds how long the socket can be left unread.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    /// Since the last sleep.
    bytes: u64,
    /// Per second, smoothed.
    bytes_per_s: f64,
    since: Time,
    /// Since it was last looked whether the socket overflowed.
    pub(super) read: ReadCount,
}

/// Calls that receive, and bytes that are sent, before the other has its turn.
const RECEIVES_PER_TURN: usize = 4;
const PACKETS_PER_TURN: usize = 256;
/// Peers are sent the end of their sessions until they acknowledge it, for at most this time.
const STOP_TAKES: Duration = Duration::from_secs(1);
/// The socket is left unread for at most this time, or until a quarter of its buffer may be full.
const MAX_REST: Duration = Duration::from_millis(1);
/// Many slow sessions each have a packet due at a different time. If a wake sent too few packets to be worth it, those
/// of a period this long are sent together. No rate suffers: a slow session keeps half a packet in reserve for sleeps
/// that end late.
const MIN_REST: Duration = Duration::from_micros(50);
const WORTH_A_WAKE: usize = 16;
/// Below this rate of arrivals, bytes/s, each packet is read as it arrives.
const REST_ABOVE_BYTES_PER_S: f64 = 2e6;
/// Max datagrams, of any size, between checks whether there was room for all of them.
const WORTH_A_LOOK: u64 = 1000;

impl Driver {
    /// Runs until it is stopped.
    pub(crate) fn run(mut self) {
        let _here = NetworkThread::enter();
        exact_timers();
        loop {
            let (now, is_more) = self.turn();
            if self.is_over(now) {
                if let Some(membership) = &mut self.membership {
                    membership.leave(now, &mut self.host);
                }
                return;
            }
            if !is_more {
                self.sleep();
            }
        }
    }

    /// Whether it was stopped, and has finished: every peer has acknowledged the end of its session, or does not
    /// answer.
    pub(super) fn is_over(&self, now: Time) -> bool {
        self.stops_at.is_some_and(|at| at <= now || !self.host.is_telling_ends())
    }

    /// Does all pending work. Returns its time, and whether there may be more at once.
    pub(super) fn turn(&mut self) -> (Time, bool) {
        let (now, is_more_by_udp) = self.receive();
        let is_more_to_read = is_more_by_udp | self.receive_by_tunnels(now);
        self.take_orders(now);
        self.take_commands(now);
        self.share(now);
        if self.host.poll_timeout().is_some_and(|at| at <= now) {
            self.host.handle_timeout(now);
        }
        self.tunnels.handle_timeout(now);
        self.attempts.handle_timeout(now, &mut self.host, &mut self.tunnels);
        self.take_tunnel_news(now);
        self.take_events(now);
        let is_more_to_send = self.transmit(now);
        self.look_for_overflow(now);
        self.publish(now);
        (now, is_more_to_read || is_more_to_send)
    }

    /// Reports the use of sessions, and applies their grants, if the machine's end node allocates.
    fn share(&mut self, now: Time) {
        let Some(membership) = self.membership.as_mut().filter(|membership| membership.is_due(now)) else { return };
        let entries = self.entries.iter();
        let member = |entry| {
            let OpenSession { session, sent_wire_bytes, received_wire_bytes, .. }: &OpenSession = entry;
            MemberSession { session, wire_bytes: [*sent_wire_bytes, *received_wire_bytes] }
        };
        let mut sessions: Vec<_> = entries.map(member).collect();
        sessions.sort_unstable_by_key(|member| member.session.id());
        membership.turn(now, &mut self.host, &sessions);
        self.take_events(now);
    }

    /// Takes what has come: as of when, and whether there may be more.
    fn receive(&mut self) -> (Time, bool) {
        let mut inbox = std::mem::take(&mut self.inbox);
        let (mut now, mut is_more) = (self.clock.now(), true);
        for _ in 0..RECEIVES_PER_TURN {
            let count = inbox.receive(&self.socket).unwrap_or_else(|error| {
                // An ICMP error about earlier datagrams; silence shows the same.
                tracing::trace!(%error, "socket error");
                0
            });
            // No datagram arrived later than this. For one that arrived while earlier ones were read, an earlier time
            // would count a hold here before its arrival, and shorten its round trip accordingly: on a path of half a
            // millisecond to nearly 0, which its model would then use as the minimum.
            now = self.clock.now();
            for (way, datagram) in inbox.datagrams(count) {
                self.arrivals.bytes += datagram.len() as u64;
                self.arrivals.read.datagrams += 1;
                self.on_datagram(now, way, datagram);
            }
            is_more = count == inbox.capacity();
            if !is_more {
                break;
            }
        }
        self.inbox = inbox;
        (now, is_more)
    }

    pub(super) fn on_datagram(&mut self, now: Time, way: DatagramPath, datagram: &mut [u8]) {
        if is_handshake(datagram) {
            // An endpoint that stops opens no session: its peer would learn of the end by silence only.
            if self.stops_at.is_none() {
                self.on_handshake(now, way, datagram);
            }
            return;
        }
        // Datagrams that are not a session's packets are dropped silently.
        let Ok(header) = Header::read(&mut Reader::new(datagram)) else { return };
        match header.kind {
            PacketKind::Data => self.on_data(now, way, &header, datagram),
            PacketKind::Control => self.on_control(now, way, &header, datagram),
        }
    }

    fn on_data(&mut self, now: Time, way: DatagramPath, header: &Header, datagram: &mut [u8]) {
        let from = way.from;
        let Some(entry) = self.entries.get_mut(header.session) else {
            return self.on_stray(now, way, header, datagram);
        };
        let wire_bytes = datagram.len() as u64 + u64::from(self.host.lower_bytes(from));
        let Ok((packet, bytes)) = DataPacket::open(header, &mut entry.data.opener, datagram) else { return };
        let PieceAt { stream, offset, .. } = packet.piece;
        let taken = self.host.handle_data(now, from, way.ecn, &packet);
        if taken.is_new {
            entry.received_wire_bytes += wire_bytes;
            self.arrivals.read.known += 1;
        }
        if taken.bytes == 0 {
            return;
        }
        for part in self.host.parts(header.session) {
            // Parts are of the piece.
            let (start, end) = ((part.start - offset) as usize, (part.end - offset) as usize);
            entry.handler.on_data(&entry.session, stream, part.start, &bytes[start..end]);
        }
    }

    fn on_control(&mut self, now: Time, way: DatagramPath, header: &Header, datagram: &mut [u8]) {
        let from = way.from;
        let wire_bytes = datagram.len() as u64 + u64::from(self.host.lower_bytes(from));
        let opened = if let Some(entry) = self.entries.get_mut(header.session) {
            ControlPacket::open(header, &mut entry.control.opener, datagram)
        } else {
            // Half open, or closing.
            let keys = self.host.keys(header.session);
            let Some(mut keys) = keys else { return self.on_stray(now, way, header, datagram) };
            ControlPacket::open(header, &mut keys, datagram)
        };
        let Ok(packet) = opened else { return };
        let is_new = self.host.handle_control(now, from, &packet);
        self.take_events(now);
        if !is_new {
            return;
        }
        self.arrivals.read.known += 1;
        let Some(entry) = self.entries.get_mut(header.session) else { return };
        entry.received_wire_bytes += wire_bytes;
        if entry.session.facts().is_initiator {
            entry.on_heard();
        } else {
            // The end that opened a session leaves the source address to the system, since it may change.
            entry.local = way.to;
        }
    }

    /// A packet of no session that is known here: it is answered so, or is such an answer.
    fn on_stray(&mut self, now: Time, way: DatagramPath, header: &Header, datagram: &[u8]) {
        if let Some(reset) = self.host.handle_stray(now, way.from, header, datagram) {
            self.send_plain((way.to, way.from), &reset);
        }
        self.take_events(now);
    }

    fn on_handshake(&mut self, now: Time, DatagramPath { from, to, .. }: DatagramPath, datagram: &[u8]) {
        let (visits, entries, is_plain) = (&mut self.visits, &self.entries, self.is_plain);
        let mut decide = |visit: &PendingVisit<Noise>| visits.judge(now, visit, entries, is_plain);
        self.host.handle_handshake(now, from, datagram, &mut decide);
        self.take_events(now);
        // The answer leaves from where the question came to.
        self.answer_from = to;
        self.transmit(now);
        self.answer_from = None;
    }

    fn take_orders(&mut self, now: Time) {
        while let Ok(order) = self.orders.try_recv() {
            match order {
                EndpointOrder::Connect(call) => {
                    self.attempts.begin(now, &self.socket, &self.tunnels, self.carriers, *call);
                }
                EndpointOrder::Tunnel { ends, peer, is_gone } => {
                    if let Err(error) = self.tunnels.add(now, ends, peer, &is_gone) {
                        tracing::info!(%peer, %error, "the descriptors of ssh cannot carry a session");
                        is_gone.store(true, Ordering::SeqCst);
                    }
                }
                EndpointOrder::Listen { tickets, judge, accept } => {
                    self.host.crypto().listen(Arc::clone(&tickets));
                    self.visits.listen(Reception { tickets, judge, accept });
                }
                EndpointOrder::Stop => {
                    // Earlier commands of sessions come first: a session that was closed as done is not abandoned.
                    self.take_commands(now);
                    let open: Vec<SessionId> = self.entries.iter().map(|entry| entry.session.id()).collect();
                    for session in &open {
                        self.host.close(now, *session, CloseReason::Leaving);
                    }
                    self.stops_at.get_or_insert(now.saturating_add(STOP_TAKES));
                }
            }
        }
    }

    fn take_commands(&mut self, now: Time) {
        while let Ok((session, command)) = self.incoming.try_recv() {
            let Some(entry) = self.entries.get_mut(session) else { continue };
            entry.pace.wake();
            match command {
                SessionCommand::Want { stream, range } => self.host.want(now, session, stream, range),
                SessionCommand::GiveUp { stream, range } => self.host.give_up(session, stream, &range),
                SessionCommand::Room(room) => self.host.set_room(now, session, room),
                SessionCommand::Serve { stream, range } => self.host.serve(now, session, stream, range),
                SessionCommand::Refuse { stream, range, reason } => {
                    self.host.refuse(now, session, stream, range, reason);
                }
                SessionCommand::Desired(rate) => self.host.set_desired(now, session, rate),
                SessionCommand::Ceiling(rate) => self.host.set_ceiling(now, session, rate),
                SessionCommand::Close(reason) => self.host.close(now, session, reason),
            }
        }
    }

    fn take_events(&mut self, now: Time) {
        while let Some(event) = self.host.poll_event() {
            match event {
                Event::Open(opened) => self.on_open(now, &opened),
                Event::Failed { session, error } => self.on_failed(now, session, error),
                Event::Requested { session, stream, range } => {
                    if let Some(entry) = self.entries.get_mut(session) {
                        entry.handler.on_request(&entry.session, stream, range);
                    }
                }
                Event::Void { session, stream, range, reason } => {
                    if let Some(entry) = self.entries.get_mut(session) {
                        entry.handler.on_void(&entry.session, stream, range, reason);
                    }
                }
                Event::Closed { session, reason, by_peer, counts } => {
                    if let Some(mut entry) = self.entries.remove(session) {
                        entry.publish_last(counts);
                        entry.log_end(reason, by_peer);
                        let link = entry.ticket.zip(entry.link);
                        self.visits.returns.on_closed(now, link, entry.session.proof(), reason);
                        entry.handler.on_closed(&entry.session, reason, by_peer);
                        entry.answer(reason, by_peer);
                        if let Some(tunnel) = entry.tunnel.and_then(|number| self.tunnels.get_mut(number)) {
                            tunnel.on_closed(now);
                        }
                        self.host.return_keys(session, SessionKeys::Closing(entry.control));
                        self.list_sessions();
                    }
                }
            }
        }
        // Commands that handlers have just issued are executed at once.
        if !self.incoming.is_empty() {
            self.take_commands(now);
        }
    }

    fn on_open(&mut self, now: Time, opened: &Opened) {
        let Opened { session, peer, address, is_initiator, sends, receives, path, declared, .. } = *opened;
        if self.stops_at.is_some() {
            self.host.close(now, session, CloseReason::Leaving);
            return;
        }
        let tunnel = tunnel_of(address);
        let wanted = self.attempts.opened(now, session, &mut self.host, &mut self.tunnels);
        let (mut handler, ticket, link, reply) = if let Some(wanted) = wanted {
            (wanted.handler, None, None, Some(wanted.reply))
        } else {
            let Some(admitted) = self.visits.take(peer, address) else {
                // It took longer than half-open sessions last.
                self.host.close(now, session, CloseReason::Silence);
                return;
            };
            match self.visits.accept(now, &admitted, &self.entries) {
                Ok(Accepted { options, handler, link, follows }) => {
                    options.map(|options| self.host.set_options(now, session, options));
                    if let Some(former) = follows {
                        self.host.close(now, former, CloseReason::Stopped);
                    }
                    (handler, Some(admitted.ticket), Some(link), None)
                }
                Err(refusal) => {
                    self.host.close(now, session, CloseReason::Refused(refusal));
                    // The first packet to that address announces the change, and precedes all others.
                    self.host.handle_timeout(now);
                    return;
                }
            }
        };
        let keys = self.host.take_keys(session).and_then(SessionKeys::open);
        let Some(OpenKeys { data, control, export }) = keys else { return };
        let peer = canonical(address);
        let of_tunnel = tunnel.and_then(|number| self.tunnels.get_mut(number));
        let carrier = of_tunnel.map_or(Carrier::Udp, Tunnel::on_open);
        let facts =
            SessionFacts { peer, is_initiator, sends, receives, carrier, path, declared, is_plain: self.is_plain };
        let session = Session::new(session, facts, export, self.commands.clone());
        tracing::info!(parent: session.span(), is_initiator, sends, receives, %carrier, ?path, ?declared, "open");
        handler.on_open(&session);
        let id = session.id();
        if let Some(ticket) = ticket {
            let group = self.entries.group_of(ticket);
            self.host.set_group(now, id, group);
        }
        let entry = OpenSession::new(session, ticket, handler, (data, control));
        self.entries.insert(OpenSession { link, reply, tunnel, ..entry });
        self.list_sessions();
        if tunnel.is_some_and(|number| self.tunnels.get(number).is_none()) {
            self.host.close(now, id, CloseReason::Cut);
        }
    }

    fn on_failed(&mut self, now: Time, session: SessionId, error: HandshakeError) {
        self.attempts.failed(now, session, error, &mut self.host, &mut self.tunnels);
    }

    /// Looks whether the socket overflowed: then less is to come.
    fn look_for_overflow(&mut self, now: Time) {
        let is_little = self.arrivals.read.datagrams < WORTH_A_LOOK;
        if is_little && self.arrivals.bytes_per_s < REST_ABOVE_BYTES_PER_S {
            return;
        }
        let Some(dropped) = self.overflow.poll(now) else { return };
        let read = std::mem::take(&mut self.arrivals.read);
        self.shared.overflows.fetch_add(dropped, Ordering::Relaxed);
        if dropped > 0 {
            let ReadCount { datagrams, known } = read;
            tracing::debug!(dropped, datagrams, known, "the socket's send buffer is full");
        }
        let Some(bytes_per_s) = self.verdict.look(dropped, read, self.arrivals.bytes_per_s) else { return };
        tracing::info!("the socket's receive buffer overflowed: requesting less");
        self.host.on_overflow(Rate::nearest_bps(8.0 * bytes_per_s));
    }

    /// Sends what is due: whether there may be more.
    fn transmit(&mut self, now: Time) -> bool {
        if self.outbox.is_full() && !self.outbox.flush(&mut self.socket) {
            return false;
        }
        let mut is_more = true;
        for sent in 0..PACKETS_PER_TURN {
            let Some(transmit) = self.host.poll_transmit(now) else {
                is_more = false;
                break;
            };
            self.send(now, &transmit);
            self.sent_at_once = sent + 1;
            if self.outbox.is_full() {
                is_more = false;
                break;
            }
        }
        self.outbox.flush(&mut self.socket);
        self.tunnels.flush();
        let too_large: Vec<_> = self.outbox.too_large().collect();
        for (session, datagram_bytes) in too_large {
            tracing::debug!(datagram_bytes, "the system rejects datagrams of this size");
            self.host.on_too_large(now, session, datagram_bytes);
        }
        is_more
    }

    fn send(&mut self, now: Time, transmit: &Transmit) {
        let to = transmit.to;
        if let Some(tunnel) = tunnel_of(to) {
            return self.send_by_tunnel(now, tunnel, transmit);
        }
        let wire_bytes = u64::from(transmit.packet.datagram_bytes() + self.host.lower_bytes(to));
        match (&transmit.packet, transmit.session) {
            (Packet::Data(packet), Some(session)) => {
                let Some(entry) = self.entries.get_mut(session) else { return };
                let OpenSession { data, handler, local, sent_wire_bytes, .. } = entry;
                let way = BatchWay { to: (*local, to), takes_marks: transmit.takes_marks };
                let pushed =
                    self.outbox.push_data(&mut self.socket, session, way, packet, &mut data.sealer, handler.as_mut());
                match pushed {
                    Ok(()) => *sent_wire_bytes += wire_bytes,
                    Err(_) if handler.comes_later() => self.host.postpone(now, session, packet),
                    Err(reason) => self.host.withdraw(now, session, packet, reason),
                }
            }
            (Packet::Control(packet), Some(session)) => {
                if let Some(entry) = self.entries.get_mut(session) {
                    entry.sent_wire_bytes += wire_bytes;
                    let (way, sealer) = ((entry.local, to), &mut entry.control.sealer);
                    self.outbox.push_control(&mut self.socket, session, way, packet, sealer);
                } else if let Some(keys) = self.host.keys_mut(session) {
                    // One of its last.
                    self.outbox.push_control(&mut self.socket, session, (None, to), packet, keys.closing());
                }
            }
            (Packet::Handshake(bytes), _) => self.send_plain((self.answer_from, to), bytes),
            (_, None) => {}
        }
    }

    /// Sleeps until something is due, comes, or is asked for.
    fn sleep(&mut self) {
        self.bell.hush();
        if !self.incoming.is_empty() || !self.orders.is_empty() {
            self.bell.wake(false);
            return;
        }
        let now = self.clock.now();
        let publish = (!self.entries.is_empty()).then_some(self.publish_at);
        let next = self.host.poll_timeout();
        let tunnels = self.tunnels.next_timeout();
        let membership = self.membership.as_ref().and_then(Membership::next_timeout);
        let ends = [next, publish, self.attempts.next_timeout(), tunnels, membership, self.stops_at]
            .into_iter()
            .flatten()
            .min();
        let rest = self.arrivals.rest(now, self.socket.buffers().receive);
        let least = if self.sent_at_once < WORTH_A_WAKE { MIN_REST } else { Duration::ZERO };
        let until = |end: Option<Time>| end.map(|end| end.since(now).max(least));
        let is_full = self.outbox.is_full();
        let bell = PollFd::new(&*self.bell, PollFlags::IN);
        let is_rung = if let Some(rest) = rest.filter(|_| !is_full) {
            // So much comes that it is cheaper taken together.
            let wait = until(ends).map_or(rest, |wait| wait.min(rest));
            wait_for(&mut [bell], Some(wait))
        } else {
            let events = if is_full { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
            let socket = PollFd::new(&self.socket, events);
            match self.tunnels.readiness() {
                None => wait_for(&mut [bell, socket], until(ends)),
                Some(tunnels) => wait_for(tunnels.with([bell, socket]).as_mut(), until(ends)),
            }
        };
        self.bell.wake(is_rung);
    }

    fn list_sessions(&self) {
        let sessions = self.entries.iter().map(|entry| entry.session.clone()).collect();
        self.shared.sessions.store(Arc::new(sessions));
    }
}

impl Arrivals {
    /// How long the socket can be left unread, if the rate of arrivals makes that worthwhile.
    fn rest(&mut self, now: Time, buffer: usize) -> Option<Duration> {
        let elapsed = now.since(self.since).as_secs_f64();
        if elapsed > 1e-4 {
            let rate = self.bytes as f64 / elapsed;
            // Over some 10 ms.
            let weight = (elapsed / 0.01).min(1.0);
            self.bytes_per_s += weight * (rate - self.bytes_per_s);
            (self.bytes, self.since) = (0, now);
        }
        if self.bytes_per_s < REST_ABOVE_BYTES_PER_S {
            return None;
        }
        // The kernel's own overhead takes half of the buffer.
        let quarter = Duration::from_secs_f64(buffer as f64 / 8.0 / self.bytes_per_s)?;
        Some(quarter.min(MAX_REST))
    }
}
