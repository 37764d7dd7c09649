//! Hosts with endpoints, behind a relay.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use fairwave_host::{
    Accept, ConnectOptions, Endpoint, EndpointConfig, Identity, Keyring, Lasts, PathKind, Session, ShareId, Terms,
    Ticket, Validity,
};
use fairwave_testing::LIMIT;
use fairwave_units::Rate;

use crate::net::memory_content::{Giver, Taker, Tally};
use fairwave_wan::Space;
use fairwave_wan::{Port, Relay, Way, address};

/// Hosts, each in a separate namespace.
pub(crate) struct Hosts {
    pub(crate) relay: Relay,
    pub(crate) spaces: Vec<Space>,
}

/// Which end of a session does what.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Initiator {
    Takes,
    Gives,
}

/// A transfer from memory to memory: host 0 opened it, to host 1.
pub(crate) struct Run {
    pub(crate) session: Session,
    pub(crate) tally: Arc<Tally>,
    pub(crate) ends: [Endpoint; 2],
}

/// The port of servers.
const PORT: u16 = 9000;

impl Hosts {
    /// So many, whose packets take `delay` each way.
    pub(crate) fn new(count: usize, seed: u64, delay: Duration) -> Self {
        let spaces: Vec<_> = (0..count).map(|_| Space::new().expect("checked before")).collect();
        let ports = spaces.iter().enumerate().map(|(port, space)| Port::new(space, port, 1500).expect("root may"));
        let relay = Relay::start(ports.collect(), seed).expect("a thread is left");
        relay.set_both(0, Way::delay(delay));
        Self { relay, spaces }
    }

    /// An endpoint of a host.
    pub(crate) fn endpoint(&self, host: usize, config: &EndpointConfig) -> Endpoint {
        self.spaces[host].run(|| Endpoint::bind(config)).expect("a thread is left").expect("the port is free")
    }

    /// An endpoint of a host that lets in who has the ticket.
    pub(crate) fn serve(
        &self,
        host: usize,
        config: &EndpointConfig,
        is_ipv6: bool,
        accept: Accept,
    ) -> (Endpoint, Ticket) {
        let listen = SocketAddr::new(address(host, 1, is_ipv6), PORT);
        let any = if is_ipv6 { "[::]:9000" } else { "0.0.0.0:9000" };
        let endpoint =
            self.endpoint(host, &EndpointConfig { listen: Some(any.parse().expect("an address")), ..config.clone() });
        let ticket = open(&endpoint, listen, accept);
        (endpoint, ticket)
    }

    /// Begins a transfer of `length` bytes between hosts 0 and 1.
    pub(crate) fn transfer(&self, initiator: Initiator, is_ipv6: bool, length: u64, config: &EndpointConfig) -> Run {
        let (taker, tally) = Taker::new(length);
        let initiator_gives = initiator == Initiator::Gives;
        let (mut here, mut there): (Box<dyn fairwave_host::Handler>, Box<dyn fairwave_host::Handler>) =
            (Box::new(taker), Box::new(Giver));
        if initiator_gives {
            std::mem::swap(&mut here, &mut there);
        }
        let mut there = Some(there);
        let accept: Accept = Box::new(move |_| {
            let handler = there.take().ok_or(fairwave_host::Refusal::UnknownName)?;
            Ok((Terms::default(), handler))
        });
        let (server, ticket) = self.serve(1, config, is_ipv6, accept);
        let client = self.endpoint(0, config);
        let request = ConnectOptions {
            sends: initiator_gives,
            receives: !initiator_gives,
            greeting: Vec::new(),
            options: Terms::default(),
        };
        let session = client.connect(&ticket, request, here).expect("the server is there");
        Run { session, tally, ends: [client, server] }
    }
}

/// Lets in who has the ticket that comes back.
pub(crate) fn open(endpoint: &Endpoint, address: SocketAddr, accept: Accept) -> Ticket {
    let keyring = Arc::new(Keyring::in_memory(Identity::random().expect("random bytes"), ShareId(0)));
    let validity = Validity { lasts_s: None, is_once: false };
    let ticket = keyring.issue(validity, vec![address]).expect("nothing is written");
    endpoint.listen(keyring, accept);
    ticket
}

/// Both ends know what they may use, and nobody else is on the path. Sessions and attempts do not end because the machine is
/// busy.
pub(crate) fn dedicated(capacity_mbps: f64) -> EndpointConfig {
    let capacity = Some(Rate::mbps(capacity_mbps));
    let limit = fairwave_units::Duration::from_secs(LIMIT.as_secs());
    EndpointConfig {
        send_capacity: capacity,
        receive_capacity: capacity,
        path: PathKind::Dedicated,
        lasts: Lasts { silent: limit, opening: limit, ..Lasts::default() },
        ..EndpointConfig::default()
    }
}
