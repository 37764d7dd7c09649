//! The link of MKC and EMKC, max-min Kelly control (Zhang, Kang & Loguinov, SIGCOMM 2004): each interval it measures the
//! share of the arriving traffic that exceeds its capacity, and packets carry the largest one on their path. In EMKC
//! that share is negative while capacity is free, which makes convergence exponential.

use fairwave_units::{Duration, Rate, Time};

use super::{LinkController, LinkSetup, Passage};
use crate::header::{CongestionHeader, LinkId, MkcHeader};
use crate::scheme::option::{Domain, HALF_OPEN_UNIT, TypedOption, number, rate, time};
use crate::scheme::{OptionSpec, Options, Scheme, entry};
use crate::session::tcp_options::{INITIAL_WINDOW, NS2_MIN_RTO, SACK};
use crate::session::{Mkc, WindowConfig};

/// MKC's or EMKC's rule at a link.
#[derive(Clone, Debug)]
pub struct MkcLink {
    id: LinkId,
    is_exponential: bool,
    target_bps: f64,
    interval: Duration,
    /// The newest sample; `None` before the first.
    sample: Option<(u64, f64)>,
    arrived_bytes: f64,
    /// Whether packets arrived in the interval before.
    was_busy: bool,
    next_timer: Time,
}

impl MkcLink {
    /// The rule for a link that starts at time zero; EMKC's if `is_exponential`.
    pub fn new(is_exponential: bool, options: &Options, setup: &LinkSetup) -> Self {
        let interval = INTERVAL.of(options);
        let first = Duration::from_nanos((interval.as_nanos() as f64 * (0.5 + setup.phase)) as u64);
        Self {
            id: setup.id,
            is_exponential,
            target_bps: TARGET.of(options) * setup.capacity.as_bps(),
            interval,
            sample: None,
            arrived_bytes: 0.0,
            was_busy: false,
            next_timer: Time::ZERO.saturating_add(first),
        }
    }

    fn measure(&mut self) {
        let arrived_bps = std::mem::take(&mut self.arrived_bytes) * 8.0 / self.interval.as_secs_f64();
        let is_busy = arrived_bps > 0.0;
        // Ours: an interval in which traffic starts is not a sample, as it measures only a part of the rates.
        if is_busy && std::mem::replace(&mut self.was_busy, is_busy) {
            let loss = (arrived_bps - self.target_bps) / arrived_bps;
            let loss = if self.is_exponential { loss } else { loss.max(0.0) };
            self.sample = Some((self.sample.map_or(1, |(number, _)| number + 1), loss));
        }
        self.was_busy = is_busy;
    }
}

impl LinkController for MkcLink {
    fn on_arrival(&mut self, passage: &Passage, _: Option<&CongestionHeader>) {
        self.arrived_bytes += f64::from(passage.bytes);
    }

    fn on_departure(&mut self, _: &Passage, header: Option<&mut CongestionHeader>) {
        if let (Some(CongestionHeader::Mkc(header)), Some((number, loss))) = (header, self.sample)
            && loss > header.loss
        {
            *header = MkcHeader { link: self.id, number, loss, ..*header };
        }
    }

    fn next_timer(&self) -> Time {
        self.next_timer
    }

    fn on_timer(&mut self, now: Time, _: u64) {
        self.measure();
        self.next_timer = now.saturating_add(self.interval);
    }
}

fn source(options: &Options, window: WindowConfig) -> Mkc {
    Mkc::with(ALPHA.of(options).as_bps(), BETA.of(options), window)
}

/// MKC's registry entry.
pub(super) const SCHEME: Scheme = entry::at_packets(
    entry::link("mkc", "links report the share of traffic above their capacity", "Zhang et al. 2004", HEADER),
    &OPTIONS,
    |options, window| Ok(Box::new(source(options, window))),
    |options, setup| Box::new(MkcLink::new(false, options, setup)),
);
/// EMKC's registry entry.
pub(super) const EXPONENTIAL: Scheme = entry::at_packets(
    entry::link("emkc", "MKC whose links also report free capacity, as a negative share", "Zhang et al. 2004", HEADER),
    &OPTIONS,
    |options, window| Ok(Box::new(source(options, window))),
    |options, setup| Box::new(MkcLink::new(true, options, setup)),
);
/// Link, number, loss and rate, of four bytes each; the paper's layout was not available.
const HEADER: u64 = 16;
const OPTIONS: [OptionSpec; 7] =
    [ALPHA.spec(), BETA.spec(), INTERVAL.spec(), TARGET.spec(), INITIAL_WINDOW.spec(), SACK.spec(), NS2_MIN_RTO];
const ALPHA: TypedOption<Rate> = rate("alpha", "200 kb/s", "rate added per sample");
const BETA: TypedOption<f64> =
    number("beta", Domain::Number { least: 0.0, most: 2.0, open: true }, "0.5", "gain of the loss, stable below 2");
const INTERVAL: TypedOption<Duration> =
    time("interval", [Duration::from_millis(1), Duration::from_secs(10)], "100 ms", "interval of links");
/// At 1, C + N alpha / beta arrives at rest, so that a share is lost for good.
const TARGET: TypedOption<f64> =
    number("target", HALF_OPEN_UNIT, "1", "share of the capacity above which traffic counts as lost");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::LoadCode;
    use crate::session::{CongestionController, Feedback, Sending};

    fn link(is_exponential: bool) -> MkcLink {
        let setup = LinkSetup { id: LinkId::of(3), capacity: Rate::mbps(10.0), packet_bytes: 1000, phase: 0.5 };
        MkcLink::new(is_exponential, &Options::default(), &setup)
    }

    /// The sample after an interval of 100 ms in which this rate arrives.
    fn interval(link: &mut MkcLink, mbps: f64) -> Option<(u64, f64)> {
        let now = link.next_timer();
        let bytes = (mbps * 12_500.0).round() as u32;
        link.on_arrival(&Passage { now, bytes, is_data: true, queue_bytes: 0 }, None);
        link.on_timer(now, 0);
        link.sample
    }

    #[test]
    fn measure__takes_whole_intervals_and_holds_without_traffic() {
        let mut emkc = link(true);
        assert_eq!(interval(&mut emkc, 8.0), None);
        // (8 - 10) / 8 and (12.5 - 10) / 12.5.
        assert_eq!(interval(&mut emkc, 8.0), Some((1, -0.25)));
        assert_eq!(interval(&mut emkc, 12.5), Some((2, 0.2)));
        assert_eq!(interval(&mut emkc, 0.0), Some((2, 0.2)));
        let mut mkc = link(false);
        interval(&mut mkc, 8.0);
        assert_eq!([8.0, 12.5].map(|mbps| interval(&mut mkc, mbps)), [Some((1, 0.0)), Some((2, 0.2))]);
    }

    #[test]
    fn on_departure__writes_the_larger_loss() {
        let mut link = link(true);
        (0..2).for_each(|_| _ = interval(&mut link, 12.5));
        for (loss, left) in [(f64::NEG_INFINITY, (LinkId::of(3), 1, 0.2)), (0.3, (LinkId::of(0), 7, 0.3))] {
            let mut header = CongestionHeader::Mkc(MkcHeader { link: LinkId::of(0), number: 7, loss, rate_bps: 1e6 });
            link.on_departure(
                &Passage { now: Time::ZERO, bytes: 1000, is_data: true, queue_bytes: 0 },
                Some(&mut header),
            );
            let (link, number, loss) = left;
            assert_eq!(header, CongestionHeader::Mkc(MkcHeader { link, number, loss, rate_bps: 1e6 }));
        }
    }

    /// Sources at these rates share the link, with all changes of an interval at its end; their rates after each step,
    /// in Mb/s.
    fn steps<const N: usize>(begin_mbps: [f64; N], count: usize) -> Vec<[f64; N]> {
        let mut link = link(true);
        let back = |header| Feedback {
            now: Time::ZERO,
            header,
            smoothed_rtt: Duration::from_millis(100),
            packet_bytes: 1250,
            window_limited: true,
        };
        let mut sources = begin_mbps.map(|mbps| {
            let mut source = source(&Options::default(), WindowConfig::default());
            source.on_feedback(&back(CongestionHeader::Vcp(LoadCode::Low)));
            // A window of 10 packets of 10 kb in 100 ms is 1 Mb/s.
            source.set_window_packets(10.0 * mbps);
            source
        });
        let sending = Sending { smoothed_rtt: None, window_packets: 1 };
        let rates =
            |sources: &[Mkc; N]| sources.each_ref().map(|source| source.allowance().pacing.unwrap().as_bps() / 1e6);
        interval(&mut link, rates(&sources).iter().sum());
        let mut all = Vec::new();
        for _ in 0..count {
            interval(&mut link, rates(&sources).iter().sum());
            for source in &mut sources {
                let mut header = source.header(&sending).unwrap();
                let passage = Passage { now: Time::ZERO, bytes: 1250, is_data: true, queue_bytes: 0 };
                link.on_departure(&passage, Some(&mut header));
                source.on_feedback(&back(header));
            }
            all.push(rates(&sources));
        }
        all
    }

    fn near(got: &[f64], expected: &[f64]) {
        assert!(
            got.iter().zip(expected).all(|(got, expected)| (got - expected).abs() < 1e-4),
            "{got:?}, not {expected:?}"
        );
    }

    #[test]
    fn two_sources__follow_the_recurrence_to_efficiency_and_fairness() {
        // The recurrence x + alpha - beta p x, in Python.
        let all = steps([1.0, 8.0], 130);
        for (step, expected) in [[1.2556, 8.6444], [1.4619, 8.8881], [1.6372, 8.9378]].into_iter().enumerate() {
            near(&all[step], &expected);
        }
        // X* = 10 + 2 x 0.2 / 0.5 = 10.8; each step leaves 1 - beta of the distance, 1.8 at the start.
        let off = |step: usize| (all[step - 1].iter().sum::<f64>() - 10.8).abs();
        assert!(off(6) > 0.018 && off(7) < 0.018, "{} {}", off(6), off(7));
        // The difference shrinks by 1 - beta p* = 0.963 a step once p is p* = 0.8 / 10.8: 122 steps for 1 %.
        let apart = |step: usize| all[step - 1][1] - all[step - 1][0];
        assert!((apart(130) / apart(129) - (1.0 - 0.5 * 0.8 / 10.8)).abs() < 1e-4);
    }

    #[test]
    fn one_source__takes_half_of_the_rest_each_step() {
        // 0.1 Mb/s is a packet per round trip: 0.1 + 0.2 + (10 - 0.1) / 2, and so on to 10 + 0.2 / 0.5.
        let all = steps([0.1], 40);
        for (step, expected) in [5.25, 7.825, 9.1125, 9.75625, 10.078_125].into_iter().enumerate() {
            near(&all[step], &[expected]);
        }
        near(&all[39], &[10.4]);
    }
}
