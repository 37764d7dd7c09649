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
#[allow(dead_code, reason = "the example of that name uses it, too, each a part")]
mod relay;
mod relay_itself;
#[allow(dead_code, reason = "the relay's example uses it, too, each a part")]
mod space;
mod stops;
mod turn;

use turn::world;
