//! The interface of a session's rule with a window.

use fairwave_units::{Bytes, Duration, Rate, Time};

use super::delivery_rate::SentStamp;
use super::error::RuleError;
use super::event::{Ack, Loss};
use super::rate_sample::RateSample;
use super::window::{CongestionWindow, WindowConfig};
use crate::header::{CongestionHeader, EcnCode};
use crate::scheme::option::Options;

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

    /// The response to congestion marks (ECN). Packets are ECN-capable only if there is one.
    fn mark_response(&self) -> MarkResponse {
        MarkResponse::None
    }

    /// The congestion header of the data packet that is sent now; `None` for rules that do not use links.
    fn header(&self, _sending: &Sending) -> Option<CongestionHeader> {
        None
    }

    /// An acknowledgement brought a congestion header back, including duplicate acknowledgements. Called after
    /// [`CongestionController::on_ack`] for the same one.
    fn on_feedback(&mut self, _feedback: &Feedback) {}
}

/// A rule's response to congestion marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkResponse {
    /// None: its packets are not ECN-capable.
    None,
    /// A mark is answered as a loss, at most once per window of data (RFC 3168 s6.1.2).
    AsLoss,
    /// The rule counts [`Ack::marked_packets`] itself; its packets carry this code.
    Own(EcnCode),
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

/// Send limits of a session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Allowance {
    /// Maximum packets in flight; at least one.
    pub window_packets: f64,
    /// Maximum rate, for rules that set one.
    pub pacing: Option<Rate>,
}
