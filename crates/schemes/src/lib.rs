//! Every rule of the papers, as plain values without I/O: a rule takes measurements and the time, and returns its
//! decision. Simulators and the transport drive the same objects.
//!
//! - [`RateAllocator`]: the rule that an end node runs once per control interval ([`node`]).
//! - [`global`]: the max-min fair optimum, and the distance of an allocation from it.
//! - [`response`]: window as a function of the loss rate in closed form.
//! - [`scheme`]: the one list of names, options and header bytes that the command line, scenario files and Python read.
//!
//! Read [`RateAllocator`] and [`scheme::Scheme`] first.

// Tests may compute what they expect with the system's library.
#![cfg_attr(test, allow(non_snake_case, clippy::disallowed_methods))]

mod allocator;
pub mod global;
pub mod header;
pub mod link;
pub mod node;
pub mod response;
pub mod scheme;
pub mod session;

pub use allocator::{Grant, GroupTerms, Interval, Others, RateAllocator, Row};
