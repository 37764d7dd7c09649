//! Commands of the lab: they simulate networks and measure how close a scheme comes to max-min fairness.

pub(crate) mod allocate;
mod blocks;
mod input;
pub(crate) mod league;
pub(crate) mod papers;
mod progress;
pub(crate) mod schemes;
pub(crate) mod simulate;
pub(crate) mod staging;
pub(crate) mod sweep;
#[cfg(feature = "testbed")]
pub(crate) mod testbed;
