//! The max-min optimum against the definition, against exact arithmetic, and against the numbers of the papers.

#![allow(non_snake_case, unreachable_pub, missing_docs)]

mod definition;
mod errors;
mod exact;
mod instance;
mod large;
mod papers_examples;
mod properties;
mod rate_limits;
