//! The kernel's own TCP: what it runs is the system's, and the testbed alone has it.

use crate::scheme::{Model, Scheme, registry};

const NEEDS: &str = "a Linux kernel with this module; only the testbed runs it";

/// CUBIC as the kernel has it.
pub(super) const CUBIC: Scheme = kernel("kernel:cubic", "CUBIC of the Linux kernel", "RFC 9438");
/// NewReno as the kernel has it, with selective acknowledgements and RACK.
pub(super) const RENO: Scheme = kernel("kernel:reno", "NewReno of the Linux kernel", "RFC 5681, RFC 6675, RFC 8985");
/// BBR as the kernel has it: version 1, unless somebody put another one in.
pub(super) const BBR: Scheme =
    kernel("kernel:bbr", "BBR of the Linux kernel", "Cardwell et al., BBR: Congestion-Based Congestion Control, 2016");

const fn kernel(name: &'static str, help: &'static str, cites: &'static str) -> Scheme {
    Scheme { models: &[Model::Testbed], needs: NEEDS, ..registry::session(name, help, cites) }
}
