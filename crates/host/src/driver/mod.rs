//! What drives the cores: threads, sockets and timers.

mod commands;

pub(crate) use commands::{Command, Commands};
