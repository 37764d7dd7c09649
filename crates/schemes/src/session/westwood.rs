//! TCP Westwood+ (Mascolo et al. 2001, Grieco & Mascolo 2004; Linux, `tcp_westwood.c`): after a loss the window is the
//! measured bandwidth times the least round-trip time.

use fairwave_units::{Duration, Time};

use super::event::{Ack, Loss};
use super::tcp_options::LINUX_TCP;
use super::windowed::{WindowRule, windowed};
use crate::scheme::{Scheme, entry};

/// TCP with a cut to the estimated bandwidth-delay product.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Westwood {
    /// Packets acknowledged since the last sample of the bandwidth.
    acked: u64,
    sampled_at: Option<Time>,
    /// The estimate after one filter, and after two, in packets per second.
    once: Option<f64>,
    packets_per_s: f64,
    min_rtt: Duration,
}

/// Shortest interval of a sample (Linux: TCP_WESTWOOD_RTT_MIN).
const MIN_INTERVAL: Duration = Duration::from_millis(50);

impl Westwood {
    /// Counts an acknowledgement; once a round trip the bandwidth is sampled.
    fn sample(&mut self, ack: &Ack) {
        self.min_rtt = ack.min_rtt;
        let Some(since) = self.sampled_at else {
            self.sampled_at = Some(ack.now);
            return;
        };
        self.acked += u64::from(ack.acked_packets);
        let span = ack.now.since(since);
        if span <= MIN_INTERVAL.max(ack.smoothed_rtt) {
            return;
        }
        let sample = self.acked as f64 / span.as_secs_f64();
        // Linux: two filters with 7/8 of the old value, in a row.
        let once = self.once.map_or(sample, |once| once * 0.875 + sample / 8.0);
        self.packets_per_s = if self.once.is_some() { self.packets_per_s * 0.875 + once / 8.0 } else { once };
        self.once = Some(once);
        (self.acked, self.sampled_at) = (0, Some(ack.now));
    }

    /// Estimated bandwidth-delay product in packets.
    fn bdp_packets(&self) -> f64 {
        (self.packets_per_s * self.min_rtt.as_secs_f64()).max(2.0)
    }
}

impl WindowRule for Westwood {
    fn slow_start(&mut self, _window_packets: f64, ack: &Ack) -> Option<f64> {
        self.sample(ack);
        None
    }

    fn increase(&mut self, window_packets: f64, ack: &Ack) -> f64 {
        self.sample(ack);
        f64::from(ack.acked_packets) / window_packets
    }

    fn decrease(&mut self, _window_packets: f64, _loss: &Loss) -> f64 {
        self.bdp_packets()
    }

    fn time_out(&mut self, _window_packets: f64, _loss: &Loss) -> f64 {
        self.bdp_packets()
    }
}

/// The scheme's registry entry.
pub(super) const SCHEME: Scheme = entry::window(
    "westwood",
    "TCP Westwood+: the measured bandwidth-delay product after a loss",
    "Grieco & Mascolo 2004; Linux",
    &LINUX_TCP,
    |_, window| Ok(windowed(Westwood::default(), window)),
);

#[cfg(test)]
mod tests {
    use super::super::{test_ack, test_loss};
    use super::*;

    /// Acknowledgements of one packet each, `per_s` a second, for some seconds.
    fn run(rule: &mut Westwood, per_s: u64, from_s: u64, to_s: u64) {
        for at in from_s * per_s..to_s * per_s {
            rule.increase(100.0, &Ack { now: Time::from_nanos(at * 1_000_000_000 / per_s), ..test_ack(1) });
        }
    }

    #[test]
    fn decrease__to_the_bandwidth_delay_product() {
        let mut rule = Westwood::default();
        run(&mut rule, 1000, 0, 10);
        // 1000 packets/s times 100 ms, whatever is in flight.
        let window = rule.decrease(300.0, &test_loss(300));
        assert!((window - 100.0).abs() < 0.5, "{window}");
    }

    #[test]
    fn sample__is_filtered_twice() {
        let mut rule = Westwood::default();
        run(&mut rule, 1000, 0, 10);
        run(&mut rule, 2000, 10, 11);
        // Nine samples of twice the rate: 1 + (1 - (7/8)^n (1 + n/8)) with n = 9 is 1.36.
        let window = rule.decrease(300.0, &test_loss(300));
        assert!((130.0..141.0).contains(&window), "{window}");
    }
}
