//! BBR version 3: the send rate follows a model of the path, not losses (draft-ietf-ccwg-bbr; "BBR s5.3" in comments is
//! a section of its text of August 2026).
//!
//! The model is a bandwidth, the maximum delivery rate of two probing cycles, and a round-trip time, the minimum of ten
//! seconds, with bounds set by losses and marks: long-term ones, found by probing, and short-term ones, until the next
//! probe. [`Bbr`] is the entry point; read `model.rs` first, then `update.rs`, which has the order of its steps.
//!
//! Deviations from the draft are marked "Ours" with the reason; docs/explanation/path-model.md lists them.

mod aggregation;
mod bandwidth;
mod beside;
mod config;
mod control;
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

pub use config::BbrConfig;
pub use model::Bbr;
pub use state::BbrState;
