//! The rules of one session, one file each: the permitted window or rate, as a function of the fate of its packets.
//!
//! Most are a [`CongestionController`]: acknowledgements, losses and time-outs come in, and the rule sets the limit of
//! packets in flight. Loss detection, retransmission and timers belong to the sender that drives it: one machine for
//! all these rules. Windows are counted in full packets, as an f64: rules add fractions, the sender floors when it
//! sends.
//!
//! Three rules have other inputs, each with a driver of its own, and are not a [`CongestionController`]: [`Udt`] takes
//! the rates that its sink measured, [`Rbudp`] the missing packets, [`Bbr`] samples of a path's [`DeliveryRate`].

mod aecp;
mod aimd;
mod bbr;
mod bbr1;
mod bic;
mod card;
mod cbr;
mod controller;
mod cubic;
mod dctcp;
mod delivery_rate;
mod error;
mod event;
mod fast;
pub mod homa;
mod hstcp;
mod htcp;
mod hybla;
mod hystart;
mod illinois;
mod jetmax_share;
mod kernel;
mod list;
mod make;
mod maxnet;
mod mkc;
mod modelled;
pub mod netblt;
mod new_reno;
mod paced;
mod path;
mod prague;
mod rate_sample;
mod rbudp;
mod rcp;
mod slow_start;
mod solo;
mod stcp;
pub mod tcp_options;
mod two_slots;
mod udt;
mod vcp;
mod vegas;
mod westwood;
mod window;
mod windowed;
mod xcp;

pub(crate) use aecp::ALPHA as AECP_ALPHA;
pub use aecp::{Aecp, AecpSourceConfig};
pub use aimd::{Aimd, AimdConfig};
pub use bbr::{Amend, Bbr, BbrConfig, BbrState, Draft};
pub use bbr1::{Bbr1, Bbr1Mode};
pub use bic::{Bic, BicConfig, BicForm};
pub use card::Card;
pub use cbr::DITHER;
pub use controller::{Allowance, CongestionController, Feedback, MakeController, MarkResponse, Sending};
pub use cubic::{Cubic, CubicConfig};
pub use dctcp::{Dctcp, DctcpConfig};
pub use delivery_rate::{DeliveryRate, SentStamp};
pub use error::RuleError;
pub use event::{Ack, Loss};
#[cfg(test)]
pub(crate) use event::{test_ack, test_loss};
pub use fast::{Fast, FastConfig};
pub use hstcp::{HighSpeed, HighSpeedConfig};
pub use htcp::{Htcp, HtcpConfig};
pub use hybla::Hybla;
pub use illinois::Illinois;
pub use jetmax_share::{JetmaxShare, JetmaxSourceConfig};
pub(crate) use list::{OTHERS, WINDOWED};
pub use make::{controller, controller_from, led_controller, window_schemes};
pub(crate) use maxnet::{MAXNET_BPS, maxnet};
pub use mkc::Mkc;
pub use new_reno::NewReno;
pub use paced::{Pace, Paced, RateRule};
pub use path::{Path, PathConfig, Switches as PathSwitches};
pub use rate_sample::{LossPoint, RateSample};
pub use rbudp::{Rbudp, rbudp_loss, rbudp_transfer_s};
pub use rcp::Rcp;
pub use slow_start::SlowStart;
pub use solo::Solo;
pub use stcp::{Scalable, ScalableConfig};
pub use tcp_options::SENDER_OPTIONS;
pub use udt::{Udt, UdtAck, UdtConfig};
pub(crate) use vcp::T_RHO;
pub use vcp::{Vcp, VcpSourceConfig};
pub use vegas::{Vegas, VegasConfig};
pub use westwood::Westwood;
pub use window::{CongestionWindow, WindowConfig};
pub use windowed::{WindowRule, Windowed};
pub use xcp::Xcp;
