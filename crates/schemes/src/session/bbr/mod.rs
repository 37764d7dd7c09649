//! BBR version 3: the send rate follows a model of the path, not losses (draft-ietf-ccwg-bbr; "BBR s5.3" in comments is
//! a section of its text of August 2026).
//!
//! The model is a bandwidth, the maximum delivery rate of two probing cycles, and a round-trip time, the minimum of ten
//! seconds, with bounds set by losses: long-term ones, found by probing, and short-term ones, until the next probe.
//! [`Bbr`] is the entry point; read `model.rs` first, then `steps.rs`, which has the order of the steps, and `amend.rs`,
//! which has the points at which a scheme may change them. This folder is the draft and nothing else; where its text and
//! its pseudocode differ, the code follows the pseudocode and says so.

mod aggregation;
mod amend;
mod bandwidth;
mod bbr_state;
mod config;
mod cycle;
mod delivery;
mod full_pipe;
mod long_term;
mod max_filter;
mod min_rtt;
mod model;
mod probe_rtt;
mod recovery;
mod round_count;
mod scheme;
mod short_term;
mod steps;
mod undo;
mod window;
#[cfg(test)]
pub(super) mod world;

#[cfg(test)]
mod tests;

pub(super) use aggregation::Aggregation;
pub use amend::{Amend, Draft};
pub(super) use bandwidth::Bandwidth;
pub use bbr_state::BbrState;
pub use config::BbrConfig;
pub(super) use config::{BETA, Constants, PACING_SHARE};
pub(super) use cycle::AckPhase;
pub(super) use max_filter::MaxFilter;
pub(super) use model::Model;
pub(super) use model::rate_of;
pub(super) use round_count::RoundCount;
pub(super) use scheme::SCHEME;
pub(super) use short_term::ShortTerm;
pub use steps::Bbr;
