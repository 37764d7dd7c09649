//! The rules of one session, one file each: what it may send, and how that answers what becomes of its packets.
//!
//! Most are a [`CongestionController`]: acknowledgements, losses and time-outs come in, and the rule says how much may
//! be in flight. What was lost, what is sent again and when the timer runs out is the business of the sender that
//! drives it: one machine for all these rules. Windows are counted in full packets, as an f64: rules add fractions, the
//! sender floors when it sends.
//!
//! Three rules are told other things, each by a driver of its own, and are no [`CongestionController`]: [`Udt`] hears
//! the rates that its sink measured, [`Rbudp`] which packets are missing, [`Bbr`] samples of a path's [`DeliveryRate`].

mod aecp;
mod aimd;
mod bbr;
mod bic;
mod cubic;
mod delivery_rate;
mod fast;
mod hstcp;
mod htcp;
mod kernel;
mod make;
mod new_reno;
mod rate_sample;
mod rbudp;
mod rcp;
mod slow_start;
mod solo;
mod stcp;
mod tcp_options;
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
pub use bbr::{Bbr, BbrConfig, BbrState};
pub use bic::{Bic, BicConfig, BicForm};
pub use cubic::{Cubic, CubicConfig};
pub use delivery_rate::{DeliveryRate, SentStamp};
pub use fast::{Fast, FastConfig};
pub use hstcp::{HighSpeed, HighSpeedConfig};
pub use htcp::{Htcp, HtcpConfig};
pub use make::{RuleError, controller, controller_from, led_controller, window_schemes};
pub use new_reno::NewReno;
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

/// The window-based schemes, in the order in which lists show them. A new one is a file here, its `mod` line above, and
/// its entry in this list.
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
    vegas::SCHEME,
    fast::SCHEME,
];

/// Sessions that set their own rate: their rules are no [`CongestionController`].
pub(crate) const OTHERS: &[Scheme] = &[udt::SCHEME, rbudp::SCHEME, CBR, kernel::CUBIC, kernel::RENO, kernel::BBR];

/// No rule at all.
const CBR: Scheme = Scheme {
    models: &[Model::Packet],
    options: &[registry::flag("dither", "true", "each packet leaves at a random moment of its period")],
    ..registry::session("cbr", "constant bit rate: sends at its demand regardless of loss", "")
};

/// Makes the controller of a session, with the options that were named for its scheme.
pub type MakeController = fn(&Options, WindowConfig) -> Result<Box<dyn CongestionController>, RuleError>;

/// What a session with a window runs. What a rule does not say about losses, time-outs and its window is TCP's answer.
pub trait CongestionController: Send {
    /// The session's window.
    fn window(&self) -> &CongestionWindow;

    /// The same, to change it.
    fn window_mut(&mut self) -> &mut CongestionWindow;

    /// An acknowledgement of new data arrived.
    fn on_ack(&mut self, ack: &Ack);

    /// Loss was detected, once per window of data: the session enters recovery. Not called again until the packet
    /// that was the highest sent at this call is acknowledged or the timer runs out.
    fn on_loss(&mut self, loss: &Loss) {
        self.window_mut().cut_to(loss.half_of_flight_packets());
    }

    /// The retransmission timer ran out.
    fn on_timeout(&mut self, loss: &Loss) {
        self.window_mut().begin_again(loss.half_of_flight_packets());
    }

    /// Sending goes on after nothing was in flight. After an idle time longer than the time-out, `restart_packets` bounds
    /// the window (RFC 5681 s4.1).
    fn on_resume(&mut self, _now: Time, restart_packets: Option<f64>) {
        if let Some(most) = restart_packets {
            let window_packets = self.window().packets().min(most);
            self.window_mut().set(window_packets);
        }
    }

    /// Whether it goes by delivery rates: then it is told of each packet sent and of each sample, besides all else.
    fn takes_samples(&self) -> bool {
        false
    }

    /// A packet of so many bytes on the wire is sent. Of rules that take samples.
    fn on_sent(&mut self, _now: Time, _bytes: Bytes, _stamp: &SentStamp) {}

    /// An acknowledgement came, and this is what it says of deliveries; before [`CongestionController::on_ack`] of the
    /// same. Of rules that take samples.
    fn on_sample(&mut self, _now: Time, _sample: &RateSample) {}

    /// What may be in flight, and how fast.
    fn allowance(&self) -> Allowance {
        Allowance { window_packets: self.window().packets(), pacing: None }
    }

    /// Where slow start ends, in packets; infinite before the first loss.
    fn ssthresh_packets(&self) -> f64 {
        self.window().ssthresh_packets
    }

    /// Sets the window, in packets: for studies of a rule by itself.
    fn set_window_packets(&mut self, window_packets: f64) {
        self.window_mut().set(window_packets);
    }

    /// The congestion header of the data packet that is sent now; none for rules that ask nothing of links.
    fn header(&self, _sending: &Sending) -> Option<CongestionHeader> {
        None
    }

    /// An acknowledgement brought a congestion header back, also one that acknowledges nothing new. Comes after
    /// [`CongestionController::on_ack`] of the same.
    fn on_feedback(&mut self, _feedback: &Feedback) {}
}

/// A data packet that is being sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sending {
    /// Smoothed round-trip time; `None` before the first sample.
    pub smoothed_rtt: Option<Duration>,
    /// The window that is really in use: whole packets, and no more than the receiver and the application allow.
    pub window_packets: u64,
}

/// A congestion header that came back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Feedback {
    /// When it arrived.
    pub now: Time,
    /// As the last link left it.
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
    /// When it arrived.
    pub now: Time,
    /// Packets that it newly acknowledges, cumulatively and selectively.
    pub acked_packets: u32,
    /// Round-trip time of the newest packet that it acknowledges, if it was sent once.
    pub rtt: Option<Duration>,
    /// Least round-trip time seen by the session.
    pub min_rtt: Duration,
    /// Smoothed round-trip time; zero before the first sample.
    pub smoothed_rtt: Duration,
    /// Packets in flight before it arrived.
    pub in_flight_packets: u32,
    /// Number of the round trip: one more each time that a packet sent in the round before is acknowledged.
    pub round: u64,
    /// Whether the window, not the application or the receiver, limited what was sent.
    pub window_limited: bool,
    /// Whether the session is in recovery.
    pub in_recovery: bool,
}

/// A loss, or a time-out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loss {
    /// When it was detected.
    pub now: Time,
    /// Packets in flight then (RFC 5681's FlightSize).
    pub in_flight_packets: u32,
}

impl Loss {
    /// Half of what was in flight, at least two packets: ssthresh after a loss (RFC 5681, Eq. 4).
    pub(crate) fn half_of_flight_packets(&self) -> f64 {
        (f64::from(self.in_flight_packets) / 2.0).max(2.0)
    }
}

/// What a session may send.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Allowance {
    /// Packets in flight at the most; at least one.
    pub window_packets: f64,
    /// Rate at the most, for rules that set one.
    pub pacing: Option<Rate>,
}

/// Acknowledgements as the tests of the rules need them.
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

/// A loss as the tests of the rules need it.
#[cfg(test)]
fn test_loss(in_flight_packets: u32) -> Loss {
    Loss { now: Time::from_secs(1), in_flight_packets }
}
