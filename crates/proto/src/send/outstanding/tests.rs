use std::collections::BTreeSet;

use fairwave_units::{Duration, Time};
use proptest::prelude::*;

use super::*;
use crate::receive::byte_ranges::ByteRanges;
use crate::receive::missing_numbers::MissingNumbers;
use crate::wire::codec::{Reader, Writer};

/// Long after all was sent.
const NOW: Time = Time::from_secs(100);
const LONG: Duration = Duration::from_secs(1000);

fn piece(offset: u64) -> PieceAt {
    PieceAt { stream: 0, length: 1, offset }
}

/// As `piece`, where no more than three follow each other in one stream.
fn scattered(offset: u64) -> PieceAt {
    PieceAt { stream: (offset / 3) as u32, ..piece(offset) }
}

fn us(us: u64) -> Time {
    Time::from_nanos(us * 1000)
}

fn ms(ms: u64) -> Time {
    us(ms * 1000)
}

fn at_once() -> Verdict {
    Verdict { now: NOW, window: Duration::ZERO, sight: LONG }
}

/// Judged at `ms`, with a window of 20 ms.
fn at(at: u64) -> Verdict {
    Verdict { now: ms(at), window: Duration::from_millis(20), sight: Duration::from_millis(200) }
}

/// Applies a report to `outstanding`; returns the settlement and the repairs.
fn judge(
    outstanding: &mut Outstanding,
    verdict: &Verdict,
    numbers: Range<u64>,
    lost: &[Range<u64>],
) -> Result<(Settlement, Repairs), FalseReport> {
    let mut room = [0; 2000];
    assert_eq!(LossReport::write(numbers.clone(), lost, &mut Writer::new(&mut room)), Ok(numbers.end));
    let mut repairs = Repairs::default();
    let report = LossReport::read(&mut Reader::new(&room)).unwrap();
    let settlement = outstanding.on_report(&report, verdict, &mut repairs, None)?;
    Ok((settlement, repairs))
}

/// Offsets of the pieces to send again after a report, if no packet may overtake another.
fn report(outstanding: &mut Outstanding, numbers: Range<u64>, lost: &[Range<u64>]) -> Result<Vec<u64>, FalseReport> {
    let (_, repairs) = judge(outstanding, &at_once(), numbers, lost)?;
    Ok(repairs.needed.iter().map(|piece| piece.offset).collect())
}

/// Packets sent each microsecond.
fn sent(count: u64) -> Outstanding {
    let mut outstanding = Outstanding::default();
    for offset in 0..count {
        outstanding.send(piece(100 + offset), us(offset));
    }
    outstanding
}

/// Packets sent each millisecond.
fn slowly(count: u64) -> Outstanding {
    let mut outstanding = Outstanding::default();
    for offset in 0..count {
        outstanding.send(piece(offset), ms(offset));
    }
    outstanding
}

/// Nothing that is lost is in sight any more.
fn forget(outstanding: &mut Outstanding) {
    outstanding.forget(NOW, Duration::ZERO);
}

#[test]
fn on_report__settles_each_number_once() {
    let mut outstanding = sent(10);
    assert_eq!(report(&mut outstanding, 0..6, &[2..4]), Ok(vec![102, 103]));
    assert_eq!((outstanding.una(), outstanding.undecided(), outstanding.len()), (2, 6, 8));
    // Again, by a sink that has not heard that it was settled; then more of it.
    assert_eq!(report(&mut outstanding, 0..6, &[2..4]), Ok(vec![]));
    assert_eq!(report(&mut outstanding, 0..10, &[2..4, 7..8]), Ok(vec![107]));
    assert_eq!((outstanding.una(), outstanding.undecided()), (2, 10));
    forget(&mut outstanding);
    assert!(outstanding.is_empty());
    assert_eq!(outstanding.send(piece(1), NOW), 10);
}

#[test]
fn withdraw__what_did_not_go_does_not_go_again() {
    let mut outstanding = sent(3);
    assert!(!outstanding.withdraw(1), "it went, and others after it");
    // The last of a run, and one by itself.
    assert!(outstanding.withdraw(2));
    assert!(!outstanding.withdraw(2), "once");
    assert_eq!(outstanding.send(piece(900), us(10)), 3);
    assert!(outstanding.withdraw(3));
    assert_eq!(outstanding.send(piece(103), us(11)), 4);
    assert_eq!(report(&mut outstanding, 0..5, &[1..4]), Ok(vec![101]));
    forget(&mut outstanding);
    assert!(outstanding.is_empty() && !outstanding.withdraw(4));
    // A sink that reports it as arrived lies.
    outstanding.send(piece(104), us(12));
    outstanding.withdraw(5);
    assert_eq!(report(&mut outstanding, 5..6, &[]), Err(FalseReport::Skipped(5)));
}

#[test]
fn on_report__what_is_missing_is_lost_when_one_that_was_sent_later_by_more_than_the_window_is_there() {
    let mut outstanding = slowly(60);
    let nothing = Repairs::default();
    // 10 is missing, and one of 30 ms is there: 20 ms later.
    let found = judge(&mut outstanding, &at(90), 0..31, &[10..11]);
    assert_eq!(found, Ok((Settlement { arrived: 30, ..Settlement::default() }, nothing.clone())));
    assert_eq!((outstanding.una(), outstanding.undecided()), (10, 10));
    let found = judge(&mut outstanding, &at(91), 0..32, &[10..11]);
    let lost = Settlement { arrived: 1, lost: 1, ..Settlement::default() };
    assert_eq!(found, Ok((lost, Repairs { needed: vec![piece(10)], in_vain: vec![] })));
    assert_eq!((outstanding.una(), outstanding.undecided()), (10, 32));
}

#[test]
fn on_report__what_comes_within_the_window_was_late() {
    let mut outstanding = slowly(60);
    judge(&mut outstanding, &at(90), 0..20, &[8..9, 10..11, 15..16]).unwrap();
    let found = judge(&mut outstanding, &at(95), 0..25, &[10..11]);
    // 19 was there before 8 and 15: the first is 11 ms late at least.
    let settlement = Settlement { arrived: 7, late: 2, lateness: Duration::from_millis(11), ..Settlement::default() };
    assert_eq!(found, Ok((settlement, Repairs::default())));
    let found = judge(&mut outstanding, &at(96), 0..25, &[]);
    let settlement = Settlement { arrived: 1, late: 1, lateness: Duration::from_millis(14), ..Settlement::default() };
    assert_eq!(found, Ok((settlement, Repairs::default())));
    assert_eq!(outstanding.una(), 25);
}

#[test]
fn on_report__what_comes_after_it_was_lost_is_told_once() {
    let mut outstanding = slowly(60);
    judge(&mut outstanding, &at(90), 0..31, &[3..5, 20..21]).unwrap();
    let found = judge(&mut outstanding, &at(92), 0..33, &[4..5]);
    let lateness = Duration::from_millis(27); // 30 was there before 3
    let settlement = Settlement { arrived: 3, late: 1, spurious: 1, lateness, ..Settlement::default() };
    assert_eq!(found, Ok((settlement, Repairs { needed: vec![], in_vain: vec![piece(3)] })));
    // An older report adds nothing.
    let found = judge(&mut outstanding, &at(93), 0..31, &[3..5, 20..21]);
    assert_eq!(found, Ok((Settlement::default(), Repairs::default())));
    // Out of sight 200 ms after it was sent.
    outstanding.forget(ms(203), Duration::from_millis(200));
    assert_eq!(outstanding.una(), 4);
    outstanding.forget(ms(205), Duration::from_millis(200));
    assert_eq!(outstanding.una(), 33);
}

#[test]
fn on_report__tells_the_piece_of_each_that_came_after_all() {
    let mut outstanding = Outstanding::default();
    for at in 0..60 {
        outstanding.send(scattered(at), ms(at));
    }
    judge(&mut outstanding, &at(90), 0..31, &[2..9]).unwrap();
    let mut room = [0; 100];
    LossReport::write(0..33, &[], &mut Writer::new(&mut room)).unwrap();
    let report = LossReport::read(&mut Reader::new(&room)).unwrap();
    let (mut repairs, mut late) = (Repairs::default(), Vec::new());
    let mut hear = |settled: Settled| late.extend((settled.fate == Fate::Late).then_some(settled.piece));
    outstanding.on_report(&report, &at(92), &mut repairs, Some(&mut hear)).unwrap();
    assert_eq!(late, (2..9).map(scattered).collect::<Vec<_>>());
    assert_eq!(repairs.in_vain, late);
}

#[test]
fn on_report__at_the_end_time_tells_what_is_lost() {
    // The last five of twenty get lost, and the sink hears that there are twenty.
    let mut outstanding = slowly(20);
    judge(&mut outstanding, &at(80), 0..15, &[]).unwrap();
    // 14 was first reported at 80 ms. After 21 ms one would have arrived that was sent 21 ms later.
    for (now, lost) in [(95, 0), (101, 0), (102, 1), (103, 1), (106, 3), (200, 0)] {
        let (settlement, repairs) = judge(&mut outstanding, &at(now), 0..20, &[15..20]).unwrap();
        assert_eq!((settlement.lost, repairs.needed.len()), (lost, lost as usize), "at {now} ms");
    }
}

#[test]
fn on_report__where_nothing_has_ever_arrived_time_tells() {
    let mut outstanding = slowly(5);
    for (now, lost) in [(50, 0), (66, 0), (67, 1), (100, 4)] {
        assert_eq!(judge(&mut outstanding, &at(now), 0..5, &[0..5]).unwrap().0.lost, lost, "at {now} ms");
    }
}

#[test]
fn on_report__nothing_goes_again_that_came_after_all() {
    let mut outstanding = slowly(40);
    let lost = |found: Result<(Settlement, Repairs), FalseReport>| {
        let (settlement, repairs) = found.unwrap();
        (settlement.lost, repairs.needed)
    };
    // 1, 2 and 5 are lost, and go again together as 40 and 41, cut again.
    let found = lost(judge(&mut outstanding, &at(90), 0..40, &[1..3, 5..6]));
    assert_eq!(found, (3, vec![piece(1), piece(2), piece(5)]));
    outstanding.send(PieceAt { length: 2, ..piece(1) }, ms(91));
    outstanding.send(piece(5), ms(91));
    // Now 1 and 5 arrive, and both repairs get lost: 2 is still needed.
    judge(&mut outstanding, &at(100), 0..40, &[2..3]).unwrap();
    outstanding.send(piece(50), ms(120));
    let found = lost(judge(&mut outstanding, &at(200), 0..43, &[2..3, 40..42]));
    assert_eq!(found, (2, vec![piece(2)]));
    // A piece that its sink requests after that is sent again whatever happens to it.
    outstanding.send(piece(5), ms(210));
    outstanding.send(piece(51), ms(250));
    let found = lost(judge(&mut outstanding, &at(300), 0..45, &[2..3, 40..42, 43..44]));
    assert_eq!(found, (1, vec![piece(5)]));
}

#[test]
fn on_report__knows_a_lie() {
    assert_eq!(report(&mut sent(3), 0..4, &[]), Err(FalseReport::Beyond(3)));
    let mut skipped = sent(3);
    skipped.skip();
    skipped.send(piece(9), us(9));
    let mut honest = skipped.clone();
    assert_eq!(report(&mut skipped, 0..5, &[1..2]), Err(FalseReport::Skipped(3)));
    assert_eq!(report(&mut honest, 0..5, &[1..2, 3..4]), Ok(vec![101]));
    // Nor did it come after all.
    assert_eq!(report(&mut honest, 0..5, &[1..2]), Err(FalseReport::Skipped(3)));
    assert_eq!(report(&mut honest, 0..5, &[3..4]), Ok(vec![]));
    forget(&mut honest);
    assert!(honest.is_empty() && honest.skipped.is_empty());
}

/// A sink may report once more that nearly all of a long transfer got lost: the time this takes depends on the report's
/// contents, not on the numbers. With one step a number this test would take an hour.
#[test]
fn on_report__of_numbers_that_were_settled_long_ago_takes_no_time() {
    let una = 1 << 42;
    let mut outstanding = Outstanding { una, ..Outstanding::default() };
    (0..4).for_each(|offset| _ = outstanding.send(piece(offset), us(offset)));
    let mut room = [0; 64];
    let numbers = 0..una + 4;
    LossReport::write(numbers, &[1..una + 1, una + 2..una + 3], &mut Writer::new(&mut room)).unwrap();
    let report = LossReport::read(&mut Reader::new(&room)).unwrap();
    let (mut repairs, mut fates) = (Repairs::default(), Vec::new());
    let settled =
        outstanding.on_report(&report, &at_once(), &mut repairs, Some(&mut |settled| fates.push(settled.fate)));
    assert_eq!(settled, Ok(Settlement { arrived: 2, lost: 2, ..Settlement::default() }));
    assert_eq!(repairs.needed, [piece(0), piece(2)]);
    assert_eq!(fates, [Fate::Lost, Fate::Arrived, Fate::Lost, Fate::Arrived]);
}

#[test]
fn on_report__counts_and_tells_fates() {
    let mut outstanding = Outstanding::default();
    for at in 0..6 {
        if at == 3 {
            outstanding.skip();
        } else {
            outstanding.send(piece(at), us(at));
        }
    }
    let mut heard = |lost: &[Range<u64>]| {
        let mut room = [0; 100];
        LossReport::write(0..5, lost, &mut Writer::new(&mut room)).unwrap();
        let report = LossReport::read(&mut Reader::new(&room)).unwrap();
        let (mut repairs, mut fates) = (Repairs::default(), Vec::new());
        let mut hear = |settled: Settled| fates.push((settled.piece.offset, settled.sent, settled.fate));
        let settlement = outstanding.on_report(&report, &at_once(), &mut repairs, Some(&mut hear)).unwrap();
        (settlement, repairs.needed, fates)
    };
    let (settlement, needed, fates) = heard(&[1..2, 3..4]);
    assert_eq!(settlement, Settlement { arrived: 3, lost: 1, ..Settlement::default() });
    assert_eq!(needed, [piece(1)]);
    let arrived = |at| (at, us(at), Fate::Arrived);
    assert_eq!(fates, [arrived(0), (1, us(1), Fate::Lost), arrived(2), arrived(4)]);
    assert_eq!(heard(&[3..4]).2, [(1, us(1), Fate::Late)]);
}

#[test]
fn on_report__nothing_of_a_false_one_counts() {
    let mut outstanding = sent(3);
    outstanding.skip();
    outstanding.send(piece(9), us(9));
    assert_eq!(report(&mut outstanding, 0..5, &[1..2]), Err(FalseReport::Skipped(3)));
    assert_eq!((outstanding.una(), outstanding.len(), outstanding.newest), (0, 5, None));
    assert_eq!(report(&mut outstanding, 0..5, &[1..2, 3..4]), Ok(vec![101]));
}

#[test]
fn on_report__bounds_the_ranges() {
    // Every other number is settled, from the first on or from the last one back.
    for is_upwards in [true, false] {
        let most = MAX_RANGES as u64;
        let mut outstanding = sent(4 * most);
        for turn in 0..2 * most {
            let number = 2 * if is_upwards { turn } else { 2 * most - 1 - turn } + 1;
            assert_eq!(report(&mut outstanding, number..number + 1, &[]), Ok(vec![]));
            assert!(outstanding.open.len() <= MAX_RANGES);
        }
        assert_eq!(outstanding.open.len(), MAX_RANGES);
        // One that starts with the lowest is heard in any case.
        assert_eq!(report(&mut outstanding, 0..4 * most, &[0..1]), Ok(vec![100]));
        assert_eq!(outstanding.len() as u64, 4 * most);
        forget(&mut outstanding);
        assert!(outstanding.is_empty());
    }
}

/// If too much is missing at once, the oldest of it is lost before its time, and out of sight.
#[test]
fn on_report__bounds_what_may_be_late() {
    let count = 2 * (MAX_RANGES as u64 + 100);
    let mut outstanding = sent(count);
    let patient = Verdict { window: LONG, ..at_once() };
    let mut needed = Vec::new();
    let lost: Vec<_> = (0..count / 2).map(|at| 2 * at..2 * at + 1).collect();
    for page in lost.chunks(1000) {
        let numbers = page[0].start..page[page.len() - 1].end + 1;
        needed.extend(judge(&mut outstanding, &patient, numbers, page).unwrap().1.needed);
        assert!(outstanding.open.len() <= MAX_RANGES);
    }
    assert_eq!(outstanding.open.len(), MAX_RANGES);
    assert_eq!(needed, (0..100).map(|at| piece(100 + 2 * at)).collect::<Vec<_>>());
    assert_eq!(outstanding.una(), 200);
}

#[test]
fn outstanding__takes_32_bytes_a_packet() {
    // Pieces in a row, and such that none follows another.
    for step in [1, 2] {
        let mut outstanding = Outstanding::default();
        let bytes = |outstanding: &Outstanding| {
            outstanding.stamps.capacity() * size_of::<u32>() + outstanding.runs.capacity() * size_of::<PacketRun>()
        };
        let free = FREE_PACKETS * (size_of::<u32>() + size_of::<PacketRun>());
        for number in 0..100_000 {
            outstanding.send(piece(number * step), Time::ZERO);
            let a_packet = if step == 1 { 5 } else { 32 };
            assert!(bytes(&outstanding) <= a_packet * outstanding.len() + free);
        }
        // Memory that the held packets do not need is given back.
        for _ in 0..250_000 {
            let next = outstanding.next();
            report(&mut outstanding, next - 1..next, &[]).unwrap();
            report(&mut outstanding, 0..next, &[]).unwrap();
            outstanding.send(piece(0), Time::ZERO);
        }
        assert!(bytes(&outstanding) <= 2 * free, "{}", bytes(&outstanding));
    }
    assert_eq!((size_of::<OpenRange>(), size_of::<(u64, PieceAt)>()), (24, 24));
}

#[test]
fn sent__is_known_for_71_minutes() {
    let mut outstanding = Outstanding::default();
    let times = [0, 1_000_999, 4_290_000_000_000];
    for nanos in times {
        outstanding.send(piece(0), Time::from_nanos(nanos));
    }
    assert_eq!([0, 1, 2].map(|number| outstanding.sent(number).as_nanos()), [0, 1_000_000, 4_290_000_000_000]);
}

/// One entry a number: what is known of it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Plain {
    Open,
    /// Since when, in microseconds.
    Missing(u64),
    Lost(u64),
    Skipped,
    /// Skipped, and as good as lost.
    Gone,
    Settled,
}

/// The rule, number by number. Packets are sent each microsecond.
#[derive(Default)]
struct PlainList {
    all: Vec<Plain>,
    newest: Option<(u64, u64, u64)>,
}

impl PlainList {
    fn on_report(
        &mut self,
        (now, window): (u64, u64),
        numbers: Range<u64>,
        is_lost: &impl Fn(u64) -> bool,
    ) -> (Settlement, Vec<(u64, Fate)>) {
        let arrived = numbers.clone().rev().find(|&number| !is_lost(number));
        match (arrived, self.newest) {
            (Some(arrived), None) => self.newest = Some((arrived + 1, arrived, now)),
            (Some(arrived), Some((above, ..))) if arrived >= above => self.newest = Some((arrived + 1, arrived, now)),
            (None, None) => self.newest = Some((0, self.sent(numbers.end - 1), now)),
            _ => {}
        }
        let (_, sent, reported) = self.newest.unwrap();
        let clock = sent + (now - reported);
        let (mut settlement, mut fates) = (Settlement::default(), Vec::new());
        for number in numbers {
            let is_over = clock > self.sent(number) + window;
            let place = &mut self.all[number as usize];
            if is_lost(number) {
                *place = match *place {
                    Plain::Open | Plain::Missing(_) if is_over => {
                        fates.push((number, Fate::Lost));
                        settlement.lost += 1;
                        Plain::Lost(clock)
                    }
                    Plain::Open | Plain::Missing(_) => Plain::Missing(clock),
                    Plain::Lost(_) => Plain::Lost(clock),
                    Plain::Skipped if is_over => Plain::Gone,
                    other => other,
                };
                continue;
            }
            let was = std::mem::replace(place, Plain::Settled);
            if let Plain::Lost(clock) | Plain::Missing(clock) = was {
                let lateness = Duration::from_micros(clock.saturating_sub(number));
                settlement.lateness = settlement.lateness.max(lateness);
            }
            match was {
                Plain::Open => settlement.arrived += 1,
                Plain::Missing(_) => {
                    settlement.arrived += 1;
                    settlement.late += 1;
                }
                Plain::Lost(_) => settlement.spurious += 1,
                _ => continue,
            }
            fates.push((number, if matches!(was, Plain::Lost(_)) { Fate::Late } else { Fate::Arrived }));
        }
        (settlement, fates)
    }

    /// When a packet was sent, in microseconds. The time of one that was skipped is that of the one before.
    fn sent(&self, number: u64) -> u64 {
        let is_skipped = matches!(self.all[number as usize], Plain::Skipped | Plain::Gone);
        if is_skipped { number.saturating_sub(1) } else { number }
    }

    fn una(&self) -> u64 {
        self.all.iter().position(|&plain| plain != Plain::Settled).unwrap_or(self.all.len()) as u64
    }

    /// Lost packets go out of sight as long as nothing below is open.
    fn forget(&mut self, below: u64) {
        for number in 0..self.all.len() {
            let is_old = self.sent(number as u64) < below;
            match &mut self.all[number] {
                Plain::Settled => {}
                plain @ (Plain::Lost(_) | Plain::Gone) if is_old => *plain = Plain::Settled,
                _ => break,
            }
        }
    }
}

proptest! {
    /// Against a plain list of all numbers, whatever is reported.
    #[test]
    fn on_report__judges_as_a_plain_list_does(
        steps in proptest::collection::vec(
            (0_u8..8, 0_u64..60, proptest::collection::vec((1_u64..6, 1_u64..6), 0..6)), 1..80,
        ),
        window in 0_u64..40,
        sight in 50_u64..300,
    ) {
        let (mut outstanding, mut plain) = (Outstanding::default(), PlainList::default());
        let mut now = 0;
        for (what, base, steps) in steps {
            let next = plain.all.len() as u64;
            now = next.max(now + base / 4);
            if what < 3 {
                for _ in 0..base {
                    let number = plain.all.len() as u64;
                    prop_assert_eq!(outstanding.send(scattered(number), us(number)), number);
                    plain.all.push(Plain::Open);
                }
                continue;
            }
            if what == 3 {
                let number = plain.all.len() as u64;
                outstanding.skip();
                plain.all.push(Plain::Skipped);
                outstanding.send(scattered(number + 1), us(number + 1));
                plain.all.push(Plain::Open);
                continue;
            }
            let base = (next + 2).saturating_sub(base);
            let mut at = base;
            let mut ranges: Vec<_> = steps.iter().map(|&(gap, length)| {
                let start = at + gap;
                at = start + length;
                start..at
            }).collect();
            let end = at.max(base + u64::from(what));
            let is_skipped = |plain: &PlainList, number: u64| {
                matches!(plain.all.get(number as usize), Some(Plain::Skipped | Plain::Gone))
            };
            // Most speak the truth of what was skipped.
            if what > 4 {
                let lost: BTreeSet<u64> = ranges.iter().cloned().flatten().collect();
                let mut joined = ByteRanges::default();
                let lost = (base..end).filter(|at| lost.contains(at) || is_skipped(&plain, *at));
                lost.for_each(|at| _ = joined.insert(at..at + 1));
                ranges = joined.iter().collect();
            }
            let end = if what > 5 && end > next { continue } else { end };
            let mut room = [0; 600];
            LossReport::write(base..end, &ranges, &mut Writer::new(&mut room)).unwrap();
            let report = LossReport::read(&mut Reader::new(&room)).unwrap();
            let is_lost = |number: u64| ranges.iter().any(|range| range.contains(&number));
            let base = base.max(plain.una());
            let skipped = (base..end.min(next)).find(|&at| is_skipped(&plain, at) && !is_lost(at));
            let verdict =
                Verdict { now: us(now), window: Duration::from_micros(window), sight: Duration::from_micros(sight) };
            let (expected, truth) = if end > next {
                (vec![], Err(FalseReport::Beyond(end - 1)))
            } else if let Some(number) = skipped {
                (vec![], Err(FalseReport::Skipped(number)))
            } else if base >= end {
                (vec![], Ok(Settlement::default()))
            } else {
                let (counts, fates) = plain.on_report((now, window), base..end, &is_lost);
                plain.forget(now.saturating_sub(sight));
                (fates, Ok(counts))
            };
            let (mut repairs, mut fates) = (Repairs::default(), Vec::new());
            let mut hear = |settled: Settled| {
                assert_eq!(settled.sent.as_nanos() / 1000, settled.piece.offset);
                assert_eq!(settled.piece, if settled.piece.length == 0 { SKIPPED } else { scattered(settled.piece.offset) });
                fates.push((settled.piece.offset, settled.fate));
            };
            prop_assert_eq!(outstanding.on_report(&report, &verdict, &mut repairs, Some(&mut hear)), truth);
            prop_assert_eq!(&fates, &expected);
            for (pieces, fate) in [(&repairs.needed, Fate::Lost), (&repairs.in_vain, Fate::Late)] {
                let expected = expected.iter().filter(|(_, of)| *of == fate);
                prop_assert!(pieces.iter().map(|piece| piece.offset).eq(expected.map(|(number, _)| *number)));
            }
            let all = plain.all.len() as u64;
            prop_assert_eq!((outstanding.una(), outstanding.next()), (plain.una(), all));
            let undecided = plain.all.iter().position(|plain| {
                matches!(plain, Plain::Open | Plain::Missing(_) | Plain::Skipped)
            });
            prop_assert_eq!(outstanding.undecided(), undecided.map_or(all, |at| at as u64));
        }
    }

    /// A source and a sink, packets that get lost or late, reports and settlements that get lost: in the end every
    /// piece has arrived.
    #[test]
    fn pieces__all_arrive(fates in proptest::collection::vec(0_u8..10, 400), pieces in 1_u64..40) {
        let mut fates = fates.into_iter().chain(std::iter::repeat(9));
        let (mut outstanding, mut missing) = (Outstanding::default(), MissingNumbers::default());
        let mut waiting: Vec<PieceAt> = (0..pieces).map(piece).collect();
        let mut arrived = BTreeSet::new();
        let mut late = Vec::new();
        let mut now = Time::ZERO;
        for _ in 0..2000 {
            now += Duration::from_millis(1);
            // Without anything to send, a packet of no interest shows the sink what it lacks, as a keep-alive does.
            let next = waiting.pop().unwrap_or(piece(1 << 40));
            let number = outstanding.send(next, now);
            let mut deliver = |number, piece: PieceAt| {
                missing.on_packet(number);
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
            let numbers = missing.report(&mut lost);
            if fates.next().unwrap_or(9) > 4 {
                let (window, sight) = (Duration::from_millis(3), Duration::from_millis(8));
                let found = judge(&mut outstanding, &Verdict { now, window, sight }, numbers, &lost);
                let repairs = found.expect("an honest sink").1;
                waiting.retain(|piece| !repairs.in_vain.contains(piece));
                waiting.extend(repairs.needed);
            }
            outstanding.forget(now, Duration::from_millis(8));
            if fates.next().unwrap_or(9) > 4 {
                missing.on_settled(outstanding.una());
            }
        }
        prop_assert!((0..pieces).all(|offset| arrived.contains(&offset)));
        // The last ones are too young to be decided.
        prop_assert!(outstanding.len() < 12, "{}", outstanding.len());
    }
}
