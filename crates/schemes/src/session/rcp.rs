//! RCP's source (Dukkipati, Kobayashi, Zhang-Shen & McKeown 2005, section 2): it sends at the smallest rate that a link
//! on its path has stated.

use fairwave_units::{Duration, Rate};

use super::{Ack, Allowance, CongestionController, CongestionWindow, Feedback, Loss, Sending, WindowConfig};
use crate::header::{CongestionHeader, RcpHeader};

/// RCP's rate.
#[derive(Clone, Debug)]
pub struct Rcp {
    /// Its bounds and ssthresh; the limit of bytes in flight follows from the rate.
    window: CongestionWindow,
    /// The rate in bit/s; `None` until the links have answered.
    rate_bps: Option<f64>,
    smoothed_rtt: Duration,
    /// Minimum round-trip time; `None` until it is known.
    least_rtt: Option<Duration>,
    packet_bits: f64,
}

impl Rcp {
    /// A session's controller at its start: one packet, like the authors' SYN, then the links' rates.
    pub fn new(window: WindowConfig) -> Self {
        Self {
            window: CongestionWindow::new(&window),
            rate_bps: None,
            smoothed_rtt: Duration::ZERO,
            least_rtt: None,
            packet_bits: 0.0,
        }
    }

    fn set_rate(&mut self, rate_bps: f64) {
        // A session with a lower rate would not learn when it may send more; the authors' sources request a rate twice
        // a second in separate packets.
        self.rate_bps = Some(rate_bps.max(self.packet_bits / MAX_APART_S));
    }
}

impl CongestionController for Rcp {
    fn window(&self) -> &CongestionWindow {
        &self.window
    }

    fn window_mut(&mut self) -> &mut CongestionWindow {
        &mut self.window
    }

    fn header(&self, _: &Sending) -> Option<CongestionHeader> {
        // The minimum: if it contained queueing delay, links would take longer to drain that queue.
        Some(CongestionHeader::Rcp(RcpHeader { rate_bps: f64::INFINITY, rtt: self.least_rtt }))
    }

    fn on_feedback(&mut self, feedback: &Feedback) {
        let CongestionHeader::Rcp(RcpHeader { rate_bps, .. }) = feedback.header else { return };
        // No link on the path answered: there is no rate to use.
        if !rate_bps.is_finite() || feedback.smoothed_rtt.is_zero() {
            return;
        }
        self.smoothed_rtt = feedback.smoothed_rtt;
        self.packet_bits = f64::from(feedback.packet_bytes) * 8.0;
        self.set_rate(rate_bps);
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.least_rtt = Some(ack.min_rtt).filter(|rtt| !rtt.is_zero());
    }

    fn on_loss(&mut self, loss: &Loss) {
        // Lost packets are sent again; only the links determine the rate.
        self.window.set_ssthresh(f64::from(loss.in_flight_packets));
    }

    fn on_timeout(&mut self, loss: &Loss) {
        self.on_loss(loss);
    }

    fn allowance(&self) -> Allowance {
        let Some(rate_bps) = self.rate_bps else { return Allowance { window_packets: 1.0, pacing: None } };
        // The rate is the limit; the window bounds the case that acknowledgements stop.
        let window = 2.0 * rate_bps * self.smoothed_rtt.as_secs_f64() / self.packet_bits + 2.0;
        Allowance { window_packets: window.min(self.window.most_packets()), pacing: Rate::from_bps(rate_bps).ok() }
    }

    fn set_window_packets(&mut self, window_packets: f64) {
        if !self.smoothed_rtt.is_zero() {
            self.set_rate(window_packets.max(1.0) * self.packet_bits / self.smoothed_rtt.as_secs_f64());
        }
    }
}

/// Maximum time between packets in seconds (the authors' ns-2 code: sources request a rate every 0.5 s).
const MAX_APART_S: f64 = 0.5;

#[cfg(test)]
mod tests {
    use fairwave_units::Time;

    use super::super::{test_ack, test_loss};
    use super::*;

    fn hear(rcp: &mut Rcp, rate_bps: f64) -> Allowance {
        let smoothed_rtt = Duration::from_millis(100);
        let header = CongestionHeader::Rcp(RcpHeader { rate_bps, rtt: None });
        rcp.on_feedback(&Feedback { now: Time::ZERO, header, smoothed_rtt, packet_bytes: 1000, window_limited: true });
        rcp.allowance()
    }

    #[test]
    fn allowance__is_one_packet_then_the_rate() {
        let mut rcp = Rcp::new(WindowConfig::default());
        assert_eq!(rcp.allowance(), Allowance { window_packets: 1.0, pacing: None });
        // No link answered.
        assert_eq!(hear(&mut rcp, f64::INFINITY).pacing, None);
        // 8 Mb/s are 100 packets in 100 ms; the window is twice that and two.
        let expected = Allowance { window_packets: 202.0, pacing: Some(Rate::mbps(8.0)) };
        assert_eq!(hear(&mut rcp, 8e6), expected);
        // Losses do not matter.
        rcp.on_loss(&test_loss(100));
        rcp.on_timeout(&test_loss(100));
        assert_eq!(rcp.allowance(), expected);
    }

    #[test]
    fn header__has_the_least_round_trip_time() {
        let mut rcp = Rcp::new(WindowConfig::default());
        let sending = Sending { smoothed_rtt: Some(Duration::from_millis(150)), window_packets: 1 };
        let asks = |rtt| Some(CongestionHeader::Rcp(RcpHeader { rate_bps: f64::INFINITY, rtt }));
        assert_eq!(rcp.header(&sending), asks(None));
        rcp.on_ack(&Ack { min_rtt: Duration::from_millis(100), ..test_ack(1) });
        assert_eq!(rcp.header(&sending), asks(Some(Duration::from_millis(100))));
    }

    #[test]
    fn allowance__is_at_least_two_packets_a_second() {
        let mut rcp = Rcp::new(WindowConfig::default());
        assert_eq!(hear(&mut rcp, 1.0).pacing, Some(Rate::from_bps(16_000.0).unwrap()));
    }
}
