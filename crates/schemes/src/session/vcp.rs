//! VCP's source (Xia, Subramanian, Stoica & Kalyanaraman 2005, sections 3.3 and 4): the links' two bits select
//! multiplicative increase, additive increase or multiplicative decrease of its window.

use fairwave_units::{Duration, Rate, Time};

use super::{Ack, Allowance, CongestionController, CongestionWindow, Feedback, Sending, WindowConfig};
use crate::header::{CongestionHeader, LoadCode};
use crate::scheme::config;
use crate::scheme::option::{TypedOption, time};

/// VCP's window.
#[derive(Clone, Debug)]
pub struct Vcp {
    config: VcpSourceConfig,
    window: CongestionWindow,
    phase: VcpPhase,
    /// Newly acknowledged packets for which the window has not grown yet.
    acked_packets: u32,
    smoothed_rtt: Duration,
    packet_bits: f64,
}

config! {
    /// Constants of VCP's sources. Xia et al. 2005, section 5: `t_rho` 200 ms, xi = kappa (1 - sigma) / sigma = 0.25 x
    /// 0.2 / 0.8 = 0.0625, alpha 1, beta 0.875. The typical round-trip time of 100 ms is that of the authors' ns-2
    /// code.
    pub struct VcpSourceConfig(options) {
        /// The links' interval: the unit of time of the multiplicative increase, and the time for which the window
        /// stays constant after a cut.
        pub t_rho: Duration = T_RHO.of(options),
        /// Growth in `t_rho` at low load, as a share of the window.
        pub xi: f64 = 0.0625,
        /// Growth in a round trip of [`VcpSourceConfig::typical_rtt`] at high load, in packets.
        pub alpha_packets: f64 = 1.0,
        /// Share of the window that is kept at overload.
        pub beta: f64 = 0.875,
        /// The round-trip time for which the additive increase is alpha.
        pub typical_rtt: Duration = Duration::from_millis(100),
    }
}

/// The source's response to overload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum VcpPhase {
    /// Ready to cut its window.
    Free,
    /// The window was cut; the links first have to measure again.
    Frozen { until: Time },
    /// They have, but their answer may not have arrived: additive increase for any code.
    Adding { until: Time },
}

impl VcpSourceConfig {
    /// Multiplicative increase for one acknowledged packet at this round-trip time, in packets (Xia et al. 2005,
    /// section 4: equal growth over time for any round-trip time).
    fn multiplied_packets(&self, rtt: Duration) -> f64 {
        let intervals = rtt.as_secs_f64() / self.t_rho.as_secs_f64();
        libm::pow(1.0 + self.xi, intervals.min(MAX_INTERVALS)) - 1.0
    }

    /// Additive increase of a round trip of this length, in packets: proportional to its square, so that rates grow
    /// equally. The authors' ns-2 code bends the parabola into lines below 20 ms and above 500 ms.
    fn added_packets(&self, rtt: Duration) -> f64 {
        let ratio = rtt.as_secs_f64() / self.typical_rtt.as_secs_f64();
        let scale = if ratio <= LEFT {
            ratio * LEFT
        } else if ratio <= RIGHT {
            ratio * ratio
        } else {
            RIGHT * RIGHT + ratio - RIGHT
        };
        self.alpha_packets * scale
    }
}

impl Vcp {
    /// A session's controller at its start. There is no slow start: at low load the increase is multiplicative anyway.
    pub fn new(config: VcpSourceConfig, window: WindowConfig) -> Self {
        Self {
            config,
            window: CongestionWindow::new(&window),
            phase: VcpPhase::Free,
            acked_packets: 0,
            smoothed_rtt: Duration::ZERO,
            packet_bits: 0.0,
        }
    }

    /// The phase at `now`.
    fn pass(&mut self, now: Time) {
        if let VcpPhase::Frozen { until } = self.phase
            && now >= until
        {
            self.phase = VcpPhase::Adding { until: until.saturating_add(self.smoothed_rtt) };
        }
        if let VcpPhase::Adding { until } = self.phase
            && now >= until
        {
            self.phase = VcpPhase::Free;
        }
    }

    /// Grows the window for `acked_packets`.
    fn grow(&mut self, code: LoadCode, acked_packets: u32) {
        let growth = match code {
            LoadCode::Low => self.config.multiplied_packets(self.smoothed_rtt),
            LoadCode::High | LoadCode::Overload => self.config.added_packets(self.smoothed_rtt) / self.window.packets(),
        };
        self.window.set(self.window.packets() + growth * f64::from(acked_packets));
    }

    /// The window is spread over the round-trip time. Differs from the authors' ns-2 code, which only spreads windows
    /// of a few packets over long paths: with a burst of half a window in one of the links' intervals and none in the
    /// next the links alternate between overload and high load, and packets behind a burst return with the code from
    /// before it.
    fn pacing(&self) -> Option<Rate> {
        if self.smoothed_rtt.is_zero() {
            return None;
        }
        let rate_bps = self.window.packets() * self.packet_bits / self.smoothed_rtt.as_secs_f64();
        Rate::from_bps(PACING_GAIN * rate_bps).ok()
    }
}

impl CongestionController for Vcp {
    fn window(&self) -> &CongestionWindow {
        &self.window
    }

    fn window_mut(&mut self) -> &mut CongestionWindow {
        &mut self.window
    }

    fn header(&self, _: &Sending) -> Option<CongestionHeader> {
        Some(CongestionHeader::Vcp(LoadCode::Low))
    }

    fn on_feedback(&mut self, feedback: &Feedback) {
        let CongestionHeader::Vcp(code) = feedback.header else { return };
        self.smoothed_rtt = feedback.smoothed_rtt;
        self.packet_bits = f64::from(feedback.packet_bytes) * 8.0;
        self.pass(feedback.now);
        let acked_packets = std::mem::take(&mut self.acked_packets);
        match (self.phase, code) {
            (VcpPhase::Frozen { .. }, _) => {}
            (VcpPhase::Free, LoadCode::Overload) => {
                self.window.set(self.window.packets() * self.config.beta);
                self.phase = VcpPhase::Frozen { until: feedback.now.saturating_add(self.config.t_rho) };
            }
            // A session that does not use its window has no use for a larger one.
            (_, _) if !feedback.window_limited => {}
            (VcpPhase::Adding { .. }, _) => self.grow(LoadCode::High, acked_packets),
            (VcpPhase::Free, code) => self.grow(code, acked_packets),
        }
    }

    fn on_ack(&mut self, ack: &Ack) {
        // As many as a delayed acknowledgement has: one that fills a hole may cover a window.
        self.acked_packets = if ack.in_recovery { 0 } else { ack.acked_packets.min(2) };
    }

    fn allowance(&self) -> Allowance {
        Allowance { window_packets: self.window.packets(), pacing: self.pacing() }
    }
}

/// Maximum intervals that a round trip counts for in the multiplicative increase.
const MAX_INTERVALS: f64 = 2.5;
/// Ratio to the typical round-trip time, 20 ms over 100 ms, from which on the additive increase is quadratic.
const LEFT: f64 = 0.2;
/// Ratio to the typical round-trip time, 500 ms over 100 ms, up to which the additive increase is quadratic.
const RIGHT: f64 = 5.0;
/// Factor of the pacing rate over the window per round-trip time, so that the window is the limit.
const PACING_GAIN: f64 = 1.1;

/// Interval over which a link measures its load. Its source needs to know it.
pub(crate) const T_RHO: TypedOption<Duration> = time(
    "t_rho",
    [Duration::from_millis(1), Duration::from_secs(60)],
    "200 ms",
    "interval over which a link measures its load",
);

#[cfg(test)]
mod tests {
    use super::super::{test_ack, test_loss};
    use super::*;

    fn close(got: f64, expected: f64) {
        assert!((got - expected).abs() <= 1e-9 * expected.abs(), "{got}, not {expected}");
    }

    fn vcp(window_packets: f64) -> Vcp {
        let mut vcp = Vcp::new(VcpSourceConfig::default(), WindowConfig::default());
        vcp.set_window_packets(window_packets);
        vcp
    }

    /// An acknowledgement of one packet with this code.
    fn hear(vcp: &mut Vcp, at_ms: u64, rtt_ms: u64, code: LoadCode) -> f64 {
        vcp.on_ack(&test_ack(1));
        vcp.on_feedback(&Feedback {
            now: Time::from_nanos(at_ms * 1_000_000),
            header: CongestionHeader::Vcp(code),
            smoothed_rtt: Duration::from_millis(rtt_ms),
            packet_bytes: 1000,
            window_limited: true,
        });
        vcp.allowance().window_packets
    }

    #[test]
    fn low__growth_per_time_is_independent_of_the_rtt() {
        // A window of acknowledgements at a round trip of 200 ms = t_rho: x 1.0625; at 100 ms the square root of that.
        close(hear(&mut vcp(100.0), 0, 200, LoadCode::Low), 100.0625);
        close(hear(&mut vcp(100.0), 0, 100, LoadCode::Low), 100.0 + 1.0625_f64.sqrt() - 1.0);
        // A second counts as 2.5 intervals.
        close(hear(&mut vcp(100.0), 0, 1000, LoadCode::Low), 100.0 + 1.0625_f64.powf(2.5) - 1.0);
    }

    #[test]
    fn high__adds_by_the_square_of_the_round_trip_time() {
        // Per round trip 1 packet at 100 ms, 4 at 200 ms, 0.1 x 0.2 at 10 ms, 25 + 5 at 1 s.
        for (rtt_ms, per_rtt) in [(100, 1.0), (200, 4.0), (10, 0.02), (1000, 30.0)] {
            close(hear(&mut vcp(50.0), 0, rtt_ms, LoadCode::High), 50.0 + per_rtt / 50.0);
        }
    }

    #[test]
    fn overload__cuts_once_then_freezes_then_adds_for_a_round_trip() {
        let mut vcp = vcp(80.0);
        let mut at = |ms| hear(&mut vcp, ms, 100, LoadCode::Overload);
        close(at(0), 70.0); // 80 x 0.875
        close(at(1), 70.0);
        close(at(199), 70.0);
        close(at(200), 70.0 + 1.0 / 70.0);
        let added = at(299);
        assert!(added > 70.0 + 1.0 / 70.0);
        close(at(300), 0.875 * added);
    }

    #[test]
    fn frozen__ignores_all_codes() {
        let mut vcp = vcp(80.0);
        hear(&mut vcp, 0, 100, LoadCode::Overload);
        close(hear(&mut vcp, 150, 100, LoadCode::Low), 70.0);
        // The round trip after it has additive increase even at low load.
        close(hear(&mut vcp, 250, 100, LoadCode::Low), 70.0 + 1.0 / 70.0);
        close(hear(&mut vcp, 500, 200, LoadCode::Low), 70.0 + 1.0 / 70.0 + 0.0625);
    }

    #[test]
    fn window__is_at_least_one_packet() {
        let mut vcp = vcp(1.0);
        close(hear(&mut vcp, 0, 100, LoadCode::Overload), 1.0);
        vcp.on_timeout(&test_loss(0));
        close(vcp.allowance().window_packets, 1.0);
    }

    #[test]
    fn loss__halves_packets_in_flight() {
        let mut vcp = vcp(100.0);
        vcp.on_loss(&test_loss(60));
        close(vcp.allowance().window_packets, 30.0);
    }

    #[test]
    fn window__that_is_not_used_does_not_grow() {
        let mut vcp = vcp(50.0);
        vcp.on_ack(&test_ack(1));
        let header = CongestionHeader::Vcp(LoadCode::Low);
        let (now, smoothed_rtt) = (Time::ZERO, Duration::from_millis(100));
        vcp.on_feedback(&Feedback { now, header, smoothed_rtt, packet_bytes: 1000, window_limited: false });
        close(vcp.allowance().window_packets, 50.0);
    }

    #[test]
    fn pacing__spreads_the_window_over_the_round_trip() {
        let mut vcp = vcp(50.0);
        assert_eq!(vcp.allowance().pacing, None);
        // 50 x 8000 bits in 100 ms, plus a tenth.
        vcp.on_ack(&Ack { in_recovery: true, ..test_ack(1) });
        let header = CongestionHeader::Vcp(LoadCode::High);
        let (now, smoothed_rtt) = (Time::ZERO, Duration::from_millis(100));
        vcp.on_feedback(&Feedback { now, header, smoothed_rtt, packet_bytes: 1000, window_limited: true });
        close(vcp.allowance().pacing.unwrap().as_bps(), 4.4e6);
    }
}
