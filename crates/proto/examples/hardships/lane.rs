//! Five sources into one sink, packet by packet in virtual time, with something in the way.

#![allow(dead_code, reason = "the tests print less than the example")]

use fairwave_proto::{Direction, Measured};
use fairwave_units::{Bytes, Duration, Rate, Time};

use crate::network::{Flow, Line, Link, Network, Random, Setup};

/// How the sink knows a session's rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meter {
    /// The rate at which its source sends, from the stamps and numbers of packets (the protocol's).
    Sent,
    /// The bytes that were read in the control interval, and nothing of how long packets waited.
    Read,
}

/// Disturbances during a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Hardship {
    /// Standard deviation of each measured rate at every node, as a share of the rate.
    pub(crate) noise: f64,
    /// Once in two seconds the sink reads nothing for this time.
    pub(crate) stall: Duration,
    /// All packets are lost in this time.
    pub(crate) blackhole: Option<(Time, Time)>,
}

pub(crate) const SOURCES: usize = 5;
const SINK: usize = SOURCES;
const CAPACITY_MBPS: f64 = 500.0;
const INTERVAL_MS: usize = 20;
/// Queue of the sink's line: the longest round trip.
const QUEUE: Duration = Duration::from_millis(90);

/// Jain's index of fairness (Jain, Chiu and Hawe 1984): 1 if all have the same.
pub(crate) fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    sum * sum / (shares.len() as f64 * shares.iter().map(|share| share * share).sum::<f64>())
}

/// Five sources, the sink's line with a queue of one bandwidth-delay product of the longest round trip, and the sink.
pub(crate) struct Lane(Network);

impl Lane {
    /// Runs until a time; all sessions start at once.
    pub(crate) fn run(meter: Meter, hardship: Hardship, seed: u64, until: Time) -> Self {
        let capacity = Rate::mbps(CAPACITY_MBPS);
        let setup =
            Setup { capacity_bps: Some(capacity.as_bps()), drain: true, room: Bytes::new(1 << 30), ..Setup::default() };
        let mut network = Network::of(seed, vec![setup; SOURCES + 1], Duration::ZERO);
        network.lines.push(Line::lasting(capacity.as_bps(), QUEUE));
        for source in 0..SOURCES {
            let delay = Duration::from_millis(5 + 10 * source as u64);
            let blackholes: Vec<_> = hardship.blackhole.into_iter().map(|(from, to)| from..to).collect();
            let back = Link { blackholes, ..Link::plain(delay) };
            network.links[source][SINK] = Link { before: delay, line: Some(0), delays: Vec::new(), ..back.clone() };
            network.links[SINK][source] = back;
            network.flows.push(Flow::endless(source, SINK));
        }
        let begins = (0..).map(|turn| Time::from_secs(1 + 2 * turn)).take_while(|begins| *begins < until);
        network.hosts[SINK].pauses = begins.map(|begins| begins..begins + hardship.stall).collect();
        network.hosts[SINK].pauses_reading_only = true;
        for (at, host) in network.hosts.iter_mut().enumerate() {
            let (mut random, mut last) = (Random::new(seed ^ at as u64), Time::ZERO);
            host.meter = Some(Box::new(move |now, direction, measured, read| {
                if direction == Direction::Receiving && at == SINK && meter == Meter::Read {
                    let span_s = now.since(last).as_secs_f64();
                    for Measured { session, rate, waiting } in measured.iter_mut() {
                        let bits = read.remove(session).unwrap_or_default() as f64 * 8.0;
                        (*rate, *waiting) = (Rate::nearest_bps(bits / span_s), None);
                    }
                    last = now;
                }
                if hardship.noise > 0.0 {
                    for measured in measured {
                        let factor = 1.0 + hardship.noise * normal(&mut random);
                        measured.rate = measured.rate * factor.max(0.0);
                    }
                }
            }));
        }
        network.run_until(until);
        assert_eq!(network.counts.closed, 0, "{}", network.describe());
        Self(network)
    }

    /// Bytes by milliseconds, as a share of what the line takes in these seconds.
    fn share(bytes: &[u64], from_s: usize, to_s: usize) -> f64 {
        let sum: u64 = bytes.iter().skip(1000 * from_s).take(1000 * (to_s - from_s)).sum();
        sum as f64 * 8.0 / (CAPACITY_MBPS * 1e6 * (to_s - from_s) as f64)
    }

    /// The share of the sink's line that was used.
    pub(crate) fn used(&self, from_s: usize, to_s: usize) -> f64 {
        Self::share(&self.0.lines[0].carried, from_s, to_s)
    }

    /// The share of the sink's line that each session's new bytes took.
    pub(crate) fn goodputs(&self, from_s: usize, to_s: usize) -> Vec<f64> {
        self.0.flows.iter().map(|flow| Self::share(&flow.fresh, from_s, to_s)).collect()
    }

    /// The most that came in a control interval, as a multiple of what the line takes.
    pub(crate) fn peak(&self, from_s: usize, to_s: usize) -> f64 {
        let intervals = self.0.lines[0].offered[1000 * from_s..1000 * to_s].chunks(INTERVAL_MS);
        let most = intervals.map(|offered| offered.iter().sum::<u64>()).max().unwrap_or_default();
        most as f64 * 8.0 / (CAPACITY_MBPS * 1e3 * INTERVAL_MS as f64)
    }

    /// The longest wait of a packet.
    pub(crate) fn longest_queue(&self, from_s: usize, to_s: usize) -> Duration {
        let waits = &self.0.lines[0].waits;
        waits.iter().skip(1000 * from_s).take(1000 * (to_s - from_s)).copied().max().unwrap_or_default()
    }

    /// Packets that found the queue full.
    pub(crate) fn lost(&self) -> u64 {
        self.0.lines[0].dropped
    }

    /// Seconds from `from_s` on until 95 % of the line is used for a tenth of a second.
    pub(crate) fn full_after_s(&self, from_s: usize) -> Option<f64> {
        let tenths = self.0.lines[0].carried.get(1000 * from_s..)?.chunks(100);
        let full = 0.95 * CAPACITY_MBPS * 1e6 / 8.0 * 0.1;
        let place = tenths.map(|carried| carried.iter().sum::<u64>() as f64).position(|bytes| bytes >= full);
        place.map(|tenths| (tenths + 1) as f64 / 10.0)
    }
}

/// A number of the normal distribution (Box and Muller 1958).
fn normal(random: &mut Random) -> f64 {
    let (radius, angle) = ((-2.0 * libm::log(1.0 - random.unit())).sqrt(), std::f64::consts::TAU * random.unit());
    radius * libm::cos(angle)
}
