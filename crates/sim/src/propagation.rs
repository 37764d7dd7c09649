//! The propagation part of a path: packets that left a link together with the same delay arrive in the order in which
//! they left, so a line holds them and only its first is a pending event.

use fairwave_units::{Duration, Time};

use crate::event_queue::EventTime;
use crate::packet::SimPacket;

/// Packets in flight, in order of arrival.
#[derive(Debug)]
pub(crate) struct Pipe {
    pub(crate) delay: Duration,
    /// Whether the times of arrival matter.
    end: PipeEnd,
    /// The preceding link, if it has a rule for congestion headers.
    pub(crate) controlled: Option<u32>,
    /// Slots of the first and of the last packet in [`PipePool`].
    first: u32,
    last: u32,
    length: u32,
}

/// Whether arrivals at the end of a line need events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PipeEnd {
    /// No packet has used the line so far.
    Unused,
    /// Sinks that do not answer: packets may be counted later, with their own times, and need no event.
    Quiet,
    /// A link, or an end node that answers.
    Busy,
}

/// The packets on all lines. A line allocates chunks of a few packets and returns them: the memory of a run is
/// proportional to the packets in flight, however they move from line to line, and the memory used last is reused
/// first.
#[derive(Debug, Default)]
pub(crate) struct PipePool {
    chunks: Vec<Chunk>,
    free: Vec<u32>,
}

/// A few packets of one line with their times of arrival.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    packets: [(EventTime, SimPacket); CHUNK as usize],
    /// The line's next chunk, if this is not its last.
    next: u32,
}

/// Packets of a chunk.
const CHUNK: u32 = 8;

impl Pipe {
    pub(crate) fn new(delay: Duration) -> Self {
        Self { delay, end: PipeEnd::Unused, controlled: None, first: 0, last: 0, length: 0 }
    }

    /// Whether arrivals at its end need no events.
    #[inline]
    pub(crate) fn is_quiet(&self) -> bool {
        self.end == PipeEnd::Quiet
    }

    /// Announces packets to an end of this kind.
    pub(crate) fn open(&mut self, end: PipeEnd) {
        debug_assert!(self.length == 0 || end <= self.end, "packets are under way without an event");
        self.end = self.end.max(end);
    }

    /// Adds a packet that arrives after all others; returns true if it is the only one.
    #[inline]
    pub(crate) fn push(&mut self, pool: &mut PipePool, arrival: EventTime, packet: SimPacket) -> bool {
        let place = self.last + 1;
        if self.length > 0 && !place.is_multiple_of(CHUNK) {
            pool.chunks[(place / CHUNK) as usize].packets[(place % CHUNK) as usize] = (arrival, packet);
            self.last = place;
            self.length += 1;
            return false;
        }
        let chunk = pool.take((arrival, packet));
        if self.length == 0 {
            self.first = chunk * CHUNK;
        } else {
            pool.chunks[(self.last / CHUNK) as usize].next = chunk;
        }
        self.last = chunk * CHUNK;
        self.length += 1;
        self.length == 1
    }

    /// Time of arrival of the last packet.
    pub(crate) fn last_arrival(&self, pool: &PipePool) -> Option<Time> {
        (self.length > 0).then(|| pool.at(self.last).0.time())
    }

    /// Removes the arriving packet, and returns it with the time of the next arrival.
    #[inline]
    pub(crate) fn pop(&mut self, pool: &mut PipePool) -> (Option<SimPacket>, Option<EventTime>) {
        if self.length == 0 {
            return (None, None);
        }
        let (_, packet) = pool.at(self.first);
        self.step(pool);
        (Some(packet), (self.length > 0).then(|| pool.at(self.first).0))
    }

    /// Removes the packet that arrives first, and returns it with its time, if that is not later than `now`.
    #[inline]
    pub(crate) fn pop_until(&mut self, pool: &mut PipePool, now: Time) -> Option<(Time, SimPacket)> {
        if self.length == 0 {
            return None;
        }
        let (key, packet) = pool.at(self.first);
        if key.time() > now {
            return None;
        }
        self.step(pool);
        Some((key.time(), packet))
    }

    /// Frees the first slot.
    #[inline]
    fn step(&mut self, pool: &mut PipePool) {
        self.length -= 1;
        let chunk = self.first / CHUNK;
        let place = self.first + 1;
        if self.length == 0 {
            pool.free.push(chunk);
        } else if place.is_multiple_of(CHUNK) {
            pool.free.push(chunk);
            self.first = pool.chunks[chunk as usize].next * CHUNK;
        } else {
            self.first = place;
        }
    }

    /// The packets in flight.
    pub(crate) fn packets<'a>(&self, pool: &'a PipePool) -> impl Iterator<Item = &'a SimPacket> {
        let mut place = self.first;
        (0..self.length).map(move |_| {
            let chunk = &pool.chunks[(place / CHUNK) as usize];
            let packet = &chunk.packets[(place % CHUNK) as usize].1;
            place = if (place + 1).is_multiple_of(CHUNK) { chunk.next * CHUNK } else { place + 1 };
            packet
        })
    }
}

impl PipePool {
    #[inline]
    fn at(&self, place: u32) -> (EventTime, SimPacket) {
        self.chunks[(place / CHUNK) as usize].packets[(place % CHUNK) as usize]
    }

    /// A chunk for a line, with its first packet.
    #[inline]
    fn take(&mut self, first: (EventTime, SimPacket)) -> u32 {
        let Some(chunk) = self.free.pop() else { return self.add(first) };
        self.chunks[chunk as usize].packets[0] = first;
        chunk
    }

    #[cold]
    fn add(&mut self, first: (EventTime, SimPacket)) -> u32 {
        if self.chunks.len() == self.chunks.capacity() {
            // By a quarter, whereas a vector doubles by default: this is most of a run's memory.
            self.chunks.reserve_exact(self.chunks.len() / 4 + 4);
        }
        self.chunks.push(Chunk { packets: [first; CHUNK as usize], next: 0 });
        let chunk = u32::try_from(self.chunks.len() - 1).ok().filter(|chunk| *chunk < u32::MAX / CHUNK);
        chunk.expect("fewer than 2^32 packets are under way")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;
    use crate::packet::SimPacketKind;

    fn packet(number: u64) -> (EventTime, SimPacket) {
        let packet = SimPacket { number, stamp: Time::ZERO, flow: 0, bytes: 0, stage: 0, kind: SimPacketKind::DATA };
        (EventTime::new(Time::from_nanos(number), 0), packet)
    }

    proptest! {
        /// Lines that share a pool keep their own packets in order, and the pool grows no more than necessary.
        #[test]
        fn lines__are_queues(steps in proptest::collection::vec((0_usize..3, any::<bool>(), 0_u64..12), 1..200)) {
            let mut pool = PipePool::default();
            let mut lines = [0, 1, 2].map(|_| (Pipe::new(Duration::ZERO), VecDeque::new()));
            let (mut number, mut most) = (0, 0);
            for (line, is_push, count) in steps {
                let (line, expected) = &mut lines[line];
                for _ in 0..count {
                    if is_push {
                        number += 1;
                        let (key, packet) = packet(number);
                        prop_assert_eq!(line.push(&mut pool, key, packet), expected.is_empty());
                        expected.push_back((key, packet));
                    } else {
                        let first = expected.pop_front();
                        let next = expected.front().map(|(key, _)| *key);
                        prop_assert_eq!(line.pop(&mut pool), (first.map(|(_, packet)| packet), next));
                    }
                }
                let got: Vec<SimPacket> = line.packets(&pool).copied().collect();
                prop_assert_eq!(got, expected.iter().map(|(_, packet)| *packet).collect::<Vec<_>>());
                most = most.max(lines.iter().map(|(_, expected)| expected.len()).sum());
            }
            // A line has at most 7 unused slots at the start of its first chunk and 7 at the end of its last.
            prop_assert!(pool.chunks.len() * CHUNK as usize <= most + 12 + 3 * 14, "{} {most}", pool.chunks.len());
        }
    }
}
