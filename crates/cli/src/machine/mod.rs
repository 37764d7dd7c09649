//! Commands about this machine: its daemon, its sessions, and programs whose connections Fairwave carries.

#[cfg(feature = "linux")]
pub(crate) mod bridge;
#[cfg(feature = "linux")]
pub(crate) mod daemon;
pub(crate) mod doctor;
mod overview;
#[cfg(feature = "linux")]
pub(crate) mod run;
mod shared_node;
pub(crate) mod status;
pub(crate) mod top;
