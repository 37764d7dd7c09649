//! The rules of one link, one file each: how its queue changes the congestion headers of the packets that pass.
//!
//! A rule is called for every packet that reaches its queue, for every packet that leaves it, and by a timer. Packets
//! of unknown schemes count as bytes. Queue limits and drops are the queue's concern.

mod aecp;
mod aecp_theory;
mod controller;
mod jetmax_share;
mod link_rules;
mod list;
mod maxnet;
mod mkc;
mod rcp;
mod vcp;
mod xcp;
mod xcp_equilibrium;

pub use aecp::{AecpConfig, AecpLink, aecp_control};
pub use aecp_theory::{aecp_delay_margin_s, aecp_efficiency_s, aecp_fairness_printed_s, aecp_fairness_s, logistic};
pub use controller::{LinkController, LinkSetup, MakeLinkController, Passage};
pub use jetmax_share::JetmaxShareLink;
pub use link_rules::link_controller;
pub(crate) use list::SCHEMES;
pub use maxnet::MaxnetLink;
pub use mkc::MkcLink;
pub use rcp::{RcpConfig, RcpLink};
pub use vcp::{VcpConfig, VcpLink};
pub use xcp::{XcpConfig, XcpKind, XcpLink, XcpPools, xcp_control};
pub use xcp_equilibrium::{XcpEquilibrium, xcp_equilibrium};
