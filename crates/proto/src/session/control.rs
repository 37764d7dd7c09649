//! State shared by a host's sessions: their peers, and the grants of the end nodes.

mod closing;
mod opening;
mod promise;
mod stray;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use fairwave_node::EndNode;
use fairwave_units::Time;

use crate::handshake::Crypto;
use crate::handshake::handshakes::Handshakes;
use crate::path::path_kind::PathKind;
use crate::session::grants::Grants;
use crate::session::lasts::Lasts;
use crate::session::peers::Peers;
use crate::session::secure_random::SecureRandom;
use crate::session::slots::SessionNames;
use crate::wire::codec::{CloseReason, Frame, PacketKind, SessionId};
use crate::wire::packet::{CONTROL_OVERHEAD, ControlPacket, Transmit};

/// The core of a host that knows its peers: it opens and closes sessions, numbers all control packets, and runs the two
/// end nodes.
///
/// At a tick it asks for the measured rates ([`EndNodes::due`](super::end_nodes::EndNodes::due), [`Grants::tick`]), and
/// sets the rate of each session from then on ([`ControlEvent::Grant`](super::control_event::ControlEvent::Grant)).
pub(crate) struct Control<C: Crypto> {
    names: SessionNames,
    pub(crate) handshakes: Handshakes<C>,
    setup: ControlSetup,
    pub(crate) peers: Peers<C::Keys>,
    pub(crate) grants: Grants,
    /// Sessions that their responders can reset, by the id of the reset.
    resets: BTreeMap<SessionId, SessionId>,
}

/// How the core is set up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ControlSetup {
    /// The assumed kind of this host's paths, if it knows its capacity.
    pub(crate) path: PathKind,
    pub(crate) is_plain: bool,
    pub(crate) fair_start: bool,
    pub(crate) largest_packet: u32,
    /// Bytes of IP and UDP around a datagram.
    pub(crate) lower_bytes: u32,
    /// Whether to look for larger datagrams than every path takes.
    pub(crate) probes_mtu: bool,
    pub(crate) lasts: Lasts,
}

impl<C: Crypto> Control<C> {
    /// Without sessions, with an end node for each direction whose capacity is known.
    pub(crate) fn new(
        nodes: [Option<EndNode>; 2],
        setup: ControlSetup,
        crypto: C::Responder,
        chance: SecureRandom,
    ) -> Self {
        Self {
            names: SessionNames::default(),
            handshakes: Handshakes::new(crypto, setup.lasts.opening),
            setup,
            peers: Peers::new(chance, setup.lower_bytes),
            grants: Grants::new(nodes),
            resets: BTreeMap::new(),
        }
    }

    /// A control packet came, whose seal is good: whether its frames count.
    pub(crate) fn accept(&mut self, now: Time, from: SocketAddr, packet: &ControlPacket) -> bool {
        if self.peers.get(packet.session).is_none() {
            self.confirm(now, packet.session);
        }
        let Some(peer) = self.peers.get_mut(packet.session) else { return false };
        if !peer.replay.accept(packet.number) {
            return false;
        }
        (peer.heard, peer.is_heard, peer.unanswered) = (now, true, None);
        let is_open = peer.closing.is_none();
        let bytes = CONTROL_OVERHEAD + packet.frames.len() as u32;
        self.peers.locate(now, packet.session, from, (PacketKind::Control, packet.number), bytes);
        if !is_open {
            self.on_late_packet(now, packet.session, &packet.frames);
        }
        is_open
    }

    /// Handles a frame of the peer for this core.
    pub(crate) fn handle_frame(&mut self, now: Time, from: SocketAddr, session: SessionId, frame: &Frame<'_>) {
        match *frame {
            // Many in one packet are one question: no answer is larger than what it answers.
            Frame::Probe(value) => {
                if let Some(peer) = self.peers.get_mut(session) {
                    peer.asked = Some(value);
                }
            }
            Frame::Echo(value) => {
                if let Some(rtt) = self.peers.on_echo(now, from, session, value) {
                    self.grants.nodes.change(session, |flow| flow.rtt = rtt);
                }
            }
            Frame::Grant(_) | Frame::Claim(_) => self.grants.on_word(now, &mut self.peers, session, frame),
            // A second frame of the same packet adds nothing.
            Frame::Close(reason) => self.grants.close(now, &mut self.peers, session, (reason, true)),
            _ => {}
        }
    }

    /// Looks after the peers whose time has come. Harmless too early or too late.
    pub(crate) fn handle_timeout(&mut self, now: Time) {
        if self.handshakes.next_timeout().is_some_and(|at| at <= now) {
            let (failed, gone) = self.handshakes.handle_timeout(now);
            for (session, error) in failed {
                self.fail(session, error);
            }
            for session in gone {
                self.names.give_back(session);
                self.grants.nodes.take_back_start(session);
            }
        }
        while let Some(slot) = self.peers.alarms.pop(now) {
            let Some((session, peer)) = self.peers.at_mut(slot) else { continue };
            let again = if peer.closing.is_some() {
                self.step_closing(now, session)
            } else if now.since(peer.heard) >= self.setup.lasts.silent {
                self.close(now, session, CloseReason::Silence);
                continue;
            } else if now.since(peer.opened_at) >= self.setup.lasts.keys {
                self.close(now, session, CloseReason::Keys);
                continue;
            } else {
                if peer.takes_probe(now) {
                    self.peers.probe(now, session);
                }
                self.grants.lift(now, &mut self.peers, session);
                self.peers.explore(now, session)
            };
            if let Some(again) = again {
                self.peers.alarms.set(slot, Some(again));
            }
        }
    }

    /// When to come again.
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        let nodes = self.grants.nodes.next_timeout();
        nodes.into_iter().chain(self.peers.alarms.next()).chain(self.handshakes.next_timeout()).min()
    }

    /// The next control packet or handshake to send.
    pub(crate) fn poll_transmit(&mut self, now: Time) -> Option<Transmit> {
        self.peers.poll_transmit().or_else(|| {
            let (to, datagram) = self.handshakes.poll_transmit(now)?;
            Some(Transmit::handshake(to, datagram))
        })
    }
}
