//! A process that others come to: its UDP port, the tickets that it issued, and the one that it hands out.

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::ops::RangeInclusive;
use std::sync::Arc;

use thiserror::Error;

use crate::advertise::{DEFAULT_PORT, advertised};
use crate::carrier::Carrier;
use crate::config::{BindError, EndpointConfig};
use crate::endpoint::Endpoint;
use crate::keyring::{Keyring, Validity};
use crate::state::StateError;
use crate::ticket::{MAX_ADDRESSES, Ticket};

/// The listen address of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Listen {
    /// At one address.
    At(SocketAddr),
    /// At the first of these UDP ports that is free, at all addresses.
    Among(RangeInclusive<u16>),
    /// At all addresses: at the port of the previous run, or [`DEFAULT_PORT`], or any that is free.
    #[default]
    Usual,
}

/// Reason why a server cannot listen.
#[derive(Debug, Error)]
pub enum ListenError {
    /// The one address cannot be bound.
    #[error("{0}")]
    At(BindError),
    /// None of the ports is free.
    #[error("no free port in the range: {0}")]
    Among(BindError),
    /// No port at all can be had.
    #[error("cannot bind a UDP port: {0}")]
    Usual(BindError),
}

impl Listen {
    /// Binds an endpoint here; `known` is the port of the previous run, and `config` has the other options.
    pub fn bind(&self, known: Option<u16>, config: &EndpointConfig) -> Result<Endpoint, ListenError> {
        let bind = |address: SocketAddr| Endpoint::bind(&EndpointConfig { listen: Some(address), ..config.clone() });
        let bind_port = |port: u16| bind(SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)));
        match self {
            Self::At(address) => bind(*address).map_err(ListenError::At),
            Self::Among(ports) => {
                let free = ports.clone().find_map(|port| bind_port(port).ok());
                free.map_or_else(|| bind_port(*ports.end()).map_err(ListenError::Among), Ok)
            }
            Self::Usual => {
                let usual = known.into_iter().chain([DEFAULT_PORT]).find_map(|port| bind_port(port).ok());
                usual.map_or_else(|| bind_port(0).map_err(ListenError::Usual), Ok)
            }
        }
    }
}

/// Options of a server.
#[derive(Clone, Debug, Default)]
pub struct ServerOptions {
    /// Capacities, path and interval; the address is in `listen`.
    pub endpoint: EndpointConfig,
    /// The listen address.
    pub listen: Listen,
    /// Addresses or names, with a port or without, that go into the ticket in place of this machine's own.
    pub advertise: Vec<String>,
    /// How long its ticket is good. `None` is a day, and then a ticket of earlier is handed out again: the one that
    /// lasts longest, if that is an hour or more.
    pub validity: Option<Validity>,
}

/// A server that listens nowhere, or has no ticket to hand out.
#[derive(Debug, Error)]
pub enum ServerError {
    /// It cannot listen.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The keyring cannot be read or written.
    #[error(transparent)]
    State(#[from] StateError),
    /// The system does not say which addresses this machine has.
    #[error("cannot list this machine's addresses: {0}")]
    Addresses(io::Error),
    /// An address to advertise in the ticket is invalid.
    #[error("{text}: {reason}", text = .text.escape_debug())]
    Advertise {
        /// The text of the address.
        text: String,
        /// The system's error.
        reason: String,
    },
}

/// A UDP port, the keyring whose tickets open it, and one of them to be handed out.
pub struct Server {
    /// The port; no visitor is admitted until it [listens](Endpoint::listen_with).
    pub endpoint: Endpoint,
    /// The tickets of the share.
    pub keyring: Arc<Keyring>,
    /// The ticket to be handed out.
    pub ticket: Ticket,
}

impl Server {
    /// Binds a port, also over TCP unless only UDP may carry, and issues a ticket for the keyring's share. The port is
    /// remembered: tickets issued earlier find the same share there after a restart.
    pub fn open(keyring: Keyring, options: &ServerOptions) -> Result<Self, ServerError> {
        let listens_tcp = options.endpoint.carriers.allow(Carrier::Tcp);
        let config = EndpointConfig { listens_tcp, ..options.endpoint.clone() };
        let endpoint = options.listen.bind(keyring.port(), &config)?;
        let local = endpoint.local_addr();
        keyring.keep_port(local.port())?;
        let addresses = addresses(&options.advertise, local)?;
        let ticket = match options.validity {
            // Without special requests, an earlier ticket is reused.
            None => match keyring.again(addresses.clone()) {
                Some(ticket) => ticket,
                None => keyring.issue(Validity::default(), addresses)?,
            },
            Some(validity) => keyring.issue(validity, addresses)?,
        };
        Ok(Self { endpoint, keyring: Arc::new(keyring), ticket })
    }
}

/// The addresses that go into a ticket.
fn addresses(advertise: &[String], local: SocketAddr) -> Result<Vec<SocketAddr>, ServerError> {
    if advertise.is_empty() {
        return advertised(local).map_err(ServerError::Addresses);
    }
    let mut all = Vec::new();
    for text in advertise {
        let found = resolved(text, local.port());
        all.extend(found.map_err(|reason| ServerError::Advertise { text: text.clone(), reason })?);
    }
    all.truncate(MAX_ADDRESSES);
    Ok(all)
}

/// An address or a name, with a port or without.
fn resolved(text: &str, port: u16) -> Result<Vec<SocketAddr>, String> {
    if let Ok(ip) = text.trim_matches(['[', ']']).parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(ip, port)]);
    }
    let has_port = text.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let found = if has_port { text.to_socket_addrs() } else { (text, port).to_socket_addrs() };
    let found: Vec<_> = found.map_err(|error: io::Error| error.to_string())?.collect();
    if found.is_empty() { Err("no address found".into()) } else { Ok(found) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::share_id::ShareId;
    use crate::state::StateDir;

    #[test]
    fn resolved__takes_addresses_and_names() {
        let find = |text: &str| resolved(text, 8642).unwrap();
        assert_eq!(find("192.0.2.7"), ["192.0.2.7:8642".parse().unwrap()]);
        assert_eq!(find("192.0.2.7:9000"), ["192.0.2.7:9000".parse().unwrap()]);
        assert_eq!(find("2001:db8::7"), ["[2001:db8::7]:8642".parse().unwrap()]);
        assert_eq!(find("[2001:db8::7]:9000"), ["[2001:db8::7]:9000".parse().unwrap()]);
        assert!(find("localhost").iter().all(|address| address.ip().is_loopback() && address.port() == 8642));
        assert!(resolved("no such name", 1).is_err());
    }

    fn open(place: &tempfile::TempDir, options: &ServerOptions) -> Server {
        let state = StateDir::at(place.path().join("state")).unwrap();
        Server::open(Keyring::open(state, ShareId(1)).unwrap(), options).unwrap()
    }

    fn here() -> ServerOptions {
        ServerOptions { listen: Listen::At("127.0.0.1:0".parse().unwrap()), ..ServerOptions::default() }
    }

    #[test]
    fn open__hands_out_the_ticket_of_the_last_time_where_nothing_is_asked() {
        let place = tempfile::tempdir().unwrap();
        let [first, again] = [(); 2].map(|()| open(&place, &here()));
        let same = Ticket { addresses: vec![again.endpoint.local_addr()], ..first.ticket };
        assert_eq!(again.ticket, same);
        let day = open(&place, &ServerOptions { validity: Some(Validity::default()), ..here() });
        assert_ne!(day.ticket.id, same.id);
        let once = Validity { is_once: true, ..Validity::default() };
        assert!(open(&place, &ServerOptions { validity: Some(once), ..here() }).ticket.is_once);
        // The one for a single transfer is nobody else's.
        assert!(!open(&place, &here()).ticket.is_once);
    }

    #[test]
    fn open__is_found_at_the_port_of_the_last_time() {
        let place = tempfile::tempdir().unwrap();
        let first = open(&place, &here());
        let port = first.endpoint.local_addr().port();
        first.endpoint.close();
        drop(first);
        let again = open(&place, &ServerOptions::default());
        assert_eq!(again.endpoint.local_addr().port(), port);
        let elsewhere = open(&place, &ServerOptions::default());
        assert_ne!(elsewhere.endpoint.local_addr().port(), port);
    }

    #[test]
    fn open__puts_other_addresses_into_the_ticket_where_they_are_said() {
        let place = tempfile::tempdir().unwrap();
        let advertise = |text: &str| ServerOptions { advertise: vec![text.into()], ..here() };
        let server = open(&place, &advertise("192.0.2.7"));
        let port = server.endpoint.local_addr().port();
        assert_eq!(server.ticket.addresses, [SocketAddr::new("192.0.2.7".parse().unwrap(), port)]);
        let state = StateDir::at(place.path().join("state")).unwrap();
        let keyring = Keyring::open(state, ShareId(1)).unwrap();
        let error = Server::open(keyring, &advertise("no such name")).err().unwrap().to_string();
        assert!(error.starts_with("no such name: "), "{error}");
    }

    #[test]
    fn bind__takes_the_next_port_when_one_is_taken() {
        let config = EndpointConfig::default();
        let first = Listen::Usual.bind(None, &config).unwrap();
        let port = first.local_addr().port();
        let error = Listen::Among(port..=port).bind(None, &config).err().unwrap();
        assert!(matches!(error, ListenError::Among(_)), "{error}");
        let second = Listen::Usual.bind(Some(port), &config).unwrap();
        assert_ne!(second.local_addr().port(), port);
    }
}
