//! What a source has sent and does not know the fate of.

use std::collections::VecDeque;
use std::ops::Range;

use thiserror::Error;

use crate::codec::LossReport;

/// The pieces under way, by packet number.
///
/// Each number is settled once: when a report says that its packet arrived, or that it was lost. What was lost goes again
/// under a new number. Numbers that were skipped on purpose are never reported by an honest sink: one that claims their
/// arrival hides its losses.
#[derive(Clone, Debug, Default)]
pub struct Outstanding {
    /// The lowest number that is not settled.
    una: u64,
    /// From `una` on.
    slots: VecDeque<Slot>,
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slot {
    Open(PieceAt),
    Skipped,
    Settled,
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

impl Outstanding {
    /// The lowest number that is not settled: what to tell the sink.
    pub fn una(&self) -> u64 {
        self.una
    }

    /// The number of the next packet.
    pub fn next(&self) -> u64 {
        self.una.saturating_add(self.slots.len() as u64)
    }

    /// Packets under way, with those whose fate is settled behind one whose is not.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether nothing is under way.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// A piece is sent: its packet's number.
    pub fn send(&mut self, piece: PieceAt) -> u64 {
        let number = self.next();
        self.slots.push_back(Slot::Open(piece));
        number
    }

    /// Leaves a number out.
    pub fn skip(&mut self) {
        self.slots.push_back(Slot::Skipped);
    }

    /// A report: the pieces that it says are lost, and that were not settled before, go into `lost`. After a false one the
    /// session is to be closed; what it settled stays settled.
    pub fn on_report(&mut self, report: &LossReport<'_>, lost: &mut Vec<PieceAt>) -> Result<(), FalseReport> {
        if report.end() > self.next() {
            return Err(FalseReport::Beyond(report.end() - 1));
        }
        let mut at = report.base().max(self.una);
        for range in report.lost() {
            self.arrived(at, range.start)?;
            for number in range.start.max(self.una)..range.end {
                if let Slot::Open(piece) = self.settle(number) {
                    lost.push(piece);
                }
            }
            at = range.end.max(self.una);
        }
        self.arrived(at, report.end())?;
        while self.slots.front() == Some(&Slot::Settled) {
            self.slots.pop_front();
            self.una += 1;
        }
        Ok(())
    }

    fn arrived(&mut self, from: u64, to: u64) -> Result<(), FalseReport> {
        for number in from..to {
            if self.settle(number) == Slot::Skipped {
                return Err(FalseReport::Skipped(number));
            }
        }
        Ok(())
    }

    /// What a number from `una` on was until now.
    fn settle(&mut self, number: u64) -> Slot {
        let slot = usize::try_from(number - self.una).ok().and_then(|index| self.slots.get_mut(index));
        slot.map_or(Slot::Settled, |slot| std::mem::replace(slot, Slot::Settled))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use fairwave_units::{Duration, Time};
    use proptest::prelude::*;

    use super::*;
    use crate::codec::{Reader, Writer};
    use crate::missing::Missing;

    fn piece(offset: u64) -> PieceAt {
        PieceAt { stream: 0, length: 1, offset }
    }

    /// What a report says to `outstanding`.
    fn report(
        outstanding: &mut Outstanding,
        numbers: Range<u64>,
        lost: &[Range<u64>],
    ) -> Result<Vec<u64>, FalseReport> {
        let mut room = [0; 500];
        assert_eq!(LossReport::write(numbers.clone(), lost, &mut Writer::new(&mut room)), Ok(numbers.end));
        let mut pieces = Vec::new();
        outstanding.on_report(&LossReport::read(&mut Reader::new(&room)).unwrap(), &mut pieces)?;
        Ok(pieces.iter().map(|piece| piece.offset).collect())
    }

    fn sent(count: u64) -> Outstanding {
        let mut outstanding = Outstanding::default();
        for offset in 0..count {
            outstanding.send(piece(100 + offset));
        }
        outstanding
    }

    #[test]
    fn on_report__settles_each_number_once() {
        let mut outstanding = sent(10);
        assert_eq!(report(&mut outstanding, 0..6, &[2..4]), Ok(vec![102, 103]));
        assert_eq!((outstanding.una(), outstanding.len()), (6, 4));
        // Again, by a sink that has not heard that it was settled; then more of it.
        assert_eq!(report(&mut outstanding, 0..6, &[2..4]), Ok(vec![]));
        assert_eq!(report(&mut outstanding, 0..10, &[2..4, 7..8]), Ok(vec![107]));
        assert!(outstanding.is_empty());
        assert_eq!(outstanding.send(piece(1)), 10);
    }

    #[test]
    fn on_report__knows_a_lie() {
        assert_eq!(report(&mut sent(3), 0..4, &[]), Err(FalseReport::Beyond(3)));
        let mut skipped = sent(3);
        skipped.skip();
        skipped.send(piece(9));
        let mut honest = skipped.clone();
        assert_eq!(report(&mut skipped, 0..5, &[1..2]), Err(FalseReport::Skipped(3)));
        assert_eq!(report(&mut honest, 0..5, &[1..2, 3..4]), Ok(vec![101]));
        assert!(honest.is_empty());
    }

    proptest! {
        /// A source and a sink, packets that get lost or late, reports and settlements that get lost: in the end every piece
        /// has arrived.
        #[test]
        fn pieces__all_arrive(fates in proptest::collection::vec(0_u8..10, 400), pieces in 1_u64..40) {
            let mut fates = fates.into_iter().chain(std::iter::repeat(9));
            let (mut outstanding, mut missing) = (Outstanding::default(), Missing::default());
            let mut waiting: Vec<PieceAt> = (0..pieces).map(piece).collect();
            let mut arrived = BTreeSet::new();
            let mut late = Vec::new();
            let mut now = Time::ZERO;
            for _ in 0..2000 {
                now += Duration::from_millis(1);
                // Without anything to send, a packet of no interest shows the sink what it lacks, as a keep-alive does.
                let next = waiting.pop().unwrap_or(piece(1 << 40));
                let number = outstanding.send(next);
                let mut deliver = |number, piece: PieceAt| {
                    missing.on_packet(now, number);
                    arrived.insert(piece.offset);
                };
                match fates.next().unwrap_or(9) {
                    0..3 => {}
                    3 => late.push((number, next)),
                    _ => deliver(number, next),
                }
                if fates.next() == Some(0) && let Some((number, piece)) = late.pop() {
                    deliver(number, piece);
                }
                let mut lost = Vec::new();
                let numbers = missing.report(now, Duration::from_millis(3), &mut lost);
                if fates.next().unwrap_or(9) > 4 {
                    let mut room = [0; 2000];
                    LossReport::write(numbers, &lost, &mut Writer::new(&mut room)).unwrap();
                    let report = LossReport::read(&mut Reader::new(&room)).unwrap();
                    prop_assert_eq!(outstanding.on_report(&report, &mut waiting), Ok(()));
                }
                if fates.next().unwrap_or(9) > 4 {
                    missing.on_settled(outstanding.una());
                }
            }
            prop_assert!((0..pieces).all(|offset| arrived.contains(&offset)));
            // The last ones are too young to be decided.
            prop_assert!(outstanding.len() < 10, "{}", outstanding.len());
        }
    }
}
