//! The rules of one link, one file each: what its queue does with the congestion headers of the packets that pass.
//!
//! A rule hears of every packet that reaches its queue, of every packet that leaves it, and of the time. Packets of
//! schemes that it does not know are bytes to it. How much may wait, and what is dropped, is the queue's own business.

mod aecp;
mod aecp_theory;
mod make;
mod rcp;
mod vcp;
mod xcp;
mod xcp_equilibrium;

use fairwave_units::{Rate, Time};

use crate::header::{CongestionHeader, LinkId};
use crate::scheme::{Options, Scheme, registry};

pub use aecp::{AecpConfig, AecpLink, aecp_control};
pub use aecp_theory::{aecp_delay_margin_s, aecp_efficiency_s, aecp_fairness_printed_s, aecp_fairness_s, logistic};
pub use make::link_controller;
pub use rcp::{RcpConfig, RcpLink};
pub use vcp::{VcpConfig, VcpLink};
pub use xcp::{XcpConfig, XcpKind, XcpLink, XcpPools, xcp_control};
pub use xcp_equilibrium::{XcpEquilibrium, xcp_equilibrium};

/// The rules of links, with the sessions that obey them, in the order in which lists show them.
pub(crate) const SCHEMES: &[Scheme] = &[
    xcp::SCHEME,
    xcp::ENDPOINT,
    xcp::IMPROVED,
    xcp::SCALED,
    vcp::SCHEME,
    aecp::SCHEME,
    rcp::SCHEME,
    // Known by name alone: nothing runs it yet.
    registry::link(
        "jetmax",
        "the most congested link sets the fair rate and counts its limited sessions",
        "Zhang et al. 2008",
        20,
    ),
];

/// Makes the rule of a link, with the options that were named for its scheme.
pub type MakeLinkController = fn(&Options, &LinkSetup) -> Box<dyn LinkController>;

/// What one link runs.
pub trait LinkController: Send {
    /// A packet reaches the queue; whether it will be dropped does not matter.
    fn on_arrival(&mut self, passage: &Passage, header: Option<&CongestionHeader>);

    /// A packet leaves the queue, onto the wire.
    fn on_departure(&mut self, passage: &Passage, header: Option<&mut CongestionHeader>);

    /// When [`LinkController::on_timer`] has to come next.
    fn next_timer(&self) -> Time;

    /// The time that was asked for has come; `queue_bytes` wait.
    fn on_timer(&mut self, now: Time, queue_bytes: u64);
}

/// A packet at a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Passage {
    /// When it arrives or leaves.
    pub now: Time,
    /// Its bytes on the wire.
    pub bytes: u32,
    /// Whether it is a data packet; acknowledgements only count as bytes.
    pub is_data: bool,
    /// Bytes that wait when it arrives, without it; when it leaves, with it: zero where it did not have to wait.
    pub queue_bytes: u64,
}

/// The link that a rule is for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkSetup {
    /// Its name in headers.
    pub id: LinkId,
    /// Its capacity, finite and above zero.
    pub capacity: Rate,
    /// Bytes of a full packet on the wire, for rules that count in packets.
    pub packet_bytes: u32,
    /// Where the first timers fall, 0 <= phase < 1: links started together must not tick together.
    pub phase: f64,
}
