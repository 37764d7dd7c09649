//! The quantities of Fairwave: [`Time`] and [`Duration`] in integer nanoseconds, [`Rate`] in bits per second,
//! [`Bytes`]. They parse from text with a unit ("500 Mb/s", "60 ms", "1.5 kB") and print the same way.
//!
//! This crate is not a general unit library: it knows the quantities that cross an interface of Fairwave, and no
//! others. It has no dependencies. Arithmetic that leaves a type's range is an error or a panic, never a wrap.
//!
//! Read [`Rate`] and [`Time`] first.
//!
//! ```
//! use fairwave_units::{Bytes, Duration, Rate};
//!
//! let rate: Rate = "500 Mb/s".parse()?;
//! let size: Bytes = "1 GB".parse()?;
//! assert_eq!(rate.time_for(size), Some(Duration::from_secs(16)));
//! assert_eq!(rate.to_string(), "500 Mb/s");
//! # Ok::<(), fairwave_units::ParseError>(())
//! ```

#![cfg_attr(test, allow(non_snake_case))]

mod bytes;
mod number;
mod parse_error;
mod rate;
mod time;

pub use bytes::Bytes;
pub use parse_error::{ParseError, ParseProblem};
pub use rate::{InvalidRate, Rate};
pub use time::{Duration, Time};
