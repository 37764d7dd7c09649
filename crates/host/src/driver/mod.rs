//! The driver of the cores: a thread, a socket and timers.

mod address;
mod attempts;
mod carried;
mod clock;
mod entry;
mod framing;
mod inbox;
mod outbox;
mod overflow;
mod pace;
mod publish;
mod returns;
mod run;
mod setup;
mod socket;
#[cfg(test)]
mod tests;
mod tunnel;
mod tunnels;
mod visits;
mod watch;

pub(crate) use run::Driver;
pub(crate) use socket::grow;
