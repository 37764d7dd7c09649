//! The kernel's own TCP, which only the testbed runs.

use crate::scheme::{Model, Scheme, entry};

const NEEDS: &str = "a Linux kernel with this module; only the testbed runs it";

/// The kernel's CUBIC.
pub(super) const CUBIC: Scheme = kernel("kernel:cubic", "CUBIC of the Linux kernel", "RFC 9438");
/// The kernel's NewReno, with selective acknowledgements and RACK.
pub(super) const RENO: Scheme = kernel("kernel:reno", "NewReno of the Linux kernel", "RFC 5681, RFC 6675, RFC 8985");
/// The kernel's BBR: version 1, unless another one is installed.
pub(super) const BBR: Scheme =
    kernel("kernel:bbr", "BBR of the Linux kernel", "Cardwell et al., BBR: Congestion-Based Congestion Control, 2016");

const fn kernel(name: &'static str, help: &'static str, cites: &'static str) -> Scheme {
    Scheme { models: &[Model::Testbed], needs: NEEDS, ..entry::session(name, help, cites) }
}
