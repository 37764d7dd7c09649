//! Tally: the two ends of a session exchange offers and claims, and a node raises a rate only out of capacity that has
//! been released. docs/explanation/tally.md explains it in words, and lists what is proved.
//!
//! - [`Fill`], [`settle()`], [`caps()`]: the arithmetic of one node, pure functions, at most one sort each.
//! - [`SourceNode`], [`SinkNode`]: the two halves, with messages as values ([`ClaimMessage`], [`GrantMessage`]). They
//!   have no clock: the time is an argument.
//! - [`SharedNode`]: one capacity that the sessions of several processes share, each with its own half, which reports
//!   the [`Standing`] of its sessions.
//!
//! If the other end runs plain GTP, `open_plain` opens a session at either half; docs/explanation/tally.md explains the
//! consequences.
//!
//! Drivers deliver the messages, with any delay and in any order, and may lose some: the sum of the rates of a node
//! never exceeds its capacity by more than [`TallyOptions::headroom`] (plus a twentieth at a sink with sessions of
//! plain GTP).

mod by_group;
mod caps;
mod claimant;
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
mod with_gtp;

pub use by_group::weigh_by_group;
pub use caps::caps;
pub use claimant::{Capped, Claimant};
pub use fill::Fill;
pub use message::{ClaimMessage, ClaimTo, GrantMessage, GrantTo, Promise, SessionTerms};
pub use options::TallyOptions;
pub(super) use scheme::SCHEME;
pub use scheme::{DECLARED, LATE, LOSS, REACT};
pub use settle::{Settling, settle};
pub use shared::{SharedKind, SharedNode, SharedRow};
pub use sink::SinkNode;
pub use source::SourceNode;
pub use standing::Standing;
