//! Tally: the two ends of a session tell each other offers and claims, and a node raises a rate only out of capacity
//! that nobody holds any more. docs/explanation/tally.md explains it in words, and says what is proved.
//!
//! - [`Fill`], [`settle()`], [`caps()`]: the arithmetic of one node, pure functions, at most one sort each.
//! - [`SourceNode`], [`SinkNode`]: the two halves, with messages as values ([`ClaimMessage`], [`GrantMessage`]). They
//!   have no clock: time comes in.
//! - [`SharedNode`]: one capacity that the sessions of several processes share, each with its own half, which says where
//!   its sessions stand ([`Standing`]).
//!
//! Where the other end runs plain GTP, `open_plain` opens a session at either half; what it means stands in docs/explanation/tally.md.
//!
//! Whoever drives them carries the messages, however late and in whatever order, and may lose some: the sum of the
//! rates of a node never exceeds its capacity by more than [`TallyOptions::headroom`]
//! (a sink with sessions of plain GTP: by a twentieth more).

mod beside_gtp;
mod by_group;
mod caps;
mod fill;
mod gauge;
mod headroom;
mod lease;
mod message;
mod near;
mod options;
mod plain_step;
#[cfg(test)]
mod rest_points;
mod rows;
mod scheme;
mod settle;
mod shared;
mod sink;
mod source;
mod stamp;
mod standing;
#[cfg(test)]
mod tests;
mod water;

pub use by_group::weigh_by_group;
pub use caps::{Capped, caps};
pub use fill::{Claimant, Fill};
pub use message::{ClaimMessage, ClaimTo, GrantMessage, GrantTo, Promise, SessionTerms};
pub use options::TallyOptions;
pub use scheme::react;
pub(super) use scheme::{OPTIONS, tally_options};
pub use settle::{Settling, settle};
pub use shared::{SharedGrant, SharedGroup, SharedKind, SharedNode, SharedRow};
pub use sink::SinkNode;
pub use source::SourceNode;
pub use standing::{Standing, StandingGrant};
