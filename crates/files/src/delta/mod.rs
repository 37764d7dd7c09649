//! Only the changed parts of a file: its content in chunks, and those of them that the destination's older file has.
//!
//! The giver cuts each block of a file into content-defined chunks and lists them on request (`chunks`). The taker cuts
//! the file that is at the destination in the same way (`base`), copies what is listed and known, and requests the
//! rest. A block made of both is verified by its hash like any other.

pub(crate) mod base;
pub(crate) mod chunks;
