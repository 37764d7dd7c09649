//! A loss report about 10^6 packets under way with 10^4 holes: `cargo bench -p fairwave-proto --bench loss_report`.
//!
//! "assemble": what the sink lacks, into pages of 1200 bytes. "settle": those pages, read and settled at the source.
//! "both" is what the two ends spend on it together.

#![allow(missing_docs, reason = "criterion_group makes public functions")]

use std::hint::black_box;
use std::ops::Range;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use fairwave_proto::codec::{Frame, Frames, Writer};
use fairwave_proto::{MissingNumbers, Outstanding, PieceAt, Repairs, Verdict};
use fairwave_units::{Duration, Time};

const PACKETS: u64 = 1_000_000;
const HOLES: u64 = 10_000;
const PAGE: usize = 1200;
/// All that is missing below what has arrived is lost, and out of sight.
const VERDICT: Verdict = Verdict { now: Time::from_secs(10), window: Duration::ZERO, sight: Duration::ZERO };

fn loss_report(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("10^6 packets, 10^4 holes");
    let (missing, outstanding) = ends();
    let mut lost = Vec::new();
    let mut pages = Pages::default();
    group.bench_function("assemble", |bencher| bencher.iter(|| assemble(black_box(&missing), &mut lost, &mut pages)));
    let mut repairs = Repairs { needed: Vec::with_capacity(HOLES as usize), in_vain: Vec::new() };
    group.bench_function("settle", |bencher| {
        bencher.iter_batched_ref(
            || outstanding.clone(),
            |outstanding| settle(outstanding, black_box(&pages), &mut repairs),
            BatchSize::NumIterations(20),
        );
    });
    group.bench_function("both", |bencher| {
        bencher.iter_batched_ref(
            || outstanding.clone(),
            |outstanding| {
                assemble(black_box(&missing), &mut lost, &mut pages);
                settle(outstanding, &pages, &mut repairs);
            },
            BatchSize::NumIterations(20),
        );
    });
    group.finish();
}

/// State of both ends after the packets: holes of one packet, at random.
fn ends() -> (MissingNumbers, Outstanding) {
    let (mut missing, mut outstanding) = (MissingNumbers::default(), Outstanding::default());
    let mut random = 1_u64;
    let mut hole = 0;
    for number in 0..PACKETS {
        let piece = PieceAt { stream: 1, length: 1400, offset: number * 1400 };
        outstanding.send(piece, Time::from_nanos(number * 1000));
        if number % (PACKETS / HOLES) == 0 {
            random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            // Not the first of a hundred nor the last: holes do not touch.
            hole = number + 1 + (random >> 33) % (PACKETS / HOLES - 2);
        }
        if number != hole {
            missing.on_packet(number);
        }
    }
    (missing, outstanding)
}

#[derive(Default)]
struct Pages {
    bytes: Vec<[u8; PAGE]>,
    count: usize,
}

fn assemble(missing: &MissingNumbers, lost: &mut Vec<Range<u64>>, pages: &mut Pages) {
    let mut numbers = missing.report(lost);
    let mut left = lost.as_slice();
    pages.count = 0;
    while !numbers.is_empty() {
        if pages.bytes.len() == pages.count {
            pages.bytes.push([0; PAGE]);
        }
        let page = &mut pages.bytes[pages.count];
        let mut writer = Writer::new(page);
        numbers.start = Frame::write_losses(numbers.clone(), left, &mut writer).expect("a page has room");
        let used = writer.used();
        page[used..].fill(0);
        left = &left[left.partition_point(|range| range.start < numbers.start)..];
        pages.count += 1;
    }
}

fn settle(outstanding: &mut Outstanding, pages: &Pages, repairs: &mut Repairs) {
    repairs.needed.clear();
    for page in &pages.bytes[..pages.count] {
        for frame in Frames::new(page) {
            if let Ok(Frame::Losses(report)) = frame {
                outstanding.on_report(&report, &VERDICT, repairs, None).expect("an honest report");
            }
        }
    }
    assert_eq!((repairs.needed.len() as u64, outstanding.len()), (HOLES, 0));
}

criterion_group!(benches, loss_report);
criterion_main!(benches);
