//! A host, its sessions and their peers.

pub(crate) mod address;
pub(crate) mod alarms;
pub(crate) mod closing;
pub(crate) mod config;
pub(crate) mod control;
pub(crate) mod control_event;
pub(crate) mod end_nodes;
pub(crate) mod event;
pub(crate) mod grants;
pub(crate) mod hold;
pub(crate) mod host;
pub(crate) mod lasts;
pub(crate) mod opened;
pub(crate) mod pause;
pub(crate) mod peer;
pub(crate) mod peers;
pub(crate) mod rates;
pub(crate) mod rtt;
pub(crate) mod secure_random;
pub(crate) mod slots;
