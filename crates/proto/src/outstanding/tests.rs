use std::collections::BTreeSet;

use fairwave_units::{Duration, Time};
use proptest::prelude::*;

use super::*;
use crate::byte_ranges::ByteRanges;
use crate::codec::{Reader, Writer};
use crate::missing_numbers::MissingNumbers;

const AT: Time = Time::ZERO;

fn piece(offset: u64) -> PieceAt {
    PieceAt { stream: 0, length: 1, offset }
}

/// What a report says to `outstanding`.
fn report(outstanding: &mut Outstanding, numbers: Range<u64>, lost: &[Range<u64>]) -> Result<Vec<u64>, FalseReport> {
    let mut room = [0; 500];
    assert_eq!(LossReport::write(numbers.clone(), lost, &mut Writer::new(&mut room)), Ok(numbers.end));
    let mut pieces = Vec::new();
    outstanding.on_report(&LossReport::read(&mut Reader::new(&room)).unwrap(), &mut pieces, None)?;
    Ok(pieces.iter().map(|piece| piece.offset).collect())
}

fn sent(count: u64) -> Outstanding {
    let mut outstanding = Outstanding::default();
    for offset in 0..count {
        outstanding.send(piece(100 + offset), AT);
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
    assert_eq!(outstanding.send(piece(1), AT), 10);
}

#[test]
fn on_report__knows_a_lie() {
    assert_eq!(report(&mut sent(3), 0..4, &[]), Err(FalseReport::Beyond(3)));
    let mut skipped = sent(3);
    skipped.skip();
    skipped.send(piece(9), AT);
    let mut honest = skipped.clone();
    assert_eq!(report(&mut skipped, 0..5, &[1..2]), Err(FalseReport::Skipped(3)));
    assert_eq!(report(&mut honest, 0..5, &[1..2, 3..4]), Ok(vec![101]));
    assert!(honest.is_empty());
}

/// A sink may say once more that nearly all of a long transfer got lost: that takes time by what the report says, not
/// by the numbers. With one step a number this test would take an hour.
#[test]
fn on_report__of_numbers_that_were_settled_long_ago_takes_no_time() {
    let una = 1 << 42;
    let mut outstanding = Outstanding { una, ..Outstanding::default() };
    (0..3).for_each(|offset| _ = outstanding.send(piece(offset), AT));
    let mut room = [0; 64];
    let numbers = 0..una + 3;
    LossReport::write(numbers, &[1..una + 1, una + 2..una + 3], &mut Writer::new(&mut room)).unwrap();
    let report = LossReport::read(&mut Reader::new(&room)).unwrap();
    let (mut lost, mut fates) = (Vec::new(), Vec::new());
    let settled = outstanding.on_report(&report, &mut lost, Some(&mut |fate| fates.push(fate.is_lost)));
    assert_eq!(settled, Ok(Settlement { arrived: 1, lost: 2 }));
    assert_eq!((lost, fates), (vec![piece(0), piece(2)], vec![true, false, true]));
}

#[test]
fn on_report__counts_and_tells_fates() {
    let mut outstanding = Outstanding::default();
    for at in 0..6 {
        if at == 3 {
            outstanding.skip();
        } else {
            outstanding.send(piece(at), Time::from_nanos(at * 1000));
        }
    }
    let mut room = [0; 100];
    LossReport::write(0..5, &[1..2, 3..4], &mut Writer::new(&mut room)).unwrap();
    let report = LossReport::read(&mut Reader::new(&room)).unwrap();
    let (mut lost, mut fates) = (Vec::new(), Vec::new());
    let mut hear = |fate: Settled| fates.push((fate.piece.offset, fate.sent.as_nanos() / 1000, fate.is_lost));
    let settlement = outstanding.on_report(&report, &mut lost, Some(&mut hear));
    assert_eq!(settlement, Ok(Settlement { arrived: 3, lost: 1 }));
    assert_eq!((lost, outstanding.una()), (vec![piece(1)], 5));
    assert_eq!(fates, [(0, 0, false), (1, 1, true), (2, 2, false), (4, 4, false)]);
}

#[test]
fn on_report__nothing_of_a_false_one_counts() {
    let mut outstanding = sent(3);
    outstanding.skip();
    assert_eq!(report(&mut outstanding, 0..4, &[1..2]), Err(FalseReport::Skipped(3)));
    assert_eq!((outstanding.una(), outstanding.len()), (0, 4));
    assert_eq!(report(&mut outstanding, 0..4, &[1..2, 3..4]), Ok(vec![101]));
}

#[test]
fn on_report__bounds_the_ranges() {
    // Every other number is settled, from the first on or from the last one back.
    for is_upwards in [true, false] {
        let most = MOST_RANGES as u64;
        let mut outstanding = sent(4 * most);
        for turn in 0..2 * most {
            let number = 2 * if is_upwards { turn } else { 2 * most - 1 - turn } + 1;
            assert_eq!(report(&mut outstanding, number..number + 1, &[]), Ok(vec![]));
            assert!(outstanding.open.len() <= MOST_RANGES);
        }
        assert_eq!(outstanding.open.len(), MOST_RANGES);
        // One that begins with the lowest is heard in any case.
        assert_eq!(report(&mut outstanding, 0..4 * most, &[0..1]), Ok(vec![100]));
        assert!(outstanding.is_empty());
    }
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
            outstanding.send(piece(number * step), AT);
            let a_packet = if step == 1 { 5 } else { 32 };
            assert!(bytes(&outstanding) <= a_packet * outstanding.len() + free);
        }
        // What is not needed for as many packets as it holds is given back.
        for _ in 0..250_000 {
            let next = outstanding.next();
            report(&mut outstanding, next - 1..next, &[]).unwrap();
            report(&mut outstanding, 0..next, &[]).unwrap();
            outstanding.send(piece(0), AT);
        }
        assert!(bytes(&outstanding) <= 2 * free, "{}", bytes(&outstanding));
    }
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

/// One entry a number: a piece that is not settled, one that was skipped, or nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Plain {
    Open,
    Skipped,
    Settled,
}

proptest! {
    /// Against a plain list of all numbers, whatever is reported.
    #[test]
    fn on_report__settles_as_a_plain_list_does(
        steps in proptest::collection::vec(
            (0_u8..8, 0_u64..60, proptest::collection::vec((1_u64..6, 1_u64..6), 0..6)), 1..80,
        ),
    ) {
        let (mut outstanding, mut plain) = (Outstanding::default(), Vec::new());
        for (what, base, steps) in steps {
            let next = plain.len() as u64;
            if what < 3 {
                for _ in 0..base {
                    let number = plain.len() as u64;
                    prop_assert_eq!(outstanding.send(piece(number), Time::from_nanos(number * 1000)), number);
                    plain.push(Plain::Open);
                }
                continue;
            }
            if what == 3 {
                outstanding.skip();
                plain.push(Plain::Skipped);
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
            // Most speak the truth of what was skipped.
            if what > 4 {
                let lost: BTreeSet<u64> = ranges.iter().cloned().flatten().collect();
                let is_lost = |number: u64| {
                    lost.contains(&number) || plain.get(number as usize) == Some(&Plain::Skipped)
                };
                let mut joined = ByteRanges::default();
                (base..end).filter(|&at| is_lost(at)).for_each(|at| _ = joined.insert(at..at + 1));
                ranges = joined.iter().collect();
            }
            let end = if what > 5 && end > next { continue } else { end };
            let mut room = [0; 600];
            LossReport::write(base..end, &ranges, &mut Writer::new(&mut room)).unwrap();
            let report = LossReport::read(&mut Reader::new(&room)).unwrap();
            let is_lost = |number: u64| ranges.iter().any(|range| range.contains(&number));
            let skipped = (base..end.min(next)).find(|&at| plain[at as usize] == Plain::Skipped && !is_lost(at));
            let (mut expected, mut counts) = (Vec::new(), Settlement::default());
            let truth = if end > next {
                Err(FalseReport::Beyond(end - 1))
            } else if let Some(number) = skipped {
                Err(FalseReport::Skipped(number))
            } else {
                for number in base..end {
                    if std::mem::replace(&mut plain[number as usize], Plain::Settled) == Plain::Open {
                        expected.push((number, is_lost(number)));
                        counts.arrived += u64::from(!is_lost(number));
                        counts.lost += u64::from(is_lost(number));
                    }
                }
                Ok(counts)
            };
            let (mut lost, mut fates) = (Vec::new(), Vec::new());
            let mut hear = |fate: Settled| {
                assert_eq!(fate.sent.as_nanos() / 1000, fate.piece.offset);
                fates.push((fate.piece.offset, fate.is_lost));
            };
            prop_assert_eq!(outstanding.on_report(&report, &mut lost, Some(&mut hear)), truth);
            prop_assert_eq!(&fates, &expected);
            let lost: Vec<_> = lost.iter().map(|piece| (piece.offset, true)).collect();
            expected.retain(|&(_, is_lost)| is_lost);
            prop_assert_eq!(lost, expected);
            let una = plain.iter().position(|&plain| plain != Plain::Settled).unwrap_or(plain.len());
            prop_assert_eq!((outstanding.una(), outstanding.next()), (una as u64, plain.len() as u64));
        }
    }

    /// A source and a sink, packets that get lost or late, reports and settlements that get lost: in the end every piece
    /// has arrived.
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
                prop_assert!(outstanding.on_report(&report, &mut waiting, None).is_ok());
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
