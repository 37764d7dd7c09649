//! From what was counted to a [`Run`](crate::Run): the one place where results are made, whoever counted.
//!
//! There are two ways in. Who keeps running totals at the ends of samples (the packet model, the testbed) hands over
//! [`Counts`] and gets the run ([`run_of`]): rates, the means of the window, the last tenth of every active time, the
//! max-min vector over time, distances and convergence are made here. Who knows those numbers exactly, without samples
//! (the fluid model), hands over [`RunParts`], which is what the other way ends in, too.

mod counts;
mod distances;
mod known;
mod optimum;
mod parts;
#[cfg(test)]
mod tests;
mod totals;

pub use counts::{ClosedCounts, Counts, Recording, SessionCounts, run_of};
pub use distances::DistanceLog;
pub use known::KnownRates;
pub use parts::{RunParts, SessionOutcome, last_tenth};
pub use totals::Totals;
