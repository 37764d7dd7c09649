//! A capacity that GTP shares with other traffic.

use fairwave_proto::handshake::insecure::Insecure;
use fairwave_proto::{Direction, Host};
use fairwave_schemes::Others;
use fairwave_schemes::node::OtherMeter;
use fairwave_units::{Rate, Time};

use crate::route::Network;

/// A host's direction with a weight for all other traffic: the simulated counterpart of reading the counters of a
/// network card.
pub(super) struct Yielding {
    direction: Direction,
    /// Index of its link.
    link: u32,
    weight: f64,
    meter: OtherMeter,
}

impl Yielding {
    /// The directions of a node that have a capacity: their links start counting departures.
    pub(super) fn of(node: u32, weight: f64, network: &mut Network) -> Vec<Self> {
        let sides = [(Direction::Sending, false), (Direction::Receiving, true)];
        let found: Vec<_> = sides
            .into_iter()
            .filter_map(|(direction, receives)| {
                let link = *network.sides.get(&(node, receives))?;
                Some(Self { direction, link, weight, meter: OtherMeter::default() })
            })
            .collect();
        for yielding in &found {
            network.links[yielding.link as usize].watch();
        }
        found
    }

    /// Reports the current use of other traffic to a host; zero until it is known.
    pub(super) fn tell(&mut self, now: Time, host: &mut Host<Insecure>, network: &mut Network) {
        let Some(card) = network.links[self.link as usize].card() else { return };
        let (all, own) = card.read(now);
        self.meter.sample(now, all, own);
        let measured = self.meter.rate().unwrap_or(Rate::ZERO);
        host.see_other(self.direction, Some(Others { weight: self.weight, measured }));
    }
}
