//! A source that sends at its desired rate, whatever happens.

use fairwave_scenario::{Demand, TraceKind};
use fairwave_units::{Rate, Time};

use crate::flow::FlowOptions;
use crate::simulator::{SimEvent, Simulator};
use crate::source::SourceKind;
use crate::transmitter::Transmitter;

/// Of sessions that send at their demand. Their sinks say nothing.
pub(crate) const KIND: SourceKind = SourceKind::new(
    |scheme| scheme.name == "cbr",
    |simulator, asked| {
        let source = Constant::new(&asked.session.demand, asked.session.stop, asked.size_packets);
        simulator.add_flow(source.into(), [asked.data_bytes, 0], None, asked.active(), FlowOptions::default());
        Ok(())
    },
);

/// Packets at a constant rate, exact to the nanosecond: the n-th leaves at floor(start + n x bits / rate).
#[derive(Clone, Debug)]
pub(crate) struct Constant {
    demand: Demand,
    rate: Option<Rate>,
    clock: Transmitter,
    stop: Time,
    size_packets: u64,
    next: u64,
}

impl Constant {
    pub(crate) fn new(demand: &Demand, stop: Option<Time>, size_packets: u64) -> Self {
        let stop = stop.unwrap_or(Time::MAX);
        Self { demand: demand.clone(), rate: None, clock: Transmitter::new(1), stop, size_packets, next: 0 }
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
            self.clock = Transmitter::new(rate.map_or(1, |rate| rate.as_bps().round() as u64));
        }
        if rate.is_none() {
            return (None, self.demand.next_change(now));
        }
        self.next += 1;
        let again = self.clock.send(now, bytes);
        (Some(self.next - 1), Some(again))
    }
}

impl Simulator<'_> {
    /// A source of a constant rate sends its next packet.
    pub(crate) fn send_constant(&mut self, index: u32) {
        let now = self.now();
        let flow = &mut self.flows[index as usize];
        let Some(constant) = flow.source.constant_mut() else { return };
        let (number, again) = constant.poll_send(now, flow.data_bytes);
        if let Some(number) = number {
            self.send(index, number, TraceKind::Sent);
        }
        if let Some(again) = again {
            self.schedule(again, SimEvent::Offer(index));
        }
    }
}
