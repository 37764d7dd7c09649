//! The rules of one end node.
//!
//! - [`Gtp`]: sessions step towards the target rate, lowest measured rate first (Wu 2007, Algorithms 2 and 3), as
//!   adopted and as printed. docs/explanation/max-min-and-gtp.md explains it in words.
//! - [`Groups`]: GTP over owners, and then over the sessions of each. docs/explanation/max-min-and-gtp.md.
//! - [`OtherMeter`]: the rate of other traffic on a card, which [`Groups`] can treat as one more owner.
//!   docs/explanation/max-min-and-gtp.md.
//! - [`CapacityFinder`]: finds a budget for a node whose real capacity is unknown. docs/explanation/max-min-and-gtp.md.
//! - [`Charny`], [`Hou`]: the switch rules of ATM networks at an end node, which advertise one rate to all sessions.
//!   docs/explanation/abr.md.
//! - [`tally`]: sessions claim, nodes grant capacity that has been released. Two halves with messages, not an
//!   allocator. docs/explanation/tally.md.
//! - [`fair_start()`]: the rate at which a session may start without waiting for the rule.

mod abr;
mod capacity_finder;
mod compensated;
mod drain;
mod fair_start;
mod floors;
mod groups;
mod gtp;
mod order;
mod other_meter;
pub mod tally;

pub use abr::{Charny, Hou};
pub use capacity_finder::{CapacityFinder, PathTotals};
pub use drain::Drain;
pub use fair_start::fair_start;
pub use groups::{Groups, left_to_other};
pub use gtp::{Gtp, Reading};
pub use other_meter::OtherMeter;

use fairwave_units::{Bytes, Duration};
use thiserror::Error;

use crate::RateAllocator;
use crate::scheme::registry::{join, session};
use crate::scheme::{Domain, Model, NodeRule, OptionSpec, Options, Scheme, SchemeKind, find};

/// The rules of end nodes, in the order of lists. A new one is a file here, its `mod` line above and its place in this
/// list: all users find it by its capabilities.
pub(crate) const RULES: &[Scheme] = &[gtp::ADOPTED, gtp::PRINTED, abr::CHARNY, abr::HOU, TALLY];

/// Registry entry of Tally. Drivers run its two halves, also with peers that know no messages; its `make` is plain GTP,
/// which is not used to allocate.
const TALLY: Scheme = Scheme {
    needs: "the rule at every end node of the sessions, and messages between the two ends",
    ..entry(
        "tally",
        "the ends exchange offers and claims; raises come only from capacity that is confirmed free",
        "docs/explanation/tally.md",
        &TALLY_OPTIONS,
        NodeRule {
            keeps_minimum: true,
            exchange: Some(tally::tally_options),
            ..NodeRule::new(|options| Box::new(Gtp::new(Reading::Adopted, options)))
        },
    )
};
const TALLY_OPTIONS: [OptionSpec; 13] = join([OptionSpec { default: "20 ms", ..INTERVAL }, PHASE], tally::OPTIONS);

/// The registry entry of a rule. If hosts run it, its packets have the hosts' headers.
pub(crate) const fn entry(
    name: &'static str,
    help: &'static str,
    cites: &'static str,
    options: &'static [OptionSpec],
    rule: NodeRule,
) -> Scheme {
    let (models, header, ack_header): (&[Model], _, _) = if rule.runs_on_hosts {
        (&[Model::Fluid, Model::Packet, Model::Testbed], HOST_HEADER, HOST_MESSAGE_HEADER)
    } else {
        (&[Model::Fluid], Bytes::ZERO, Bytes::ZERO)
    };
    let node = Some(rule);
    Scheme { kind: SchemeKind::Node, models, options, header, ack_header, node, ..session(name, help, cites) }
}

/// 17 bytes of datagram header, 16 of piece header, 16 of seal and 28 of IP and UDP: 37 bytes more than TCP and IP.
const HOST_HEADER: Bytes = Bytes::new(37);
/// A message has its frames instead of the piece; its header, seal, IP and UDP are 61 bytes.
const HOST_MESSAGE_HEADER: Bytes = Bytes::new(21);

/// The options that say when drivers call a node rule; every node rule takes them.
pub const DRIVER_OPTIONS: [OptionSpec; 2] = [INTERVAL, PHASE];

/// Control interval of a node rule.
const INTERVAL: OptionSpec = OptionSpec {
    name: "interval",
    domain: Domain::Time { least: Duration::from_millis(1), most: Duration::from_secs(60), words: &["rtt"] },
    default: "rtt",
    help: "control interval of an end node; \"rtt\" is the largest RTT of its sessions, in the packet model \
           at least the time in which each can send a packet",
};
/// Phase of a node rule's ticks.
const PHASE: OptionSpec = OptionSpec {
    name: "phase",
    domain: Domain::Time { least: Duration::ZERO, most: Duration::from_secs(3600), words: &["random"] },
    default: "random",
    help: "first tick of a node: \"random\" within its interval, or a time after which all nodes tick together",
};

/// Error of making an allocator. [`NodeError::hint`] has the remedy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NodeError {
    /// The name is not that of a node rule.
    #[error("\"{0}\" is not a node rule")]
    UnknownRule(String),
    /// The rule is two halves that exchange messages, and cannot work from a table of measured rates.
    #[error("the node rule \"{0}\" exchanges messages between the two ends and has no allocator")]
    Exchanges(&'static str),
    /// The rule runs only in the fluid model.
    #[error("the node rule \"{0}\" does not run on hosts")]
    NotOnHosts(&'static str),
}

impl NodeError {
    /// The remedy, in one line.
    pub fn hint(&self) -> String {
        let would_do = |scheme: &&Scheme| match self {
            Self::UnknownRule(_) => true,
            Self::Exchanges(_) => scheme.node.is_some_and(|rule| rule.exchange.is_none()),
            Self::NotOnHosts(_) => scheme.runs_on_hosts(),
        };
        let names: Vec<_> = RULES.iter().filter(would_do).map(|scheme| scheme.name).collect();
        format!("use one of {}", names.join(", "))
    }
}

/// A new allocator of the rule `name` ("gtp", "gtp-printed", "abr-charny", "abr-hou") with the options of one node. A
/// rule that exchanges messages ([`NodeRule::exchange`]) has no allocator.
///
/// Of the options it takes `drain`, `budget` and `exponential_start`. The others are for the driver: `alpha` and `beta`
/// come with every [`crate::Row`], `interval` and `phase` say when to call the rule, `fair_start` ([`fair_start()`])
/// sets a session's first rate.
pub fn allocator(name: &str, options: &Options) -> Result<Box<dyn RateAllocator>, NodeError> {
    let (scheme, rule) = named(name)?;
    if rule.exchange.is_some() { Err(NodeError::Exchanges(scheme.name)) } else { Ok((rule.make)(options)) }
}

/// The node rule of that name, if hosts run it.
pub fn host_rule(name: &str) -> Result<NodeRule, NodeError> {
    let (scheme, rule) = named(name)?;
    if rule.runs_on_hosts { Ok(rule) } else { Err(NodeError::NotOnHosts(scheme.name)) }
}

fn named(name: &str) -> Result<(&'static Scheme, NodeRule), NodeError> {
    let named = find(name).and_then(|scheme| scheme.node.map(|rule| (scheme, rule)));
    named.ok_or_else(|| NodeError::UnknownRule(name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheme::schemes;

    #[test]
    fn allocator__knows_every_listed_node_rule_and_no_other() {
        for scheme in schemes() {
            let made = allocator(scheme.name, &Options::default());
            let is_alone = scheme.node.is_some_and(|rule| rule.exchange.is_none());
            assert_eq!(made.is_ok(), is_alone, "{}", scheme.name);
            assert_eq!(scheme.node.is_some(), scheme.kind == SchemeKind::Node, "{}", scheme.name);
        }
        // GTP must not stand in for a rule that is more than an allocator.
        let error = allocator("tally", &Options::default()).err();
        assert_eq!(error, Some(NodeError::Exchanges("tally")));
        let hint = error.map(|error| error.hint()).unwrap_or_default();
        assert!(hint.ends_with("abr-charny, abr-hou"), "{hint}");
        let error = allocator("GTP", &Options::default()).err().map(|error| error.to_string());
        assert_eq!(error.as_deref(), Some("\"GTP\" is not a node rule"));
    }

    #[test]
    fn host_rule__must_run_on_hosts() {
        for scheme in schemes() {
            assert_eq!(host_rule(scheme.name).is_ok(), scheme.runs_on_hosts(), "{}", scheme.name);
        }
        let error = host_rule("cubic").unwrap_err();
        assert_eq!(error.to_string(), "\"cubic\" is not a node rule");
        assert!(error.hint().starts_with("use one of gtp, gtp-printed, abr-charny, abr-hou"), "{}", error.hint());
        let error = NodeError::NotOnHosts("some");
        assert_eq!(error.to_string(), "the node rule \"some\" does not run on hosts");
        let named = error.hint();
        let named = named.strip_prefix("use one of ").unwrap().split(", ");
        assert!(named.into_iter().all(|name| host_rule(name).is_ok()));
    }

    #[test]
    fn entry__of_a_rule_that_hosts_do_not_run_is_a_fluid_one() {
        let rule = NodeRule { runs_on_hosts: false, ..NodeRule::new(|_| Box::new(Charny::default())) };
        let scheme = entry("some", "", "", &[], rule);
        assert_eq!((scheme.models, scheme.header, scheme.runs_on_hosts()), (&[Model::Fluid][..], Bytes::ZERO, false));
    }
}
