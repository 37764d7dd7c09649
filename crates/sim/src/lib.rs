//! The packet-level simulator: packet by packet, exact to the nanosecond, deterministic, one simulation a thread.
//!
//! It drives the window-based rules of `fairwave_schemes::session`: one sender and one receiver machine serve them all.
//! What makes it fast: a FIFO link needs no event of its own. When a packet reaches a link, its departure is known, and
//! so is its arrival behind the propagation that follows; it waits there in a ring whose head alone is a pending event.
//! The event queue holds a handful of entries, one a ring and a few timers, however many packets are in flight.
//!
//! Read [`simulate`] first, then `simulator.rs` (the loop), `source.rs` (what sends), `transmitter.rs` (the arithmetic
//! of a link) and `scoreboard.rs` (what a sender knows).

#![cfg_attr(test, allow(non_snake_case))]

mod background;
mod card;
mod constant;
mod controlled;
mod delay_log;
mod delayed_ack;
mod deliveries;
mod engine;
mod event_queue;
mod flow;
mod gtp;
mod jitter;
mod link;
mod log;
mod messages;
mod on_off;
mod pacer;
mod packet;
mod packet_gaps;
mod pipe;
mod ranges;
mod rated;
mod rbudp;
mod receiver;
mod red_queue;
mod report;
mod route;
mod rtt;
mod scoreboard;
mod sender;
mod simulator;
mod source;
mod token_bucket;
mod tracer;
mod transmitter;
mod udt;
mod web;
mod window_source;

#[doc(hidden)]
pub use engine::simulate_naive;
pub use engine::{SimError, is_fluid_only, simulate};
pub use fairwave_scenario::{Record, Settings};
