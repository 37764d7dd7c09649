//! The transport's model of a path: BBR's draft and amendments, one file each with its reason.
//!
//! [`Path`] is the entry point; `amendments.rs` has the steps at which they act, `switches.rs` their list.

mod aggregation;
mod amendments;
mod catch_up;
mod compete;
mod foreign_queue;
mod late_losses;
mod loss_window;
mod losses;
mod marks;
mod neighbours;
mod reports;
mod rtt_probe;
mod scheme;
mod slowdown;
mod start;
mod switches;

#[cfg(test)]
mod tests;

use fairwave_units::{Bytes, Duration, Time};

use super::bbr::{Bbr, BbrConfig};
use amendments::Amendments;
pub(super) use scheme::SCHEME;
pub use switches::Switches;

/// A model of a path with amendments.
pub type Path = Bbr<Amendments>;

/// What is known of a path at the start, and its amendments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathConfig {
    /// The model's.
    pub model: BbrConfig,
    /// Minimum time between reports of arrivals; zero if each packet is acknowledged immediately.
    pub report_every: Duration,
    /// The amendments that are on.
    pub amendments: Switches,
}

impl PathConfig {
    /// For packets of that size, acknowledged one by one, with all amendments.
    pub fn new(packet: Bytes) -> Self {
        Self { model: BbrConfig::new(packet), report_every: Duration::ZERO, amendments: Switches::default() }
    }

    /// The model of a path that is used from `now` on.
    pub fn path(self, now: Time) -> Path {
        let amendments = Amendments::new(self.amendments, now, self.report_every);
        Bbr::amended(now, self.model, amendments.constants(), amendments)
    }
}
