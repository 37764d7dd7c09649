//! The registry entries of GTP.

use super::super::groups::Groups;
use super::super::node_entries::entry;
use super::options::OPTIONS;
use super::{Gtp, Reading};
use crate::scheme::NodeRule;
use crate::scheme::entry::Scheme;

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
