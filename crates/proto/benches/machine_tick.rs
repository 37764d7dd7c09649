//! Time of a control interval of all processes of a machine: every row is told of, and the nodes tick. `cargo bench -p
//! fairwave-proto --bench machine_tick`; the throughput is rows a second.

#![allow(missing_docs, reason = "criterion_group makes public functions")]

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use fairwave_proto::{
    CardCapacity, CardId, Direction, Machine, MachineConfig, MachineLimits, MachineRow, MemberId, SessionOptions,
    ShareBy,
};
use fairwave_units::{Duration, Rate, Time};

const TICK: Duration = Duration::from_millis(20);
const CARD: CardId = CardId(0);

/// Twenty processes of four users, each session with what it was granted and a hair of noise.
fn tick(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("machine_tick");
    for rows in [100_u32, 1000, 10_000] {
        let limits = MachineLimits::default();
        let mut machine =
            Machine::new(Time::ZERO, MachineConfig { interval: TICK, share_by: ShareBy::User, limits, drain: true });
        let capacity = CardCapacity { send: Some(Rate::gbps(10.0)), receive: Some(Rate::gbps(10.0)) };
        machine.set_card(Time::ZERO, CARD, capacity);
        let members: Vec<MemberId> = (0..20).filter_map(|process| machine.join(process % 4, false).ok()).collect();
        let mut table: Vec<(MemberId, u32, MachineRow)> =
            (0..rows).map(|at| (members[at as usize % members.len()], at, row(at))).collect();
        let mut now = Time::from_secs(10);
        group.throughput(Throughput::Elements(u64::from(rows)));
        group.bench_function(BenchmarkId::new("look and tick", rows), |bencher| {
            bencher.iter(|| {
                now = now.saturating_add(TICK);
                for (member, at, row) in &mut table {
                    row.measured_at = now;
                    machine.look(now, *member, *at, Some(row));
                }
                for grant in black_box(machine.tick(now)) {
                    let noise = 1.0 - 1e-9 * f64::from(grant.row % 7);
                    table[grant.row as usize].2.measured = grant.expected * noise;
                }
            });
        });
    }
    group.finish();
}

/// Every other session receives, and every third can use little.
fn row(at: u32) -> MachineRow {
    MachineRow {
        generation: 1,
        direction: if at.is_multiple_of(2) { Direction::Sending } else { Direction::Receiving },
        card: Some(CARD),
        measured: Rate::ZERO,
        measured_at: Time::ZERO,
        options: SessionOptions::default(),
        maximum: at.is_multiple_of(3).then(|| Rate::mbps(0.1)),
        desired: None,
        rtt: Duration::from_millis(10),
        waiting: Some(Duration::ZERO),
        start: Rate::ZERO,
        standing: None,
    }
}

criterion_group!(benches, tick);
criterion_main!(benches);
