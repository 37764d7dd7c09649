//! Common part of the sources that send at a rate which links state: evenly spaced packets, and a rule that differs in
//! its header and in the next rate.

use fairwave_units::{Duration, Rate};

use super::{Ack, Allowance, CongestionController, CongestionWindow, Feedback, Loss, Sending, WindowConfig};
use crate::header::CongestionHeader;

/// The differences between these sources.
pub trait RateRule: Send {
    /// The header of the next packet.
    fn header(&self, pace: &Pace) -> CongestionHeader;

    /// The rate in bit/s after a header came back; `None` keeps it.
    fn next_bps(&mut self, pace: &Pace, feedback: &Feedback) -> Option<f64>;
}

/// The rate of a source.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pace {
    /// Rate in bit/s; zero before the first round-trip time is known.
    pub rate_bps: f64,
    /// Bits of a full packet; zero before the first acknowledgement.
    pub packet_bits: f64,
    /// Smoothed round-trip time; zero before the first sample.
    pub smoothed_rtt: Duration,
}

impl Pace {
    /// Intended time between packets in seconds; zero before the rate is known.
    pub fn interval_s(&self) -> f64 {
        if self.rate_bps > 0.0 { self.packet_bits / self.rate_bps } else { 0.0 }
    }
}

/// A rule with its rate.
#[derive(Clone, Debug)]
pub struct Paced<R> {
    rule: R,
    /// Its bounds and ssthresh; the limit of packets in flight follows from the rate.
    window: CongestionWindow,
    initial_window_packets: f64,
    pace: Pace,
}

impl<R: RateRule> Paced<R> {
    /// A session's controller at its start: the initial window once per round trip, until links answer.
    pub fn new(rule: R, config: WindowConfig) -> Self {
        let window = CongestionWindow::new(&config);
        Self { rule, window, initial_window_packets: config.initial_window_packets.max(1.0), pace: Pace::default() }
    }

    fn set_rate(&mut self, rate_bps: f64) {
        // A session without packets would not learn when it may send more.
        self.pace.rate_bps = rate_bps.clamp(self.pace.packet_bits / MAX_APART_S, MAX_BPS);
    }
}

impl<R: RateRule> CongestionController for Paced<R> {
    fn window(&self) -> &CongestionWindow {
        &self.window
    }

    fn window_mut(&mut self) -> &mut CongestionWindow {
        &mut self.window
    }

    fn header(&self, _: &Sending) -> Option<CongestionHeader> {
        Some(self.rule.header(&self.pace))
    }

    fn on_feedback(&mut self, feedback: &Feedback) {
        if feedback.smoothed_rtt.is_zero() {
            return;
        }
        self.pace.smoothed_rtt = feedback.smoothed_rtt;
        self.pace.packet_bits = f64::from(feedback.packet_bytes) * 8.0;
        if self.pace.rate_bps == 0.0 {
            self.set_window_packets(self.initial_window_packets);
        }
        let rate_bps = self.pace.rate_bps;
        let next_bps = self.rule.next_bps(&self.pace, feedback).unwrap_or(rate_bps);
        // An application that does not use its rate gets no higher one.
        self.set_rate(if feedback.window_limited { next_bps } else { next_bps.min(rate_bps) });
    }

    fn on_ack(&mut self, _: &Ack) {}

    fn on_loss(&mut self, loss: &Loss) {
        // Lost packets are sent again; only the links determine the rate.
        self.window.set_ssthresh(f64::from(loss.in_flight_packets));
    }

    fn on_timeout(&mut self, loss: &Loss) {
        self.on_loss(loss);
    }

    fn allowance(&self) -> Allowance {
        let Pace { rate_bps, packet_bits, smoothed_rtt } = self.pace;
        // The rate is the limit; the window bounds the case that acknowledgements stop.
        let by_rate =
            if rate_bps > 0.0 { 2.0 * rate_bps * smoothed_rtt.as_secs_f64() / packet_bits + 2.0 } else { 0.0 };
        let window_packets = by_rate.max(self.initial_window_packets).min(self.window.most_packets());
        Allowance { window_packets, pacing: Rate::from_bps(rate_bps).ok().filter(|rate| *rate > Rate::ZERO) }
    }

    fn set_window_packets(&mut self, window_packets: f64) {
        let rtt_s = self.pace.smoothed_rtt.as_secs_f64();
        if rtt_s > 0.0 {
            self.set_rate(window_packets.max(1.0) * self.pace.packet_bits / rtt_s);
        }
    }
}

/// Maximum time between packets in seconds, as for RCP.
const MAX_APART_S: f64 = 0.5;
/// Largest rate in bit/s: 1 Pb/s, beyond any link.
const MAX_BPS: f64 = 1e15;

#[cfg(test)]
pub(super) mod tests {
    use fairwave_units::Time;

    use super::*;

    /// A header that came back to a source with packets of 1250 B and a round-trip time of 100 ms.
    pub(in crate::session) fn feedback(now_ms: u64, header: CongestionHeader) -> Feedback {
        Feedback {
            now: Time::from_nanos(now_ms * 1_000_000),
            header,
            smoothed_rtt: Duration::from_millis(100),
            packet_bytes: 1250,
            window_limited: true,
        }
    }

    /// The rate that links state.
    struct Stated;

    impl RateRule for Stated {
        fn header(&self, pace: &Pace) -> CongestionHeader {
            CongestionHeader::Maxnet { price: pace.interval_s() }
        }

        fn next_bps(&mut self, _: &Pace, feedback: &Feedback) -> Option<f64> {
            match feedback.header {
                CongestionHeader::Maxnet { price } => Some(price),
                _ => None,
            }
        }
    }

    #[test]
    fn allowance__is_the_initial_window_then_the_rate() {
        let mut source = Paced::new(Stated, WindowConfig::default());
        assert_eq!(source.allowance(), Allowance { window_packets: 2.0, pacing: None });
        // 10 Mb/s are 100 packets of 10 kb in 100 ms: twice that and two.
        source.on_feedback(&feedback(0, CongestionHeader::Maxnet { price: 10e6 }));
        assert_eq!(source.allowance(), Allowance { window_packets: 202.0, pacing: Some(Rate::mbps(10.0)) });
        assert_eq!(source.rule.header(&source.pace), CongestionHeader::Maxnet { price: 0.001 });
        // Not used by the application: it may fall and not grow.
        for (stated, rate) in [(20e6, 10.0), (5e6, 5.0)] {
            let idle = Feedback { window_limited: false, ..feedback(0, CongestionHeader::Maxnet { price: stated }) };
            source.on_feedback(&idle);
            assert_eq!(source.allowance().pacing, Some(Rate::mbps(rate)));
        }
        // Two packets a second at least.
        source.on_feedback(&feedback(0, CongestionHeader::Maxnet { price: 0.0 }));
        assert_eq!(source.allowance().pacing, Some(Rate::mbps(0.02)));
    }
}
