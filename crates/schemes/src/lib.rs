//! Every rule of the papers, as plain values that do no I/O: give a rule what it measured and the time, get what it
//! decides. Simulators and the transport drive the same objects.
//!
//! - [`RateAllocator`]: what one end node runs once per control interval ([`node`]).
//! - [`global`]: the max-min fair optimum that every allocation is compared with, and the measures of that comparison.
//! - [`response`]: window against loss rate in closed form.
//! - [`scheme`]: the one list of names, options and header bytes that the command line, scenario files and Python read.
//!
//! Read [`RateAllocator`] and [`scheme::Scheme`] first.

#![cfg_attr(test, allow(non_snake_case))]

mod allocator;
pub mod global;
pub mod header;
pub mod link;
pub mod node;
pub mod response;
pub mod scheme;
pub mod session;

pub use allocator::{Grant, GroupTerms, Interval, Others, RateAllocator, Row};
