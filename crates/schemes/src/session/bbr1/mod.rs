//! BBR version 1, as in Linux (net/ipv4/tcp_bbr.c; Cardwell et al., ACM Queue 2016): a maximum bandwidth and a minimum
//! round-trip time, and no answer to loss except in the first round trip of a recovery.
//!
//! [`Bbr1`] is the entry point. Where the kernel's own machinery decides (segmentation offload, delays of the pacing
//! layer), the lab has none of it, and the code says so.

mod bbr1_window;
mod cycle;
mod min_rtt;
mod model;
mod policer;
mod scheme;

#[cfg(test)]
mod tests;

pub use model::{Bbr1, Bbr1Mode};
pub(super) use scheme::SCHEME;
