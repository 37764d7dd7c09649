//! The packet-level simulator: exact to the nanosecond, deterministic, one simulation per thread.
//!
//! It drives the window-based rules of `fairwave_schemes::session`: one sender and one receiver machine serve them all.
//! It is fast because a FIFO link needs no separate event: when a packet reaches a link, its departure is known, and so
//! is its arrival after the propagation that follows; it waits there in a ring of which only the head is a pending
//! event. The event queue holds a handful of entries, one per ring and a few timers, for any number of packets in
//! flight.
//!
//! Read [`simulate`] first, then `simulator.rs` (the loop), `transit.rs` (packets on their way), `source.rs` (the
//! sources), `transmitter.rs` (the arithmetic of a link) and `scoreboard.rs` (a sender's knowledge).

// Tests may compute what they expect with the system's library.
#![cfg_attr(test, allow(non_snake_case, clippy::disallowed_methods))]

mod agenda;
mod background;
mod card;
mod closing_window;
mod conditions;
mod constant;
mod constant_source;
mod contents;
mod controlled;
mod delay_log;
mod delayed_ack;
mod deliveries;
mod engine;
mod error;
mod event;
mod event_queue;
mod flow;
mod flows;
mod gtp;
mod homa;
mod homa_hosts;
mod jitter;
mod kind;
mod kinds;
mod link;
mod log;
mod messages;
mod netblt;
mod on_off;
mod pacer;
mod packet;
mod packet_gaps;
mod pending_timer;
mod propagation;
mod queue;
mod queued;
mod rack;
mod ranges;
mod rated;
mod rated_source;
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
mod transit;
mod transmitter;
mod udt;
mod web;
mod window_sink;
mod window_source;

#[doc(hidden)]
pub use engine::simulate_naive;
pub use engine::{is_fluid_only, simulate};
pub use error::SimError;
pub use fairwave_scenario::{Record, Settings};
