//! AECP's router rule (Huang et al. 2010, Eqs. 43 to 47): one rate factor for all sessions of a link, which grows or
//! shrinks with the distance of traffic and queue from the link's targets.

use fairwave_units::{Duration, Time};

use super::{LinkController, LinkSetup, Passage};
use crate::header::{AecpHeader, CongestionHeader};
use crate::scheme::option::{HALF_OPEN_UNIT, HOUR, POSITIVE, TypedOption, number, packets_only, time};
use crate::scheme::{Model, OptionSpec, Scheme, config, entry};
use crate::session::tcp_options::{NS2_MIN_RTO, SACK};
use crate::session::{AECP_ALPHA, Aecp, AecpSourceConfig};

/// AECP's rule at a link.
#[derive(Clone, Debug)]
pub struct AecpLink {
    config: AecpConfig,
    capacity_packets_per_s: f64,
    packet_bytes: f64,
    rate_factor_packets_per_s: f64,
    /// Arrivals since the start of the interval.
    input_bytes: u64,
    interval_began: Time,
    next_timer: Time,
}

config! {
    /// Constants of AECP's links. Huang et al. 2010, section V: beta 1/s, T 2 s, q0 100 packets, T2 0.1 s.
    pub struct AecpConfig(options) {
        /// Gain of the link in 1/s.
        pub beta_per_s: f64 = BETA.of(options),
        /// Time in which a deviation of the queue is corrected.
        pub t: Duration = T.of(options),
        /// Target queue in packets.
        pub q0_packets: f64 = Q0.of(options) as f64,
        /// Time between changes (the paper's T2).
        pub interval: Duration = Duration::from_millis(100),
        /// First rate factor, as a share of the capacity. The paper gives none; a small one makes slow starts, and one
        /// of 1 lets the first sessions flood the link.
        pub first_share: f64 = FIRST_SHARE.of(options),
    }
}

impl AecpConfig {
    /// The next rate factor of a link of `capacity` with `arrivals` per second and a queue, all in packets (Huang et
    /// al. 2010, Eq. 47), between one packet a second and the capacity.
    fn next(&self, rate_factor: f64, capacity: f64, arrivals: f64, queue: f64, interval_s: f64) -> f64 {
        let growth_per_s = self.growth_per_s(capacity, arrivals, queue);
        // Differs from the paper, which has no bounds: if sessions cannot use their share the factor would grow without
        // end, and take as long to return.
        (rate_factor * libm::exp(interval_s * growth_per_s)).min(capacity).max(1.0)
    }

    /// Relative growth in 1/s of the rate factor of a link of `capacity` with `arrivals` per second and a queue, all in
    /// packets (Huang et al. 2010, Eq. 2).
    pub fn growth_per_s(&self, capacity: f64, arrivals: f64, queue: f64) -> f64 {
        let load = (arrivals + (queue - self.q0_packets) / self.t.as_secs_f64()) / capacity;
        self.beta_per_s * (1.0 - load)
    }
}

/// One step of AECP's control law with the paper's constants, for use outside a link: the next rate factor in packets a
/// second, between one and the capacity. All arguments except the queue are above zero.
pub fn aecp_control(
    config: &AecpConfig,
    rate_packets_per_s: f64,
    capacity_packets_per_s: f64,
    arrival_packets_per_s: f64,
    queue_packets: f64,
    interval_s: f64,
) -> f64 {
    config.next(rate_packets_per_s, capacity_packets_per_s, arrival_packets_per_s, queue_packets, interval_s)
}

impl AecpLink {
    /// The rule for a link that starts at time zero.
    pub fn new(config: AecpConfig, setup: &LinkSetup) -> Self {
        let packet_bytes = f64::from(setup.packet_bytes.max(1));
        let capacity_packets_per_s = setup.capacity.as_bps() / (packet_bytes * 8.0);
        let phase = Duration::from_secs_f64(config.interval.as_secs_f64() * (0.5 + setup.phase));
        Self {
            config,
            capacity_packets_per_s,
            packet_bytes,
            rate_factor_packets_per_s: (capacity_packets_per_s * config.first_share).max(1.0),
            input_bytes: 0,
            interval_began: Time::ZERO,
            next_timer: Time::ZERO.saturating_add(phase.unwrap_or(config.interval)),
        }
    }
}

impl LinkController for AecpLink {
    fn on_arrival(&mut self, passage: &Passage, _: Option<&CongestionHeader>) {
        self.input_bytes += u64::from(passage.bytes);
    }

    fn on_departure(&mut self, _: &Passage, header: Option<&mut CongestionHeader>) {
        if let Some(CongestionHeader::Aecp(AecpHeader { rate_factor_bps })) = header {
            *rate_factor_bps = rate_factor_bps.min(self.rate_factor_packets_per_s * self.packet_bytes * 8.0);
        }
    }

    fn next_timer(&self) -> Time {
        self.next_timer
    }

    fn on_timer(&mut self, now: Time, queue_bytes: u64) {
        let interval_s = now.since(self.interval_began).as_secs_f64();
        let arrivals = self.input_bytes as f64 / self.packet_bytes / interval_s;
        let queue = queue_bytes as f64 / self.packet_bytes;
        let (factor, capacity) = (self.rate_factor_packets_per_s, self.capacity_packets_per_s);
        self.rate_factor_packets_per_s = self.config.next(factor, capacity, arrivals, queue, interval_s);
        self.input_bytes = 0;
        self.interval_began = now;
        self.next_timer = now.saturating_add(self.config.interval);
    }
}

/// The scheme's registry entry.
pub(super) const SCHEME: Scheme = Scheme {
    models: &[Model::Fluid, Model::Packet],
    ..entry::at_packets(
        entry::link("aecp", "routers evolve a rate factor, sources follow it", "Huang et al. 2010", 3),
        &OPTIONS,
        |options, window| Ok(Box::new(Aecp::new(AecpSourceConfig::from_options(options), window))),
        |options, setup| Box::new(AecpLink::new(AecpConfig::from_options(options), setup)),
    )
};
/// A paper of 2010: ns-2 with 200 ms.
const OPTIONS: [OptionSpec; 7] =
    [AECP_ALPHA.spec(), BETA.spec(), T.spec(), Q0.spec(), FIRST_SHARE.spec(), SACK.spec(), NS2_MIN_RTO];
const T: TypedOption<Duration> =
    time("t", [Duration::from_millis(1), HOUR], "2 s", "time over which a queue deviation is corrected");
const BETA: TypedOption<f64> = number("beta", POSITIVE, "1", "gain of the router in 1/s");
const Q0: TypedOption<u64> = packets_only("q0", "100 packets", "target queue of the router");
const FIRST_SHARE: TypedOption<f64> =
    number("first_share", HALF_OPEN_UNIT, "0.1", "first rate factor of a router, as a share of the capacity");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::LinkId;
    use fairwave_units::Rate;
    use proptest::prelude::*;

    /// 500 Mb/s of 1000 B: 62,500 packets a second.
    fn link() -> AecpLink {
        let setup = LinkSetup { id: LinkId::of(0), capacity: Rate::mbps(500.0), packet_bytes: 1000, phase: 0.5 };
        AecpLink::new(AecpConfig::default(), &setup)
    }

    fn arrive(link: &mut AecpLink, packets: u32) {
        let passage = Passage { now: Time::ZERO, bytes: 1000, is_data: true, queue_bytes: 0 };
        (0..packets).for_each(|_| link.on_arrival(&passage, None));
    }

    #[test]
    fn aecp_control__by_hand() {
        // (50,000 + (600 - 100) / 2) / 62,500 = 0.804: the factor grows by e^(0.1 x 0.196) = 1.019793348.
        let next = aecp_control(&AecpConfig::default(), 10_000.0, 62_500.0, 50_000.0, 600.0, 0.1);
        assert!((next - 10_197.933_48).abs() < 1e-4, "{next}");
    }

    #[test]
    fn aecp_control__rests_at_capacity_with_the_queue_it_aims_at() {
        assert_eq!(aecp_control(&AecpConfig::default(), 6_250.0, 62_500.0, 62_500.0, 100.0, 0.1), 6_250.0);
        // Less traffic and a longer queue balance: Y + (q - q0) / T = C (Huang et al. 2010, Eq. 16).
        assert_eq!(aecp_control(&AecpConfig::default(), 6_250.0, 62_500.0, 62_400.0, 300.0, 0.1), 6_250.0);
    }

    #[test]
    fn aecp_control__is_between_one_packet_a_second_and_capacity() {
        assert_eq!(aecp_control(&AecpConfig::default(), 62_000.0, 62_500.0, 0.0, 0.0, 0.1), 62_500.0);
        assert_eq!(aecp_control(&AecpConfig::default(), 1.0, 62_500.0, 1e9, 1e9, 0.1), 1.0);
    }

    #[test]
    fn on_timer__counts_arrivals_per_second() {
        // A tenth of the capacity initially. The first interval ends at 0.1 s x (0.5 + 0.5) with 3,125 packets: half of
        // the capacity; the queue is 100 packets below the target. e^(0.1 (1 - (31,250 - 50) / 62,500)) = e^0.05008.
        let mut link = link();
        assert_eq!(link.next_timer(), Time::from_nanos(100_000_000));
        arrive(&mut link, 3_125);
        link.on_timer(Time::from_nanos(100_000_000), 0);
        assert!((link.rate_factor_packets_per_s / (6_250.0 * 0.05008_f64.exp()) - 1.0).abs() < 1e-12, "{link:?}");
        assert_eq!(link.next_timer(), Time::from_nanos(200_000_000));
        // The count restarts: at capacity with the target queue, nothing changes.
        let before = link.rate_factor_packets_per_s;
        arrive(&mut link, 6_250);
        link.on_timer(Time::from_nanos(200_000_000), 100_000);
        assert_eq!(link.rate_factor_packets_per_s, before);
    }

    #[test]
    fn on_departure__leaves_the_least_factor_on_the_way() {
        let mut link = link();
        let passage = Passage { now: Time::ZERO, bytes: 1000, is_data: true, queue_bytes: 0 };
        // A tenth of the capacity is 50 Mb/s.
        for (before_bps, after_bps) in [(f64::INFINITY, 50e6), (60e6, 50e6), (40e6, 40e6)] {
            let mut header = CongestionHeader::Aecp(AecpHeader { rate_factor_bps: before_bps });
            link.on_departure(&passage, Some(&mut header));
            assert_eq!(header, CongestionHeader::Aecp(AecpHeader { rate_factor_bps: after_bps }));
        }
    }

    proptest! {
        #[test]
        fn aecp_link__keeps_its_factor_within_bounds(
            mbps in 0.01..100_000.0_f64,
            phase in 0.0..1.0_f64,
            intervals in proptest::collection::vec((0..5_000_u32, 0..10_000_000_000_u64), 1..200),
        ) {
            let setup = LinkSetup { id: LinkId::of(0), capacity: Rate::mbps(mbps), packet_bytes: 1000, phase };
            let mut link = AecpLink::new(AecpConfig::default(), &setup);
            for (packets, queue_bytes) in intervals {
                let now = link.next_timer();
                arrive(&mut link, packets);
                link.on_timer(now, queue_bytes);
                let factor = link.rate_factor_packets_per_s;
                prop_assert!((1.0..=link.capacity_packets_per_s.max(1.0)).contains(&factor), "{factor}");
                prop_assert!(link.next_timer() > now);
            }
        }
    }
}
