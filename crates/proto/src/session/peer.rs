//! The other end of a session.

mod feedback;
pub(crate) mod probing;

use fairwave_node::Terms;
use fairwave_units::{Rate, Time};

use crate::path::mtu::Mtu;
use crate::session::address::PeerAddress;
use crate::session::closing::ClosingSession;
use crate::session::opened::Opened;
use crate::session::rates::SessionRates;
use crate::session::rtt::Rtt;
use crate::wire::codec::{Reset, SessionId};
use crate::wire::packet::{ControlPacket, Packet, Transmit};
use crate::wire::replay::Replay;

/// A host's state of the other end of a session.
#[derive(Debug)]
pub(crate) struct Peer<K> {
    pub(crate) opened: Opened,
    /// Gone while the driver has them.
    pub(crate) keys: Option<K>,
    /// When its keys were made.
    pub(crate) opened_at: Time,
    pub(crate) next_number: u64,
    /// Frames for its next control packet.
    pub(crate) unsaid: Vec<u8>,
    /// The last probe that is not answered yet.
    pub(crate) asked: Option<u64>,
    pub(crate) replay: Replay,
    /// Of an initiator: only that may move.
    pub(crate) place: Option<PeerAddress>,
    /// Of a path that data take from here.
    pub(crate) mtu: Option<Mtu>,
    pub(crate) rtt: Rtt,
    /// The probe that is not answered.
    pub(crate) probe: Option<(u64, Time)>,
    pub(crate) probe_at: Time,
    /// Since when it owes an answer to a probe, and has said nothing else.
    pub(crate) unanswered: Option<Time>,
    /// Probes that it has not answered since its last answer, whatever else came from it, and when the first of them
    /// went.
    pub(crate) unheard: Option<(Time, u32)>,
    /// Its terms at this host's end nodes, without what its application wants.
    pub(crate) terms: Terms,
    /// Max rate that its application wants to send, if this end sends.
    pub(crate) desired: Option<Rate>,
    /// Max rate that its application receives, if this end receives.
    pub(crate) ceiling: Option<Rate>,
    /// The rate last assigned to the source, in bit/s, and when.
    pub(crate) reported: Option<(f64, Time)>,
    /// When data last came from it, or the session started.
    pub(crate) news_at: Time,
    pub(crate) heard: Time,
    pub(crate) is_heard: bool,
    pub(crate) rates: [SessionRates; 2],
    /// By direction: whether both ends exchange claims and grants.
    pub(crate) exchanges: [bool; 2],
    pub(crate) closing: Option<ClosingSession>,
    /// The reset that a responder sends once it no longer knows the session.
    pub(crate) reset: Option<Reset>,
}

impl<K> Peer<K> {
    /// A session that starts.
    pub(crate) fn new(now: Time, opened: Opened, keys: K, rtt: Rtt, probes_mtu: bool) -> Self {
        Self {
            opened,
            keys: Some(keys),
            opened_at: now,
            next_number: 0,
            unsaid: Vec::new(),
            asked: None,
            replay: Replay::default(),
            place: (!opened.is_initiator).then(|| PeerAddress::new(opened.address)),
            mtu: (probes_mtu && opened.sends).then(|| Mtu::new(now, opened.largest_packet)),
            rtt,
            probe: None,
            probe_at: now,
            unanswered: None,
            unheard: None,
            terms: Terms::default(),
            desired: None,
            ceiling: None,
            reported: None,
            news_at: now,
            heard: now,
            is_heard: false,
            rates: [SessionRates::default(); 2],
            exchanges: [false; 2],
            closing: None,
            reset: None,
        }
    }

    /// The next control packet to it.
    pub(crate) fn packet(&mut self, session: SessionId, frames: Vec<u8>) -> Transmit {
        let packet = ControlPacket { session: self.opened.peer, number: self.next_number, frames };
        self.next_number += 1;
        Transmit {
            to: self.opened.address,
            session: Some(session),
            takes_marks: false,
            packet: Packet::Control(packet),
        }
    }
}
