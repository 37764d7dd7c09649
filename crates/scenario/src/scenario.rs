//! A scenario that is ready to run.

use std::sync::Arc;

use fairwave_units::{Bytes, Duration, Time};

use crate::{Background, Link, Node, PacketSizes, Router, SchemeChoice, SessionSpec};

/// A valid scenario: names resolved to indices, ranges and counts expanded, random draws made from the seed. Later
/// stages do not check it again.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// `[a-z0-9-]+`.
    pub name: String,
    /// One line for users; empty if the file has none.
    pub title: String,
    /// The paper and figure that it reproduces; empty if the file has none.
    pub cites: String,
    /// The label of its variant, if the file has variants.
    pub variant: Option<String>,
    /// Length of the run.
    pub duration: Duration,
    /// The seed, from which with a component's name all random numbers derive ([`crate::random`]).
    pub seed: u64,
    /// The scheme of all sessions that set none.
    pub scheme: Arc<SchemeChoice>,
    /// Length of a sample.
    pub sample: Duration,
    /// Sizes of packets.
    pub packet: PacketSizes,
    /// End nodes.
    pub nodes: Vec<Node>,
    /// Sessions, in the order of the file.
    pub sessions: Vec<SessionSpec>,
    /// Routers; empty in a lambda network.
    pub routers: Vec<Router>,
    /// Links, one direction each; empty in a lambda network.
    pub links: Vec<Link>,
    /// Background traffic.
    pub background: Vec<Background>,
}

impl Scenario {
    /// The scheme that a session runs.
    pub fn scheme_of<'a>(&'a self, session: &'a SessionSpec) -> &'a SchemeChoice {
        session.scheme.as_deref().unwrap_or(&self.scheme)
    }

    /// The size of "a packet" as a unit: of queues, limits in bandwidth-delay products, RED, rates of links. It is a
    /// full data packet of the scenario's scheme on a link.
    pub fn full_packet(&self) -> Bytes {
        self.packet.on_link(self.scheme.scheme)
    }

    /// The instant at which the run ends.
    pub fn end(&self) -> Time {
        Time::ZERO + self.duration
    }

    /// Whether the network's core is free of bottlenecks: no links, only end nodes.
    pub fn is_lambda(&self) -> bool {
        self.links.is_empty()
    }
}
