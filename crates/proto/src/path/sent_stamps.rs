//! Path state at the time of sending, kept for the packets of a session under way.

use std::collections::VecDeque;

use fairwave_schemes::session::SentStamp;
use fairwave_units::Bytes;

/// The stamps of a session's packets on one path, by packet number.
///
/// Between two samples of the path the stamps of full packets differ only in the bytes in flight: packets have one
/// stamp a run, and the others' are made from it. There are a few runs a round trip. Of more than 64 each has at least
/// a part of all that is under way, as if its packets had been sent earlier, and their samples span more time: no more
/// than 512 runs, whatever is under way.
#[derive(Clone, Debug, Default)]
pub(crate) struct SentStamps {
    runs: VecDeque<StampRun>,
}

/// Packets with consecutive numbers that were sent between two samples.
#[derive(Clone, Copy, Debug)]
struct StampRun {
    /// The number of its first packet, and that one's stamp.
    first: u64,
    stamp: SentStamp,
    /// Of a full packet.
    packet: Bytes,
    /// Which samples of the path it is between.
    epoch: u64,
}

/// Max number of runs: a few kilobytes a session.
const MAX_RUNS: usize = 64;
/// A run that is too long goes on until this part of all that is under way.
const MIN_PART: u64 = 32;
/// A stamp may be wrong by this part of what is in flight.
const TOLERANCE_PART: u64 = 16;

impl SentStamps {
    /// The next packet is sent, with this stamp, between those samples.
    pub(crate) fn push(&mut self, number: u64, stamp: SentStamp, packet: Bytes, epoch: u64) {
        if let Some(last) = self.runs.back() {
            let is_known = last.epoch == epoch && {
                let (expected, actual) = (last.of(number).in_flight().get(), stamp.in_flight().get());
                expected.abs_diff(actual) <= (actual / TOLERANCE_PART).max(2 * packet.get())
            };
            if is_known {
                return;
            }
            let under_way = number - self.runs.front().map_or(number, |run| run.first);
            if self.runs.len() >= MAX_RUNS && number - last.first < under_way / MIN_PART {
                return;
            }
        }
        self.runs.push_back(StampRun { first: number, stamp, packet, epoch });
    }

    /// The stamp of a packet; `None` if it was not sent on this path, or is settled.
    pub(crate) fn of(&self, number: u64) -> Option<SentStamp> {
        let behind = self.runs.partition_point(|run| run.first <= number);
        self.runs.get(behind.checked_sub(1)?).map(|run| run.of(number))
    }

    /// All packets below are settled.
    pub(crate) fn forget(&mut self, below: u64) {
        let begun = self.runs.partition_point(|run| run.first <= below);
        self.runs.drain(..begun.saturating_sub(1));
    }

    /// Bytes that it holds.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.runs.capacity() * size_of::<StampRun>()
    }
}

impl StampRun {
    fn of(&self, number: u64) -> SentStamp {
        self.stamp.after(Bytes::new(self.packet.get().saturating_mul(number.saturating_sub(self.first))))
    }
}
