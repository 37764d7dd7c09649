//! TCP connections of unmodified programs, carried by sessions: one session per connection.
//!
//! - [`Near`] is the end next to the program: listeners on loopback, one for each address that a program may connect
//!   to. The library that `fairwave run` loads into the program (crate `preload`) redirects it to them.
//! - [`Far`] is the end next to the server, which it dials: nothing is loaded there, and nothing else can be reached.
//! - [`fit()`] checks before a program starts whether the library can intercept its `connect`.
//!
//! A connection that is cut is a reset at both ends, never the end of a stream: the sockets of both ends have zero
//! linger time, so that a killed bridge also resets them, and signal the end of a stream by shutting one way down.
//!
//! This crate moves no bytes (`fairwave-pipe` does), and starts no program (the command does).

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

pub use far::{Far, FarOptions, MAX_CONNECTIONS};
pub use fit::{Unfit, fit};
pub use near::{Near, NearOptions, Way};
