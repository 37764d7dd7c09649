//! Properties of a whole network: the max-min fair optimum, and the distance of an allocation from it.
//!
//! [`proportional()`] is the other classic objective. [`max_min()`] allocates the capacities of a [`Problem`] over its sessions (Wu 2007, Algorithm 1); the returned
//! [`MaxMin`] has the rates and finds the limit of each session. [`metrics`] compares an allocation with it.

pub(crate) mod double;
mod filling;
mod index;
mod limit;
mod max_min;
pub mod metrics;
mod pairs;
mod problem;
mod proportional;

pub use limit::Limit;
pub use max_min::{MaxMin, max_min};
pub use problem::{MAX_BPS, MaxMinError, NONE, Paths, PerSession, Problem, WEIGHTS};
pub use proportional::{GAP, Proportional, proportional};
