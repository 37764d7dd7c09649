//! The packet-level simulator: exact, deterministic, one simulation a thread.
//!
//! Read [`event_queue`] and [`wire`] first: a FIFO link with constant delay needs one pending event, not one a packet.

#![cfg_attr(test, allow(non_snake_case))]

mod constant;
mod engine;
mod event_queue;
mod line;
mod link;
mod log;
mod offer;
mod packet;
mod ranges;
mod receiver;
mod report;
mod route;
mod rtt;
mod scoreboard;
mod sender;
mod simulator;
mod wire;

pub use engine::{Settings, SimError, simulate};
