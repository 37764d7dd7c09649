//! What happens to datagrams between two hosts, one way.

use std::collections::BTreeMap;
use std::ops::Range;

use fairwave_proto::Ecn;
use fairwave_units::{Bytes, Duration, Rate, Time};

use super::test_random::Random;
use super::{Load, by_ms};

/// Bytes of IP and UDP around a datagram.
pub(crate) const LOWER: u32 = 28;

/// A way through the network: first a delay, then the queue of a line, then all that is left to chance, then a delay.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    /// Delay in front of the line.
    pub(crate) before: Duration,
    /// The line, by its place in [`Network::lines`](super::Network::lines); links may share one.
    pub(crate) line: Option<usize>,
    /// Delay behind the line, each from a time on.
    pub(crate) delays: Vec<(Time, Duration)>,
    /// Largest extra delay of each datagram.
    pub(crate) jitter: Duration,
    pub(crate) loss: f64,
    /// Probability per datagram that a burst of losses starts, and that it ends.
    pub(crate) bursts: (f64, f64),
    pub(crate) is_in_burst: bool,
    /// One packet in this many is lost, by count.
    pub(crate) loses_one_in: u64,
    /// `loses_one_in` counts data packets only.
    pub(crate) spares_control: bool,
    pub(crate) doubles: f64,
    pub(crate) corrupts: f64,
    /// Share of datagrams with an extra delay, and the largest one.
    pub(crate) detours: (f64, Duration),
    /// Share of datagrams with this extra delay, and the times in which there are any.
    pub(crate) late: (f64, Duration),
    pub(crate) late_in: Range<Time>,
    pub(crate) blackholes: Vec<Range<Time>>,
    /// Times in which control packets are lost.
    pub(crate) mutes: Vec<Range<Time>>,
    /// Larger datagrams are lost.
    pub(crate) largest: usize,
    /// A router on the way clears the ECN field.
    pub(crate) bleaches: bool,
    pub(crate) counts: LinkCounts,
}

/// Traffic that a link has carried.
#[derive(Clone, Debug, Default)]
pub(crate) struct LinkCounts {
    /// Packets that `loses_one_in` counts.
    pub(crate) counted: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) carried_bytes: u64,
    /// Datagrams that passed, by their size.
    pub(crate) sizes: BTreeMap<usize, u64>,
}

impl Link {
    /// A link with a delay, on which nothing goes wrong.
    pub(crate) fn plain(delay: Duration) -> Self {
        Self {
            before: Duration::ZERO,
            line: None,
            delays: vec![(Time::ZERO, delay)],
            jitter: Duration::ZERO,
            loss: 0.0,
            bursts: (0.0, 1.0),
            is_in_burst: false,
            loses_one_in: u64::MAX,
            spares_control: true,
            doubles: 0.0,
            corrupts: 0.0,
            detours: (0.0, Duration::ZERO),
            late: (0.0, Duration::ZERO),
            late_in: Time::ZERO..Time::MAX,
            blackholes: Vec::new(),
            mutes: Vec::new(),
            largest: usize::MAX,
            bleaches: false,
            counts: LinkCounts::default(),
        }
    }

    /// Whether a datagram that enters now is not lost on the link itself; its line may have no room for it.
    pub(super) fn takes(&mut self, now: Time, load: &Load, random: &mut Random) -> bool {
        let bytes = load.bytes();
        self.is_in_burst = random.chance(if self.is_in_burst { 1.0 - self.bursts.1 } else { self.bursts.0 });
        let is_counted = !self.spares_control || load.is_data();
        self.counts.counted += u64::from(is_counted);
        let is_lost = is_counted && self.counts.counted.is_multiple_of(self.loses_one_in)
            || self.blackholes.iter().any(|hole| hole.contains(&now))
            || !load.is_data() && self.mutes.iter().any(|mute| mute.contains(&now))
            || self.is_in_burst
            || bytes > self.largest
            || random.chance(self.loss);
        !is_lost
    }

    /// A datagram passes.
    pub(super) fn note(&mut self, load: &Load) {
        self.counts.carried_bytes += load.bytes() as u64 + u64::from(LOWER);
        *self.counts.sizes.entry(load.bytes()).or_default() += 1;
    }

    /// Changes a datagram that passes: whether it is still one.
    pub(super) fn corrupt(&self, load: &mut Load, random: &mut Random) -> bool {
        if !random.chance(self.corrupts) || load.bytes() == 0 {
            return true;
        }
        let bit = random.below(load.bytes() * 8);
        let Load::Sealed(datagram) = load else { return false };
        datagram[bit / 8] ^= 1 << (bit % 8);
        true
    }

    /// The delay behind the line of a datagram that leaves it now.
    pub(super) fn delay(&self, now: Time, random: &mut Random) -> Duration {
        let mut more = self.jitter.as_nanos() as f64 * random.unit();
        if random.chance(self.detours.0) {
            more += self.detours.1.as_nanos() as f64 * random.unit();
        }
        if self.late.0 > 0.0 && self.late_in.contains(&now) && random.chance(self.late.0) {
            more += self.late.1.as_nanos() as f64;
        }
        since(&self.delays, now).unwrap_or_default() + Duration::from_nanos(more as u64)
    }
}

/// A bottleneck: a rate, and a queue in front of it.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    /// Rates, each from a time on.
    pub(crate) rates: Vec<(Time, Rate)>,
    /// Packets that find more than this in the queue are lost.
    pub(crate) queue: Bytes,
    /// Packets that wait for longer are marked, if they can be.
    pub(crate) marks_above: Option<Duration>,
    pub(crate) is_free_at: Time,
    /// Bytes of IP packets that came to it, and that left it, by milliseconds.
    pub(crate) offered: Vec<u64>,
    pub(crate) carried: Vec<u64>,
    /// Longest wait in each millisecond.
    pub(crate) waits: Vec<Duration>,
    /// Packets that came, and that found the queue full.
    pub(crate) sent: u64,
    pub(crate) dropped: u64,
}

impl Line {
    pub(crate) fn new(rate: Rate, queue: Bytes) -> Self {
        Self {
            rates: vec![(Time::ZERO, rate)],
            queue,
            marks_above: None,
            is_free_at: Time::ZERO,
            offered: Vec::new(),
            carried: Vec::new(),
            waits: Vec::new(),
            sent: 0,
            dropped: 0,
        }
    }

    /// A line with a queue of this length in time.
    pub(crate) fn lasting(bps: f64, queue: Duration) -> Self {
        Self::new(Rate::nearest_bps(bps), Bytes::new((bps * queue.as_secs_f64() / 8.0) as u64))
    }

    /// The time at which a datagram that comes now has left, if there is room for it.
    pub(super) fn pass(&mut self, now: Time, bytes: usize, ecn: &mut Ecn) -> Option<Time> {
        let bytes = bytes as u64 + u64::from(LOWER);
        let rate = since(&self.rates, now).unwrap_or(Rate::ZERO);
        let waits = self.is_free_at.since(now);
        self.sent += 1;
        *by_ms(&mut self.offered, now) += bytes;
        // The queue is what waits before this packet.
        if (rate * waits.as_secs_f64()).as_bps() / 8.0 > self.queue.get() as f64 {
            self.dropped += 1;
            return None;
        }
        // In milliseconds in which no packet came, one would have waited for what was left.
        for ms in self.waits.len() as u64..now.as_nanos() / 1_000_000 {
            self.waits.push(self.is_free_at.since(Time::from_nanos(ms * 1_000_000)));
        }
        let longest = by_ms(&mut self.waits, now);
        *longest = (*longest).max(waits);
        self.is_free_at = now + waits + rate.time_for(Bytes::new(bytes)).expect("the rate is above zero");
        *by_ms(&mut self.carried, self.is_free_at) += bytes;
        if *ecn == Ecn::Capable && self.marks_above.is_some_and(|above| self.is_free_at.since(now) > above) {
            *ecn = Ecn::Marked;
        }
        Some(self.is_free_at)
    }
}

/// The value that holds at a time.
fn since<T: Copy>(values: &[(Time, T)], now: Time) -> Option<T> {
    values.iter().rev().find(|(from, _)| *from <= now).map(|(_, value)| *value)
}
