//! Shared parts of the commands that move files.

pub(crate) mod choice;
pub(crate) mod connecting;
pub(crate) mod far_tunnel;
pub(crate) mod follow;
pub(crate) mod link;
mod log;
pub(crate) mod meter;
pub(crate) mod monitor;
pub(crate) mod name;
pub(crate) mod offer;
pub(crate) mod own_places;
pub(crate) mod patience;
pub(crate) mod screen;
pub(crate) mod ticket;
