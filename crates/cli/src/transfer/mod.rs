//! Commands that move bytes, and their shared parts.

pub(crate) mod bench;
mod choice;
mod connecting;
pub(crate) mod cp;
mod far_tunnel;
mod follow;
pub(crate) mod get;
mod growing;
pub(crate) mod link;
pub(crate) mod ls;
mod meter;
pub(crate) mod monitor;
mod name;
pub(crate) mod offer;
mod own_places;
mod patience;
pub(crate) mod pipe_ends;
pub(crate) mod put;
pub(crate) mod serve;
pub(crate) mod ticket;
