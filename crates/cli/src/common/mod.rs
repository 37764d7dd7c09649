//! What all commands share: failures, quantities, and what is printed where.

pub(crate) mod blocks;
pub(crate) mod failure;
pub(crate) mod input;
pub(crate) mod interrupt;
mod log;
pub(crate) mod output;
pub(crate) mod output_args;
pub(crate) mod progress;
pub(crate) mod quantity;
pub(crate) mod screen;
pub(crate) mod staging;
pub(crate) mod table;
pub(crate) mod terminal;
