//! TCP connections of programs that know nothing of Fairwave, carried by sessions: a session a connection.
//!
//! - [`Near`] is the end beside the program: doors on loopback, one for each address that a program may ask for. The
//!   library that `fairwave run` loads into the program (crate `preload`) leads it to them.
//! - [`Far`] is the end beside the server, which it dials: nothing is loaded there, and nothing else can be reached.
//! - [`fit()`] says before a program starts whether the library can stand before its `connect`.
//!
//! A connection that is cut is a reset at both ends, never the end of a stream: the sockets of both ends linger for no
//! time, so that also a bridge that is killed resets them, and say the end of a stream by shutting one way down.
//!
//! What this crate is not: it moves no bytes (`fairwave-pipe` does), and starts no program (the command does).

#![cfg_attr(test, allow(non_snake_case))]

mod connection;
mod elf;
mod far;
mod fit;
mod hello;
mod near;
#[path = "../../preload/src/plan.rs"]
#[allow(dead_code, reason = "this end writes it, the library reads it")]
mod plan;
#[path = "../../preload/src/preamble.rs"]
#[allow(dead_code, reason = "the library says it, this end hears it")]
mod preamble;
mod unknown;

pub use far::{Far, FarOptions, MOST_CONNECTIONS};
pub use fit::{Unfit, fit};
pub use near::{Near, NearOptions, Way};
