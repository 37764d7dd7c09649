//! CUBIC (RFC 9438): the window is a cubic function of the time since the last loss, so that its growth does not depend
//! on the round-trip time.

use fairwave_units::{Duration, Time};

use super::event::{Ack, Loss};
use super::hystart::{HYSTART, HyStart};
use super::tcp_options::{LINUX_TCP, TCP_OPTIONS};
use super::windowed::{WindowRule, windowed};
use crate::scheme::option::{POSITIVE, TypedOption, UNIT, join, number};
use crate::scheme::{OptionSpec, Scheme, config, entry};

/// CUBIC's rule. Windows in packets, times in seconds, as in the RFC.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cubic {
    config: CubicConfig,
    /// The window at the last loss, slightly reduced if the last two losses show that others need room.
    max_packets: f64,
    /// The window just before the last cut.
    prior_packets: f64,
    epoch: Option<Epoch>,
}

config! {
    /// Constants of CUBIC. RFC 9438 s5: C = 0.4, beta = 0.7.
    pub struct CubicConfig(options) {
        /// Packets per second cubed.
        pub c: f64 = C.of(options),
        /// Share of the window that is *kept* after a loss.
        pub beta: f64 = BETA.of(options),
        /// Window up to which the cut is TCP's half.
        pub low_window_packets: f64 = 0.0,
    }
}

/// A stretch of congestion avoidance between two losses.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Epoch {
    start: Time,
    /// Time at which the cubic reaches the old maximum, in seconds from the start.
    k_s: f64,
    origin_packets: f64,
    /// Window of TCP itself at this point.
    reno_packets: f64,
}

impl Cubic {
    /// A rule with these constants.
    pub fn new(config: CubicConfig) -> Self {
        Self { config, max_packets: 0.0, prior_packets: f64::INFINITY, epoch: None }
    }

    /// RFC 9438 s4.2: K, the time to grow back to the old maximum.
    fn begin(&mut self, now: Time, window_packets: f64) -> Epoch {
        // RFC 9438 s4.8: the first congestion avoidance after a time-out starts at K = 0 and W_max = cwnd.
        self.max_packets = self.max_packets.max(window_packets);
        let (k_s, origin_packets) = (libm::cbrt((self.max_packets - window_packets) / self.config.c), self.max_packets);
        Epoch { start: now, k_s, origin_packets, reno_packets: window_packets }
    }

    /// RFC 9438, Eq. 1: the cubic at `after` the start of the epoch.
    fn cubic(&self, epoch: &Epoch, after: Duration) -> f64 {
        let t = after.as_secs_f64() - epoch.k_s;
        self.config.c * t * t * t + epoch.origin_packets
    }
}

impl WindowRule for Cubic {
    fn increase(&mut self, window_packets: f64, ack: &Ack) -> f64 {
        let mut epoch = match self.epoch {
            Some(epoch) => epoch,
            None => self.begin(ack.now, window_packets),
        };
        let acked = f64::from(ack.acked_packets);
        let after = ack.now.since(epoch.start);
        // RFC 9438, Eq. 4: as TCP with the same mean window; from the old window on as TCP itself.
        let beta = self.config.beta;
        let alpha = if epoch.reno_packets >= self.prior_packets { 1.0 } else { 3.0 * (1.0 - beta) / (1.0 + beta) };
        epoch.reno_packets += alpha * acked / window_packets;
        self.epoch = Some(epoch);

        if self.cubic(&epoch, after) < epoch.reno_packets {
            // RFC 9438 s4.3: the Reno-friendly region.
            return (epoch.reno_packets - window_packets).max(0.0);
        }
        // RFC 9438 s4.2: towards the cubic one round trip ahead, by at most half the window per round trip.
        let ahead = after.checked_add(ack.smoothed_rtt).unwrap_or(after);
        let target = self.cubic(&epoch, ahead).max(window_packets).min(1.5 * window_packets);
        (target - window_packets) * acked / window_packets
    }

    fn decrease(&mut self, window_packets: f64, _loss: &Loss) -> f64 {
        let CubicConfig { beta, low_window_packets, .. } = self.config;
        self.epoch = None;
        self.prior_packets = window_packets;
        // RFC 9438 s4.7: fast convergence.
        self.max_packets =
            if window_packets < self.max_packets { window_packets * (1.0 + beta) / 2.0 } else { window_packets };
        window_packets * if window_packets <= low_window_packets { 0.5 } else { beta }
    }

    fn time_out(&mut self, window_packets: f64, loss: &Loss) -> f64 {
        // RFC 9438 s4.8: ssthresh as after a loss. The old maximum is dropped: congestion avoidance starts at its own.
        let ssthresh_packets = self.decrease(window_packets, loss);
        self.max_packets = 0.0;
        ssthresh_packets
    }

    fn pause(&mut self, span: Duration) {
        if let Some(epoch) = &mut self.epoch {
            epoch.start = epoch.start.saturating_add(span);
        }
    }
}

/// The scheme's registry entry.
pub(super) const SCHEME: Scheme = entry::of_kernels(entry::window(
    "cubic",
    "CUBIC: the window is a cubic of the time since the last loss",
    "RFC 9438",
    &OPTIONS,
    |options, window| {
        let cubic = Cubic::new(CubicConfig::from_options(options));
        Ok(if HYSTART.of(options) { windowed(HyStart::new(cubic), window) } else { windowed(cubic, window) })
    },
));
/// RFC 9438 is what Linux runs.
const OPTIONS: [OptionSpec; TCP_OPTIONS + 3] = join(LINUX_TCP, [C.spec(), BETA.spec(), HYSTART.spec()]);
const C: TypedOption<f64> = number("c", POSITIVE, "0.4", "scale of the cubic in packets/s^3");
const BETA: TypedOption<f64> = number("beta", UNIT, "0.7", "fraction kept at a loss (RFC 9438)");

#[cfg(test)]
mod tests {
    use super::super::{test_ack, test_loss};
    use super::*;

    #[test]
    fn cubic__passes_through_the_old_maximum_at_k() {
        let mut cubic = Cubic::new(CubicConfig::default());
        assert_eq!(cubic.decrease(1000.0, &test_loss(1000)), 700.0);
        let epoch = cubic.begin(Time::ZERO, 700.0);
        assert!((epoch.k_s - 9.085_603).abs() < 1e-6); // cbrt(300 / 0.4)
        let at = |s: f64| cubic.cubic(&epoch, Duration::from_secs_f64(s).unwrap());
        assert!((at(0.0) - 700.0).abs() < 1e-9);
        assert!((at(epoch.k_s) - 1000.0).abs() < 1e-6);
        assert!((at(2.0 * epoch.k_s) - 1300.0).abs() < 1e-3);
    }

    #[test]
    fn time_out__forgets_the_old_maximum() {
        // RFC 9438 s4.8: K = 0 and W_max = cwnd when congestion avoidance starts after a time-out.
        let mut cubic = Cubic::new(CubicConfig::default());
        assert_eq!(cubic.time_out(1000.0, &test_loss(1000)), 700.0);
        let epoch = cubic.begin(Time::ZERO, 700.0);
        assert_eq!((epoch.k_s, epoch.origin_packets, cubic.max_packets), (0.0, 700.0, 700.0));
    }

    #[test]
    fn pause__leaves_the_span_out_of_the_epoch() {
        let grown = |pause_s: u64| {
            let mut cubic = Cubic::new(CubicConfig::default());
            cubic.decrease(1000.0, &test_loss(1000));
            cubic.increase(700.0, &Ack { now: Time::from_secs(1), ..test_ack(1) });
            cubic.pause(Duration::from_secs(pause_s));
            cubic.increase(800.0, &Ack { now: Time::from_secs(5 + pause_s), ..test_ack(1) })
        };
        assert_eq!(grown(0), grown(60));
    }

    #[test]
    fn decrease__fast_convergence_aims_lower() {
        let mut cubic = Cubic::new(CubicConfig::default());
        cubic.decrease(1000.0, &test_loss(1000));
        cubic.decrease(900.0, &test_loss(900));
        assert!((cubic.max_packets - 765.0).abs() < 1e-9); // 900 x 1.7 / 2
    }

    #[test]
    fn increase__at_most_half_per_round_trip() {
        let mut cubic = Cubic::new(CubicConfig::default());
        cubic.decrease(1000.0, &test_loss(1000));
        let mut ack = test_ack(1);
        cubic.increase(700.0, &ack);
        ack.now = Time::from_secs(1000);
        assert!((cubic.increase(700.0, &ack) - 0.5).abs() < 1e-9); // (1050 - 700) / 700
    }
}
