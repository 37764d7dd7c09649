//! A wide-area network in user space, between network namespaces of one machine: delay, loss, reordering, duplication,
//! blackholes, an MTU, and a rate that may change, with a queue and marks (ECN). The kernel's own means for that (netem)
//! is missing on many machines.
//!
//! - [`Space`]: a network namespace, a small host of its own. As root, or in a user namespace of its own
//!   ([`become_root`]).
//! - [`Relay`]: a thread that carries packets between the devices ([`Port`]: TUN, or veth for who may not have that) of
//!   several spaces, as their [`Way`]s say, and tells in its [`Report`] how precisely.
//!
//! Nothing here has a name that could stay behind: namespaces and devices end with the process, however it ends.

#![cfg_attr(test, allow(non_snake_case))]

mod relay;
mod root;
mod space;
mod turn;

pub use relay::{Direction, Flow, Port, Relay, Report, Way, address, device, overflows};
pub use root::become_root;
pub use space::{Space, connect, limit};
pub use turn::world;
