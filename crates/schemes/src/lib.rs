//! Every rule of the papers, as plain values without I/O: a rule takes measurements and the time, and returns its
//! decision. Simulators and the transport drive the same objects.
//!
//! - [`RateAllocator`]: the rule that an end node runs once per control interval ([`node`]).
//! - [`global`]: the max-min fair optimum, and the distance of an allocation from it.
//! - [`response`]: window as a function of the loss rate in closed form.
//! - [`scheme`]: the one list of names, options and header bytes that the command line, scenario files and Python read.
//!
//! Read [`RateAllocator`] and [`scheme::Scheme`] first.
//!
//! The optimum of two sessions at a sink of 100 Mb/s, the second one from a source of 30 Mb/s:
//!
//! ```
//! use fairwave_schemes::global::{Paths, Problem, max_min};
//!
//! let capacities_bps = [100e6, 30e6];
//! let paths = Paths::Lists { offsets: &[0, 1, 3], resources: &[0, 0, 1] };
//! let optimum = max_min(&Problem::new(&capacities_bps, paths))?;
//! assert_eq!(optimum.rates_bps, [70e6, 30e6]);
//! # Ok::<(), fairwave_schemes::global::MaxMinError>(())
//! ```

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

pub use allocator::{Grant, Interval, Others, RateAllocator, Row, Terms, TermsError};
