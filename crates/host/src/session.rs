//! One session, as an application speaks to it from any thread.

use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;

use arc_swap::ArcSwap;
use fairwave_proto::codec::{CloseReason, SessionId, VoidReason};
use fairwave_proto::handshake::Crypto;
use fairwave_proto::{Direction, Hold, Host, PathDeclarations, PathFacts, PathKind, RateTerm, SessionRates};
use fairwave_units::{Bytes, Duration, Rate, Time};
use tracing::Span;
use zeroize::Zeroizing;

use crate::carrier::Carrier;
use crate::commands::{Commands, SessionCommand};
use crate::proof::Proof;

/// A session: cheap to clone, and usable from any thread.
///
/// Calls return at once; the network thread does what they say. After the session's end they do nothing.
#[derive(Clone)]
pub struct Session {
    inner: Arc<SessionInner>,
}

struct SessionInner {
    id: SessionId,
    facts: SessionFacts,
    export: Zeroizing<[u8; 32]>,
    commands: Commands,
    stats: ArcSwap<SessionStats>,
    span: Span,
}

/// Properties that both ends agreed on.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "four facts that do not depend on each other")]
pub struct SessionFacts {
    /// The peer's address when it opened.
    pub peer: SocketAddr,
    /// Whether this end opened it.
    pub is_initiator: bool,
    /// Whether this end sends data.
    pub sends: bool,
    /// Whether this end receives data.
    pub receives: bool,
    /// The carrier of its datagrams.
    pub carrier: Carrier,
    /// Whether the path is shared with others.
    pub path: PathKind,
    /// The path kinds that both ends asked for.
    pub declared: PathDeclarations,
    /// Whether data go without secrecy: then any byte of a stream may be forged, and the application has to check.
    pub is_plain: bool,
}

/// The state of a session as of some 50 ms ago; of one that has moved no data and had no command for a second, as of up
/// to half a second ago.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionStats {
    /// Data packets sent.
    pub sent_packets: u64,
    /// Data packets sent that got lost, as far as is known: not those that came after all.
    pub lost_packets: u64,
    /// Bytes of streams that were in packets that seemed lost, and went again.
    pub lost_bytes: u64,
    /// Data packets sent that seemed lost, and came after all.
    pub spurious_packets: u64,
    /// Bytes of IP packets sent.
    pub sent_wire_bytes: u64,
    /// Bytes of streams that came, each counted once.
    pub received_bytes: u64,
    /// Bytes of IP packets received.
    pub received_wire_bytes: u64,
    /// Data packets received.
    pub received_packets: u64,
    /// Data packets of which this sink has heard and that have not come: lost ones, some that are late, and on shared
    /// paths the one in some 4096 whose number the source skips on purpose.
    pub missed_packets: u64,
    /// The rates at the source, where this is it.
    pub source: Option<SessionRates>,
    /// The rates at the sink, where this is it.
    pub sink: Option<SessionRates>,
    /// The rate that the path carries of it, on shared paths, at the source: its part if this host has other sessions
    /// on the path.
    pub path_rate: Option<Rate>,
    /// Max rate that the application allows: at the source to send, at the sink to receive.
    pub desired: Option<Rate>,
    /// At the source: what held it for most of the last second.
    pub source_held_by: Option<Hold>,
    /// At the sink: what holds it there, if anything does.
    pub sink_held_by: Option<Hold>,
    /// The smoothed round-trip time.
    pub rtt: Option<Duration>,
    /// Further facts about the path of the data that it sends.
    pub sent_path: PathFacts,
    /// And of what it receives.
    pub received_path: PathFacts,
    /// Datagrams for any session of this endpoint that came and found no room in its socket.
    pub overflows: u64,
    /// Receive buffer that the system granted the socket.
    pub receive_buffer: Bytes,
    /// The largest datagram that the path is known to take, in bytes.
    pub datagram_bytes: u32,
    /// Since when nothing has come from the peer.
    pub silent_for: Duration,
    /// Since when it owes an answer, and nothing else has come either.
    pub unanswered_for: Duration,
    /// Since when it has answered nothing that this end asked, though it may be heard.
    pub unheard_for: Duration,
}

impl SessionStats {
    /// The host's record of a session, except the counters.
    pub(crate) fn of<C: Crypto>(host: &mut Host<C>, now: Time, session: SessionId) -> Self {
        let (path_rate, demand) = (host.limit(session, RateTerm::Path), host.limit(session, RateTerm::Demand));
        Self {
            path_rate,
            desired: demand.into_iter().chain(host.ceiling(session)).reduce(Rate::min),
            source: host.source_rates(session),
            sink: host.sink_rates(session),
            source_held_by: host.held_by(now, session, Direction::Sending),
            sink_held_by: host.held_by(now, session, Direction::Receiving),
            rtt: host.rtt(session),
            sent_path: host.path_facts(now, session, Direction::Sending).unwrap_or_default(),
            received_path: host.path_facts(now, session, Direction::Receiving).unwrap_or_default(),
            datagram_bytes: host.datagram_bytes(session).unwrap_or_default(),
            silent_for: host.silent_for(now, session).unwrap_or_default(),
            unanswered_for: host.unanswered_for(now, session).unwrap_or_default(),
            unheard_for: host.unheard_for(now, session).unwrap_or_default(),
            ..Self::default()
        }
    }
}

impl Session {
    pub(crate) fn new(id: SessionId, facts: SessionFacts, export: Zeroizing<[u8; 32]>, commands: Commands) -> Self {
        let stats = ArcSwap::default();
        let span = tracing::info_span!("session", id = %format_args!("{:016x}", id.0), peer = %facts.peer);
        Self { inner: Arc::new(SessionInner { id, facts, export, commands, stats, span }) }
    }

    /// The span that log lines about it stand in.
    pub fn span(&self) -> &Span {
        &self.inner.span
    }

    /// Its name at this host.
    pub fn id(&self) -> SessionId {
        self.inner.id
    }

    /// Properties that both ends agreed on.
    pub fn facts(&self) -> &SessionFacts {
        &self.inner.facts
    }

    /// Its current statistics.
    pub fn stats(&self) -> Arc<SessionStats> {
        self.inner.stats.load_full()
    }

    /// Sets the value of [`Session::stats`]. The network thread does it for sessions of an endpoint; a test does it for
    /// a detached one.
    pub fn publish(&self, stats: SessionStats) {
        self.inner.stats.store(Arc::new(stats));
    }

    /// The sink wants a range of a stream, also one that it had and that turned out to be wrong.
    pub fn want(&self, stream: u32, range: Range<u64>) {
        self.send(SessionCommand::Want { stream, range });
    }

    /// The sink wants a range no more.
    pub fn give_up(&self, stream: u32, range: Range<u64>) {
        self.send(SessionCommand::GiveUp { stream, range });
    }

    /// Sets the max bytes that the sink has requested and not received.
    pub fn set_room(&self, room: Bytes) {
        self.send(SessionCommand::Room(room));
    }

    /// The source can lend a range that was asked for.
    pub fn serve(&self, stream: u32, range: Range<u64>) {
        self.send(SessionCommand::Serve { stream, range });
    }

    /// The source cannot send a range that was asked for.
    pub fn refuse(&self, stream: u32, range: Range<u64>, reason: VoidReason) {
        self.send(SessionCommand::Refuse { stream, range, reason });
    }

    /// The source sends no faster than this: its desired rate, of IP packets.
    pub fn set_desired(&self, rate: Rate) {
        self.send(SessionCommand::Desired(rate));
    }

    /// Limits the rate of IP packets that the sink accepts, whatever its end node grants; `None` for no limit. The
    /// source is informed, and the excess is refused.
    pub fn set_ceiling(&self, rate: Option<Rate>) {
        self.send(SessionCommand::Ceiling(rate));
    }

    /// Ends it.
    pub fn close(&self, reason: CloseReason) {
        self.send(SessionCommand::Close(reason));
    }

    /// A secret that both ends of this session know and nobody else, one for each label: to prove with it what travels
    /// in the clear.
    pub fn secret(&self, label: &str) -> [u8; 32] {
        self.hasher(label).finalize().into()
    }

    fn hasher(&self, label: &str) -> blake3::Hasher {
        let mut hasher = blake3::Hasher::new_keyed(&self.inner.export);
        hasher.update(label.as_bytes());
        hasher
    }

    /// Proves to the other end that a session which is opened later follows this one
    /// ([`Endpoint::begin`](crate::Endpoint::begin)).
    pub fn proof(&self) -> Proof {
        // The first half of such a secret.
        let mut proof = Proof::default();
        self.hasher("return").finalize_xof().fill(&mut proof);
        proof
    }

    fn send(&self, command: SessionCommand) {
        self.inner.commands.send(self.inner.id, command);
    }
}

impl Session {
    /// A session without a network, to test a [`Handler`](crate::Handler): its commands come out of the receiver. Its
    /// secrets are constants.
    pub fn detached(facts: SessionFacts) -> (Self, crossbeam_channel::Receiver<(SessionId, SessionCommand)>) {
        let (commands, received) = Commands::detached();
        (Self::new(SessionId(1), facts, Zeroizing::new([7; 32]), commands), received)
    }
}
