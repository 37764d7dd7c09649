//! How a session comes to be.

use std::net::SocketAddr;

use fairwave_node::{Flow, Terms};
use fairwave_units::{Duration, Time};

use super::Control;
use super::promise::ahead;
use crate::handshake::handshakes::DatagramOutcome;
use crate::handshake::{Crypto, Established, HandshakeError, HandshakeTerms, PendingVisit};
use crate::session::control_event::ControlEvent;
use crate::session::end_nodes::BOTH;
use crate::session::opened::{OpenError, OpenRequest, Opened};
use crate::session::peer::Peer;
use crate::session::rtt::Rtt;
use crate::wire::codec::{Refusal, SessionId};
use crate::wire::packet::Transmit;

impl<C: Crypto> Control<C> {
    /// A name for a session, if there is room for one more. It is given back when the session is over.
    fn name(&mut self) -> Option<SessionId> {
        let chance = self.peers.chance.bits();
        self.names.take(chance)
    }

    /// Starts to open a session to the host at `to`: its name. [`ControlEvent::Opened`] follows, or
    /// [`ControlEvent::Failed`].
    pub(crate) fn connect(
        &mut self,
        now: Time,
        to: SocketAddr,
        crypto: C::Initiator,
        request: &OpenRequest<'_>,
    ) -> Result<SessionId, OpenError> {
        request.options.check().map_err(OpenError::Options)?;
        let session = self.name().ok_or(OpenError::TooMany)?;
        let flows = (request.sends, request.receives);
        let terms = self.setup.terms(&mut self.grants.nodes, session, flows, request.options);
        let connected = self.handshakes.connect(now, to, crypto, terms, flows, (request.greeting, request.options));
        if connected.is_err() {
            self.take_back(session);
            return Err(OpenError::Greeting(request.greeting.len()));
        }
        Ok(session)
    }

    /// A datagram of the handshake came. `decide` judges requests for a session.
    pub(crate) fn handle_handshake(
        &mut self,
        now: Time,
        from: SocketAddr,
        datagram: &[u8],
        decide: &mut dyn FnMut(&PendingVisit<C>) -> Result<Terms, Refusal>,
    ) {
        match self.handshakes.handle(now, from, datagram) {
            DatagramOutcome::Nothing => {}
            DatagramOutcome::Answer(answer) => self.peers.push_transmit(Transmit::handshake(from, answer)),
            DatagramOutcome::Failed(session, error) => self.fail(session, error),
            DatagramOutcome::Established(established, to, options) => self.open(now, *established, to, options),
            DatagramOutcome::Asked(asked) => {
                let mut named = None;
                let decision = decide(&asked).and_then(|options| {
                    options.check().map_err(|_| Refusal::NoRoom)?;
                    let session = self.name().ok_or(Refusal::NoRoom)?;
                    named = Some(session);
                    let terms =
                        self.setup.terms(&mut self.grants.nodes, session, (asked.receives, asked.sends), options);
                    let ahead = ahead::<C>(&mut self.grants.nodes, now, &asked, &terms, options);
                    Ok((HandshakeTerms { ahead, ..terms }, options))
                });
                let (answer, is_half_open) = self.handshakes.answer(now, asked, decision);
                if let Some(session) = named.filter(|_| !is_half_open) {
                    self.take_back(session);
                }
                self.peers.push_transmit(Transmit::handshake(from, answer));
            }
        }
    }

    /// The session will not open: frees its name, and returns what was promised to it.
    pub(super) fn take_back(&mut self, session: SessionId) {
        self.names.give_back(session);
        self.grants.nodes.forget(session);
    }

    pub(super) fn fail(&mut self, session: SessionId, error: HandshakeError) {
        self.take_back(session);
        self.peers.push(ControlEvent::Failed { session, error });
    }

    /// Keys that seal the packets of a session, also of one that is half open.
    pub(crate) fn keys(&self, session: SessionId) -> Option<&C::Keys> {
        self.peers.get(session).map_or_else(|| self.handshakes.keys(session), |peer| peer.keys.as_ref())
    }

    /// The first packet of a session that is half open has been opened.
    pub(super) fn confirm(&mut self, now: Time, session: SessionId) {
        if let Some((established, options)) = self.handshakes.confirm(now, session)
            && let Some(address) = established.address
        {
            self.open(now, established, address, options);
        }
    }

    /// A session that both ends agreed on.
    fn open(&mut self, now: Time, established: Established<C::Keys>, address: SocketAddr, options: Terms) {
        let opened = Opened::of(&established, address, options.weight);
        let session = opened.session;
        let mut rtt = Rtt::default();
        if let Some(first) = opened.rtt {
            rtt.on_sample(now, first);
        }
        let flow = Flow::new(session, options, opened.rtt.unwrap_or(Duration::ZERO));
        let parts = self.handshakes.attempts() + 1;
        let beginnings = BOTH.map(|direction| established.beginning(direction, parts));
        let mut peer = Peer::new(now, opened, established.keys, rtt, self.setup.probes_mtu);
        self.grants.join(now, &mut peer, flow, beginnings);
        (peer.reset, peer.terms) = (established.reset, options);
        if let Some(reset) = established.reset {
            self.resets.insert(reset.id, session);
        }
        self.peers.open(now, peer);
        self.grants.begin(&mut self.peers, session);
    }
}
