//! Commands about this machine: its daemon, its sessions, and programs whose connections Fairwave carries.

pub(crate) mod bridge;
pub(crate) mod daemon;
pub(crate) mod doctor;
mod overview;
pub(crate) mod run;
mod shared_node;
pub(crate) mod status;
pub(crate) mod top;
