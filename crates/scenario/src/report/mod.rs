//! Builds a [`Run`](crate::Run) from counts: the only place where results are made, for all models.
//!
//! There are two inputs. A model that has running totals at the ends of samples (the packet model, the testbed) passes
//! [`Counts`] and gets the run ([`run_of`]): rates, the means of the window, the last tenth of every active time, the
//! max-min vector over time, distances and convergence are computed here. A model that has exact numbers without
//! samples (the fluid model) passes [`RunParts`], which is also the intermediate result of the first way.

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
pub use parts::{RunParts, last_tenth};
pub use totals::Totals;
