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
//! - [`sperc`]: control packets circulate over all capacities of a path, links included; a referee for the others.
//! - [`fair_start()`]: the rate at which a session may start without waiting for the rule.

mod abr;
mod capacity_finder;
mod compensated;
mod drain;
mod fair_start;
mod floors;
mod groups;
mod gtp;
mod list;
mod make;
mod node_entries;
mod order;
mod other_meter;
pub mod sperc;
pub mod tally;

pub use abr::{Charny, Hou};
pub use capacity_finder::{CapacityFinder, PathTotals};
pub use drain::Drain;
pub use fair_start::fair_start;
pub use groups::{Groups, left_to_other};
pub use gtp::options as gtp_options;
pub use gtp::{Gtp, Reading};
pub(crate) use list::RULES;
pub use make::{NodeError, allocator, host_rule};
pub(crate) use node_entries::entry;
pub use node_entries::{DRIVER_OPTIONS, INTERVAL, PHASE};
pub use other_meter::OtherMeter;
