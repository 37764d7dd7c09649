//! GTP on the wire, without a wire: what two hosts say to each other, as plain values that know no socket and no clock.
//!
//! What is here so far is how packets look ([`codec`]) and how a sink measures its sources ([`RateMeter`]). The cores that
//! send and receive come next.

#![cfg_attr(test, allow(non_snake_case))]

pub mod codec;
mod rate_meter;

pub use rate_meter::RateMeter;
