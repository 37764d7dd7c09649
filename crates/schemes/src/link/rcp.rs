//! RCP's router rule (Dukkipati, Kobayashi, Zhang-Shen & McKeown 2005, section 2): one rate for all sessions of a link,
//! which follows spare bandwidth and queue to emulate processor sharing.

use fairwave_units::{Duration, Time};

use super::{LinkController, LinkSetup, Passage};
use crate::header::{CongestionHeader, RcpHeader};
use crate::scheme::option::{POSITIVE, TypedOption, number};
use crate::scheme::{OptionSpec, Scheme, config, entry};
use crate::session::Rcp;
use crate::session::tcp_options::{NS2_MIN_RTO, SACK};

/// RCP's rule at a link.
#[derive(Clone, Debug)]
pub struct RcpLink {
    config: RcpConfig,
    capacity_bps: f64,
    packet_bits: f64,
    rate_bps: f64,
    /// Moving mean of the sessions' round-trip times, weighted by their bytes.
    rtt_s: f64,
    /// Bytes since the start of the interval; a packet arrives over the time that the link takes to send it.
    input_bytes: f64,
    /// Bytes of the last packets that arrive after the interval.
    spill_bytes: f64,
    /// Bytes with a known round-trip time, and the sum of those times.
    timed_bytes: f64,
    rtt_byte_s: f64,
    interval_began: Time,
    next_timer: Time,
}

config! {
    /// Constants of RCP's links. The authors' ns-2 code: alpha 0.4, beta 0.4, gamma 1, an interval of 10 ms or one
    /// round-trip time, whichever is shorter, a first rate of 5 % of the capacity and a first round-trip time of 200
    /// ms.
    pub struct RcpConfig(options) {
        /// Share of the spare bandwidth given out per round-trip time.
        pub alpha: f64 = ALPHA.of(options),
        /// Share of the queue drained per round-trip time.
        pub beta: f64 = BETA.of(options),
        /// Target share of the capacity.
        pub gamma: f64 = 1.0,
        /// Maximum time between changes of the rate.
        pub interval: Duration = Duration::from_millis(10),
        /// First rate, as a share of the capacity.
        pub first_share: f64 = 0.05,
        /// Mean round-trip time until one is measured.
        pub first_rtt: Duration = Duration::from_millis(200),
    }
}

impl RcpConfig {
    /// The next rate of a link that saw `arrivals_bps` for `interval_s` and has a queue (Dukkipati et al. 2005, Eq. 2;
    /// the capacity is gamma's share). At most the capacity, at least a hundredth of a packet per round-trip time.
    fn next(&self, rate_bps: f64, link: &RcpLink, interval_s: f64, arrivals_bps: f64, queue_bits: f64) -> f64 {
        let capacity_bps = self.gamma * link.capacity_bps;
        let spare_bps = self.alpha * (capacity_bps - arrivals_bps);
        let drained_bps = self.beta * queue_bits / link.rtt_s;
        // This interval's part of the change that is due in a round-trip time.
        let part = (interval_s / link.rtt_s).min(1.0);
        let next_bps = rate_bps * (1.0 + part * (spare_bps - drained_bps) / capacity_bps);
        next_bps.max(MIN_PACKETS * link.packet_bits / link.rtt_s).min(capacity_bps)
    }
}

impl RcpLink {
    /// The rule for a link that starts at time zero.
    pub fn new(config: RcpConfig, setup: &LinkSetup) -> Self {
        let first = Duration::from_secs_f64(config.interval.as_secs_f64() * (0.5 + setup.phase));
        let capacity_bps = setup.capacity.as_bps();
        Self {
            config,
            capacity_bps,
            packet_bits: f64::from(setup.packet_bytes.max(1)) * 8.0,
            rate_bps: config.first_share * capacity_bps,
            rtt_s: config.first_rtt.as_secs_f64(),
            input_bytes: 0.0,
            spill_bytes: 0.0,
            timed_bytes: 0.0,
            rtt_byte_s: 0.0,
            interval_began: Time::ZERO,
            next_timer: Time::ZERO.saturating_add(first.unwrap_or(config.interval)),
        }
    }

    /// Adds the interval's round-trip times to the mean. Shorter ones have less weight if the rate is small, as those
    /// sessions then send little (the authors' ns-2 code).
    fn measure_rtt(&mut self, interval_s: f64) {
        let (bytes, sum) = (std::mem::take(&mut self.timed_bytes), std::mem::take(&mut self.rtt_byte_s));
        if bytes <= 0.0 {
            return;
        }
        let sample_s = sum / bytes;
        let mut weight = (interval_s / self.rtt_s).min(1.0);
        if sample_s < self.rtt_s {
            weight *= (self.rate_bps / self.capacity_bps) * (sample_s / self.rtt_s);
        }
        self.rtt_s = (self.rtt_s + weight * (sample_s - self.rtt_s)).max(MIN_INTERVAL.as_secs_f64());
    }
}

impl LinkController for RcpLink {
    fn on_arrival(&mut self, passage: &Passage, header: Option<&CongestionHeader>) {
        let bytes = f64::from(passage.bytes);
        let takes_s = bytes * 8.0 / self.capacity_bps;
        let left_s = self.next_timer.since(passage.now).as_secs_f64();
        let now_bytes = if takes_s > left_s { bytes * left_s / takes_s } else { bytes };
        self.input_bytes += now_bytes;
        self.spill_bytes += bytes - now_bytes;
        if let Some(CongestionHeader::Rcp(RcpHeader { rtt: Some(rtt), .. })) = header {
            self.timed_bytes += bytes;
            self.rtt_byte_s += bytes * rtt.as_secs_f64();
        }
    }

    fn on_departure(&mut self, _: &Passage, header: Option<&mut CongestionHeader>) {
        if let Some(CongestionHeader::Rcp(RcpHeader { rate_bps, .. })) = header {
            *rate_bps = rate_bps.min(self.rate_bps);
        }
    }

    fn next_timer(&self) -> Time {
        self.next_timer
    }

    fn on_timer(&mut self, now: Time, queue_bytes: u64) {
        let interval_s = now.since(self.interval_began).as_secs_f64();
        self.measure_rtt(interval_s);
        let arrivals_bps = self.input_bytes * 8.0 / interval_s;
        self.rate_bps = self.config.next(self.rate_bps, self, interval_s, arrivals_bps, queue_bytes as f64 * 8.0);
        let mean_rtt = Duration::from_secs_f64(self.rtt_s).unwrap_or(self.config.interval);
        let next = self.config.interval.min(mean_rtt).max(MIN_INTERVAL);
        self.input_bytes = self.spill_bytes.min(self.capacity_bps * next.as_secs_f64() / 8.0);
        self.spill_bytes -= self.input_bytes;
        self.interval_began = now;
        self.next_timer = now.saturating_add(next);
    }
}

/// Minimum rate of each session, in packets per round-trip time.
const MIN_PACKETS: f64 = 0.01;
/// Minimum interval. Differs from the authors' code, which follows round-trip times of any length.
const MIN_INTERVAL: Duration = Duration::from_micros(100);

/// The scheme's registry entry.
pub(super) const SCHEME: Scheme = entry::at_packets(
    entry::link("rcp", "routers give one rate to all sessions of a link", "Dukkipati et al. 2005", 0),
    &OPTIONS,
    |_, window| Ok(Box::new(Rcp::new(window))),
    |options, setup| Box::new(RcpLink::new(RcpConfig::from_options(options), setup)),
);
/// A paper of 2005: ns-2 with 200 ms.
const OPTIONS: [OptionSpec; 4] = [ALPHA.spec(), BETA.spec(), SACK.spec(), NS2_MIN_RTO];
const ALPHA: TypedOption<f64> = number("alpha", POSITIVE, "0.4", "share of the spare bandwidth given out per RTT");
const BETA: TypedOption<f64> = number("beta", POSITIVE, "0.4", "share of the queue drained per RTT");

#[cfg(test)]
mod tests {
    use fairwave_units::Rate;

    use super::*;
    use crate::header::LinkId;

    fn ms(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    /// 100 Mb/s with a mean round-trip time of 100 ms and a rate of 10 Mb/s; timers at 5 ms, 15 ms, 25 ms ...
    fn link() -> RcpLink {
        let setup = LinkSetup { id: LinkId::of(0), capacity: Rate::mbps(100.0), packet_bytes: 1000, phase: 0.0 };
        let mut link = RcpLink::new(RcpConfig::default(), &setup);
        link.on_timer(ms(5), 0);
        (link.rtt_s, link.rate_bps) = (0.1, 10e6);
        link
    }

    fn arrive(link: &mut RcpLink, now: Time, bytes: u32, rtt: Option<Duration>) {
        let header = CongestionHeader::Rcp(RcpHeader { rate_bps: f64::INFINITY, rtt });
        link.on_arrival(&Passage { now, bytes, is_data: true, queue_bytes: 0 }, Some(&header));
    }

    fn close(got: f64, expected: f64) {
        assert!((got - expected).abs() <= 1e-9 * expected.abs(), "{got}, not {expected}");
    }

    #[test]
    fn on_timer__gives_spare_bandwidth_and_drains_the_queue() {
        // Idle: T/d = 0.1, alpha 0.4: 4 % more.
        let mut link = link();
        link.on_timer(ms(15), 0);
        close(link.rate_bps, 10.4e6);
        // 62 500 bytes in 10 ms are 50 Mb/s; 250 000 queued bytes are 20 Mb/s over 100 ms:
        // 1 + 0.1 x (0.4 x 50 - 0.4 x 20) / 100 = 1.012.
        arrive(&mut link, ms(16), 62_500, None);
        link.on_timer(ms(25), 250_000);
        close(link.rate_bps, 10.4e6 * 1.012);
    }

    #[test]
    fn on_timer__keeps_the_rate_within_bounds() {
        let mut link = link();
        link.rate_bps = 99e6;
        link.on_timer(ms(15), 0);
        close(link.rate_bps, 100e6);
        // 1 GB queued: 0.01 packets of 8000 bits in 100 ms.
        link.on_timer(ms(25), 1_000_000_000);
        close(link.rate_bps, 800.0);
    }

    #[test]
    fn on_arrival__splits_a_packet_at_the_end_of_the_interval() {
        let mut link = link();
        // 1000 bytes take 80 us, of which 20 us are left before 15 ms.
        arrive(&mut link, Time::from_nanos(14_980_000), 1000, None);
        close(link.input_bytes, 250.0);
        link.on_timer(ms(15), 0);
        close(link.input_bytes, 750.0);
        close(link.rate_bps, 10e6 * (1.0 + 0.1 * 0.4 * (100.0 - 0.2) / 100.0)); // 250 bytes in 10 ms are 0.2 Mb/s
    }

    #[test]
    fn on_timer__moves_the_mean_round_trip_time() {
        let mut link = link();
        // 3000 bytes of 100 ms and 1000 of 500 ms: 200 ms. T/d = 0.1: a tenth of the way.
        arrive(&mut link, ms(6), 3000, Some(Duration::from_millis(100)));
        arrive(&mut link, ms(7), 1000, Some(Duration::from_millis(500)));
        link.on_timer(ms(15), 0);
        close(link.rtt_s, 0.11);
        // 55 ms: half of the mean. Weight 10/110 x 0.5 x the rate's share of the capacity.
        let share = link.rate_bps / 100e6;
        arrive(&mut link, ms(16), 1000, Some(Duration::from_millis(55)));
        link.on_timer(ms(25), 0);
        close(link.rtt_s, 0.11 - 0.055 * share * 0.5 / 11.0);
    }

    #[test]
    fn on_departure__writes_its_rate_if_that_is_less() {
        let mut link = link();
        let mut left = |rate_bps| {
            let mut header = CongestionHeader::Rcp(RcpHeader { rate_bps, rtt: None });
            let passage = Passage { now: ms(6), bytes: 1000, is_data: true, queue_bytes: 0 };
            link.on_departure(&passage, Some(&mut header));
            header
        };
        assert_eq!(left(f64::INFINITY), CongestionHeader::Rcp(RcpHeader { rate_bps: 10e6, rtt: None }));
        assert_eq!(left(3e6), CongestionHeader::Rcp(RcpHeader { rate_bps: 3e6, rtt: None }));
    }
}
