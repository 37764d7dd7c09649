//! XCP's source (Katabi, Handley & Rohrs 2002, section 3.4; draft-falk-xcp-spec-03, section 3): links change its
//! window, and losses do as in NewReno. iXCP's and P-XCP's sources are the same, as all carry the link that limits
//! them.

use fairwave_units::Duration;

use super::{Ack, Allowance, CongestionController, CongestionWindow, Feedback, Sending, WindowConfig};
use crate::header::{CongestionHeader, LinkId, XcpHeader};

/// XCP's window.
#[derive(Clone, Debug)]
pub struct Xcp {
    /// Real-valued: shares of a packet add up.
    window: CongestionWindow,
    /// Packets added before the window is rounded down, 0 to 1: a different number for each session, which moves, so
    /// that the window is sent exactly on average over sessions and, in the long run, by each of them.
    dither_packets: f64,
    /// Change of that number per round trip.
    dither_step: f64,
    round: u64,
    bottleneck: LinkId,
}

impl Xcp {
    /// A session's controller at its start. There is no slow start: until links have answered the window stays
    /// constant.
    pub fn new(window: WindowConfig) -> Self {
        Self {
            window: CongestionWindow::new(&window),
            dither_packets: window.dither_packets,
            dither_step: DITHER_STEP,
            round: 0,
            bottleneck: LinkId::NONE,
        }
    }

    /// A session's controller whose window is always rounded down to whole packets, as in ns-2: the fraction above that
    /// is requested and never used.
    pub fn cut_down(window: WindowConfig) -> Self {
        Self { dither_packets: 0.0, dither_step: 0.0, ..Self::new(window) }
    }

    fn change(&mut self, change_bps: f64, smoothed_rtt: Duration, packet_bytes: u32) {
        // No link on the path answered: there is no change to apply.
        if !change_bps.is_finite() {
            return;
        }
        // The links count all bytes on the wire, so a packet here is one with its headers.
        let packets = change_bps * smoothed_rtt.as_secs_f64() / (f64::from(packet_bytes) * 8.0);
        self.window.set(self.window.packets() + packets);
    }
}

impl CongestionController for Xcp {
    fn window(&self) -> &CongestionWindow {
        &self.window
    }

    fn window_mut(&mut self) -> &mut CongestionWindow {
        &mut self.window
    }

    fn header(&self, sending: &Sending) -> Option<CongestionHeader> {
        // The links' grants are shared out by the time between packets. If it were computed from a window that is not
        // used, because the receiver or the application limits it, it would be shorter than the actual time between
        // packets.
        let sent = sending.window_packets.max(1) as f64;
        let window = if sent < self.window.packets().floor() { sent } else { self.window.packets() };
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
        // A session that does not use its window has no use for a larger one; when it sends more, it would be a burst.
        if header.change_bps < 0.0 || feedback.window_limited {
            self.change(header.change_bps, feedback.smoothed_rtt, feedback.packet_bytes);
        }
    }

    fn on_ack(&mut self, ack: &Ack) {
        if ack.round != self.round {
            self.round = ack.round;
            self.dither_packets = (self.dither_packets + self.dither_step).fract();
        }
    }

    fn allowance(&self) -> Allowance {
        // Sessions of one link have nearly equal windows. If all were rounded down, they would step from one number of
        // packets to the next together, each step a packet of every session in one round trip.
        let window_packets = (self.window.packets() + self.dither_packets).min(self.window.most_packets());
        Allowance { window_packets, pacing: None }
    }
}

/// Change of the rounding per round trip: slow, as each additional packet of a session is a packet out of step with all
/// others, and once around in a few minutes, so that no session is always rounded down.
const DITHER_STEP: f64 = 1.0 / 1024.0;

#[cfg(test)]
mod tests {
    use super::super::test_ack;
    use super::*;

    fn interval_s(xcp: &Xcp, window_packets: u64) -> f64 {
        let header = xcp.header(&Sending { smoothed_rtt: Some(Duration::from_millis(80)), window_packets });
        let Some(CongestionHeader::Xcp(header)) = header else { panic!("{header:?}") };
        header.interval_s
    }

    #[test]
    fn header__has_the_window_that_is_sent() {
        let xcp = Xcp::new(WindowConfig { initial_window_packets: 4.5, ..WindowConfig::default() });
        // Sometimes four, sometimes five packets in 80 ms; two if the receiver has no room for more.
        assert!((interval_s(&xcp, 4) - 0.080 / 4.5).abs() < 1e-12);
        assert!((interval_s(&xcp, 5) - 0.080 / 4.5).abs() < 1e-12);
        assert!((interval_s(&xcp, 2) - 0.040).abs() < 1e-12);
    }

    #[test]
    fn allowance__averages_to_the_window_over_rounds_and_sessions() {
        let window =
            |dither_packets| WindowConfig { initial_window_packets: 3.7, dither_packets, ..WindowConfig::default() };
        let mut sent = 0;
        for session in 0..10 {
            let mut xcp = Xcp::new(window(f64::from(session) / 10.0));
            for round in 1..=1024 {
                xcp.on_ack(&Ack { round, ..test_ack(1) });
                sent += xcp.allowance().window_packets as u64;
            }
        }
        // 3.7 x 10 x 1024 = 37 888.
        assert!(sent.abs_diff(37_888) <= 10, "{sent}");
        // In any round trip some have three and some have four.
        let three = (0..10).filter(|at| Xcp::new(window(f64::from(*at) / 10.0)).allowance().window_packets < 4.0);
        assert_eq!(three.count(), 3);
    }

    #[test]
    fn allowance__cut_down_is_the_whole_packets_at_any_round_trip() {
        let window = WindowConfig { initial_window_packets: 3.9, dither_packets: 0.7, ..WindowConfig::default() };
        let mut xcp = Xcp::cut_down(window);
        for round in 1..=1024 {
            xcp.on_ack(&Ack { round, ..test_ack(1) });
            assert_eq!(xcp.allowance().window_packets as u64, 3);
        }
        // The header still has the window itself.
        assert!((interval_s(&xcp, 3) - 0.080 / 3.9).abs() < 1e-12);
    }

    #[test]
    fn header__is_empty_before_the_first_round_trip() {
        let header = Xcp::new(WindowConfig::default()).header(&Sending { smoothed_rtt: None, window_packets: 2 });
        let Some(CongestionHeader::Xcp(header)) = header else { panic!("{header:?}") };
        assert_eq!((header.rtt, header.interval_s, header.change_bps), (None, 0.0, 0.0));
    }
}
