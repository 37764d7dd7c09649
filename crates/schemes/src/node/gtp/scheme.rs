//! The registry entries of GTP.

use super::super::entry::{INTERVAL, PHASE, entry};
use super::super::groups::Groups;
use super::{Gtp, Reading};
use crate::scheme::NodeRule;
use crate::scheme::entry::Scheme;
use crate::scheme::option::{CLOSED_UNIT, Domain, OptionSpec, UNIT, flag, number};

/// Registry entry of the adopted reading.
pub(in crate::node) const ADOPTED: Scheme = Scheme {
    needs: NEEDS,
    ..entry(
        "gtp",
        "end nodes share their capacity max-min fairly by measured rates; converges exactly",
        "Wu 2007, Algorithms 2 and 3, with the repaired step",
        &OPTIONS,
        NodeRule {
            takes_share: true,
            keeps_minimum: true,
            over_groups: Some(|options| Box::new(Groups::new(Reading::Adopted, options))),
            ..NodeRule::new(|options| Box::new(Gtp::new(Reading::Adopted, options)))
        },
    )
};
/// Registry entry of the printed reading.
pub(in crate::node) const PRINTED: Scheme = Scheme {
    needs: NEEDS,
    ..entry(
        "gtp-printed",
        "the same rule exactly as printed: it cycles around the fair shares",
        "Wu 2007, Algorithms 2 and 3",
        &OPTIONS,
        NodeRule {
            takes_share: true,
            keeps_minimum: true,
            over_groups: Some(|options| Box::new(Groups::new(Reading::Printed, options))),
            ..NodeRule::new(|options| Box::new(Gtp::new(Reading::Printed, options)))
        },
    )
};
const NEEDS: &str = "the rule at every end node of the sessions";
const OPTIONS: [OptionSpec; 11] = [
    number("alpha", UNIT, "0.1", "share of the gap to the target rate that is closed per interval"),
    number("beta", CLOSED_UNIT, "0.2", "minimum step, as a share of alpha x target rate"),
    INTERVAL,
    PHASE,
    flag("drain", "false", "allocate less while more than the capacity was offered, so that a queue drains"),
    flag("fair_start", "false", "start at the smaller of both ends' capacity per session instead of initial_rate"),
    OptionSpec {
        name: "budget",
        domain: Domain::Switch { usual: 1.05, least: 1.001, most: 1e6 },
        default: "false",
        help: "largest sum of expected rates after one tick, as a multiple of the capacity",
    },
    OptionSpec {
        name: "exponential_start",
        domain: Domain::Switch { usual: 0.5, least: 0.001, most: 1.0 },
        default: "false",
        help: "a session below this share of its target doubles in each interval",
    },
    OptionSpec {
        name: "path",
        domain: Domain::Word(&["dedicated", "shared"]),
        default: "dedicated",
        help: "whether the network between the ends is dedicated or shared (packet model)",
    },
    flag(
        "find_capacity",
        "false",
        "a node whose sessions all lose or queue alike lowers its capacity estimate (packet model)",
    ),
    flag("wire", "false", "packets are encoded and sealed datagrams instead of values (packet model)"),
];
