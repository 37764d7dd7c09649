//! Sessions that this endpoint wants to open.

use std::collections::VecDeque;
use std::net::SocketAddr;

use crossbeam_channel::Sender;
use fairwave_proto::codec::{CloseReason, SessionId};
use fairwave_proto::handshake::HandshakeError;
use fairwave_proto::{Host, OpenRequest};
use fairwave_units::{Duration, Time};

use super::address::canonical;
use super::returns;
use super::socket::Socket;
use crate::connect::{ConnectError, ConnectOptions};
use crate::crypto::{Noise, NoiseInitiator};
use crate::handler::Handler;
use crate::keyring::id_text;
use crate::orders::Call;
use crate::session::Session;

/// Addresses are tried one after the other, and side by side.
#[derive(Default)]
pub(crate) struct Attempts {
    attempts: Vec<PendingConnect>,
}

struct PendingConnect {
    call: Call,
    left: VecDeque<SocketAddr>,
    /// One for each address that was tried.
    sessions: Vec<(SessionId, SocketAddr)>,
    next: Option<Time>,
    /// What the last one failed of.
    error: ConnectError,
}

/// What goes with a session that was wanted.
pub(crate) struct ConnectWanted {
    pub(crate) handler: Box<dyn Handler>,
    pub(crate) reply: Sender<Result<Session, ConnectError>>,
}

// RFC 8305 s5: the next address after 250 ms.
const BETWEEN_ADDRESSES: Duration = Duration::from_millis(250);

impl Attempts {
    pub(crate) fn begin(&mut self, now: Time, socket: &Socket, call: Call) {
        let left: VecDeque<_> =
            in_turns(&call.to.addresses).into_iter().filter_map(|address| socket.reach(address)).collect();
        let is_back = call.proof.is_some();
        tracing::debug!(ticket = %id_text(call.to.id), addresses = ?left, is_back, "connects");
        let error = ConnectError::NoAddress;
        let (sessions, next) = (Vec::new(), Some(now));
        self.attempts.push(PendingConnect { call, left, sessions, next, error });
    }

    /// Tries the addresses whose time has come.
    pub(crate) fn handle_timeout(&mut self, now: Time, host: &mut Host<Noise>) {
        self.attempts.retain_mut(|attempt| {
            while attempt.next.is_some_and(|next| next <= now) {
                attempt.try_next(now, host);
            }
            let is_over = attempt.sessions.is_empty() && attempt.left.is_empty();
            if is_over {
                // Who asked may be gone.
                let _ = attempt.call.reply.send(Err(attempt.error.clone()));
            }
            !is_over
        });
    }

    pub(crate) fn next_timeout(&self) -> Option<Time> {
        self.attempts.iter().filter_map(|attempt| attempt.next).min()
    }

    /// A session is open: whose it is, if it was wanted here. The others of its attempt are given up.
    pub(crate) fn opened(&mut self, now: Time, session: SessionId, host: &mut Host<Noise>) -> Option<ConnectWanted> {
        let index = self.attempts.iter().position(|attempt| attempt.address_of(session).is_some())?;
        let PendingConnect { sessions, call: Call { handler, reply, .. }, .. } = self.attempts.swap_remove(index);
        for (other, address) in sessions.into_iter().filter(|(other, _)| *other != session) {
            tracing::debug!(address = %canonical(address), "given up: another address was faster");
            host.close(now, other, CloseReason::Done);
        }
        Some(ConnectWanted { handler, reply })
    }

    /// An attempt at one address has failed. The next is tried at once.
    pub(crate) fn failed(&mut self, now: Time, session: SessionId, error: HandshakeError, host: &mut Host<Noise>) {
        let attempt = self.attempts.iter_mut().find(|attempt| attempt.address_of(session).is_some());
        if let Some(attempt) = attempt {
            tracing::info!(address = ?attempt.address_of(session).map(canonical), %error, "no session");
            attempt.sessions.retain(|(other, _)| *other != session);
            // That one says more than silence at another address.
            if attempt.error == ConnectError::NoAddress || error != HandshakeError::NoAnswer {
                attempt.error = error.into();
            }
            attempt.next = Some(now);
        }
        self.handle_timeout(now, host);
    }
}

impl PendingConnect {
    fn address_of(&self, session: SessionId) -> Option<SocketAddr> {
        self.sessions.iter().find(|(other, _)| *other == session).map(|(_, address)| *address)
    }

    fn try_next(&mut self, now: Time, host: &mut Host<Noise>) {
        self.next = None;
        let Some(address) = self.left.pop_front() else { return };
        let crypto = NoiseInitiator::new(&self.call.to);
        let ConnectOptions { sends, receives, ref greeting, options } = self.call.options;
        let greeting = returns::greeting(self.call.proof.as_ref(), greeting);
        match host.connect(now, address, crypto, &OpenRequest { sends, receives, greeting: &greeting, options }) {
            Ok(session) => {
                tracing::info!(address = %canonical(address), "tries");
                self.sessions.push((session, address));
            }
            Err(error) => self.error = ConnectError::Wish(error.to_string()),
        }
        self.next = (!self.left.is_empty()).then(|| now.saturating_add(BETWEEN_ADDRESSES));
    }
}

/// The families take turns, IPv6 first (RFC 8305 s4). Without a zone, addresses of a link lead nowhere.
fn in_turns(addresses: &[SocketAddr]) -> Vec<SocketAddr> {
    let is_usable = |address: &&SocketAddr| match address {
        SocketAddr::V6(v6) => !v6.ip().is_unicast_link_local() || v6.scope_id() != 0,
        SocketAddr::V4(_) => true,
    };
    let (v6, v4): (Vec<_>, Vec<_>) = addresses.iter().filter(is_usable).partition(|address| address.is_ipv6());
    let longest = v6.len().max(v4.len());
    let mut turns: Vec<SocketAddr> = Vec::new();
    for address in (0..longest).flat_map(|at| [v6.get(at), v4.get(at)]).flatten() {
        if !turns.contains(address) {
            turns.push(*address);
        }
    }
    turns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_turns__v6_first_and_each_once() {
        let of = |text: &[&str]| -> Vec<SocketAddr> { text.iter().map(|text| text.parse().unwrap()).collect() };
        let given = of(&["10.0.0.1:1", "10.0.0.2:1", "[2001:db8::1]:1", "[fe80::1]:1", "10.0.0.1:1"]);
        assert_eq!(in_turns(&given), of(&["[2001:db8::1]:1", "10.0.0.1:1", "10.0.0.2:1"]));
    }
}
