//! What a source has sent and does not know the fate of.

use std::collections::VecDeque;
use std::ops::Range;

use fairwave_units::Time;
use thiserror::Error;

use crate::codec::LossReport;

/// The pieces under way, by packet number.
///
/// Each number is settled once: when a report says that its packet arrived, or that it was lost. What was lost goes
/// again under a new number. Numbers that were skipped on purpose are never reported by an honest sink: one that claims
/// their arrival hides its losses.
///
/// Pieces that follow each other in a stream are kept as one run, and a report takes time by its ranges and by the runs
/// that it crosses, not by the packets that it settles. Memory: 4 bytes a packet from the first that is not settled on,
/// 24 bytes a run, an eighth more to grow: at most 32 bytes a packet under way, mostly 5, and a fixed part of some 40
/// kB. A sink can leave the first number open for as long as it likes: whoever sends stops at 2^20 (`MOST_UNDER_WAY`).
#[derive(Clone, Debug, Default)]
pub struct Outstanding {
    /// The lowest number that is not settled.
    una: u64,
    /// When each packet was sent, from `una` on: microseconds, of which the lowest 32 bits are kept.
    stamps: VecDeque<u32>,
    /// What they carry, from `una` on or before; each run ends where the next begins.
    runs: VecDeque<PacketRun>,
    /// The numbers that are not settled: in order, apart from each other. The first range begins at `una`.
    open: VecDeque<Range<u64>>,
    /// Those of them that were skipped, in order.
    skipped: VecDeque<u64>,
    last_sent: Time,
    /// The most packets under way since it was last looked whether there is too much room for them.
    peak: usize,
    /// The number at which that is looked at again.
    look_at: u64,
}

/// Bytes of a stream that one packet carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PieceAt {
    /// The stream.
    pub stream: u32,
    /// Bytes, at least one.
    pub length: u32,
    /// Where they begin.
    pub offset: u64,
}

impl PieceAt {
    /// Its bytes in the stream.
    pub fn range(&self) -> Range<u64> {
        self.offset..self.offset.saturating_add(u64::from(self.length))
    }
}

/// The fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settled {
    /// What it carried.
    pub piece: PieceAt,
    /// When it was sent, to the microsecond; of the last 71 minutes.
    pub sent: Time,
    /// Whether it is lost; else it has arrived.
    pub is_lost: bool,
}

/// How many packets a report settled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settlement {
    /// Those that arrived.
    pub arrived: u64,
    /// Those that are lost.
    pub lost: u64,
}

/// Packets whose pieces have one length and follow each other; or numbers that were skipped, with a length of zero.
#[derive(Clone, Copy, Debug)]
struct PacketRun {
    /// The number of its first packet.
    first: u64,
    /// What that carries.
    piece: PieceAt,
}

/// A report that no honest sink makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FalseReport {
    /// It speaks of a number that was never sent.
    #[error("packet {0} is reported and was never sent")]
    Beyond(u64),
    /// It says that a packet arrived whose number was skipped.
    #[error("packet {0} is reported to have arrived and was skipped")]
    Skipped(u64),
}

/// Packets under way at the most, from the first whose fate is not settled on: those of a second at 10 Gb/s and 1200
/// bytes each.
pub(crate) const MOST_UNDER_WAY: usize = 1 << 20;
/// Ranges of numbers that are not settled while higher ones are. There are more of them with each page of a report that
/// gets lost, and less with the next report, which begins with the lowest.
const MOST_RANGES: usize = 2048;
/// Packets that there is room for in any case.
const FREE_PACKETS: usize = 256;
/// So many runs are looked at one by one before the right one is searched for.
const NEAR_RUNS: usize = 8;
const SKIPPED: PieceAt = PieceAt { stream: 0, length: 0, offset: 0 };

impl Outstanding {
    /// The lowest number that is not settled: what to tell the sink.
    pub fn una(&self) -> u64 {
        self.una
    }

    /// The number of the next packet.
    pub fn next(&self) -> u64 {
        self.una.saturating_add(self.stamps.len() as u64)
    }

    /// Packets under way, with those whose fate is settled behind one whose is not.
    pub fn len(&self) -> usize {
        self.stamps.len()
    }

    /// Whether nothing is under way.
    pub fn is_empty(&self) -> bool {
        self.stamps.is_empty()
    }

    /// A piece is sent: its packet's number.
    pub fn send(&mut self, piece: PieceAt, sent: Time) -> u64 {
        self.push(piece, sent)
    }

    /// Leaves a number out.
    pub fn skip(&mut self) {
        let number = self.push(SKIPPED, self.last_sent);
        self.skipped.push_back(number);
    }

    /// A report: the pieces that it says are lost, and that were not settled before, go into `lost`, and `fates` hears
    /// of each packet that it settles, in order. Whoever has no need of that is faster without.
    ///
    /// Nothing of a false one counts; the session is to be closed.
    pub fn on_report(
        &mut self,
        report: &LossReport<'_>,
        lost: &mut Vec<PieceAt>,
        fates: Option<&mut dyn FnMut(Settled)>,
    ) -> Result<Settlement, FalseReport> {
        if report.end() > self.next() {
            return Err(FalseReport::Beyond(report.end() - 1));
        }
        let numbers = report.base().max(self.una)..report.end();
        if numbers.is_empty() || (numbers.start > self.una && self.open.len() >= MOST_RANGES) {
            return Ok(Settlement::default());
        }
        let before = lost.len();
        let skipped = self.find_lost(&numbers, report, lost).inspect_err(|_| lost.truncate(before))?;
        if let Some(fates) = fates {
            self.tell(&numbers, report, fates);
        }
        let lost = (lost.len() - before) as u64;
        Ok(Settlement { arrived: self.settle(&numbers) - lost - skipped, lost })
    }

    fn push(&mut self, piece: PieceAt, sent: Time) -> u64 {
        let number = self.next();
        self.last_sent = self.last_sent.max(sent);
        grow(&mut self.stamps);
        self.stamps.push_back(micros(self.last_sent) as u32);
        match self.runs.back() {
            Some(last) if last.at(number) == piece => {}
            _ => {
                grow(&mut self.runs);
                self.runs.push_back(PacketRun { first: number, piece });
            }
        }
        match self.open.back_mut() {
            Some(last) if last.end == number => last.end += 1,
            _ => self.open.push_back(number..number + 1),
        }
        self.peak = self.peak.max(self.stamps.len());
        if number >= self.look_at {
            self.give_back(number);
        }
        number
    }

    /// The pieces of the numbers that are open, lost and within `numbers` go into `lost`: how many others of these
    /// numbers were skipped.
    fn find_lost(
        &self,
        numbers: &Range<u64>,
        report: &LossReport<'_>,
        lost: &mut Vec<PieceAt>,
    ) -> Result<u64, FalseReport> {
        let mut skipped = self.skipped.partition_point(|&number| number < numbers.start);
        let (before, none) = (skipped, numbers.end);
        let mut next_skipped = self.skipped.get(skipped).map_or(none, |&number| number);
        let mut runs = Runs::new(self, numbers.start);
        let mut all_open = self.open_within(numbers);
        let mut open = all_open.next().unwrap_or(0..0);
        for range in report.lost() {
            while next_skipped < range.end.min(none) {
                if next_skipped < range.start {
                    return Err(FalseReport::Skipped(next_skipped));
                }
                skipped += 1;
                next_skipped = self.skipped.get(skipped).map_or(none, |&number| number);
            }
            loop {
                for number in range.start.max(open.start)..range.end.min(open.end) {
                    let run = runs.of(number);
                    if run.piece.length > 0 {
                        lost.push(run.at(number));
                    }
                }
                if range.end <= open.end {
                    break;
                }
                let Some(next) = all_open.next() else { break };
                open = next;
            }
        }
        if next_skipped < none {
            return Err(FalseReport::Skipped(next_skipped));
        }
        Ok((skipped - before) as u64)
    }

    /// The open ranges within `numbers`.
    fn open_within(&self, numbers: &Range<u64>) -> impl Iterator<Item = Range<u64>> {
        let Range { start, end } = *numbers;
        let first = self.open.partition_point(|range| range.end <= start);
        let within = self.open.range(first..).take_while(move |range| range.start < end);
        within.map(move |range| range.start.max(start)..range.end.min(end))
    }

    fn tell(&self, numbers: &Range<u64>, report: &LossReport<'_>, fates: &mut dyn FnMut(Settled)) {
        let mut runs = Runs::new(self, numbers.start);
        // By ranges: a report may speak of all numbers since the session's beginning.
        let mut lost = report.lost().peekable();
        for number in self.open_within(numbers).flatten() {
            while lost.next_if(|range| range.end <= number).is_some() {}
            let is_lost = lost.peek().is_some_and(|range| range.start <= number);
            let piece = runs.of(number).at(number);
            if piece.length > 0 {
                fates(Settled { piece, sent: self.sent(number), is_lost });
            }
        }
    }

    fn sent(&self, number: u64) -> Time {
        let last = micros(self.last_sent);
        let stamp = usize::try_from(number - self.una).ok().and_then(|index| self.stamps.get(index));
        let age = stamp.map_or(0, |&stamp| (last as u32).wrapping_sub(stamp));
        Time::from_nanos((last - u64::from(age)) * NANOS_PER_MICRO)
    }

    /// The fate of all `numbers` is known: of how many it was not before.
    fn settle(&mut self, numbers: &Range<u64>) -> u64 {
        let settled = self.open_within(numbers).map(|range| range.end - range.start).sum();
        let first = self.open.partition_point(|range| range.end <= numbers.start);
        let last = self.open.partition_point(|range| range.start < numbers.end);
        let below = self.open.get(first).map_or(0..0, |range| range.start..numbers.start);
        let above =
            last.checked_sub(1).and_then(|last| self.open.get(last)).map_or(0..0, |range| numbers.end..range.end);
        if first < last {
            self.open.drain(first..last);
            for left in [above, below] {
                if !left.is_empty() {
                    self.open.insert(first, left);
                }
            }
        }
        let of_skipped = |bound| self.skipped.partition_point(|&number| number < bound);
        self.skipped.drain(of_skipped(numbers.start)..of_skipped(numbers.end));
        self.forget();
        settled
    }

    /// What lies below the lowest open number goes.
    fn forget(&mut self) {
        let next = self.next();
        let una = self.open.front().map_or(next, |range| range.start);
        self.stamps.drain(..usize::try_from(una - self.una).unwrap_or(usize::MAX).min(self.stamps.len()));
        self.una = una;
        let begun = self.runs.partition_point(|run| run.first <= una);
        self.runs.drain(..if una == next { begun } else { begun.saturating_sub(1) });
    }

    /// Room that was not needed for as many packets as it holds goes.
    fn give_back(&mut self, number: u64) {
        if self.stamps.capacity() > 2 * self.peak + FREE_PACKETS {
            self.stamps.shrink_to(self.peak);
            self.runs.shrink_to(self.peak);
        }
        self.peak = self.stamps.len();
        self.look_at = number.saturating_add(self.stamps.capacity() as u64);
    }
}

impl PacketRun {
    /// The piece of a packet, if it is one of this run.
    #[inline]
    fn at(&self, number: u64) -> PieceAt {
        let before = u64::from(self.piece.length).saturating_mul(number - self.first);
        PieceAt { offset: self.piece.offset.saturating_add(before), ..self.piece }
    }
}

/// A place in the runs, which goes forward.
struct Runs<'a> {
    all: &'a VecDeque<PacketRun>,
    index: usize,
    run: PacketRun,
    /// Where the next run begins.
    end: u64,
}

impl<'a> Runs<'a> {
    fn new(outstanding: &'a Outstanding, number: u64) -> Self {
        let run = PacketRun { first: outstanding.una, piece: SKIPPED };
        let mut runs = Self { all: &outstanding.runs, index: 0, run, end: 0 };
        runs.search(number);
        runs
    }

    /// The run of a packet under way. Numbers go up.
    fn of(&mut self, number: u64) -> &PacketRun {
        if number >= self.end {
            self.find(number);
        }
        &self.run
    }

    fn find(&mut self, number: u64) {
        for _ in 0..NEAR_RUNS {
            self.go(self.index + 1);
            if number < self.end {
                return;
            }
        }
        self.search(number);
    }

    fn search(&mut self, number: u64) {
        self.go(self.all.partition_point(|run| run.first <= number).saturating_sub(1));
    }

    fn go(&mut self, index: usize) {
        if let Some(&run) = self.all.get(index) {
            (self.index, self.run) = (index, run);
        }
        self.end = self.all.get(index + 1).map_or(u64::MAX, |next| next.first);
    }
}

/// Makes room by an eighth, not by twice.
fn grow<T>(queue: &mut VecDeque<T>) {
    if queue.len() == queue.capacity() {
        queue.reserve_exact(FREE_PACKETS.max(queue.len() / 8));
    }
}

fn micros(time: Time) -> u64 {
    time.as_nanos() / NANOS_PER_MICRO
}

const NANOS_PER_MICRO: u64 = 1000;

#[cfg(test)]
mod tests;
