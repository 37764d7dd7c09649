//! H-TCP (Leith & Shorten 2004): growth is a function of the time since the last loss, the cut follows the ratio of the
//! minimum to the maximum round-trip time.

use fairwave_units::{Duration, Time};

use super::event::{Ack, Loss};
use super::tcp_options::LINUX_TCP;
use super::windowed::{WindowRule, windowed};
use crate::scheme::{Scheme, entry};

/// H-TCP's rule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Htcp {
    config: HtcpConfig,
    /// The last loss, or the first acknowledgement.
    last_loss: Option<Time>,
    /// Minimum since the last loss.
    least_rtt: Option<Duration>,
    largest_rtt: Duration,
    /// Share that is kept after a loss.
    kept: f64,
    /// The round trip that is being measured.
    round: Option<Round>,
    /// Maximum throughput of a round trip since the last loss, and before it, in packets per second: a sudden change
    /// resets the cut to half.
    throughput: Option<f64>,
    throughput_before: Option<f64>,
}

/// A round trip of acknowledgements.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Round {
    number: u64,
    start: Time,
    acked_packets: f64,
}

/// Constants of H-TCP.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HtcpConfig {
    /// Time after a loss during which it grows like TCP.
    pub low_period: Duration,
    /// Minimum and maximum share that is kept after a loss.
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
            round: None,
            throughput: None,
            throughput_before: None,
        }
    }

    /// Packets per round trip, `since` after the last loss (Leith & Shorten 2004, Eq. 3): 1 within the low period D_L,
    /// then 1 + 10 (D - D_L) + ((D - D_L) / 2)^2; scaled by 2 (1 - kept), so that the mean does not depend on the cut.
    fn step(&self, since: Duration) -> f64 {
        let beyond = since.as_secs_f64() - self.config.low_period.as_secs_f64();
        let alpha = if beyond <= 0.0 { 1.0 } else { 1.0 + 10.0 * beyond + 0.25 * beyond * beyond };
        (2.0 * (1.0 - self.kept) * alpha).max(1.0)
    }

    /// Counts an acknowledgement towards the throughput of its round trip.
    fn measure(&mut self, ack: &Ack) {
        let acked_packets = f64::from(ack.acked_packets);
        match &mut self.round {
            Some(round) if round.number == ack.round => round.acked_packets += acked_packets,
            ended => {
                if let Some(round) = ended {
                    let span_s = ack.now.since(round.start).as_secs_f64();
                    if span_s > 0.0 {
                        let rate = round.acked_packets / span_s;
                        self.throughput = Some(self.throughput.map_or(rate, |most| most.max(rate)));
                    }
                }
                *ended = Some(Round { number: ack.round, start: ack.now, acked_packets });
            }
        }
    }
}

impl WindowRule for Htcp {
    fn increase(&mut self, window_packets: f64, ack: &Ack) -> f64 {
        if let Some(rtt) = ack.rtt {
            self.least_rtt = Some(self.least_rtt.map_or(rtt, |least| least.min(rtt)));
            self.largest_rtt = self.largest_rtt.max(rtt);
        }
        let acked = f64::from(ack.acked_packets);
        self.measure(ack);
        let since = ack.now.since(*self.last_loss.get_or_insert(ack.now));
        self.step(since) * acked / window_packets
    }

    fn decrease(&mut self, window_packets: f64, loss: &Loss) -> f64 {
        let (least, most) = self.config.kept;
        // Leith & Shorten 2004: the throughput right before this loss compared with that right before the last. It
        // grows until a loss, so it is the maximum of a round trip (as in Linux).
        let is_steady = match (self.throughput_before, self.throughput) {
            (Some(before), Some(now)) => (now - before).abs() <= self.config.throughput_change * before,
            _ => false,
        };
        self.kept = match self.least_rtt {
            Some(rtt) if is_steady && !self.largest_rtt.is_zero() => {
                (rtt.as_secs_f64() / self.largest_rtt.as_secs_f64()).clamp(least, most)
            }
            _ => least,
        };
        self.throughput_before = self.throughput.take();
        self.round = None;
        self.last_loss = Some(loss.now);
        self.largest_rtt = Duration::ZERO;
        window_packets * self.kept
    }

    fn pause(&mut self, span: Duration) {
        self.last_loss = self.last_loss.map(|last| last.saturating_add(span));
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

/// The scheme's registry entry.
pub(super) const SCHEME: Scheme = entry::window(
    "htcp",
    "H-TCP: the increase grows with the time since the last loss",
    "Leith & Shorten 2004",
    // Leith & Shorten 2004 measured Linux.
    &LINUX_TCP,
    |_, window| Ok(windowed(Htcp::new(HtcpConfig::default()), window)),
);

#[cfg(test)]
mod tests {
    use super::super::{test_ack, test_loss};
    use super::*;

    #[test]
    fn step__grows_with_the_time_since_the_loss() {
        let htcp = Htcp::new(HtcpConfig::default());
        assert_eq!(htcp.step(Duration::from_millis(500)), 1.0);
        assert_eq!(htcp.step(Duration::from_secs(1)), 1.0);
        assert_eq!(htcp.step(Duration::from_secs(3)), 22.0); // 1 + 20 + 1
    }

    #[test]
    fn pause__leaves_the_span_out_of_the_growth() {
        let grown = |pause_s: u64| {
            let mut htcp = Htcp::new(HtcpConfig::default());
            htcp.increase(100.0, &Ack { now: Time::from_secs(1), ..test_ack(1) });
            htcp.pause(Duration::from_secs(pause_s));
            htcp.increase(100.0, &Ack { now: Time::from_secs(4 + pause_s), ..test_ack(1) })
        };
        assert_eq!(grown(0), grown(60));
        assert_eq!(grown(0), 0.22); // 1 + 10 x 2 + 0.25 x 2^2 = 22 a round trip
    }

    #[test]
    fn decrease__keeps_half_until_the_throughput_is_steady() {
        let mut htcp = Htcp::new(HtcpConfig::default());
        assert_eq!(htcp.decrease(100.0, &test_loss(100)), 50.0);
    }

    /// A window of acknowledgements at each of two round-trip times, then a loss; the share that is kept.
    fn epoch(htcp: &mut Htcp, from_ms: u64, packets: u32, rtts_ms: [u64; 2]) -> f64 {
        let mut at_ms = from_ms;
        for (round, rtt_ms) in (0..).zip(rtts_ms.into_iter().chain([rtts_ms[1]])) {
            let (now, rtt) = (Time::from_nanos(at_ms * 1_000_000), Some(Duration::from_millis(rtt_ms)));
            htcp.increase(f64::from(packets), &Ack { now, rtt, round: from_ms + round, ..test_ack(packets) });
            at_ms += rtt_ms;
        }
        htcp.decrease(100.0, &Loss { now: Time::from_nanos(at_ms * 1_000_000), in_flight_packets: packets }) / 100.0
    }

    #[test]
    fn decrease__keeps_the_rtt_ratio_at_steady_throughput() {
        let mut htcp = Htcp::new(HtcpConfig::default());
        assert_eq!(epoch(&mut htcp, 0, 100, [100, 150]), 0.5); // no loss before
        // 100 packets in 100 ms: 1000 a second, as before; 100 / 150 of the RTT.
        assert!((epoch(&mut htcp, 1000, 100, [100, 150]) - 100.0 / 150.0).abs() < 1e-12);
        assert_eq!(epoch(&mut htcp, 2000, 100, [100, 100]), 0.8); // at most
        assert_eq!(epoch(&mut htcp, 3000, 130, [100, 100]), 0.5); // 1300 a second: 30 % more
    }

    #[test]
    fn decrease__uses_the_throughput_right_before_the_loss() {
        // The window falls to a half at one loss and to 0.8 at the next: means over the time between losses would
        // always differ by far more than a fifth, and it would never keep 0.8 twice.
        let mut htcp = Htcp::new(HtcpConfig::default());
        let (mut window, mut at_ms, mut round) = (1000.0, 0_u64, 0);
        let mut kept = Vec::new();
        for _ in 0..8 {
            while window < 1000.0 {
                for _ in 0..10 {
                    let now = Time::from_nanos(at_ms * 1_000_000);
                    window += htcp.increase(window, &Ack { now, round, ..test_ack((window / 10.0) as u32) });
                    at_ms += 10;
                }
                round += 1;
            }
            let now = Time::from_nanos(at_ms * 1_000_000);
            let cut = htcp.decrease(window, &Loss { now, in_flight_packets: window as u32 });
            kept.push(cut / window);
            window = cut;
        }
        assert_eq!(kept[3..], [0.8; 5]);
    }
}
