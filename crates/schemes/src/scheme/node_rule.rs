//! What the rule of an end node can do, as those that drive it need to know.

use std::fmt;

use super::Options;
use crate::RateAllocator;
use crate::node::tally::TallyOptions;

/// Makes a rule for one capacity, with the options of its node.
pub type MakeRule = fn(&Options) -> Box<dyn RateAllocator>;

/// The rule of an end node in the list of schemes: how one is made, and what it can do. Drivers ask for these, never
/// for a name.
#[derive(Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each is a claim of its own")]
pub struct NodeRule {
    /// Makes the rule for one capacity, with the options of its node. Of a rule that exchanges messages nobody
    /// asks it for an allocation: see `exchange`.
    pub make: MakeRule,
    /// Of a rule whose two ends tell each other claims and grants: the constants of one node with these options. Its
    /// drivers run [`SourceNode`](crate::node::tally::SourceNode) and [`SinkNode`](crate::node::tally::SinkNode) and
    /// carry the messages between them. `None`: the rule is an allocator, and sinks tell their grants alone.
    pub exchange: Option<fn(&Options) -> TallyOptions>,
    /// Makes the same rule over owners, which leaves a part to traffic that no grant holds
    /// ([`RateAllocator::see_other`]); `None` where there is none.
    pub over_groups: Option<MakeRule>,
    /// Whether hosts run it: packet by packet in the simulator, and on a wire. Else the fluid model alone does.
    pub runs_on_hosts: bool,
    /// Whether it can do with a share of a capacity (`gtp_share`) and leave the rest to other traffic. Else it has all
    /// of it.
    pub takes_share: bool,
    /// Whether it keeps to minimum rates ([`Row::minimum`](crate::Row::minimum)).
    pub keeps_minimum: bool,
    /// Whether its sessions have to claim what they want ([`Row::desired`](crate::Row::desired)); else measured rates
    /// do.
    pub needs_claims: bool,
}

impl NodeRule {
    /// A rule that hosts run as well as the fluid model, which has the whole capacity and looks at measured rates
    /// alone.
    pub const fn new(make: MakeRule) -> Self {
        Self {
            make,
            exchange: None,
            over_groups: None,
            runs_on_hosts: true,
            takes_share: false,
            keeps_minimum: false,
            needs_claims: false,
        }
    }

    /// What it can do and needs, in words.
    pub fn words(&self) -> Vec<&'static str> {
        let all = [
            (self.runs_on_hosts, "runs on hosts"),
            (self.takes_share, "takes a share"),
            (self.keeps_minimum, "keeps minimum rates"),
            (self.needs_claims, "needs claims"),
            (self.exchange.is_some(), "exchanges claims and grants"),
            (self.over_groups.is_some(), "yields to other traffic"),
        ];
        all.into_iter().filter(|(can, _)| *can).map(|(_, words)| words).collect()
    }
}

/// Two rules are the same if they can do the same: functions have no identity.
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
