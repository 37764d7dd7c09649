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
mod cubic;
mod delivery_rate;
mod fast;
mod hstcp;
mod htcp;
mod kernel;
mod make;
mod modelled;
mod new_reno;
mod path;
mod rate_sample;
mod rbudp;
mod rcp;
mod slow_start;
mod solo;
mod stcp;
mod tcp_options;
mod two_slots;
mod udt;
mod vcp;
mod vegas;
mod window;
mod xcp;

use fairwave_units::{Bytes, Duration, Rate, Time};

use crate::header::CongestionHeader;
use crate::scheme::{Model, Options, Scheme, registry};

pub use aecp::{Aecp, AecpSourceConfig};
pub use aimd::{Aimd, AimdConfig};
pub use bbr::{Amend, Bbr, BbrConfig, BbrState, Draft};
pub use bbr1::{Bbr1, Bbr1Mode};
pub use bic::{Bic, BicConfig, BicForm};
pub use cubic::{Cubic, CubicConfig};
pub use delivery_rate::{DeliveryRate, SentStamp};
pub use fast::{Fast, FastConfig};
pub use hstcp::{HighSpeed, HighSpeedConfig};
pub use htcp::{Htcp, HtcpConfig};
pub use make::{RuleError, controller, controller_from, led_controller, window_schemes};
pub use new_reno::NewReno;
pub use path::{Path, PathConfig, Switches as PathSwitches};
pub use rate_sample::{LossPoint, RateSample};
pub use rbudp::{Rbudp, rbudp_loss, rbudp_transfer_s};
pub use rcp::Rcp;
pub use slow_start::SlowStart;
pub use solo::Solo;
pub use stcp::{Scalable, ScalableConfig};
pub use udt::{Udt, UdtAck, UdtConfig};
pub use vcp::{Vcp, VcpSourceConfig};
pub use vegas::{Vegas, VegasConfig};
pub use window::{CongestionWindow, WindowConfig, WindowRule, Windowed};
pub use xcp::Xcp;

pub use tcp_options::SENDER_OPTIONS;
pub(crate) use tcp_options::{MIN_RTO, NS2_MIN_RTO, SACK, SACK_OFF};
use window::windowed;

/// The window-based schemes, in the order of lists. A new one is a file here, its `mod` line above, and its entry in
/// this list.
pub(crate) const WINDOWED: &[Scheme] = &[
    new_reno::SCHEME,
    new_reno::WITH_SACK,
    hstcp::SCHEME,
    htcp::SCHEME,
    stcp::SCHEME,
    aimd::SCHEME,
    bic::SCHEME,
    cubic::SCHEME,
    bbr::SCHEME,
    bbr1::SCHEME,
    path::SCHEME,
    vegas::SCHEME,
    fast::SCHEME,
];

/// Sessions that set their own rate: their rules are not a [`CongestionController`].
pub(crate) const OTHERS: &[Scheme] = &[udt::SCHEME, rbudp::SCHEME, CBR, kernel::CUBIC, kernel::RENO, kernel::BBR];

/// A constant rate without a rule.
const CBR: Scheme = Scheme {
    models: &[Model::Packet],
    options: &[registry::flag("dither", "true", "each packet leaves at a random moment of its period")],
    ..registry::session("cbr", "constant bit rate: sends at its demand regardless of loss", "")
};

/// Makes the controller of a session, with the options of its scheme.
pub type MakeController = fn(&Options, WindowConfig) -> Result<Box<dyn CongestionController>, RuleError>;

/// The rule of a session with a window. Defaults for losses, time-outs and the window are TCP's.
pub trait CongestionController: Send {
    /// The session's window.
    fn window(&self) -> &CongestionWindow;

    /// Mutable access to the session's window.
    fn window_mut(&mut self) -> &mut CongestionWindow;

    /// An acknowledgement of new data arrived.
    fn on_ack(&mut self, ack: &Ack);

    /// Loss was detected, once per window of data: the session enters recovery. Not called again until the packet that
    /// was the highest sent at this call is acknowledged or the timer expires.
    fn on_loss(&mut self, loss: &Loss) {
        self.window_mut().cut_to(loss.half_of_flight_packets());
    }

    /// The retransmission timer expired.
    fn on_timeout(&mut self, loss: &Loss) {
        self.window_mut().begin_again(loss.half_of_flight_packets());
    }

    /// Sending resumes after nothing was in flight. After an idle time longer than the time-out, `restart_packets`
    /// bounds the window (RFC 5681 s4.1).
    fn on_resume(&mut self, _now: Time, restart_packets: Option<f64>) {
        if let Some(most) = restart_packets {
            let window_packets = self.window().packets().min(most);
            self.window_mut().set(window_packets);
        }
    }

    /// Whether it uses delivery rates: then it is called for each packet sent and each sample, in addition to the other
    /// events.
    fn takes_samples(&self) -> bool {
        false
    }

    /// A packet is sent, with its size on the wire. For rules that take samples.
    fn on_sent(&mut self, _now: Time, _bytes: Bytes, _stamp: &SentStamp) {}

    /// An acknowledgement arrived, with this sample of deliveries; called before [`CongestionController::on_ack`] for
    /// the same one. For rules that take samples.
    fn on_sample(&mut self, _now: Time, _sample: &RateSample) {}

    /// Limits of packets in flight and of the rate.
    fn allowance(&self) -> Allowance {
        Allowance { window_packets: self.window().packets(), pacing: None }
    }

    /// End of slow start, in packets; infinite before the first loss.
    fn ssthresh_packets(&self) -> f64 {
        self.window().ssthresh_packets
    }

    /// Sets the window, in packets: for studies of a rule by itself.
    fn set_window_packets(&mut self, window_packets: f64) {
        self.window_mut().set(window_packets);
    }

    /// The congestion header of the data packet that is sent now; `None` for rules that do not use links.
    fn header(&self, _sending: &Sending) -> Option<CongestionHeader> {
        None
    }

    /// An acknowledgement brought a congestion header back, including duplicate acknowledgements. Called after
    /// [`CongestionController::on_ack`] for the same one.
    fn on_feedback(&mut self, _feedback: &Feedback) {}
}

/// A data packet that is being sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sending {
    /// Smoothed round-trip time; `None` before the first sample.
    pub smoothed_rtt: Option<Duration>,
    /// The window in use: whole packets, limited by the receiver and the application.
    pub window_packets: u64,
}

/// A returned congestion header.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Feedback {
    /// Time of arrival.
    pub now: Time,
    /// The header as the last link left it.
    pub header: CongestionHeader,
    /// Smoothed round-trip time.
    pub smoothed_rtt: Duration,
    /// Bytes of a full packet on the wire.
    pub packet_bytes: u32,
    /// Whether the window, not the application or the receiver, limited what was sent.
    pub window_limited: bool,
}

/// An acknowledgement of new data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ack {
    /// Time of arrival.
    pub now: Time,
    /// Packets newly acknowledged, cumulatively and selectively.
    pub acked_packets: u32,
    /// Round-trip time of the newest acknowledged packet, if it was sent once.
    pub rtt: Option<Duration>,
    /// Minimum round-trip time of the session.
    pub min_rtt: Duration,
    /// Smoothed round-trip time; zero before the first sample.
    pub smoothed_rtt: Duration,
    /// Packets in flight before it arrived.
    pub in_flight_packets: u32,
    /// Number of the round trip, which increases each time that a packet sent in the previous round is acknowledged.
    pub round: u64,
    /// Whether the window, not the application or the receiver, limited what was sent.
    pub window_limited: bool,
    /// Whether the session is in recovery.
    pub in_recovery: bool,
}

/// A loss, or a time-out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loss {
    /// Time of detection.
    pub now: Time,
    /// Packets in flight at that time (RFC 5681's FlightSize).
    pub in_flight_packets: u32,
}

impl Loss {
    /// Half of the packets in flight, at least two packets: ssthresh after a loss (RFC 5681, Eq. 4).
    pub(crate) fn half_of_flight_packets(&self) -> f64 {
        (f64::from(self.in_flight_packets) / 2.0).max(2.0)
    }
}

/// Send limits of a session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Allowance {
    /// Maximum packets in flight; at least one.
    pub window_packets: f64,
    /// Maximum rate, for rules that set one.
    pub pacing: Option<Rate>,
}

/// An acknowledgement for tests of the rules.
#[cfg(test)]
fn test_ack(acked_packets: u32) -> Ack {
    let rtt = Duration::from_millis(100);
    Ack {
        now: Time::from_secs(1),
        acked_packets,
        rtt: Some(rtt),
        min_rtt: rtt,
        smoothed_rtt: rtt,
        in_flight_packets: 1,
        round: 0,
        window_limited: true,
        in_recovery: false,
    }
}

/// A loss for tests of the rules.
#[cfg(test)]
fn test_loss(in_flight_packets: u32) -> Loss {
    Loss { now: Time::from_secs(1), in_flight_packets }
}
