//! A source that sends at its desired rate, whatever happens.

use fairwave_scenario::Demand;
use fairwave_units::{Rate, Time};

use crate::wire::Wire;

/// Packets at a constant rate, exact to the nanosecond: the n-th leaves at floor(start + n x bits / rate).
#[derive(Clone, Debug)]
pub(crate) struct Constant {
    demand: Demand,
    rate: Option<Rate>,
    clock: Wire,
    stop: Time,
    size_packets: u64,
    next: u64,
}

impl Constant {
    pub(crate) fn new(demand: &Demand, stop: Option<Time>, size_packets: u64) -> Self {
        let stop = stop.unwrap_or(Time::MAX);
        Self { demand: demand.clone(), rate: None, clock: Wire::new(1), stop, size_packets, next: 0 }
    }

    /// Packets to deliver.
    pub(crate) fn size_packets(&self) -> u64 {
        self.size_packets
    }

    /// It is `now` time for the next packet, if the source sends at all: its number. The second is when to come again.
    pub(crate) fn poll_send(&mut self, now: Time, bytes: u32) -> (Option<u64>, Option<Time>) {
        if now >= self.stop || self.next >= self.size_packets {
            return (None, None);
        }
        let rate = self.demand.at(now).filter(|rate| *rate > Rate::ZERO);
        if rate != self.rate {
            self.rate = rate;
            self.clock = Wire::new(rate.map_or(1, |rate| rate.as_bps().round() as u64));
        }
        if rate.is_none() {
            return (None, self.demand.next_change(now));
        }
        self.next += 1;
        let again = self.clock.send(now, bytes);
        (Some(self.next - 1), Some(again))
    }
}
