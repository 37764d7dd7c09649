//! DCTCP (RFC 8257; Alizadeh et al., "Data Center TCP", SIGCOMM 2010): the window is cut by half of the share of marked
//! packets. TCP Prague is built on it.

use fairwave_units::{Duration, Time};

use super::controller::{CongestionController, MarkResponse};
use super::event::{Ack, Loss};
use super::new_reno::NewReno;
use super::tcp_options::{LINUX_TCP, TCP_OPTIONS};
use super::window::{CongestionWindow, WindowConfig};
use super::windowed::Windowed;
use crate::header::EcnCode;
use crate::scheme::option::{CLOSED_UNIT, HALF_OPEN_UNIT, TypedOption, join, number};
use crate::scheme::{OptionSpec, Scheme, config, entry};

/// A window that follows the share of marked packets.
#[derive(Clone, Debug)]
pub struct Dctcp {
    tcp: Windowed<NewReno>,
    config: DctcpConfig,
    /// Mean share of marked packets (RFC 8257 s3.3: DCTCP.Alpha).
    alpha: f64,
    /// Packets of the current observation window.
    acked: u64,
    marked: u64,
    /// End of the observation window: of a round trip, or of a virtual one.
    round: u64,
    observed_until: Time,
    /// After a cut, no other one until these packets are acknowledged, or until this time.
    held_packets: u64,
    held_until: Time,
}

config! {
    /// Constants of DCTCP and of TCP Prague. RFC 8257 s4.2: 1/16, and one, so that the first mark halves the window.
    pub struct DctcpConfig(options) {
        /// Weight of an observation window in the mean share of marks (RFC 8257 s4.2: DCTCP.g).
        pub gain: f64 = GAIN.of(options),
        /// The mean share at the start.
        pub initial_alpha: f64 = INITIAL_ALPHA.of(options),
        /// Minimum of the round trips by which it counts; zero for those of the path.
        pub virtual_rtt: Duration = Duration::ZERO,
        /// The code of its packets.
        pub code: EcnCode = EcnCode::Capable,
    }
}

impl Dctcp {
    /// A session's controller at its start.
    pub fn new(config: DctcpConfig, window: WindowConfig) -> Self {
        Self {
            tcp: Windowed::new(NewReno, window),
            config,
            alpha: config.initial_alpha,
            acked: 0,
            marked: 0,
            round: 0,
            observed_until: Time::ZERO,
            held_packets: 0,
            held_until: Time::ZERO,
        }
    }

    /// Mean share of marked packets.
    pub fn alpha(&self) -> f64 {
        self.alpha
    }

    /// The round trip by which it counts.
    fn virtual_rtt(&self, ack: &Ack) -> Duration {
        self.config.virtual_rtt.max(ack.smoothed_rtt)
    }

    /// Counts an acknowledgement; at the end of an observation window the mean moves towards its share.
    fn observe(&mut self, ack: &Ack) {
        let is_over =
            if self.config.virtual_rtt.is_zero() { ack.round != self.round } else { ack.now >= self.observed_until };
        if is_over {
            // RFC 8257 s3.3: alpha = alpha (1 - g) + g M. The first acknowledgement after a window belongs to the next.
            if self.acked > 0 {
                let share = (self.marked as f64 / self.acked as f64).min(1.0);
                self.alpha += self.config.gain * (share - self.alpha);
            }
            (self.acked, self.marked, self.round) = (0, 0, ack.round);
            self.observed_until = ack.now.saturating_add(self.virtual_rtt(ack));
        }
        self.acked += u64::from(ack.acked_packets);
        self.marked += u64::from(ack.marked_packets);
    }

    /// Whether the last cut was more than a round trip ago.
    fn may_cut(&self, ack: &Ack) -> bool {
        if self.config.virtual_rtt.is_zero() { self.held_packets == 0 } else { ack.now >= self.held_until }
    }
}

impl CongestionController for Dctcp {
    fn window(&self) -> &CongestionWindow {
        self.tcp.window()
    }

    fn window_mut(&mut self) -> &mut CongestionWindow {
        self.tcp.window_mut()
    }

    fn on_ack(&mut self, ack: &Ack) {
        // The packets that were in flight at the last cut had no part in it.
        let may_cut = self.may_cut(ack);
        self.held_packets = self.held_packets.saturating_sub(u64::from(ack.acked_packets));
        self.observe(ack);
        let window_packets = self.window().packets();
        if ack.marked_packets > 0 && may_cut {
            // RFC 8257 s3.3: cwnd = cwnd (1 - alpha / 2), once per window of data.
            let alpha = self.alpha;
            self.window_mut().cut_to(window_packets * (1.0 - alpha / 2.0));
            self.held_packets = u64::from(ack.in_flight_packets.saturating_sub(ack.acked_packets));
            self.held_until = ack.now.saturating_add(self.virtual_rtt(ack));
        }
        // Marked packets give no growth, unmarked ones do, also in a round trip with marks.
        let acked_packets = ack.acked_packets.saturating_sub(ack.marked_packets);
        if acked_packets == 0 {
            return;
        }
        let before = self.window().packets();
        let is_slow_start = before < self.tcp.ssthresh_packets();
        self.tcp.on_ack(&Ack { acked_packets, ..*ack });
        if !is_slow_start && !ack.smoothed_rtt.is_zero() {
            // Prague: as fast, in packets per second squared, as at the virtual round-trip time.
            let share = ack.smoothed_rtt.as_secs_f64() / self.virtual_rtt(ack).as_secs_f64();
            let growth = self.window().packets() - before;
            self.window_mut().set(before + growth * share * share);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.tcp.on_loss(loss);
    }

    fn on_timeout(&mut self, loss: &Loss) {
        self.tcp.on_timeout(loss);
    }

    fn on_resume(&mut self, now: Time, restart_packets: Option<f64>) {
        self.tcp.on_resume(now, restart_packets);
    }

    fn mark_response(&self) -> MarkResponse {
        MarkResponse::Own(self.config.code)
    }
}

/// The options of DCTCP, without those of every TCP-like sender.
pub(super) const GAIN: TypedOption<f64> =
    number("g", HALF_OPEN_UNIT, "0.0625", "weight of a round trip in the mean share of marks");
pub(super) const INITIAL_ALPHA: TypedOption<f64> =
    number("initial_alpha", CLOSED_UNIT, "1", "mean share of marks at the start");

const OPTIONS: [OptionSpec; TCP_OPTIONS + 2] = join(LINUX_TCP, [GAIN.spec(), INITIAL_ALPHA.spec()]);

/// The scheme's registry entry.
pub(super) const SCHEME: Scheme = Scheme {
    needs: "queues that mark from a low threshold on, as ecn-step does",
    answers_marks: true,
    ..entry::window("dctcp", "Data Center TCP: a cut by the share of marks", "RFC 8257", &OPTIONS, |options, window| {
        Ok(Box::new(Dctcp::new(DctcpConfig::from_options(options), window)))
    })
};

#[cfg(test)]
mod tests {
    use super::super::event::{test_ack, test_loss};
    use super::*;

    fn dctcp(window_packets: f64) -> Dctcp {
        let window = WindowConfig { initial_window_packets: window_packets, ..Default::default() };
        let mut dctcp = Dctcp::new(DctcpConfig::default(), window);
        dctcp.window_mut().cut_to(window_packets);
        dctcp
    }

    /// A round trip of a window of `packets`, of which the last `marked` are marked.
    fn round(dctcp: &mut Dctcp, round: u64, packets: u32, marked: u32) {
        for at in 0..packets {
            let marked_packets = u32::from(at >= packets - marked);
            dctcp.on_ack(&Ack { round, marked_packets, in_flight_packets: packets, ..test_ack(1) });
        }
    }

    #[test]
    fn alpha__decays_by_a_sixteenth_per_round() {
        let mut dctcp = dctcp(10.0);
        for number in 0..=72 {
            round(&mut dctcp, number, 10, 0);
            // (15/16)^n: 0.5245 after 10, 0.0096 after 72.
            let expected = (15.0_f64 / 16.0).powi(number as i32);
            assert!((dctcp.alpha() - expected).abs() < 1e-12, "{number}: {}", dctcp.alpha());
        }
        assert!((dctcp.alpha() - 0.0096).abs() < 5e-5);
    }

    #[test]
    fn on_ack__halves_if_all_are_marked_once_per_window() {
        let mut dctcp = dctcp(100.0);
        round(&mut dctcp, 0, 100, 100);
        assert_eq!((dctcp.alpha(), dctcp.window().packets(), dctcp.ssthresh_packets()), (1.0, 50.0, 50.0));
        round(&mut dctcp, 1, 50, 50);
        assert_eq!(dctcp.window().packets(), 25.0);
    }

    #[test]
    fn on_ack__unmarked_packets_of_a_marked_round_give_growth() {
        let mut dctcp = dctcp(100.0);
        dctcp.alpha = 0.1;
        // 99 packets of growth, 99 / 100 at most, then one mark: by 5 %.
        round(&mut dctcp, 0, 100, 1);
        let window = dctcp.window().packets();
        assert!((95.9..95.95).contains(&window), "{window}"); // 100.98 x .95 = 95.93
    }

    #[test]
    fn on_loss__halves_as_tcp() {
        let mut dctcp = dctcp(100.0);
        dctcp.on_loss(&test_loss(100));
        assert_eq!(dctcp.window().packets(), 50.0);
    }
}
