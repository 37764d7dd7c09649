//! Conditions of a link while it runs: changes over time, losses, delays and copies.

use std::collections::BTreeMap;

use fairwave_scenario::Conditions;
use fairwave_scenario::random::RandomStream;
use fairwave_units::{Duration, Rate, Time};

use crate::packet::SimPacket;

/// The conditions of one link.
pub(crate) struct LinkConditions {
    spec: Conditions,
    /// Propagation delay that the lines after the link have.
    delay: Duration,
    stream: RandomStream,
    /// Data packets that reached the link, and how many of the listed ones were dropped.
    data_packets: u64,
    listed: usize,
    is_in_burst: bool,
    /// Content of the policer's bucket, at an instant.
    bucket_bits: f64,
    filled_at: Time,
    /// The line of late packets for each line after the link.
    pub(crate) late_lines: BTreeMap<u32, u32>,
}

/// Why a packet does not enter the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It was lost.
    Lost,
    /// The policer dropped it.
    Policed,
}

/// How a packet crosses the line after the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Crossing {
    /// Delay in addition to the line's, in nanoseconds; negative if the propagation delay is shorter now.
    pub(crate) extra_ns: i64,
    /// Delay of a packet that others overtake.
    pub(crate) late: Option<Duration>,
    /// Whether it arrives twice.
    pub(crate) is_doubled: bool,
}

impl LinkConditions {
    pub(crate) fn new(spec: Conditions, delay: Duration, stream: RandomStream) -> Self {
        let bucket_bits = spec.policer.map_or(0.0, |(_, size)| size.as_bits_f64());
        Self {
            spec,
            delay,
            stream,
            data_packets: 0,
            listed: 0,
            is_in_burst: false,
            bucket_bits,
            filled_at: Time::ZERO,
            late_lines: BTreeMap::new(),
        }
    }

    /// Whether a packet that reaches the link is lost, or dropped by the policer.
    pub(crate) fn refuses(&mut self, now: Time, packet: &SimPacket) -> Option<Refusal> {
        if packet.kind.is_data() {
            self.data_packets += 1;
            if self.spec.drop.get(self.listed) == Some(&self.data_packets) {
                self.listed += 1;
                return Some(Refusal::Lost);
            }
        }
        if let Some([enter, leave]) = self.spec.burst_loss {
            let p = if self.is_in_burst { leave } else { enter };
            self.is_in_burst ^= self.stream.unit() < p;
        }
        let loss = self.spec.loss.as_ref().map_or(0.0, |loss| loss.at(now).0);
        if self.is_in_burst || (loss > 0.0 && self.stream.unit() < loss) {
            return Some(Refusal::Lost);
        }
        let (rate, size) = self.spec.policer?;
        let gained = now.since(self.filled_at).as_secs_f64() * rate.as_bps();
        self.bucket_bits = (self.bucket_bits + gained).min(size.as_bits_f64());
        self.filled_at = now;
        let bits = f64::from(packet.bytes) * 8.0;
        if self.bucket_bits < bits {
            return Some(Refusal::Policed);
        }
        self.bucket_bits -= bits;
        None
    }

    /// The capacity now, if it changes over time, and when it changes next.
    pub(crate) fn capacity(&self, now: Time) -> Option<(Rate, Option<Time>)> {
        self.spec.capacity.as_ref().map(|capacity| capacity.at(now))
    }

    /// The mean capacity in a span of time, if it changes over time.
    pub(crate) fn mean_capacity(&self, span: (Time, Time)) -> Option<Rate> {
        self.spec.capacity.as_ref().map(|capacity| capacity.mean(span))
    }

    /// When a packet has left that would end at `leaves`, if the capacity changes on the way.
    pub(crate) fn end_of(&self, now: Time, leaves: Time, bytes: u32) -> Option<Time> {
        let capacity = self.spec.capacity.as_ref()?;
        let (_, next) = capacity.at(now);
        next.filter(|next| *next < leaves).map(|_| capacity.end_of(now, f64::from(bytes) * 8.0))
    }

    /// How the packet that leaves now crosses the line.
    pub(crate) fn cross(&mut self, now: Time) -> Crossing {
        let mut extra_ns = 0;
        if let Some(delay) = &self.spec.delay {
            extra_ns += delay.at(now).0.as_nanos().cast_signed() - self.delay.as_nanos().cast_signed();
        }
        if !self.spec.jitter.is_zero() {
            extra_ns += self.stream.uniform(0.0, self.spec.jitter.as_nanos() as f64) as i64;
        }
        let late = self.spec.reorder.and_then(|(share, delay)| (self.stream.unit() < share).then_some(delay));
        let is_doubled = self.spec.duplicate > 0.0 && self.stream.unit() < self.spec.duplicate;
        Crossing { extra_ns, late, is_doubled }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::SimPacketKind;
    use fairwave_scenario::random;
    use fairwave_units::Bytes;

    const PACKET: SimPacket =
        SimPacket { number: 0, stamp: Time::ZERO, flow: 0, bytes: 1000, stage: 0, kind: SimPacketKind::DATA };

    fn conditions(spec: Conditions) -> LinkConditions {
        LinkConditions::new(spec, Duration::from_millis(10), random::stream(1, "conditions"))
    }

    #[test]
    fn refuses__the_listed_packets_only() {
        let mut link = conditions(Conditions { drop: Box::new([3, 5]), ..Conditions::default() });
        let lost: Vec<_> = (1..10).filter(|_| link.refuses(Time::ZERO, &PACKET).is_some()).collect();
        assert_eq!(lost, [3, 5]);
    }

    #[test]
    fn refuses__in_bursts_of_the_expected_length() {
        let mut link = conditions(Conditions { burst_loss: Some([0.01, 0.25]), ..Conditions::default() });
        let lost: Vec<bool> = (0..1_000_000).map(|_| link.refuses(Time::ZERO, &PACKET).is_some()).collect();
        let bursts = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
        let share = lost.iter().filter(|lost| **lost).count() as f64 / 1e6;
        // Gilbert: 0.01 / (0.01 + 0.25) = 3.85 % in bursts of four packets on average.
        assert!((share - 0.03846).abs() < 0.002, "{share}");
        assert!((share * 1e6 / bursts - 4.0).abs() < 0.1, "{}", share * 1e6 / bursts);
    }

    #[test]
    fn refuses__what_exceeds_the_bucket() {
        let policer = Some((Rate::mbps(8.0), Bytes::new(5000)));
        let mut link = conditions(Conditions { policer, ..Conditions::default() });
        // A full bucket of five packets, then one a millisecond.
        let passed =
            |link: &mut LinkConditions, at: Time| (0..20).filter(|_| link.refuses(at, &PACKET).is_none()).count();
        assert_eq!(passed(&mut link, Time::ZERO), 5);
        assert_eq!(passed(&mut link, Time::from_nanos(3_000_001)), 3);
        assert_eq!(passed(&mut link, Time::from_secs(1)), 5);
    }

    #[test]
    fn cross__delays_are_relative_to_the_line() {
        let delay = delays(&[(0, 10), (5, 4), (7, 30)]);
        let mut link = conditions(Conditions { delay: Some(delay), ..Conditions::default() });
        let extra = [0, 5, 8].map(|s| link.cross(Time::from_secs(s)).extra_ns);
        assert_eq!(extra, [0, -6_000_000, 20_000_000]);
    }

    fn delays(steps: &[(u64, u64)]) -> fairwave_scenario::Steps<Duration> {
        let steps = steps.iter().map(|(at, ms)| (Time::from_secs(*at), Duration::from_millis(*ms)));
        fairwave_scenario::Steps::new(steps.collect(), None)
    }
}
