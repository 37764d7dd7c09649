//! What drives the cores: a thread, a socket and timers.

mod address;
mod attempts;
mod clock;
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

pub(crate) use run::Driver;
