//! VCP's router rule (Xia, Subramanian, Stoica & Kalyanaraman 2005, section 3.1): a load factor from traffic and queue,
//! encoded in two bits.

use fairwave_units::{Duration, Time};

use super::{LinkController, LinkSetup, Passage};
use crate::header::{CongestionHeader, LoadCode};
use crate::scheme::option::{HALF_OPEN_UNIT, TypedOption, number};
use crate::scheme::{OptionSpec, Scheme, config, entry};
use crate::session::tcp_options::{NS2_MIN_RTO, SACK};
use crate::session::{T_RHO, Vcp, VcpSourceConfig};

/// VCP's rule at a link.
#[derive(Clone, Debug)]
pub struct VcpLink {
    config: VcpConfig,
    capacity_bps: f64,
    code: LoadCode,
    /// Arrivals since the start of the interval.
    input_bytes: u64,
    interval_began: Time,
    next_load: Time,
    /// Sum and number of the queue's samples since the start of the interval.
    sampled_bytes: u64,
    samples: u32,
    next_sample: Time,
    /// The steady queue: a moving mean over intervals.
    steady_queue_bytes: f64,
}

config! {
    /// Constants of VCP's links. Xia et al. 2005, sections 3.1 and 5: `t_rho` 200 ms, `t_q` 10 ms, `kappa_q` 0.5,
    /// target 0.98. The queue's weight of a quarter is that of the authors' ns-2 code.
    pub struct VcpConfig(options) {
        /// Interval over which the load is measured.
        pub t_rho: Duration = T_RHO.of(options),
        /// Time between samples of the queue.
        pub t_q: Duration = Duration::from_millis(10),
        /// Share of the steady queue that the load factor drains within an interval.
        pub kappa_q: f64 = 0.5,
        /// Share of the capacity that counts as full load.
        pub target: f64 = TARGET.of(options),
        /// Weight of an interval's mean queue in the moving mean.
        pub queue_weight: f64 = 0.25,
    }
}

impl VcpConfig {
    /// The load factor of an interval of `interval_s` with `input_bytes` of arrivals and a steady queue (Xia et al.
    /// 2005, Eq. 1).
    fn load_factor(&self, capacity_bps: f64, interval_s: f64, input_bytes: f64, steady_queue_bytes: f64) -> f64 {
        8.0 * (input_bytes + self.kappa_q * steady_queue_bytes) / (self.target * capacity_bps * interval_s)
    }
}

impl LoadCode {
    /// The code of a load factor. The authors' ns-2 code rounds it up to the next percent, and so calls 99.0 %
    /// overload.
    fn of(load_factor: f64) -> Self {
        match load_factor {
            load if load < LOW_BELOW => Self::Low,
            load if load < OVERLOAD_FROM => Self::High,
            _ => Self::Overload,
        }
    }
}

impl VcpLink {
    /// The rule for a link that starts at time zero.
    pub fn new(config: VcpConfig, setup: &LinkSetup) -> Self {
        // A queue has at least one sample an interval.
        let config = VcpConfig { t_q: config.t_q.min(config.t_rho), ..config };
        let first = |interval: Duration, phase: f64| {
            let first = Duration::from_secs_f64(interval.as_secs_f64() * (0.5 + phase));
            Time::ZERO.saturating_add(first.unwrap_or(interval))
        };
        Self {
            config,
            capacity_bps: setup.capacity.as_bps(),
            code: LoadCode::Low,
            input_bytes: 0,
            interval_began: Time::ZERO,
            next_load: first(config.t_rho, setup.phase),
            sampled_bytes: 0,
            samples: 0,
            next_sample: first(config.t_q, setup.phase),
            steady_queue_bytes: 0.0,
        }
    }

    fn measure(&mut self, now: Time) {
        if self.samples > 0 {
            let mean = self.sampled_bytes as f64 / f64::from(self.samples);
            self.steady_queue_bytes += self.config.queue_weight * (mean - self.steady_queue_bytes);
        }
        let interval_s = now.since(self.interval_began).as_secs_f64();
        let (input_bytes, queue_bytes) = (self.input_bytes as f64, self.steady_queue_bytes);
        self.code = LoadCode::of(self.config.load_factor(self.capacity_bps, interval_s, input_bytes, queue_bytes));
        (self.input_bytes, self.sampled_bytes, self.samples) = (0, 0, 0);
        self.interval_began = now;
        self.next_load = now.saturating_add(self.config.t_rho);
    }
}

impl LinkController for VcpLink {
    fn on_arrival(&mut self, passage: &Passage, _: Option<&CongestionHeader>) {
        self.input_bytes += u64::from(passage.bytes);
    }

    fn on_departure(&mut self, _: &Passage, header: Option<&mut CongestionHeader>) {
        if let Some(CongestionHeader::Vcp(code)) = header {
            *code = self.code.max(*code);
        }
    }

    fn next_timer(&self) -> Time {
        self.next_load.min(self.next_sample)
    }

    fn on_timer(&mut self, now: Time, queue_bytes: u64) {
        if now >= self.next_sample {
            self.sampled_bytes = self.sampled_bytes.saturating_add(queue_bytes);
            self.samples += 1;
            self.next_sample = now.saturating_add(self.config.t_q);
        }
        if now >= self.next_load {
            self.measure(now);
        }
    }
}

/// Load factor below which the load is low (Xia et al. 2005, section 3.2).
const LOW_BELOW: f64 = 0.8;
/// Load factor from which on the link is overloaded (Xia et al. 2005, section 3.2).
const OVERLOAD_FROM: f64 = 1.0;

/// The scheme's registry entry.
pub(super) const SCHEME: Scheme = entry::at_packets(
    entry::link("vcp", "two bits of load from routers select MI, AI or MD", "Xia et al. 2005", 0),
    &OPTIONS,
    |options, window| Ok(Box::new(Vcp::new(VcpSourceConfig::from_options(options), window))),
    |options, setup| Box::new(VcpLink::new(VcpConfig::from_options(options), setup)),
);
/// Papers of 2005 and later: ns-2 with 200 ms. VCP was NewReno except for its window.
const OPTIONS: [OptionSpec; 4] = [T_RHO.spec(), TARGET.spec(), SACK.or("false").spec(), NS2_MIN_RTO];
const TARGET: TypedOption<f64> = number("target", HALF_OPEN_UNIT, "0.98", "utilisation that counts as full load");

#[cfg(test)]
mod tests {
    use fairwave_units::Rate;

    use super::*;
    use crate::header::LinkId;

    /// 100 Mb/s; timers at half their intervals first: loads at 100 ms, 300 ms ..., samples at 5 ms, 15 ms ...
    fn link() -> VcpLink {
        let capacity = Rate::mbps(100.0);
        VcpLink::new(VcpConfig::default(), &LinkSetup { id: LinkId::of(0), capacity, packet_bytes: 1000, phase: 0.0 })
    }

    /// One load interval with these arrivals and this queue at every sample.
    fn interval(link: &mut VcpLink, bytes: u32, queue_bytes: u64) {
        let until = link.next_load;
        let passage = Passage { now: until, bytes, is_data: true, queue_bytes };
        link.on_arrival(&passage, None);
        while link.next_timer() <= until {
            link.on_timer(link.next_timer(), queue_bytes);
        }
    }

    fn code(link: &mut VcpLink, sent: LoadCode) -> LoadCode {
        let mut header = CongestionHeader::Vcp(sent);
        let passage = Passage { now: Time::ZERO, bytes: 1000, is_data: true, queue_bytes: 0 };
        link.on_departure(&passage, Some(&mut header));
        let CongestionHeader::Vcp(code) = header else { panic!("{header:?}") };
        code
    }

    #[test]
    fn load_factor__counts_arrivals_and_half_of_the_queue() {
        // 8 (2 000 000 + 0.5 x 500 000) / (0.98 x 100 Mb/s x 0.2 s) = 18 / 19.6.
        let factor = VcpConfig::default().load_factor(100e6, 0.2, 2e6, 5e5);
        assert!((factor - 18.0 / 19.6).abs() < 1e-12, "{factor}");
    }

    #[test]
    fn on_timer__codes_the_load() {
        let mut link = link();
        interval(&mut link, 0, 0); // the first interval, of 100 ms
        // Full load in 200 ms: 0.98 x 100 Mb/s x 0.2 s / 8 = 2 450 000 bytes; 80 % of it 1 960 000.
        for (bytes, expected) in [
            (1_959_999, LoadCode::Low),
            (1_960_001, LoadCode::High),
            (2_449_999, LoadCode::High),
            (2_450_001, LoadCode::Overload),
        ] {
            interval(&mut link, bytes, 0);
            assert_eq!(code(&mut link, LoadCode::Low), expected, "{bytes}");
        }
    }

    #[test]
    fn on_timer__a_queue_counts_by_its_moving_mean() {
        let mut link = link();
        interval(&mut link, 0, 0);
        // 300 000 bytes at each sample: the moving mean is a quarter of it, then 7/16: 75 000 and 131 250 bytes. Half
        // of them and 2 400 000 arrivals are 2 437 500 and 2 465 625 bytes: below and above 2 450 000.
        interval(&mut link, 2_400_000, 300_000);
        assert!((link.steady_queue_bytes - 75_000.0).abs() < 1e-6);
        assert_eq!(link.code, LoadCode::High);
        interval(&mut link, 2_400_000, 300_000);
        assert!((link.steady_queue_bytes - 131_250.0).abs() < 1e-6);
        assert_eq!(link.code, LoadCode::Overload);
    }

    #[test]
    fn on_departure__never_lowers_a_code() {
        let mut link = link();
        link.code = LoadCode::High;
        let codes = [LoadCode::Low, LoadCode::High, LoadCode::Overload].map(|sent| code(&mut link, sent));
        assert_eq!(codes, [LoadCode::High, LoadCode::High, LoadCode::Overload]);
    }
}
