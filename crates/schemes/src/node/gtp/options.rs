//! The options of GTP.

use crate::node::node_entries::{INTERVAL, PHASE};
use crate::scheme::option::{CLOSED_UNIT, OptionSpec, TypedOption, UNIT, flag, number, switch, word};

/// All of them, in the order of lists.
pub(super) const OPTIONS: [OptionSpec; 11] = [
    ALPHA.spec(),
    BETA.spec(),
    INTERVAL.spec(),
    PHASE.spec(),
    DRAIN.spec(),
    FAIR_START.spec(),
    BUDGET.spec(),
    EXPONENTIAL_START.spec(),
    PATH.spec(),
    FIND_CAPACITY.spec(),
    WIRE.spec(),
];

/// Wu 2007's alpha.
pub const ALPHA: TypedOption<f64> =
    number("alpha", UNIT, "0.1", "share of the gap to the target rate that is closed per interval");
/// Wu 2007's beta.
pub const BETA: TypedOption<f64> =
    number("beta", CLOSED_UNIT, "0.2", "minimum step, as a share of alpha x target rate");
/// Whether queues drain.
pub const DRAIN: TypedOption<bool> =
    flag("drain", "false", "allocate less while more than the capacity was offered, so that a queue drains");
/// Whether sessions start at their share.
pub const FAIR_START: TypedOption<bool> =
    flag("fair_start", "false", "start at the smaller of both ends' capacity per session instead of initial_rate");
/// Bound of the sum of expected rates.
pub const BUDGET: TypedOption<Option<f64>> = switch(
    "budget",
    [1.05, 1.001, 1e6],
    "false",
    "largest sum of expected rates after one tick, as a multiple of the capacity",
);
/// Share of the target rate below which a session doubles.
pub const EXPONENTIAL_START: TypedOption<Option<f64>> = switch(
    "exponential_start",
    [0.5, 0.001, 1.0],
    "false",
    "a session below this share of its target doubles in each interval",
);
/// "dedicated" or "shared".
pub const PATH: TypedOption<&str> = word(
    "path",
    &["dedicated", "shared"],
    "dedicated",
    "whether the network between the ends is dedicated or shared (packet model)",
);
/// Whether a node finds its capacity.
pub const FIND_CAPACITY: TypedOption<bool> = flag(
    "find_capacity",
    "false",
    "a node whose sessions all lose or queue alike lowers its capacity estimate (packet model)",
);
/// Whether packets are datagrams.
pub const WIRE: TypedOption<bool> =
    flag("wire", "false", "packets are encoded and sealed datagrams instead of values (packet model)");
