//! TCP Hybla (Caini & Firrincieli 2004; Linux, `tcp_hybla.c`): a long path gains as much per second as a short one.

use fairwave_units::Duration;

use super::event::{Ack, Loss};
use super::tcp_options::{LINUX_TCP, TCP_OPTIONS};
use super::windowed::{WindowRule, windowed};
use crate::scheme::entry;
use crate::scheme::option::{HOUR, TypedOption, join, time};
use crate::scheme::{OptionSpec, Options, Scheme};

/// Growth scaled by the round-trip time relative to a reference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hybla {
    rtt0_s: f64,
    /// Round-trip time over the reference, at least one.
    rho: f64,
}

impl Hybla {
    /// A rule with this reference, in seconds.
    pub fn new(rtt0_s: f64) -> Self {
        Self { rtt0_s, rho: 1.0 }
    }

    fn follow(&mut self, ack: &Ack) {
        if !ack.smoothed_rtt.is_zero() {
            // Linux: the smallest of the smoothed round-trip times would be exact; the minimum of all samples is close.
            self.rho = (ack.min_rtt.as_secs_f64() / self.rtt0_s).max(1.0);
        }
    }
}

impl WindowRule for Hybla {
    fn slow_start(&mut self, _window_packets: f64, ack: &Ack) -> Option<f64> {
        self.follow(ack);
        // Caini & Firrincieli 2004, Eq. 6: 2^rho - 1 per acknowledgement. Linux bounds rho by 16.
        Some(f64::from(ack.acked_packets.min(1)) * (libm::exp2(self.rho.min(MAX_RHO)) - 1.0))
    }

    fn increase(&mut self, window_packets: f64, ack: &Ack) -> f64 {
        self.follow(ack);
        // Eq. 6: rho^2 / W per acknowledgement.
        f64::from(ack.acked_packets) * self.rho * self.rho / window_packets
    }

    fn decrease(&mut self, _window_packets: f64, loss: &Loss) -> f64 {
        f64::from(loss.in_flight_packets) / 2.0
    }
}

/// Bound of the exponent in slow start (Linux: `rho_3ls > 128`, in eighths).
const MAX_RHO: f64 = 16.0;
/// Reference round-trip time (Linux: `rtt0`).
const RTT0_S: f64 = 0.025;

const RTT0: TypedOption<Duration> =
    time("rtt0", [Duration::ZERO, HOUR], "25 ms", "round-trip time of the reference connection");
const OPTIONS: [OptionSpec; TCP_OPTIONS + 1] = join(LINUX_TCP, [RTT0.spec()]);

/// The scheme's registry entry.
pub(super) const SCHEME: Scheme = entry::window(
    "hybla",
    "TCP Hybla: growth per second as on a path of 25 ms",
    "Caini & Firrincieli 2004; Linux",
    &OPTIONS,
    |options: &Options, window| {
        let rtt0_s = Some(RTT0.of(options)).filter(|rtt0| !rtt0.is_zero()).map_or(RTT0_S, Duration::as_secs_f64);
        Ok(windowed(Hybla::new(rtt0_s), window))
    },
);

#[cfg(test)]
mod tests {
    use super::super::{test_ack, test_loss};
    use super::*;

    #[test]
    fn growth__at_four_times_the_reference() {
        let mut hybla = Hybla::new(RTT0_S);
        // 100 ms: rho = 4; 2^4 - 1 = 15 in slow start, 16 / W beyond.
        let ack = test_ack(1);
        assert_eq!(hybla.slow_start(2.0, &ack), Some(15.0));
        assert_eq!(hybla.increase(100.0, &ack), 0.16);
        assert_eq!(hybla.decrease(100.0, &test_loss(80)), 40.0);
    }

    #[test]
    fn growth__is_tcps_below_the_reference() {
        let mut hybla = Hybla::new(RTT0_S);
        let short = Duration::from_millis(10);
        let ack = Ack { min_rtt: short, smoothed_rtt: short, ..test_ack(1) };
        assert_eq!((hybla.slow_start(2.0, &ack), hybla.increase(100.0, &ack)), (Some(1.0), 0.01));
    }
}
