//! Capabilities of an end node's rule.

use std::fmt;

use super::Options;
use crate::RateAllocator;
use crate::node::tally::TallyOptions;

/// Makes a rule for one capacity, with the options of its node.
pub type MakeRule = fn(&Options) -> Box<dyn RateAllocator>;

/// The rule of an end node in the registry: its constructor and its capabilities. Drivers check capabilities, never
/// names.
#[derive(Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each is a claim of its own")]
pub struct NodeRule {
    /// Makes the rule for one capacity, with the options of its node. The allocator of a rule that exchanges messages
    /// is never called: see `exchange`.
    pub make: MakeRule,
    /// For a rule whose two ends exchange claims and grants: the constants of a node with these options. Its drivers
    /// run [`SourceNode`](crate::node::tally::SourceNode) and [`SinkNode`](crate::node::tally::SinkNode) and carry the
    /// messages between them. `None`: the rule is an allocator, and sinks send only their grants.
    pub exchange: Option<fn(&Options) -> TallyOptions>,
    /// Whether a control packet of each session visits every capacity on its path, instead of reports of sinks. Its
    /// driver runs a [`Meter`](crate::node::sperc::Meter) at each; its allocator is never called.
    pub circulates: bool,
    /// Makes the rule over owners, which leaves a part to traffic outside its control ([`RateAllocator::see_other`]);
    /// `None` if there is none.
    pub over_groups: Option<MakeRule>,
    /// Whether hosts run it: in the packet simulator, and on a network. Otherwise only the fluid model does.
    pub runs_on_hosts: bool,
    /// Whether it can use a share of a capacity (`gtp_share`) and leave the rest to other traffic. Otherwise it uses
    /// all of it.
    pub takes_share: bool,
    /// Whether it respects minimum rates ([`Terms::minimum`](crate::Terms::minimum)).
    pub keeps_minimum: bool,
    /// Whether its sessions have to declare their demands ([`Terms::desired`](crate::Terms::desired)); otherwise measured
    /// rates suffice.
    pub needs_claims: bool,
}

impl NodeRule {
    /// A rule that hosts and the fluid model run, which uses the whole capacity and only measured rates.
    pub const fn new(make: MakeRule) -> Self {
        Self {
            make,
            exchange: None,
            circulates: false,
            over_groups: None,
            runs_on_hosts: true,
            takes_share: false,
            keeps_minimum: false,
            needs_claims: false,
        }
    }

    /// Whether it is an allocator: it works from a table of measured rates.
    pub const fn is_allocator(&self) -> bool {
        self.exchange.is_none() && !self.circulates
    }

    /// Capabilities and requirements in words.
    pub fn words(&self) -> Vec<&'static str> {
        let all = [
            (self.runs_on_hosts, "runs on hosts"),
            (self.takes_share, "takes a share"),
            (self.keeps_minimum, "keeps minimum rates"),
            (self.needs_claims, "needs claims"),
            (self.exchange.is_some(), "exchanges claims and grants"),
            (self.circulates, "circulates control packets"),
            (self.over_groups.is_some(), "yields to other traffic"),
        ];
        all.into_iter().filter(|(can, _)| *can).map(|(_, words)| words).collect()
    }
}

/// Rules with equal capabilities are equal: functions have no identity.
impl PartialEq for NodeRule {
    fn eq(&self, other: &Self) -> bool {
        self.words() == other.words()
    }
}

impl fmt::Debug for NodeRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NodeRule").field(&self.words()).finish()
    }
}
