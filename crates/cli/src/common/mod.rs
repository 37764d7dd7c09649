//! What all commands share: failures, quantities, and what is printed where.

pub(crate) mod failure;
pub(crate) mod interrupt;
#[cfg(feature = "transfer")]
mod log;
pub(crate) mod output;
#[cfg(feature = "transfer")]
pub(crate) mod output_args;
pub(crate) mod quantity;
#[cfg(feature = "transfer")]
pub(crate) mod screen;
pub(crate) mod table;
pub(crate) mod terminal;
