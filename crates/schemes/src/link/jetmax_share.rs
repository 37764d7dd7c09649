//! The link of `jetmax-share`: JetMax's rate law (Zhang, Leonard & Loguinov 2008) from three sums over each interval,
//! and our rule of offers.
//!
//! The authors' rule of when a source changes the link that it names was not available. Here each link writes what the
//! source would get *if it named this link*, and the source names the one with the least offer.

use fairwave_units::{Duration, Time};

use super::{LinkController, LinkSetup, Passage};
use crate::header::{CongestionHeader, JetmaxHeader, LinkId};
use crate::scheme::option::{HALF_OPEN_UNIT, TypedOption, number, share, time};
use crate::scheme::{OptionSpec, Options, Scheme, entry};
use crate::session::tcp_options::{INITIAL_WINDOW, NS2_MIN_RTO, SACK};
use crate::session::{JetmaxShare, JetmaxSourceConfig};

/// The rule of `jetmax-share` at a link.
#[derive(Clone, Debug)]
pub struct JetmaxShareLink {
    id: LinkId,
    target_bps: f64,
    interval: Duration,
    /// Sums of this interval, and those of its packets that belong to the next.
    sums: Sums,
    spill: Sums,
    load: Load,
    next_timer: Time,
}

/// The three sums over an interval.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    /// Bytes of all packets.
    all_bytes: f64,
    /// Bytes of packets that name this link.
    named_bytes: f64,
    /// Time between packets, over those that name this link.
    apart_s: f64,
}

impl Sums {
    fn add(&mut self, share: f64, bytes: f64, named_apart_s: Option<f64>) {
        self.all_bytes += share * bytes;
        if let Some(apart_s) = named_apart_s {
            self.named_bytes += share * bytes;
            self.apart_s += share * apart_s;
        }
    }
}

/// The load of the last interval.
#[derive(Clone, Copy, Debug, Default)]
struct Load {
    /// Rate of the sources that name other links, in bit/s.
    unresponsive_bps: f64,
    /// Number of the sources that name this link.
    count: f64,
}

impl JetmaxShareLink {
    /// The rule for a link that starts at time zero.
    pub fn new(options: &Options, setup: &LinkSetup) -> Self {
        let interval = INTERVAL.of(options);
        let first = Duration::from_nanos((interval.as_nanos() as f64 * (0.5 + setup.phase)) as u64);
        Self {
            id: setup.id,
            target_bps: TARGET.of(options) * setup.capacity.as_bps(),
            interval,
            sums: Sums::default(),
            spill: Sums::default(),
            load: Load::default(),
            next_timer: Time::ZERO.saturating_add(first),
        }
    }

    /// Rate that the source gets here, or would get if it named this link.
    fn offer_bps(&self, header: &JetmaxHeader) -> f64 {
        let Load { unresponsive_bps, count } = self.load;
        // Zhang et al. 2008: g = (gamma C - u) / N. A source that is counted elsewhere is taken out of u and added to N.
        let is_counted = header.named == self.id && count > MIN_COUNT;
        let offer_bps = if is_counted {
            (self.target_bps - unresponsive_bps) / count.max(1.0)
        } else {
            (self.target_bps - unresponsive_bps + header.rate_bps) / (count + 1.0)
        };
        offer_bps.clamp(0.0, self.target_bps)
    }
}

impl LinkController for JetmaxShareLink {
    fn on_arrival(&mut self, passage: &Passage, header: Option<&CongestionHeader>) {
        let bytes = f64::from(passage.bytes);
        let Some(CongestionHeader::Jetmax(header)) = header else { return self.sums.add(1.0, bytes, None) };
        // Ours: a packet stands for the time until the next one of its source. The part of it that lies beyond the
        // interval counts there: otherwise the sums of a source with few packets per interval would vary by one of them.
        let left_s = self.next_timer.since(passage.now).as_secs_f64();
        let now = if header.interval_s > left_s { left_s / header.interval_s } else { 1.0 };
        let named_apart_s = (header.named == self.id).then_some(header.interval_s);
        self.sums.add(now, bytes, named_apart_s);
        self.spill.add(1.0 - now, bytes, named_apart_s);
    }

    fn on_departure(&mut self, _: &Passage, header: Option<&mut CongestionHeader>) {
        let Some(CongestionHeader::Jetmax(header)) = header else { return };
        let offer_bps = self.offer_bps(header);
        if header.named == self.id {
            header.fair_bps = offer_bps;
        }
        if offer_bps < header.least_bps {
            (header.least, header.least_bps) = (self.id, offer_bps);
        }
    }

    fn next_timer(&self) -> Time {
        self.next_timer
    }

    fn on_timer(&mut self, now: Time, _: u64) {
        let interval_s = self.interval.as_secs_f64();
        let Sums { all_bytes, named_bytes, apart_s } =
            std::mem::replace(&mut self.sums, std::mem::take(&mut self.spill));
        let unresponsive_bps = (all_bytes - named_bytes).max(0.0) * 8.0 / interval_s;
        self.load = Load { unresponsive_bps, count: apart_s / interval_s };
        self.next_timer = now.saturating_add(self.interval);
    }
}

/// Number of sources below which none is counted.
const MIN_COUNT: f64 = 0.5;

/// The scheme's registry entry.
pub(super) const SCHEME: Scheme = entry::at_packets(
    entry::link(
        "jetmax-share",
        "JetMax's rate law; a source names the link that offers it least (our rule)",
        "after Zhang et al. 2008",
        24,
    ),
    &OPTIONS,
    |options, window| {
        let (hysteresis, interval) = (HYSTERESIS.of(options), INTERVAL.of(options));
        Ok(Box::new(JetmaxShare::with(JetmaxSourceConfig { hysteresis, interval }, window)))
    },
    |options, setup| Box::new(JetmaxShareLink::new(options, setup)),
);
const OPTIONS: [OptionSpec; 6] =
    [TARGET.spec(), HYSTERESIS.spec(), INTERVAL.spec(), INITIAL_WINDOW.spec(), SACK.spec(), NS2_MIN_RTO];
const TARGET: TypedOption<f64> = number("target", HALF_OPEN_UNIT, "0.98", "target share of the capacity");
const HYSTERESIS: TypedOption<f64> =
    share("hysteresis", 0.5, "0.02", "share by which another link's offer must be lower to name that link");
const INTERVAL: TypedOption<Duration> =
    time("interval", [Duration::from_millis(1), Duration::from_secs(10)], "100 ms", "interval of links");

#[cfg(test)]
mod tests {
    use fairwave_units::Rate;

    use super::*;

    const ID: LinkId = LinkId::of(0);

    /// 10 Mb/s of which 9.8 are the target, over intervals of 100 ms.
    fn link() -> JetmaxShareLink {
        let setup = LinkSetup { id: ID, capacity: Rate::mbps(10.0), packet_bytes: 1250, phase: 0.5 };
        JetmaxShareLink::new(&Options::default(), &setup)
    }

    fn header(named: LinkId, mbps: f64) -> JetmaxHeader {
        let (fair_bps, least, least_bps) = (f64::INFINITY, LinkId::NONE, f64::INFINITY);
        JetmaxHeader { named, interval_s: 0.01 / mbps, rate_bps: mbps * 1e6, fair_bps, least, least_bps }
    }

    /// Packets of 10 kb arrive evenly for an interval.
    fn interval(link: &mut JetmaxShareLink, sources: &[JetmaxHeader]) {
        let (ends, begins) = (link.next_timer(), link.next_timer().since(Time::ZERO).as_secs_f64() - 0.1);
        for header in sources {
            for number in 0..(0.1 / header.interval_s).round() as u64 {
                let at = Duration::from_secs_f64(begins + (number as f64 + 0.3) * header.interval_s).unwrap();
                let passage = Passage { now: Time::ZERO + at, bytes: 1250, is_data: true, queue_bytes: 0 };
                link.on_arrival(&passage, Some(&CongestionHeader::Jetmax(*header)));
            }
        }
        link.on_timer(ends, 0);
    }

    #[test]
    fn load__counts_sources_whatever_their_rates() {
        let mut link = link();
        let sources = [header(ID, 4.0), header(ID, 1.0), header(LinkId::of(7), 2.0)];
        (0..3).for_each(|_| interval(&mut link, &sources));
        assert!((link.load.count - 2.0).abs() < 1e-6, "{:?}", link.load);
        assert!((link.load.unresponsive_bps - 2e6).abs() < 1.0, "{:?}", link.load);
        // (9.8 - 2) / 2 for a source that names the link, (9.8 - 2 + 2) / 3 for the other.
        let offers = [ID, LinkId::of(7)].map(|named| link.offer_bps(&header(named, 2.0)) / 1e6);
        assert!((offers[0] - 3.9).abs() < 1e-5 && (offers[1] - 9.8 / 3.0).abs() < 1e-5, "{offers:?}");
    }

    #[test]
    fn on_departure__writes_its_offer_to_its_sources_and_the_least() {
        let mut link = link();
        (0..3).for_each(|_| interval(&mut link, &[header(ID, 4.0)]));
        let mut leave = |sent: JetmaxHeader| {
            let mut header = CongestionHeader::Jetmax(sent);
            let passage = Passage { now: Time::ZERO, bytes: 1250, is_data: true, queue_bytes: 0 };
            link.on_departure(&passage, Some(&mut header));
            let CongestionHeader::Jetmax(left) = header else { unreachable!("a link changes fields only") };
            (left.fair_bps.is_finite(), left.least)
        };
        assert_eq!(leave(header(ID, 4.0)), (true, ID));
        assert_eq!(leave(header(LinkId::of(7), 4.0)), (false, ID));
        assert_eq!(
            leave(JetmaxHeader { least_bps: 1e6, least: LinkId::of(7), ..header(ID, 4.0) }),
            (true, LinkId::of(7))
        );
    }
}
