//! UDT's rate rule: the time between packets, and the limit of unacknowledged ones.
//!
//! Gu & Grossman 2007 and the later protocol text (draft-gg-udt-03); if the two differ, version 4 of the library
//! decides. The protocol around the rule (measurements and their timing) belongs to its driver.

use fairwave_units::{Bytes, Duration, Time};

use crate::scheme::entry;
use crate::scheme::option::packets_only;
use crate::scheme::{Model, OptionSpec, Scheme};

/// The constants of the rule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UdtConfig {
    /// Bytes of a data packet on the wire.
    pub packet_bytes: u32,
    /// Maximum unacknowledged packets.
    pub max_window_packets: f64,
    /// SYN: the rate grows at most once in this interval.
    pub interval: Duration,
    /// Scale of the increase.
    pub gain: f64,
    /// Factor of the period at a decrease.
    pub slow_down: f64,
    /// Maximum decreases in one congestion epoch, including the first.
    pub most_decreases: u32,
    /// Window at the start of slow start, in packets.
    pub initial_window_packets: f64,
}

impl Default for UdtConfig {
    fn default() -> Self {
        Self {
            packet_bytes: 1500,
            max_window_packets: 25_600.0,
            interval: Duration::from_millis(10),
            gain: 1.5e-6,
            slow_down: 1.125,
            most_decreases: 5,
            initial_window_packets: 16.0,
        }
    }
}

/// Contents of a periodic acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UdtAck {
    /// Time of arrival.
    pub now: Time,
    /// Packets newly acknowledged, in order.
    pub acked_packets: u64,
    /// Rate at which packets arrive at the sink; zero if unknown.
    pub receive_packets_per_s: f64,
    /// Capacity of the path by packet pairs; zero if unknown.
    pub capacity_packets_per_s: f64,
    /// Smoothed round-trip time.
    pub rtt: Duration,
}

/// The rule of one session.
#[derive(Clone, Debug)]
pub struct Udt {
    config: UdtConfig,
    /// Time between packets, in microseconds as in the library: a decrease rounds up to whole ones.
    period_us: f64,
    window_packets: f64,
    is_slow_start: bool,
    /// Time at which the rate last grew, or could have.
    stepped: Option<Time>,
    /// Whether a loss was reported since.
    has_lost: bool,
    /// The period before the last decrease that started an epoch.
    period_before_us: f64,
    /// The highest number sent when the epoch's last decrease took place.
    epoch_end: Option<u64>,
    /// Reports in an epoch on average, and in this one so far.
    mean_reports: f64,
    reports: u64,
    /// A further decrease takes place at each multiple of this number of reports.
    stride: u64,
    decreases: u32,
    receive_packets_per_s: f64,
    rtt: Duration,
}

/// Minimum period in us: a gigapacket per second.
const MIN_PERIOD_US: f64 = 1e-3;
/// Maximum period in us: a packet in ten seconds.
const MAX_PERIOD_US: f64 = 1e7;
/// Until slow start ends, only the window limits.
const FIRST_PERIOD_US: f64 = 1.0;
/// Round-trip time before the first sample.
const FIRST_RTT: Duration = Duration::from_millis(100);

impl Udt {
    /// A session's rule at its start.
    pub fn new(config: UdtConfig) -> Self {
        Self {
            config,
            period_us: FIRST_PERIOD_US,
            window_packets: config.initial_window_packets.clamp(2.0, config.max_window_packets.max(2.0)),
            is_slow_start: true,
            stepped: None,
            has_lost: false,
            period_before_us: FIRST_PERIOD_US,
            epoch_end: None,
            mean_reports: 1.0,
            reports: 1,
            stride: 1,
            decreases: 1,
            receive_packets_per_s: 0.0,
            rtt: FIRST_RTT,
        }
    }

    /// Time between the starts of two packets, in seconds.
    pub fn period_s(&self) -> f64 {
        self.period_us * 1e-6
    }

    /// Maximum unacknowledged packets, at least two.
    pub fn window_packets(&self) -> f64 {
        self.window_packets
    }

    /// Whether the session is still in slow start.
    pub fn is_slow_start(&self) -> bool {
        self.is_slow_start
    }

    /// A periodic acknowledgement arrived. Acts at most once per interval.
    pub fn on_ack(&mut self, ack: &UdtAck) {
        self.receive_packets_per_s = ack.receive_packets_per_s;
        self.rtt = ack.rtt;
        if self.is_slow_start {
            self.set_window(self.window_packets + ack.acked_packets as f64);
        }
        if self.stepped.is_some_and(|stepped| ack.now.since(stepped) < self.config.interval) {
            return;
        }
        self.stepped = Some(ack.now);
        if self.is_slow_start {
            if self.window_packets >= self.config.max_window_packets {
                self.end_slow_start();
            }
            return;
        }
        // Wu 2007, Eq. II.14 has SABUL's average; UDT takes the product itself, plus 16 packets.
        self.set_window(ack.receive_packets_per_s * self.span_s() + 16.0);
        if std::mem::take(&mut self.has_lost) {
            return;
        }
        let interval_us = self.config.interval.as_nanos() as f64 * 1e-3;
        let step = self.increase(ack.capacity_packets_per_s);
        self.set_period(self.period_us * interval_us / (self.period_us * step + interval_us));
    }

    /// Additional packets in the next interval, on a path of this capacity.
    fn increase(&self, capacity_packets_per_s: f64) -> f64 {
        let bytes = f64::from(self.config.packet_bytes.max(1));
        let mut spare = capacity_packets_per_s - 1e6 / self.period_us;
        // Slower than before the last decrease: not all of the remaining capacity is free, but a ninth of it should be.
        if self.period_us > self.period_before_us && capacity_packets_per_s / 9.0 < spare {
            spare = capacity_packets_per_s / 9.0;
        }
        let least = 1.0 / bytes;
        // NaN is not above zero either.
        if spare > 0.0 {
            let bits_per_s = spare * bytes * 8.0;
            // One to ten per cent of the spare rate, in powers of ten.
            (libm::pow(10.0, libm::log10(bits_per_s).ceil().clamp(-300.0, 300.0)) * self.config.gain / bytes).max(least)
        } else {
            least
        }
    }

    /// A loss report arrived: `first_lost` is its first number, `highest_sent` the highest ever sent, and `unit` a
    /// random number in [0, 1). Returns true if the report starts a congestion epoch.
    pub fn on_nak(&mut self, first_lost: u64, highest_sent: u64, unit: f64) -> bool {
        if self.is_slow_start {
            let is_known = self.receive_packets_per_s > 0.0;
            self.end_slow_start();
            if is_known {
                return true;
            }
        }
        self.has_lost = true;
        if self.epoch_end.is_none_or(|end| first_lost > end) {
            self.period_before_us = self.period_us;
            self.slow_down();
            self.mean_reports = (self.mean_reports * 0.875 + self.reports as f64 * 0.125).ceil();
            self.reports = 1;
            self.decreases = 1;
            self.stride = (self.mean_reports * unit).ceil().max(1.0) as u64;
            self.epoch_end = Some(highest_sent);
            return true;
        }
        self.reports += 1;
        if self.decreases < self.config.most_decreases && self.reports.is_multiple_of(self.stride) {
            self.decreases += 1;
            self.slow_down();
            self.epoch_end = Some(highest_sent);
        }
        false
    }

    /// A long silence. After slow start the rate is unchanged: the window holds the session back.
    pub fn on_timeout(&mut self) {
        if self.is_slow_start {
            self.end_slow_start();
        }
    }

    fn end_slow_start(&mut self) {
        self.is_slow_start = false;
        if self.receive_packets_per_s > 0.0 {
            self.set_period(1e6 / self.receive_packets_per_s);
        } else {
            self.set_period(self.span_s() * 1e6 / self.window_packets);
        }
    }

    /// A round trip plus an interval.
    fn span_s(&self) -> f64 {
        self.rtt.as_secs_f64() + self.config.interval.as_secs_f64()
    }

    fn slow_down(&mut self) {
        self.set_period((self.period_us * self.config.slow_down).ceil());
    }

    fn set_period(&mut self, period_us: f64) {
        self.period_us = period_us.clamp(MIN_PERIOD_US, MAX_PERIOD_US);
    }

    fn set_window(&mut self, window_packets: f64) {
        // max() and min() return the number if the other is NaN.
        self.window_packets = window_packets.max(2.0).min(self.config.max_window_packets.max(2.0));
    }
}

/// The scheme's registry entry.
pub(super) const SCHEME: Scheme = Scheme {
    // 16 B, UDP and IP 28 B: four more than TCP and IP.
    header: Bytes::new(4),
    ack_header: Bytes::new(4),
    models: &[Model::Packet],
    options: &OPTIONS,
    ..entry::session(
        "udt",
        "UDP-based transfer: the rate changes every 10 ms by estimated bandwidth",
        "Gu & Grossman 2007; draft-gg-udt-03",
    )
};
const OPTIONS: [OptionSpec; 1] = [packets_only("max_window", "25600 packets", "maximum unacknowledged packets").spec()];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ack(ms: u64, capacity: f64) -> UdtAck {
        UdtAck {
            now: Time::from_nanos(ms * 1_000_000),
            acked_packets: 100,
            receive_packets_per_s: 5_000.0,
            capacity_packets_per_s: capacity,
            rtt: Duration::from_millis(90),
        }
    }

    /// Out of slow start at 5 000 packets per second, 200 us, as fast as at its last decrease.
    fn steady() -> Udt {
        let mut udt = Udt::new(UdtConfig::default());
        udt.on_ack(&ack(0, 1.0));
        assert!(udt.on_nak(50, 100, 0.5));
        assert!(!udt.is_slow_start());
        assert_eq!(udt.period_us, 200.0);
        udt.period_before_us = 200.0;
        udt
    }

    #[test]
    fn increase__is_one_to_ten_per_cent_of_spare_bandwidth() {
        let udt = steady();
        // A capacity of 15 000 leaves 10 000 packets/s: 10^ceil(log10(1.2e8)) = 1e9, x 1.5e-6 / 1500 = 1 packet.
        assert!((udt.increase(15_000.0) - 1.0).abs() < 1e-12);
        // The table of Gu & Grossman 2007 for 1500 B: 10 packets above 1 Gb/s, then 1, 0.1, 0.01, 0.001 and 1/1500.
        for (spare_bps, packets) in
            [(5e9, 10.0), (5e8, 1.0), (5e7, 0.1), (5e6, 0.01), (5e5, 0.001), (5e4, 1.0 / 1500.0), (-1.0, 1.0 / 1500.0)]
        {
            let step = udt.increase(5_000.0 + spare_bps / 12_000.0);
            assert!((step / packets - 1.0).abs() < 1e-9, "{spare_bps}: {step}");
        }
    }

    #[test]
    fn on_ack__adds_the_increase_once_an_interval() {
        let mut udt = steady();
        udt.on_ack(&ack(10, 15_000.0));
        // 50 packets per interval become 51.
        assert!((udt.period_us - 10_000.0 / 51.0).abs() < 1e-9, "{}", udt.period_us);
        // 5 000 packets/s x (90 + 10) ms + 16
        assert_eq!(udt.window_packets(), 516.0);
        udt.on_ack(&ack(15, 15_000.0));
        assert!((udt.period_us - 10_000.0 / 51.0).abs() < 1e-9, "within the interval");
        udt.on_ack(&ack(20, 15_000.0));
        assert!((udt.period_us - 10_000.0 / 52.0).abs() < 1e-9);
    }

    #[test]
    fn on_ack__waits_after_a_loss_and_then_takes_a_ninth() {
        let mut udt = steady();
        assert!(udt.on_nak(101, 300, 0.5));
        assert_eq!(udt.period_us, 225.0); // 1.125 x 200
        udt.on_ack(&ack(10, 50_000.0));
        assert_eq!(udt.period_us, 225.0);
        // Below the rate of the decrease: 50 000 / 9 = 5 556 packets/s x 12 000 = 6.7e7 bit/s: 0.1 packets, not the 1
        // that 45 556 packets/s would give.
        udt.on_ack(&ack(20, 50_000.0));
        let per_interval = 10_000.0 / udt.period_us;
        assert!((per_interval - (10_000.0 / 225.0 + 0.1)).abs() < 1e-9, "{per_interval}");
    }

    #[test]
    fn on_nak__decreases_at_most_five_times_per_epoch() {
        let mut udt = steady();
        assert!(udt.on_nak(101, 1000, 0.5));
        let mut periods = vec![udt.period_us];
        for _ in 0..10 {
            // In the same epoch: none of these was sent after the decrease.
            assert!(!udt.on_nak(500, 1000, 0.5));
            periods.push(udt.period_us);
        }
        // With one report per epoch on average, every report counts: 200 -> 225 -> 254 -> 286 -> 322 -> 363 us (rounded
        // up).
        assert_eq!(periods[..5], [225.0, 254.0, 286.0, 322.0, 363.0]);
        assert!(periods[5..].iter().all(|period| *period == 363.0));
        // A new epoch, after one of 11 reports: ceil(0.875 + 11 / 8) = 3 on average, and a stride of ceil(3 x 0.9) = 3.
        assert!(udt.on_nak(1001, 2000, 0.9));
        let before = udt.period_us;
        let cuts: Vec<bool> = (0..5)
            .map(|_| {
                let period = udt.period_us;
                udt.on_nak(1500, 2000, 0.0);
                udt.period_us > period
            })
            .collect();
        assert_eq!((before, cuts), (409.0, vec![false, true, false, false, true]));
    }

    #[test]
    fn slow_start__ends_at_the_window_or_a_loss() {
        let mut udt = Udt::new(UdtConfig { max_window_packets: 400.0, ..UdtConfig::default() });
        assert_eq!((udt.window_packets(), udt.period_s()), (16.0, 1e-6));
        for step in 0..4 {
            udt.on_ack(&ack(10 * step, 1.0));
        }
        // 16 + 4 x 100 packets are above 400.
        assert!(!udt.is_slow_start());
        assert_eq!((udt.window_packets(), udt.period_us), (400.0, 200.0));
        // The rate is unknown: the window over a round trip and an interval.
        let mut unknown = Udt::new(UdtConfig::default());
        unknown.on_timeout();
        assert!((unknown.period_us - 110_000.0 / 16.0).abs() < 1e-9);
    }

    proptest! {
        /// For any input: a period and a window within their bounds, never NaN.
        #[test]
        fn rule__stays_within_its_bounds(
            steps in proptest::collection::vec(
                (0_u8..4, 0_u64..1_000_000_000, 0_u64..1_000_000, prop::num::f64::ANY, prop::num::f64::ANY, 0.0..1.0), 1..200),
        ) {
            let mut udt = Udt::new(UdtConfig::default());
            let mut now = Time::ZERO;
            for (what, wait, number, receive, capacity, unit) in steps {
                now += Duration::from_nanos(wait);
                match what {
                    0 => { udt.on_nak(number, number + 10, unit); }
                    1 => udt.on_timeout(),
                    _ => udt.on_ack(&UdtAck {
                        now,
                        acked_packets: number,
                        receive_packets_per_s: receive,
                        capacity_packets_per_s: capacity,
                        rtt: Duration::from_nanos(wait),
                    }),
                }
                prop_assert!((1e-9..=10.0).contains(&udt.period_s()), "{udt:?}");
                prop_assert!((2.0..=25_600.0).contains(&udt.window_packets()), "{udt:?}");
            }
        }
    }
}
