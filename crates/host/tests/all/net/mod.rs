//! The host runtime between network namespaces, with hardships on the way: bytes, endings and memory. Rates are tested in
//! virtual time, in `proto` and in `src/driver/tests`. Root is needed; without it these tests say so and do nothing.

#![allow(non_snake_case)]

mod actor;
pub(crate) mod content;
mod floods;
mod hardships;
mod hosts;
mod parts;
mod stops;

use fairwave_wan::world;
