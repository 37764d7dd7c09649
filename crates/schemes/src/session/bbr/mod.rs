//! BBR of the third kind: the path's rate by a model of the path, not by loss (draft-ietf-ccwg-bbr; "BBR s5.3" in the
//! comments below here is a section of its text of August 2026, version 3 of the algorithm).
//!
//! The model is a bandwidth, the largest delivery rate of two probing cycles, and a round-trip time, the least of ten
//! seconds, with bounds that loss and marks draw: long-term ones, found by probing, and short-term ones, until the next
//! probe. [`Bbr`] is the whole of it; read `model.rs` first, then `update.rs`, which has the order of its steps.
//!
//! Where it differs from the draft, it says "Ours" and why; docs/explanation/path-model.md has the list.

mod aggregation;
mod bandwidth;
mod beside;
mod config;
mod control;
mod controller;
mod cycle;
mod delivery;
mod full_pipe;
mod loss_floor;
mod loss_window;
mod losses;
mod made_up;
mod marks;
mod min_rtt;
mod model;
mod neighbours;
mod probe_bw;
mod probe_rtt;
mod rounds;
mod short_term;
mod slowdown;
mod start_by_window;
mod startup;
mod state;
mod undo;
mod update;

#[cfg(test)]
mod tests;

pub use config::BbrConfig;
pub(super) use controller::SCHEME;
pub use model::Bbr;
pub use state::BbrState;
