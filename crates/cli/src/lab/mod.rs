//! Commands of the lab: they simulate networks and measure how close a scheme comes to max-min fairness.

pub(crate) mod allocate;
pub(crate) mod papers;
pub(crate) mod schemes;
pub(crate) mod simulate;
pub(crate) mod sweep;
pub(crate) mod testbed;
