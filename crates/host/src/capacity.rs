//! The send and receive capacity of a host, as far as it can be determined.

use std::fmt;
use std::net::IpAddr;

use fairwave_units::Rate;
use serde::{Deserialize, Serialize};

use crate::interface::{InterfaceAddress, card_speed, default_routes, route_to};
use crate::membership::{NodeFacts, NodeOrigin};

/// Share of a card's speed that is used: the rest is for frames around IP packets, and for what else runs.
const CARD_SHARE: f64 = 0.95;

/// Max sum of minimum rates as a share of a capacity, so that sessions without one still get some.
pub const MAX_MINIMA: f64 = 0.9;

/// The capacity of a host's end node in one direction, and where it is known from.
#[derive(Clone, Debug, PartialEq)]
pub struct Capacity {
    /// Rate of IP packets; `None` if unknown: then only the model of the path governs, and no fair shares are promised.
    pub rate: Option<Rate>,
    /// The source of this value.
    pub origin: CapacityOrigin,
}

/// The source of a capacity value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CapacityOrigin {
    /// Somebody said it.
    Said,
    /// The speed of the network card of this name, which leads to the peer.
    Card(String),
    /// The interface of this name leads to the peer, but reports no credible speed.
    NoSpeed(String),
    /// No interface leads there.
    NoRoute,
    /// The daemon at this socket, for all sessions of this machine.
    Daemon(String),
    /// The daemon is gone: what it granted last, and less each minute.
    Orphan,
    /// A daemon ran here and is gone: what others still have is not known.
    Gone,
}

impl Capacity {
    /// The capacity of this host: what somebody said; else of the network card that leads to the peer, or to the world
    /// while no peer is known; else unknown.
    pub fn find(said: Option<Rate>, peer: Option<IpAddr>) -> Self {
        let found = if said.is_some() {
            Self { rate: said, origin: CapacityOrigin::Said }
        } else {
            let route = peer.map_or_else(|| default_routes().next(), route_to);
            Self::of_route(route, card_speed)
        };
        tracing::info!("capacity of this end node: {found}");
        found
    }

    /// The speed of the network card that leads to a peer.
    pub fn towards(peer: IpAddr) -> Self {
        Self::of_route(route_to(peer), card_speed)
    }

    /// Send and receive rates of a process whose own capacity is this one, given the present state of its end node.
    pub fn at(&self, node: &NodeFacts) -> [Self; 2] {
        let socket = || node.socket.as_ref().map_or_else(String::new, |socket| socket.display().to_string());
        let origin = match node.origin {
            NodeOrigin::Own => return [self.clone(), self.clone()],
            NodeOrigin::Daemon => CapacityOrigin::Daemon(socket()),
            NodeOrigin::Orphan => CapacityOrigin::Orphan,
            NodeOrigin::Path => CapacityOrigin::Gone,
        };
        [node.send, node.receive].map(|rate| Self { rate, origin: origin.clone() })
    }

    fn of_route(route: Option<InterfaceAddress>, speed: impl Fn(&str) -> Option<Rate>) -> Self {
        let Some(InterfaceAddress { name, .. }) = route else {
            return Self { rate: None, origin: CapacityOrigin::NoRoute };
        };
        match speed(&name) {
            Some(speed) => Self { rate: Some(speed * CARD_SHARE), origin: CapacityOrigin::Card(name) },
            None => Self { rate: None, origin: CapacityOrigin::NoSpeed(name) },
        }
    }
}

impl fmt::Display for Capacity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rate {
            Some(rate) => write!(f, "{rate:.2} ({})", self.origin),
            None => write!(f, "unknown ({}): fair shares are not guaranteed", self.origin),
        }
    }
}

impl fmt::Display for CapacityOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Said => f.write_str("--capacity"),
            Self::Card(name) => write!(f, "95 % of the speed of {name}"),
            Self::NoSpeed(name) => write!(f, "{name} reports no speed"),
            Self::NoRoute => f.write_str("no route"),
            Self::Daemon(socket) => write!(f, "from the daemon at {socket}"),
            Self::Orphan => f.write_str("last grant of the daemon, reduced by a tenth each minute until it returns"),
            Self::Gone => f.write_str("the daemon has stopped"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn find__what_somebody_said_goes_first() {
        let said = Capacity::find(Some(Rate::mbps(5.0)), Some(Ipv4Addr::LOCALHOST.into()));
        assert_eq!(said, Capacity { rate: Some(Rate::mbps(5.0)), origin: CapacityOrigin::Said });
        assert_eq!(said.to_string(), "5.00 Mb/s (--capacity)");
    }

    #[test]
    fn find__loopback_has_no_speed() {
        let found = Capacity::find(None, Some(Ipv4Addr::LOCALHOST.into()));
        assert_eq!(found, Capacity { rate: None, origin: CapacityOrigin::NoSpeed("lo".into()) });
        assert_eq!(found.to_string(), "unknown (lo reports no speed): fair shares are not guaranteed");
    }

    #[test]
    fn of_route__leaves_a_twentieth_of_a_cards_speed() {
        let route = InterfaceAddress {
            name: "eno1".into(),
            ip: Ipv4Addr::new(192, 0, 2, 7).into(),
            is_loopback: false,
            is_connected: true,
        };
        let found = Capacity::of_route(Some(route), |_| Some(Rate::gbps(10.0)));
        // 9.5 = 10 x 0.95
        assert_eq!(found.rate, Some(Rate::gbps(9.5)));
        assert_eq!(found.to_string(), "9.50 Gb/s (95 % of the speed of eno1)");
        let none = Capacity::of_route(None, |_| Some(Rate::gbps(10.0)));
        assert_eq!(none, Capacity { rate: None, origin: CapacityOrigin::NoRoute });
    }
}
