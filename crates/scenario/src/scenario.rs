//! A scenario that may be run as it stands.

use std::sync::Arc;

use fairwave_schemes::scheme::{Options, Scheme};
use fairwave_units::{Bytes, Duration, Time};

use crate::{Background, Link, Node, PacketSizes, Router, SessionSpec};

/// A valid scenario: names resolved to indices, ranges and counts spelled out, random draws made from the seed.
/// Nothing after this checks again.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// `[a-z0-9-]+`.
    pub name: String,
    /// One line for people; empty if the file has none.
    pub title: String,
    /// The paper and figure it belongs to; empty if the file has none.
    pub cites: String,
    /// The label of the variant that this is, if the file has variants.
    pub variant: Option<String>,
    /// Where the run ends, counted from its start.
    pub duration: Duration,
    /// Everything random derives from this and a component's name ([`crate::random`]).
    pub seed: u64,
    /// The scheme of all sessions that name none.
    pub scheme: Arc<SchemeChoice>,
    /// Width of a sample.
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
    /// Traffic that is not judged.
    pub background: Vec<Background>,
}

/// A scheme with the options that were named for it.
#[derive(Clone, Debug, PartialEq)]
pub struct SchemeChoice {
    /// The scheme.
    pub scheme: &'static Scheme,
    /// The options that the scenario names; the others have the scheme's defaults.
    pub options: Options,
}

impl Scenario {
    /// The scheme that a session runs.
    pub fn scheme_of<'a>(&'a self, session: &'a SessionSpec) -> &'a SchemeChoice {
        session.scheme.as_deref().unwrap_or(&self.scheme)
    }

    /// "A packet" wherever one is counted in: queues, limits in bandwidth-delay products, RED, rates of links. It is a
    /// full data packet of the scenario's scheme as links carry it.
    pub fn full_packet(&self) -> Bytes {
        self.packet.on_link(self.scheme.scheme)
    }

    /// The instant at which the run ends.
    pub fn end(&self) -> Time {
        Time::ZERO + self.duration
    }

    /// Whether the network's core is free of bottlenecks: no links, end nodes alone.
    pub fn is_lambda(&self) -> bool {
        self.links.is_empty()
    }
}
