//! H-TCP (Leith & Shorten 2004): growth is a function of the time since the last loss, the cut follows the ratio of the
//! least to the largest round-trip time.

use fairwave_units::{Duration, Time};

use super::{Ack, Loss, WindowRule};

/// H-TCP's rule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Htcp {
    config: HtcpConfig,
    /// The last loss, or the first acknowledgement.
    last_loss: Option<Time>,
    /// Since the last loss.
    least_rtt: Option<Duration>,
    largest_rtt: Duration,
    /// Share that is kept after a loss.
    kept: f64,
    /// Packets acknowledged since the last loss, and the throughput before it: a sudden change resets the cut to half.
    acked_packets: f64,
    throughput: Option<f64>,
}

/// Constants of H-TCP.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HtcpConfig {
    /// Time after a loss during which it grows like TCP.
    pub low_period: Duration,
    /// Least and largest share that is kept after a loss.
    pub kept: (f64, f64),
    /// Change of throughput between two losses above which half is kept.
    pub throughput_change: f64,
}

impl Htcp {
    /// A rule with these constants.
    pub fn new(config: HtcpConfig) -> Self {
        Self {
            config,
            last_loss: None,
            least_rtt: None,
            largest_rtt: Duration::ZERO,
            kept: 0.5,
            acked_packets: 0.0,
            throughput: None,
        }
    }

    /// Packets per round trip, `since` after the last loss (Leith & Shorten 2004, Eq. 3): 1 within the low period D_L,
    /// then 1 + 10 (D - D_L) + ((D - D_L) / 2)^2; scaled by 2 (1 - kept), so that the mean does not depend on the cut.
    fn step(&self, since: Duration) -> f64 {
        let beyond = since.as_secs_f64() - self.config.low_period.as_secs_f64();
        let alpha = if beyond <= 0.0 { 1.0 } else { 1.0 + 10.0 * beyond + 0.25 * beyond * beyond };
        (2.0 * (1.0 - self.kept) * alpha).max(1.0)
    }
}

impl WindowRule for Htcp {
    fn increase(&mut self, window_packets: f64, ack: &Ack) -> f64 {
        if let Some(rtt) = ack.rtt {
            self.least_rtt = Some(self.least_rtt.map_or(rtt, |least| least.min(rtt)));
            self.largest_rtt = self.largest_rtt.max(rtt);
        }
        let acked = f64::from(ack.acked_packets);
        self.acked_packets += acked;
        let since = ack.now.since(*self.last_loss.get_or_insert(ack.now));
        self.step(since) * acked / window_packets
    }

    fn decrease(&mut self, window_packets: f64, loss: &Loss) -> f64 {
        let since = self.last_loss.map_or(Duration::ZERO, |last| loss.now.since(last)).as_secs_f64();
        let throughput = (since > 0.0).then(|| self.acked_packets / since);
        let (least, most) = self.config.kept;
        let is_steady = match (self.throughput, throughput) {
            (Some(before), Some(now)) => (now - before).abs() <= self.config.throughput_change * before,
            _ => false,
        };
        self.kept = match self.least_rtt {
            Some(rtt) if is_steady && !self.largest_rtt.is_zero() => {
                (rtt.as_secs_f64() / self.largest_rtt.as_secs_f64()).clamp(least, most)
            }
            _ => least,
        };
        self.throughput = throughput;
        self.last_loss = Some(loss.now);
        self.acked_packets = 0.0;
        self.largest_rtt = Duration::ZERO;
        window_packets * self.kept
    }

    fn time_out(&mut self, window_packets: f64, loss: &Loss) -> f64 {
        self.decrease(window_packets, loss)
    }
}

impl Default for HtcpConfig {
    /// Leith & Shorten 2004: one second, 0.5 to 0.8, 20 %.
    fn default() -> Self {
        Self { low_period: Duration::from_secs(1), kept: (0.5, 0.8), throughput_change: 0.2 }
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_loss;
    use super::*;

    #[test]
    fn step__grows_with_the_time_since_the_loss() {
        let htcp = Htcp::new(HtcpConfig::default());
        assert_eq!(htcp.step(Duration::from_millis(500)), 1.0);
        assert_eq!(htcp.step(Duration::from_secs(1)), 1.0);
        assert_eq!(htcp.step(Duration::from_secs(3)), 22.0); // 1 + 20 + 1
    }

    #[test]
    fn decrease__keeps_half_until_the_throughput_is_steady() {
        let mut htcp = Htcp::new(HtcpConfig::default());
        assert_eq!(htcp.decrease(100.0, &test_loss(100)), 50.0);
    }
}
