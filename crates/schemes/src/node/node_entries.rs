//! The registry entries of node rules, and the options that all of them take.

use fairwave_units::{Bytes, Duration};

use crate::scheme::NodeRule;
use crate::scheme::entry::{Model, Scheme, SchemeKind, session};
use crate::scheme::option::{HOUR, OptionSpec, TypedOption, time_or};

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
pub const DRIVER_OPTIONS: [OptionSpec; 2] = [INTERVAL.spec(), PHASE.spec()];

/// Control interval of a node rule; `None` is the largest round-trip time of its sessions.
pub const INTERVAL: TypedOption<Option<Duration>> = time_or(
    "interval",
    [Duration::from_millis(1), Duration::from_secs(60)],
    &["rtt"],
    "rtt",
    "control interval of an end node; \"rtt\" is the largest RTT of its sessions, in the packet model \
     at least the time in which each can send a packet",
);
/// Phase of a node rule's ticks; `None` is random.
pub const PHASE: TypedOption<Option<Duration>> = time_or(
    "phase",
    [Duration::ZERO, HOUR],
    &["random"],
    "random",
    "first tick of a node: \"random\" within its interval, or a time after which all nodes tick together",
);

#[cfg(test)]
mod tests {
    use super::super::Charny;
    use super::*;

    #[test]
    fn entry__of_a_rule_that_hosts_do_not_run_is_a_fluid_one() {
        let rule = NodeRule { runs_on_hosts: false, ..NodeRule::new(|_| Box::new(Charny::default())) };
        let scheme = entry("some", "", "", &[], rule);
        assert_eq!((scheme.models, scheme.header, scheme.runs_on_hosts()), (&[Model::Fluid][..], Bytes::ZERO, false));
    }
}
