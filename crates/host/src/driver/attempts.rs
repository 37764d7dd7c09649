//! Sessions that this endpoint wants to open.

use std::collections::VecDeque;
use std::net::{SocketAddr, SocketAddrV6};
use std::num::NonZeroU32;

use crossbeam_channel::Sender;
use fairwave_proto::codec::{CloseReason, SessionId};
use fairwave_proto::handshake::HandshakeError;
use fairwave_proto::{Host, OpenRequest, tunnel_of};
use fairwave_units::{Duration, Time};

use super::address::canonical;
use super::returns;
use super::socket::Socket;
use super::tunnel::{Broken, Tunnel};
use super::tunnels::Tunnels;
use crate::carrier::{Carrier, Carriers};
use crate::config::TUNNELS_AFTER;
use crate::connect::{ConnectError, ConnectOptions};
use crate::crypto::{Noise, NoiseInitiator};
use crate::handler::Handler;
use crate::interface::zones;
use crate::keyring::id_text;
use crate::orders::Call;
use crate::session::Session;

/// Attempts to open sessions. Addresses are tried in turn, with overlap; if none answers soon, other ways to the peer
/// are tried.
pub(crate) struct Attempts {
    attempts: Vec<PendingConnect>,
    /// When to try tunnels where UDP has not been answered.
    tunnels_after: Duration,
}

struct PendingConnect {
    call: Call,
    left: VecDeque<Way>,
    /// One for each way that was tried.
    sessions: Vec<(SessionId, SocketAddr)>,
    /// TCP connections that are being opened.
    connecting: Vec<NonZeroU32>,
    began: Time,
    tunnels_after: Duration,
    next: Option<Time>,
    /// The last attempt's error.
    error: ConnectError,
}

/// A way to the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Udp(SocketAddr),
    Tcp(SocketAddr),
    /// By an existing tunnel, at this address.
    Tunnel(SocketAddr),
}

impl Way {
    fn is_tunnel(&self) -> bool {
        matches!(self, Self::Tcp(_) | Self::Tunnel(_))
    }
}

/// The parts of a requested session.
pub(crate) struct ConnectWanted {
    pub(crate) handler: Box<dyn Handler>,
    pub(crate) reply: Sender<Result<Session, ConnectError>>,
}

/// Links on which an address without a zone is tried.
const MAX_ZONES: usize = 8;
// RFC 8305 s5: the next address after 250 ms.
const BETWEEN_ADDRESSES: Duration = Duration::from_millis(250);

impl Attempts {
    pub(super) fn new(tunnels_after: Duration) -> Self {
        Self { attempts: Vec::new(), tunnels_after }
    }

    pub(super) fn begin(&mut self, now: Time, socket: &Socket, tunnels: &Tunnels, carriers: Carriers, call: Call) {
        let addresses = in_turns(&call.to.addresses, zones);
        let udp = addresses.iter().filter_map(|address| socket.reach(*address)).map(Way::Udp);
        let tcp = addresses.iter().copied().map(Way::Tcp);
        let ssh = tunnels.of_ssh().map(|tunnel| Way::Tunnel(tunnel.address));
        // A client with an ssh to the other end uses no other way if UDP is blocked.
        let tcp = tcp.filter(|_| tunnels.of_ssh().next().is_none());
        let udp = udp.filter(|_| carriers.allow(Carrier::Udp));
        let tunnels = ssh.filter(|_| carriers.allow(Carrier::Ssh)).chain(tcp.filter(|_| carriers.allow(Carrier::Tcp)));
        let left: VecDeque<_> = udp.chain(tunnels).collect();
        let is_back = call.proof.is_some();
        tracing::debug!(ticket = %id_text(call.to.id), ways = ?left, is_back, "connects");
        let error = ConnectError::NoAddress;
        let (sessions, connecting, next) = (Vec::new(), Vec::new(), Some(now));
        let tunnels_after = self.tunnels_after;
        self.attempts.push(PendingConnect { call, left, sessions, connecting, began: now, tunnels_after, next, error });
    }

    /// Tries the ways whose time has come.
    pub(super) fn handle_timeout(&mut self, now: Time, host: &mut Host<Noise>, tunnels: &mut Tunnels) {
        self.attempts.retain_mut(|attempt| {
            while attempt.next.is_some_and(|next| next <= now) {
                attempt.try_next(now, host, tunnels);
            }
            let is_over = attempt.sessions.is_empty() && attempt.left.is_empty() && attempt.connecting.is_empty();
            if is_over {
                // The caller may be gone.
                let _ = attempt.call.reply.send(Err(attempt.error.clone()));
            }
            !is_over
        });
    }

    pub(super) fn next_timeout(&self) -> Option<Time> {
        self.attempts.iter().filter_map(|attempt| attempt.next).min()
    }

    /// A session is open: whose it is, if it was wanted here. The others of its attempt are given up.
    pub(super) fn opened(
        &mut self,
        now: Time,
        session: SessionId,
        host: &mut Host<Noise>,
        tunnels: &mut Tunnels,
    ) -> Option<ConnectWanted> {
        let index = self.attempts.iter().position(|attempt| attempt.address_of(session).is_some())?;
        let attempt = self.attempts.swap_remove(index);
        let PendingConnect { sessions, connecting, call: Call { handler, reply, .. }, .. } = attempt;
        for (other, address) in sessions.into_iter().filter(|(other, _)| *other != session) {
            tracing::debug!(address = %canonical(address), "abandoned: another route was faster");
            host.close(now, other, CloseReason::Done);
            if let Some(number) = tunnel_of(address).filter(|number| tunnels.get(*number).is_some_and(Tunnel::is_tcp)) {
                tunnels.end(number, Broken::Slower);
            }
        }
        for number in connecting {
            tunnels.end(number, Broken::Slower);
        }
        Some(ConnectWanted { handler, reply })
    }

    /// An attempt at one address has failed. The next is tried at once.
    pub(super) fn failed(
        &mut self,
        now: Time,
        session: SessionId,
        error: HandshakeError,
        host: &mut Host<Noise>,
        tunnels: &mut Tunnels,
    ) {
        let attempt = self.attempts.iter_mut().find(|attempt| attempt.address_of(session).is_some());
        if let Some(attempt) = attempt {
            tracing::info!(address = ?attempt.address_of(session).map(canonical), %error, "no session");
            attempt.sessions.retain(|(other, _)| *other != session);
            if matches!(error, HandshakeError::Refused(_)) {
                // A refusal holds for every way.
                attempt.left.retain(|way| matches!(way, Way::Udp(_)));
            }
            // A refusal is more informative than silence at another address.
            let says_little = matches!(attempt.error, ConnectError::NoAddress | ConnectError::Tunnel(_));
            if says_little || error != HandshakeError::NoAnswer {
                attempt.error = error.into();
            }
            attempt.next = Some(now);
        }
        self.handle_timeout(now, host, tunnels);
    }

    /// A TCP connection that somebody here wanted is open.
    pub(super) fn connected(&mut self, now: Time, number: NonZeroU32, host: &mut Host<Noise>, tunnels: &mut Tunnels) {
        let Some(address) = tunnels.get(number).map(|tunnel| tunnel.address) else { return };
        if let Some(attempt) = self.attempts.iter_mut().find(|attempt| attempt.connecting.contains(&number)) {
            attempt.connecting.retain(|other| *other != number);
            attempt.say_hello(now, address, host);
        }
        self.handle_timeout(now, host, tunnels);
    }

    /// A tunnel is over: sessions not yet open on it fail.
    pub(super) fn tunnel_over(
        &mut self,
        now: Time,
        number: NonZeroU32,
        why: &Broken,
        host: &mut Host<Noise>,
        tunnels: &mut Tunnels,
    ) {
        for attempt in &mut self.attempts {
            let is_there = |address: SocketAddr| tunnel_of(address) == Some(number);
            let of_tunnel = attempt.sessions.iter().filter(|(_, address)| is_there(*address));
            let lost: Vec<_> = of_tunnel.map(|(session, _)| *session).collect();
            if lost.is_empty() && !attempt.connecting.contains(&number) {
                continue;
            }
            for session in lost {
                host.close(now, session, CloseReason::Done);
            }
            attempt.sessions.retain(|(_, address)| !is_there(*address));
            attempt.connecting.retain(|other| *other != number);
            if attempt.error == ConnectError::NoAddress {
                attempt.error = ConnectError::Tunnel(why.to_string());
            }
        }
        self.handle_timeout(now, host, tunnels);
    }
}

impl PendingConnect {
    fn address_of(&self, session: SessionId) -> Option<SocketAddr> {
        self.sessions.iter().find(|(other, _)| *other == session).map(|(_, address)| *address)
    }

    fn try_next(&mut self, now: Time, host: &mut Host<Noise>, tunnels: &mut Tunnels) {
        self.next = None;
        let patience = self.began.saturating_add(TUNNELS_AFTER);
        if self.left.front().is_some_and(Way::is_tunnel) && now < patience && self.is_answered(host) {
            self.next = Some(patience);
            return;
        }
        let Some(way) = self.left.pop_front() else { return };
        match way {
            Way::Udp(address) | Way::Tunnel(address) => self.say_hello(now, address, host),
            Way::Tcp(address) => match tunnels.connect(now, address) {
                Ok(number) => {
                    tracing::info!(%address, "trying TCP");
                    self.connecting.push(number);
                }
                Err(error) => {
                    if self.error == ConnectError::NoAddress {
                        self.error = ConnectError::Tunnel(format!("TCP: {error}"));
                    }
                }
            },
        }
        self.next = self.left.front().map(|next| {
            let soon = now.saturating_add(BETWEEN_ADDRESSES);
            if next.is_tunnel() && !way.is_tunnel() {
                soon.max(self.began.saturating_add(self.tunnels_after))
            } else {
                soon
            }
        });
    }

    /// Whether anybody has answered one of its hellos, if only with a cookie.
    fn is_answered(&self, host: &Host<Noise>) -> bool {
        self.sessions.iter().any(|(session, _)| host.is_answered(*session))
    }

    fn say_hello(&mut self, now: Time, address: SocketAddr, host: &mut Host<Noise>) {
        let crypto = NoiseInitiator::new(&self.call.to);
        let ConnectOptions { sends, receives, ref greeting, options } = self.call.options;
        let greeting = returns::greeting(self.call.proof.as_ref(), greeting);
        match host.connect(now, address, crypto, &OpenRequest { sends, receives, greeting: &greeting, options }) {
            Ok(session) => {
                tracing::info!(address = %canonical(address), is_tunnel = tunnel_of(address).is_some(), "tries");
                self.sessions.push((session, address));
            }
            Err(error) => self.error = ConnectError::Options(error.to_string()),
        }
    }
}

/// The families take turns, IPv6 first (RFC 8305 s4). An address of a link has no zone in a ticket, where that would mean
/// nothing: it is tried on each link here.
fn in_turns(addresses: &[SocketAddr], zones: impl Fn() -> Vec<u32>) -> Vec<SocketAddr> {
    let with_zones = |address: &SocketAddr| match address {
        SocketAddr::V6(v6) if v6.ip().is_unicast_link_local() && v6.scope_id() == 0 => {
            let on = |zone| SocketAddrV6::new(*v6.ip(), v6.port(), 0, zone).into();
            zones().into_iter().take(MAX_ZONES).map(on).collect()
        }
        address => vec![*address],
    };
    let all: Vec<SocketAddr> = addresses.iter().flat_map(with_zones).collect();
    let (v6, v4): (Vec<_>, Vec<_>) = all.iter().partition(|address| address.is_ipv6());
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
        assert_eq!(in_turns(&given, Vec::new), of(&["[2001:db8::1]:1", "10.0.0.1:1", "10.0.0.2:1"]));
        // Of a ticket, an address of a link is tried on each link of this host.
        let tried = in_turns(&of(&["[fe80::1]:1", "[fe80::2%9]:1"]), || vec![2, 5]);
        assert_eq!(tried, of(&["[fe80::1%2]:1", "[fe80::1%5]:1", "[fe80::2%9]:1"]));
    }
}
