//! XCP's source (Katabi, Handley & Rohrs 2002, section 3.4; draft-falk-xcp-spec-03, section 3): its window changes as the
//! links say, and by loss as NewReno's. iXCP's and P-XCP's sources are the same, as all carry the link that limits them.

use fairwave_units::Duration;

use super::{Ack, Allowance, CongestionController, Feedback, Loss, Sending, WindowConfig};
use crate::header::{CongestionHeader, LinkId, XcpHeader};

/// XCP's window.
#[derive(Clone, Debug)]
pub struct Xcp {
    most_packets: f64,
    /// Real-valued: shares of a packet add up. What is sent, and told to the links, is whole packets.
    window_packets: f64,
    ssthresh_packets: f64,
    bottleneck: LinkId,
}

impl Xcp {
    /// A session's controller at its start. There is no slow start: until links have answered the window stays.
    pub fn new(window: WindowConfig) -> Self {
        let most = window.max_window_packets.max(1.0);
        Self {
            most_packets: most,
            window_packets: window.initial_window_packets.clamp(1.0, most),
            ssthresh_packets: window.initial_ssthresh_packets,
            bottleneck: LinkId::NONE,
        }
    }

    fn set(&mut self, window_packets: f64) {
        self.window_packets = window_packets.max(1.0).min(self.most_packets);
    }

    fn change(&mut self, change_bps: f64, smoothed_rtt: Duration, packet_bytes: u32) {
        // No link on the way answered: there is nothing to go by.
        if !change_bps.is_finite() {
            return;
        }
        // The links count all bytes on the wire, so a packet here is one with its headers.
        let packets = change_bps * smoothed_rtt.as_secs_f64() / (f64::from(packet_bytes) * 8.0);
        self.set(self.window_packets + packets);
    }
}

impl CongestionController for Xcp {
    fn header(&self, sending: &Sending) -> Option<CongestionHeader> {
        // What the links grant is shared out by the time between packets. Reckoned with a window that is not sent, be it
        // a fraction above or one that the receiver cuts, it would be smaller than the packets are apart.
        let window = sending.window_packets.max(1) as f64;
        Some(CongestionHeader::Xcp(XcpHeader {
            rtt: sending.smoothed_rtt,
            interval_s: sending.smoothed_rtt.map_or(0.0, |rtt| rtt.as_secs_f64() / window),
            change_bps: if sending.smoothed_rtt.is_some() { f64::INFINITY } else { 0.0 },
            bottleneck: self.bottleneck,
            next_bottleneck: self.bottleneck,
        }))
    }

    fn on_feedback(&mut self, feedback: &Feedback) {
        let CongestionHeader::Xcp(header) = feedback.header else { return };
        if header.rtt.is_some() {
            self.bottleneck = header.next_bottleneck;
        }
        // A session that does not use its window has no use for a larger one; once it sends more, it would be a burst.
        if header.change_bps < 0.0 || feedback.window_limited {
            self.change(header.change_bps, feedback.smoothed_rtt, feedback.packet_bytes);
        }
    }

    fn on_ack(&mut self, _: &Ack) {}

    fn on_loss(&mut self, loss: &Loss) {
        self.ssthresh_packets = (f64::from(loss.in_flight_packets) / 2.0).max(2.0);
        self.set(self.ssthresh_packets);
    }

    fn on_timeout(&mut self, loss: &Loss) {
        self.ssthresh_packets = (f64::from(loss.in_flight_packets) / 2.0).max(2.0);
        self.set(1.0);
    }

    fn allowance(&self) -> Allowance {
        Allowance { window_packets: self.window_packets, pacing: None }
    }

    fn ssthresh_packets(&self) -> f64 {
        self.ssthresh_packets
    }

    fn set_window_packets(&mut self, window_packets: f64) {
        self.set(window_packets);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header__has_the_window_that_is_sent() {
        let window = WindowConfig { initial_window_packets: 2.9, ..WindowConfig::default() };
        let header =
            Xcp::new(window).header(&Sending { smoothed_rtt: Some(Duration::from_millis(80)), window_packets: 2 });
        // Two packets in 80 ms are 40 ms apart; 2.9 would be 27.6 ms, and the share of the spare rate smaller by as much.
        let Some(CongestionHeader::Xcp(header)) = header else { panic!("{header:?}") };
        assert!((header.interval_s - 0.040).abs() < 1e-12, "{header:?}");
    }

    #[test]
    fn header__before_the_first_round_trip_asks_for_nothing() {
        let header = Xcp::new(WindowConfig::default()).header(&Sending { smoothed_rtt: None, window_packets: 2 });
        let Some(CongestionHeader::Xcp(header)) = header else { panic!("{header:?}") };
        assert_eq!((header.rtt, header.interval_s, header.change_bps), (None, 0.0, 0.0));
    }
}
