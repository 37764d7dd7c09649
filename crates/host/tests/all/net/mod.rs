//! The host runtime between namespaces of the network, with hardships on the way. Root is needed; without it these
//! tests say so and do nothing.

#![allow(non_snake_case)]

mod actor;
mod content;
mod floods;
mod hardships;
mod hosts;
mod many;
mod parts;
mod stops;

use fairwave_wan::world;
