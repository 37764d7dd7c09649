//! MaxNet's link (Wydrowski & Zukerman 2002; Wydrowski, Andrew & Zukerman 2003): a price that rises while more than its
//! target arrives. A packet carries the largest price on its path, so that one link controls each source.

use fairwave_units::{Duration, Time};

use super::{LinkController, LinkSetup, Passage};
use crate::header::CongestionHeader;
use crate::scheme::option::{HALF_OPEN_UNIT, POSITIVE, TypedOption, number};
use crate::scheme::{OptionSpec, Options, Scheme, entry};
use crate::session::tcp_options::{INITIAL_WINDOW, NS2_MIN_RTO, SACK};
use crate::session::{MAXNET_BPS, maxnet};

/// MaxNet's rule at a link.
#[derive(Clone, Debug)]
pub struct MaxnetLink {
    gain_per_s: f64,
    target_bps: f64,
    /// Price at which a single source would use the target.
    least_price: f64,
    price: f64,
    arrived_bytes: f64,
    next_timer: Time,
}

impl MaxnetLink {
    /// The rule for a link that starts at time zero.
    pub fn new(options: &Options, setup: &LinkSetup) -> Self {
        let target_bps = TARGET.of(options) * setup.capacity.as_bps();
        // Ours: the paper's price starts at zero and may fall to it. No source may use more than the target, so lower
        // prices are never needed, and with them the sources would exceed the target until the price has risen.
        let least_price = libm::log(MAXNET_BPS / target_bps).max(0.0);
        let first = Duration::from_nanos((INTERVAL.as_nanos() as f64 * (0.5 + setup.phase)) as u64);
        Self {
            gain_per_s: GAIN.of(options),
            target_bps,
            least_price,
            price: least_price,
            arrived_bytes: 0.0,
            next_timer: Time::ZERO.saturating_add(first),
        }
    }
}

impl LinkController for MaxnetLink {
    fn on_arrival(&mut self, passage: &Passage, _: Option<&CongestionHeader>) {
        self.arrived_bytes += f64::from(passage.bytes);
    }

    fn on_departure(&mut self, _: &Passage, header: Option<&mut CongestionHeader>) {
        if let Some(CongestionHeader::Maxnet { price }) = header {
            *price = price.max(self.price);
        }
    }

    fn next_timer(&self) -> Time {
        self.next_timer
    }

    fn on_timer(&mut self, now: Time, _: u64) {
        // Wydrowski et al. 2003: dp/dt = gain (Y / (mu C) - 1).
        let interval_s = INTERVAL.as_secs_f64();
        let load = std::mem::take(&mut self.arrived_bytes) * 8.0 / (interval_s * self.target_bps);
        self.price = (self.price + self.gain_per_s * interval_s * (load - 1.0)).max(self.least_price);
        self.next_timer = now.saturating_add(INTERVAL);
    }
}

/// Time between changes of the price.
const INTERVAL: Duration = Duration::from_millis(10);

/// The scheme's registry entry.
pub(super) const SCHEME: Scheme = entry::at_packets(
    entry::link("maxnet", "the largest price on the path sets the rate", "Wydrowski & Zukerman 2002", 4),
    &OPTIONS,
    |_, window| Ok(Box::new(maxnet(window))),
    |options, setup| Box::new(MaxnetLink::new(options, setup)),
);
const OPTIONS: [OptionSpec; 5] = [GAIN.spec(), TARGET.spec(), INITIAL_WINDOW.spec(), SACK.spec(), NS2_MIN_RTO];
/// Stable below pi / 2 over the round-trip time, without swings up to 1 / e over it: 0.37 s.
const GAIN: TypedOption<f64> = number("gain", POSITIVE, "1", "change of the price per second at twice the target load");
const TARGET: TypedOption<f64> = number("target", HALF_OPEN_UNIT, "0.98", "target share of the capacity");

#[cfg(test)]
mod tests {
    use fairwave_units::Rate;

    use super::*;
    use crate::header::LinkId;

    fn link(mbps: f64) -> MaxnetLink {
        let mut options = Options::default();
        TARGET.set(&mut options, 1.0);
        let setup = LinkSetup { id: LinkId::of(0), capacity: Rate::mbps(mbps), packet_bytes: 1000, phase: 0.5 };
        MaxnetLink::new(&options, &setup)
    }

    fn interval(link: &mut MaxnetLink, bytes: u32) -> f64 {
        let now = link.next_timer();
        link.on_arrival(&Passage { now, bytes, is_data: true, queue_bytes: 0 }, None);
        link.on_timer(now, 0);
        link.price
    }

    #[test]
    fn on_timer__integrates_what_exceeds_the_target() {
        // A price at which one source fills the link: 1 Tb/s e^-p = 100 Mb/s.
        let (mut link, least) = (link(100.0), libm::log(1e4));
        // 10 ms at 100 Mb/s are 125 000 bytes; twice that adds gain x 10 ms.
        for (bytes, added) in [(250_000, 0.01), (125_000, 0.01), (62_500, 0.005), (0, 0.0)] {
            let price = interval(&mut link, bytes);
            assert!((price - least - added).abs() < 1e-12, "{bytes}: {price}");
        }
    }

    #[test]
    fn on_departure__writes_the_larger_price() {
        let mut link = link(100.0);
        link.price = 0.5;
        for (price, left) in [(0.0, 0.5), (0.75, 0.75)] {
            let mut header = CongestionHeader::Maxnet { price };
            let passage = Passage { now: Time::ZERO, bytes: 1000, is_data: true, queue_bytes: 0 };
            link.on_departure(&passage, Some(&mut header));
            assert_eq!(header, CongestionHeader::Maxnet { price: left });
        }
    }
}
