//! A source that sends at its desired rate, without any response to the network.

use fairwave_scenario::Demand;
use fairwave_scenario::random::RandomStream;
use fairwave_units::{Duration, Rate, Time};

use crate::transmitter::Transmitter;

/// Packets at a constant rate: the n-th is due at floor(start + n x bits / rate), exact to the nanosecond.
///
/// With dither each leaves at a random moment between its time and that of the next one. Sources of equal rates would
/// otherwise keep their phases, and all drops of a full queue would hit one of them (Floyd & Jacobson 1992 on phase
/// effects).
#[derive(Clone, Debug)]
pub(crate) struct Constant {
    demand: Demand,
    rate: Option<Rate>,
    clock: Transmitter,
    stop: Time,
    size_packets: u64,
    next: u64,
    /// Departure time of the next packet.
    due: Time,
    dither: Option<RandomStream>,
}

impl Constant {
    pub(crate) fn new(demand: &Demand, stop: Option<Time>, size_packets: u64, dither: Option<RandomStream>) -> Self {
        let stop = stop.unwrap_or(Time::MAX);
        Self {
            demand: demand.clone(),
            rate: None,
            clock: Transmitter::new(1),
            stop,
            size_packets,
            next: 0,
            due: Time::ZERO,
            dither,
        }
    }

    pub(crate) fn size_packets(&self) -> u64 {
        self.size_packets
    }

    /// Returns the number of the packet to send at `now`, if one is due, and the time of the next call.
    pub(crate) fn poll_send(&mut self, now: Time, bytes: u32) -> (Option<u64>, Option<Time>) {
        if now >= self.stop || self.next >= self.size_packets {
            return (None, None);
        }
        let rate = self.demand.at(now).filter(|rate| *rate > Rate::ZERO);
        if rate != self.rate {
            self.rate = rate;
            self.due = now;
            self.clock = Transmitter::new(rate.map_or(1, |rate| rate.as_bps().round() as u64));
        }
        if rate.is_none() {
            return (None, self.demand.next_change(now));
        }
        self.next += 1;
        let before = self.due;
        self.due = self.clock.send(before, bytes);
        let period_ns = self.due.since(before).as_nanos() as f64;
        let after_ns = self.dither.as_mut().map_or(0, |stream| stream.uniform(0.0, period_ns) as u64);
        let again = self.due.saturating_add(Duration::from_nanos(after_ns)).max(now);
        (Some(self.next - 1), Some(again))
    }
}
