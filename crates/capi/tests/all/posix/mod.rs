//! Each case beside a pair of TCP sockets: what calls give is the same.

#![allow(non_snake_case, unsafe_code, reason = "C's calls take pointers")]

use std::sync::RwLock;

mod api;
mod calls;
mod cases;
mod order;
mod random;

/// A child has copies of the descriptors of all cases, which then do not end: who forks does so alone.
static FORKS: RwLock<()> = RwLock::new(());
