//! What drives the cores: a thread, a socket and timers.

mod attempts;
mod clock;
mod commands;
mod entry;
mod inbox;
mod outbox;
mod overflow;
mod returns;
mod run;
mod setup;
mod socket;
#[cfg(test)]
mod tests;
mod visits;
mod watch;

pub use commands::Command;
pub(crate) use commands::{Bell, Commands};
pub use returns::Proof;
pub(crate) use run::Driver;
pub(crate) use setup::{Call, Order, Shared};
