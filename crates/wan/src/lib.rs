//! A wide-area network in user space, between network namespaces of one machine: delay, loss, reordering, duplication,
//! blackholes, an MTU, and a variable rate, with a queue and marks (ECN). The kernel's netem is missing on many
//! machines.
//!
//! - [`Space`]: a network namespace, which acts as a small host. As root, or in a user namespace ([`become_root`]).
//! - [`Relay`]: a thread that carries packets between the devices ([`Port`]: TUN, or veth for users who may not open
//!   TUN) of several spaces, according to their [`Way`]s, and reports its precision in its [`Report`].
//!
//! No names are left behind: namespaces and devices end with the process, however it ends.

#![cfg_attr(test, allow(non_snake_case))]

mod relay;
mod root;
mod space;
mod turn;

pub use relay::{Direction, Flow, Port, Relay, Report, Way, address, device, overflows};
pub use root::become_root;
pub use space::{Space, limit};
pub use turn::world;
