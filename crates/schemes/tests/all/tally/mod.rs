//! Tally, message by message: the two halves in random networks with real delays, loss, late messages, restarts and
//! outages. Loads and reserved rates are checked at every instant, the rates at the end against the max-min optimum.
//!
//! The counts are small here. The long run:
//!
//! ```text
//! FAIRWAVE_TALLY=10000 cargo test --release -p fairwave-schemes --test all tally:: -- --nocapture
//! ```
//!
//! A failure names its seed; `FAIRWAVE_SEED=17 FAIRWAVE_TALLY=1` and the test's name replay it.

#![allow(non_snake_case, missing_docs, unreachable_pub)]

mod cases;
mod drawn_worlds;
mod families;
mod search;
mod tally_network;
mod tally_optimum;
mod traps;
mod two_weights;
mod world;
