//! Sent data of a source that is not settled yet.

use std::collections::VecDeque;
use std::ops::Range;

use fairwave_units::{Duration, Time};
use thiserror::Error;

use crate::receive::byte_ranges::ByteRanges;
use crate::send::verdict::{Fate, Repairs, Settled, Settlement, Verdict};
use crate::wire::codec::LossReport;
use crate::wire::packet_runs::{PacketRun, PieceAt, Runs, SKIPPED};

/// The pieces in flight, by packet number.
///
/// A report lists the numbers that have arrived and those that are missing. An arrived packet is settled. A missing one
/// is late or lost: lost when a packet that was sent later by more than the reordering window has arrived, or would
/// have if one had been sent. See "Lost or late" in docs/explanation/path-model.md. Lost data goes again under a new
/// number, and its old one stays in sight for some time: when it arrives after all, the repair was in vain, and the
/// caller is informed.
///
/// Honest sinks never report numbers that were skipped on purpose: one that claims their arrival hides its losses.
///
/// Pieces that follow each other in a stream are kept as one run, and a report takes time by its ranges, by those that
/// are not settled and by the runs that it crosses, not by the packets that it settles. Memory: 4 bytes a packet from
/// the first in sight on, 24 bytes a run, an eighth more to grow: at most 32 bytes a packet in flight, mostly 5, and a
/// part of some 150 kB that grows with what is missing. A sink can leave the first number open for as long as it likes:
/// senders stop at 2^20 (`MAX_UNDER_WAY`).
#[derive(Clone, Debug, Default)]
pub struct Outstanding {
    /// The lowest number in sight.
    una: u64,
    /// When each packet was sent, from `una` on: microseconds, of which the lowest 32 bits are kept.
    stamps: VecDeque<u32>,
    /// Their contents, from `una` on or before; each run ends where the next starts.
    runs: VecDeque<PacketRun>,
    /// The numbers that are not settled: in order, apart from each other or of another word. The first range starts at
    /// `una`.
    open: VecDeque<OpenRange>,
    /// Those of them that were skipped, in order.
    skipped: VecDeque<u64>,
    last_sent: Time,
    /// The newest packet that has arrived.
    newest: Option<NewestArrival>,
    /// Of what was lost, and arrived after all when its repair may have been under way: lost numbers below need not go
    /// again for these bytes.
    in_vain: VecDeque<(u64, PieceAt)>,
    /// Empty, between calls.
    scratch: Vec<OpenRange>,
    /// The most packets under way since it was last looked whether there is too much room for them.
    peak: usize,
    /// The number at which that is looked at again.
    look_at: u64,
}

/// Numbers of which the same is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OpenRange {
    start: u64,
    end: u64,
    word: Word,
}

/// The state that reports give an unsettled number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    /// Nothing yet.
    None,
    /// It was missing when a packet of this stamp would have arrived.
    Missing(u32),
    /// As above, and it counts as lost.
    Lost(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct NewestArrival {
    /// One above its number; zero where none has arrived, and this is of the first that was missing.
    above: u64,
    /// When it was sent, in microseconds, and when a report first said that it arrived.
    sent_us: u64,
    reported: Time,
}

/// A report that no honest sink makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FalseReport {
    /// It speaks of a number that was never sent.
    #[error("packet {0} was reported but never sent")]
    Beyond(u64),
    /// It claims the arrival of a packet whose number was skipped.
    #[error("packet {0} was reported as received but was skipped")]
    Skipped(u64),
}

/// Packets under way at most, from the first whose fate is not settled on: those of a second at 10 Gb/s and 1200
/// bytes each.
pub(crate) const MAX_UNDER_WAY: usize = 1 << 20;
/// Ranges of numbers that are not settled. Of more the lowest are lost at once, and out of sight. There are also more
/// of them with each page of a report that gets lost, and less with the next report, which starts with the lowest.
const MAX_RANGES: usize = 4096;
/// Pieces that arrived after all and are remembered.
const MAX_IN_VAIN: usize = 256;
/// Packets that there is room for in any case.
const FREE_PACKETS: usize = 256;
impl Outstanding {
    /// The lowest number in sight: what to tell the sink.
    pub fn una(&self) -> u64 {
        self.una
    }

    /// The lowest number that has not arrived and is not lost.
    pub fn undecided(&self) -> u64 {
        let undecided = self.open.iter().find(|range| !matches!(range.word, Word::Lost(_)));
        undecided.map_or(self.next(), |range| range.start)
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

    /// The packet that was sent last did not go after all, if this is its number: that is left out, and what it carried
    /// does not go again. Whether it was the last.
    pub fn withdraw(&mut self, number: u64) -> bool {
        let is_last = number.checked_add(1) == Some(self.next());
        let is_open = self.open.back().is_some_and(|range| range.end > number && range.word == Word::None);
        if !is_last || !is_open || self.skipped.back() == Some(&number) {
            return false;
        }
        match self.runs.back_mut() {
            Some(last) if last.first == number => last.piece = SKIPPED,
            _ => self.runs.push_back(PacketRun { first: number, piece: SKIPPED }),
        }
        self.skipped.push_back(number);
        true
    }

    /// Processes a report: data to send again because of it, or no longer, goes into `repairs`, and `fates` hears of
    /// each packet that it settles, in order. Callers that do not need that are faster without.
    ///
    /// Nothing of a false one counts; the session is to be closed.
    pub fn on_report(
        &mut self,
        report: &LossReport<'_>,
        verdict: &Verdict,
        repairs: &mut Repairs,
        mut fates: Option<&mut dyn FnMut(Settled)>,
    ) -> Result<Settlement, FalseReport> {
        if report.end() > self.next() {
            return Err(FalseReport::Beyond(report.end() - 1));
        }
        let numbers = report.base().max(self.una)..report.end();
        if numbers.is_empty() || (numbers.start > self.una && self.open.len() >= MAX_RANGES) {
            return Ok(Settlement::default());
        }
        self.check_skipped(&numbers, report)?;
        let clock_us = self.on_newest(verdict.now, report);
        let came = repairs.in_vain.len();
        let mut settlement = self.judge(&numbers, report, (clock_us, verdict.window), repairs, &mut fates);
        while self.open.len() > MAX_RANGES && self.give_up(&mut settlement, repairs, &mut fates) {}
        let next = self.next();
        self.in_vain.extend(repairs.in_vain[came..].iter().map(|piece| (next, *piece)));
        let least = self.undecided();
        while self.in_vain.len() > MAX_IN_VAIN || self.in_vain.front().is_some_and(|(end, _)| *end <= least) {
            self.in_vain.pop_front();
        }
        self.forget(verdict.now, verdict.sight);
        Ok(settlement)
    }

    /// Removes packets that were lost more than `sight` ago.
    pub fn forget(&mut self, now: Time, sight: Duration) {
        let from = self.sent_from(micros(now).saturating_sub(micros_of(sight)));
        while let Some(front) = self.open.front_mut().filter(|front| matches!(front.word, Word::Lost(_))) {
            if front.end > from {
                front.start = front.start.max(from);
                break;
            }
            self.open.pop_front();
        }
        self.settle();
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
            Some(last) if last.end == number && last.word == Word::None => last.end += 1,
            _ => self.open.push_back(OpenRange { start: number, end: number + 1, word: Word::None }),
        }
        self.peak = self.peak.max(self.stamps.len());
        if number >= self.look_at {
            self.give_back(number);
        }
        number
    }

    /// Whether the report is true about skipped numbers.
    fn check_skipped(&self, numbers: &Range<u64>, report: &LossReport<'_>) -> Result<(), FalseReport> {
        let first = self.skipped.partition_point(|&number| number < numbers.start);
        let mut skipped = self.skipped.range(first..).take_while(|number| **number < numbers.end).peekable();
        if skipped.peek().is_none() {
            return Ok(());
        }
        for range in report.lost() {
            if let Some(&&number) = skipped.peek().filter(|number| ***number < range.start) {
                return Err(FalseReport::Skipped(number));
            }
            while skipped.next_if(|number| **number < range.end).is_some() {}
            if skipped.peek().is_none() {
                return Ok(());
            }
        }
        skipped.next().map_or(Ok(()), |&number| Err(FalseReport::Skipped(number)))
    }

    /// When a packet would have been sent that arrived just before this report went, in microseconds: the send time of
    /// the newest arrived packet, plus the time since a report first listed it.
    fn on_newest(&mut self, now: Time, report: &LossReport<'_>) -> u64 {
        let above = self.newest.map_or(0, |newest| newest.above);
        let newest = match (report.newest(), self.newest) {
            (Some(number), _) if number >= above.max(self.una) => {
                NewestArrival { above: number + 1, sent_us: self.sent_us(number), reported: now }
            }
            (_, Some(newest)) => newest,
            (_, None) => {
                NewestArrival { above: 0, sent_us: self.sent_us(report.end().saturating_sub(1)), reported: now }
            }
        };
        self.newest = Some(newest);
        newest.sent_us.saturating_add(micros_of(now.since(newest.reported)))
    }

    /// Judges the unsettled numbers by a report.
    fn judge(
        &mut self,
        numbers: &Range<u64>,
        report: &LossReport<'_>,
        (clock_us, window): (u64, Duration),
        repairs: &mut Repairs,
        fates: &mut Option<&mut dyn FnMut(Settled)>,
    ) -> Settlement {
        let lost_below = self.sent_from(clock_us.saturating_sub(micros_of(window)));
        let clock = clock_us as u32;
        let mut ranges = std::mem::take(&mut self.scratch);
        let first = self.open.partition_point(|range| range.end <= numbers.start);
        let last = self.open.partition_point(|range| range.start < numbers.end);
        let mut results =
            ReportResults { outstanding: self, runs: None, settlement: Settlement::default(), repairs, fates };
        let mut all_missing = report.lost();
        let none = u64::MAX..u64::MAX;
        let mut missing = 0..0;
        for range in self.open.range(first..last) {
            let (mut at, end) = (range.start.max(numbers.start), range.end.min(numbers.end));
            join(&mut ranges, range.start..at, range.word);
            while at < end {
                while missing.end <= at {
                    missing = all_missing.next().unwrap_or(none.clone());
                }
                if at < missing.start {
                    let arrived = at..missing.start.min(end);
                    at = arrived.end;
                    results.on_arrived(arrived, range.word);
                    continue;
                }
                let until = missing.end.min(end);
                let lost = at..until.min(lost_below).max(at);
                let late = lost.end..until;
                at = until;
                if !matches!(range.word, Word::Lost(_)) {
                    results.on_lost(lost.clone());
                }
                join(&mut ranges, lost, Word::Lost(clock));
                let is_lost = matches!(range.word, Word::Lost(_));
                join(&mut ranges, late, if is_lost { Word::Lost(clock) } else { Word::Missing(clock) });
            }
            join(&mut ranges, end..range.end, range.word);
        }
        let settlement = results.settlement;
        self.replace(first..last, &mut ranges);
        self.scratch = ranges;
        settlement
    }

    /// Replaces the ranges at `places` by `ranges`, which is left empty.
    fn replace(&mut self, places: Range<usize>, ranges: &mut Vec<OpenRange>) {
        if ranges.len() == places.len() {
            self.open.range_mut(places).zip(ranges.drain(..)).for_each(|(place, range)| *place = range);
            return;
        }
        ranges.extend(self.open.range(places.end..));
        self.open.truncate(places.start);
        self.open.extend(ranges.drain(..));
        // The buffer of a report with very many ranges is not kept.
        if ranges.capacity() > MAX_RANGES {
            *ranges = Vec::new();
        }
    }

    /// The lowest range in sight is out of it: whether that could be.
    fn give_up(
        &mut self,
        settlement: &mut Settlement,
        repairs: &mut Repairs,
        fates: &mut Option<&mut dyn FnMut(Settled)>,
    ) -> bool {
        let Some(front) = self.open.front().copied().filter(|front| front.word != Word::None) else { return false };
        if matches!(front.word, Word::Missing(_)) {
            let mut results = ReportResults { outstanding: self, runs: None, settlement: *settlement, repairs, fates };
            results.on_lost(front.start..front.end);
            *settlement = results.settlement;
        }
        self.open.pop_front();
        true
    }

    fn sent(&self, number: u64) -> Time {
        Time::from_nanos(self.sent_us(number).saturating_mul(NANOS_PER_MICRO))
    }

    fn sent_us(&self, number: u64) -> u64 {
        let last = micros(self.last_sent);
        last.saturating_sub(self.stamp(number).map_or(0, |stamp| u64::from((last as u32).wrapping_sub(stamp))))
    }

    fn stamp(&self, number: u64) -> Option<u32> {
        let index = usize::try_from(number.checked_sub(self.una)?).ok()?;
        self.stamps.get(index).copied()
    }

    /// The first number that was sent then or later.
    fn sent_from(&self, at_us: u64) -> u64 {
        let last = micros(self.last_sent);
        // Before that nothing in sight was sent.
        let Some(least_age) = last.checked_sub(at_us) else { return self.next() };
        let is_before = |stamp: &u32| u64::from((last as u32).wrapping_sub(*stamp)) > least_age;
        self.una.saturating_add(self.stamps.partition_point(is_before) as u64)
    }

    /// Removes everything below the lowest open number.
    fn settle(&mut self) {
        let next = self.next();
        let una = self.open.front().map_or(next, |range| range.start);
        if una == self.una {
            return;
        }
        self.stamps.drain(..usize::try_from(una - self.una).unwrap_or(usize::MAX).min(self.stamps.len()));
        self.una = una;
        let begun = self.runs.partition_point(|run| run.first <= una);
        self.runs.drain(..if una == next { begun } else { begun.saturating_sub(1) });
        let skipped = self.skipped.partition_point(|&number| number < una);
        self.skipped.drain(..skipped);
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

/// One more range, which goes on from the last one or starts above it.
#[inline]
fn join(ranges: &mut Vec<OpenRange>, numbers: Range<u64>, word: Word) {
    if numbers.is_empty() {
        return;
    }
    match ranges.last_mut() {
        Some(last) if last.end == numbers.start && last.word == word => last.end = numbers.end,
        _ => ranges.push(OpenRange { start: numbers.start, end: numbers.end, word }),
    }
}

/// The results of a report, as it is read.
struct ReportResults<'a, 'b> {
    outstanding: &'a Outstanding,
    /// From the first number on that is of interest.
    runs: Option<Runs<'a>>,
    settlement: Settlement,
    repairs: &'a mut Repairs,
    fates: &'a mut Option<&'b mut dyn FnMut(Settled)>,
}

impl ReportResults<'_, '_> {
    #[inline]
    fn on_arrived(&mut self, numbers: Range<u64>, word: Word) {
        let count = numbers.end - numbers.start;
        let fate = match word {
            Word::None => Fate::Arrived,
            Word::Missing(clock) => {
                self.settlement.late += count;
                self.on_late(numbers.start, clock);
                Fate::Arrived
            }
            Word::Lost(clock) => {
                self.on_late(numbers.start, clock);
                Fate::Late
            }
        };
        if fate == Fate::Arrived {
            self.settlement.arrived += count;
            if self.fates.is_some() {
                numbers.for_each(|number| self.tell(number, fate));
            }
            return;
        }
        self.settlement.spurious += count;
        for number in numbers {
            let piece = self.piece(number);
            self.repairs.in_vain.push(piece);
            self.tell(number, fate);
        }
    }

    fn on_late(&mut self, number: u64, clock: u32) {
        let stamp = self.outstanding.stamp(number).unwrap_or(clock);
        let late_us = clock.wrapping_sub(stamp).cast_signed().max(0).unsigned_abs();
        self.settlement.lateness = self.settlement.lateness.max(Duration::from_micros(u64::from(late_us)));
    }

    fn on_lost(&mut self, numbers: Range<u64>) {
        for number in numbers {
            let piece = self.piece(number);
            if piece.length == 0 {
                continue;
            }
            self.settlement.lost += 1;
            self.outstanding.repair(number, piece, &mut self.repairs.needed);
            if self.fates.is_some() {
                self.tell(number, Fate::Lost);
            }
        }
    }

    fn tell(&mut self, number: u64, fate: Fate) {
        let settled = Settled { number, piece: self.piece(number), sent: self.outstanding.sent(number), fate };
        if let Some(fates) = self.fates {
            fates(settled);
        }
    }

    fn piece(&mut self, number: u64) -> PieceAt {
        let runs = self.runs.get_or_insert_with(|| Runs::new(&self.outstanding.runs, number));
        runs.of(number).at(number)
    }
}

impl Outstanding {
    /// A piece goes again, except for what of it has arrived under another number.
    fn repair(&self, number: u64, piece: PieceAt, needed: &mut Vec<PieceAt>) {
        let of_piece = |other: &PieceAt| {
            other.stream == piece.stream && other.offset < piece.range().end && piece.offset < other.range().end
        };
        let mut came = self.in_vain.iter().filter(|(end, other)| number < *end && of_piece(other)).peekable();
        if came.peek().is_none() {
            needed.push(piece);
            return;
        }
        let mut rest = ByteRanges::from(piece.range());
        came.for_each(|(_, other)| _ = rest.remove(&other.range()));
        let part = |range: Range<u64>| PieceAt {
            length: u32::try_from(range.end - range.start).unwrap_or(piece.length),
            offset: range.start,
            ..piece
        };
        needed.extend(rest.iter().map(part));
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

fn micros_of(duration: Duration) -> u64 {
    duration.as_nanos() / NANOS_PER_MICRO
}

const NANOS_PER_MICRO: u64 = 1000;

#[cfg(test)]
mod tests;
