//! The host runtime between network namespaces, with bad networks on the way: bytes, endings and memory. Rates are
//! tested in virtual time, in `proto` and in `src/driver/tests`. These tests need root; without it they report that and
//! pass.

#![allow(non_snake_case)]

mod actor;
mod floods;
mod hardships;
mod hosts;
pub(crate) mod memory_content;
mod parts;
mod stops;

use fairwave_wan::world;
