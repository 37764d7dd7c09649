//! The three cores of a host, driven by one thread.

use std::net::SocketAddr;
use std::ops::Range;

use fairwave_schemes::RateAllocator;
use fairwave_units::{Bytes, Duration, Rate, Time};

use crate::codec::{CloseReason, SessionId, VoidReason};
use crate::end_node::IntervalRule;
use crate::packet::{ControlPacket, DataPacket, Transmit};

/// One direction of a host: the capacity that its sessions share.
pub struct NodeConfig {
    /// Its capacity: of IP packets.
    pub capacity: Rate,
    /// GTP's share of it, 0 to 1.
    pub share: f64,
    /// How long a control interval is.
    pub interval: IntervalRule,
    /// When the first one ends, from the start of the host on; best at random within an interval.
    pub phase: Duration,
    /// The rule.
    pub allocator: Box<dyn RateAllocator>,
}

/// How a host is set up.
pub struct HostConfig {
    /// Bytes of IP and UDP around a datagram, which count in all rates: 28 with IPv4, 48 with IPv6.
    pub lower_bytes: u32,
    /// Bytes of a stream in a data packet at the most.
    pub piece_bytes: u32,
    /// Bytes of one send of the system at the most (GSO), which is the largest burst: one packet's worth where packets go
    /// one by one.
    pub send_bytes: Bytes,
    /// What its sessions may send together; `None` where nothing is known of it: then a session's path rate governs alone.
    pub sending: Option<NodeConfig>,
    /// What its sessions may receive together.
    pub receiving: Option<NodeConfig>,
    /// Whether sessions start with a fair share of both ends instead of none.
    pub fair_start: bool,
    /// Bytes that a session may have asked for and not received, at the most.
    pub room: Bytes,
    /// Seeds all that is left to chance: session names, skipped numbers, probes.
    pub seed: u64,
    /// What new sessions have until [`Host::set_options`] says otherwise.
    pub new_sessions: SessionOptions,
}

/// What may differ from session to session at one host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SessionOptions {
    /// Its share relative to others.
    pub weight: f64,
    /// Share of the gap to the target rate that is closed per interval.
    pub alpha: f64,
    /// Least step, as a share of alpha x target rate.
    pub beta: f64,
}

/// Something that the application should know.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A session is there. For its responder: one that a peer opened, which nobody at this host asked for.
    Open {
        /// Its name at this host.
        session: SessionId,
        /// Where the peer is.
        peer: SocketAddr,
    },
    /// The peer asks for a range: answer with [`Host::serve`] or [`Host::refuse`], now or when it has been read. It may come
    /// again.
    Requested {
        /// The session.
        session: SessionId,
        /// The stream.
        stream: u32,
        /// The range.
        range: Range<u64>,
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
    /// A session is over.
    Closed {
        /// The session.
        session: SessionId,
        /// Why.
        reason: CloseReason,
        /// Whether the peer said so.
        by_peer: bool,
    },
}

/// The rates of a session at one of its ends, as that end knows them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SessionRates {
    /// What its end node measured in the last control interval.
    pub measured: Rate,
    /// What its end node grants it: the source's own at the source, the sink's own at the sink.
    pub expected: Rate,
    /// Where the end node leads it.
    pub target: Rate,
    /// At the source: the sink's grant, as far as heard.
    pub sink_expected: Option<Rate>,
}

/// Which timer comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wakeup {
    /// A packet is due: what comes late costs rate.
    Pace,
    /// Anything else: a millisecond does not matter.
    Timer,
}

pub struct Host {}

impl Host {
    pub fn new(_now: Time, _config: HostConfig) -> Self {
        todo!()
    }

    /// Opens a session to the host at `to`: its name here. `Event::Open` follows when it is there.
    pub fn connect(&mut self, _now: Time, _to: SocketAddr, _sends: bool, _receives: bool) -> SessionId {
        todo!()
    }

    /// Changes what a session's end node knows of it.
    pub fn set_options(&mut self, _session: SessionId, _options: SessionOptions) {
        todo!()
    }

    /// The sink wants a range of a stream.
    pub fn want(&mut self, _now: Time, _session: SessionId, _stream: u32, _range: Range<u64>) {
        todo!()
    }

    /// The source sends a range that was asked for.
    pub fn serve(&mut self, _now: Time, _session: SessionId, _stream: u32, _range: Range<u64>) {
        todo!()
    }

    /// The source cannot send a range that was asked for.
    pub fn refuse(&mut self, _now: Time, _session: SessionId, _stream: u32, _range: Range<u64>, _reason: VoidReason) {
        todo!()
    }

    /// The source sends no faster than this.
    pub fn set_desired(&mut self, _now: Time, _session: SessionId, _desired: Rate) {
        todo!()
    }

    pub fn close(&mut self, _now: Time, _session: SessionId, _reason: CloseReason) {
        todo!()
    }

    /// A data packet came: how many of its bytes were wanted and come for the first time. Zero: forget it.
    pub fn handle_data(&mut self, _now: Time, _from: SocketAddr, _packet: &DataPacket) -> u64 {
        todo!()
    }

    pub fn handle_control(&mut self, _now: Time, _from: SocketAddr, _packet: &ControlPacket) {
        todo!()
    }

    pub fn handle_handshake(&mut self, _now: Time, _from: SocketAddr, _datagram: &[u8]) {
        todo!()
    }

    /// Does what is due. Harmless too early or too late.
    pub fn handle_timeout(&mut self, _now: Time) {
        todo!()
    }

    /// When to come with [`Host::handle_timeout`] (and then [`Host::poll_transmit`]) at the latest. Ask again after each call of
    /// any method.
    pub fn poll_timeout(&self) -> Option<(Time, Wakeup)> {
        todo!()
    }

    /// The next packet to send now. Call until there is none.
    pub fn poll_transmit(&mut self, _now: Time) -> Option<Transmit> {
        todo!()
    }

    /// What happened. Call until there is none.
    pub fn poll_event(&mut self) -> Option<Event> {
        todo!()
    }

    /// The rates of a session at its sending end, if this is it.
    pub fn source_rates(&self, _session: SessionId) -> Option<SessionRates> {
        todo!()
    }

    /// The rates of a session at its receiving end.
    pub fn sink_rates(&self, _session: SessionId) -> Option<SessionRates> {
        todo!()
    }
}
