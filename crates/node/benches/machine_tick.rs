//! Time of a control interval of all processes of a machine: every row is reported, and the nodes tick. `cargo bench -p
//! fairwave-node --bench machine_tick`; the throughput is rows a second.

#![allow(missing_docs, reason = "criterion_group makes public functions")]

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use fairwave_node::{
    CardCapacity, CardId, Direction, Machine, MachineConfig, MachineGrant, MachineLimits, MachineRow, MachineStanding,
    MemberId, ShareBy, Standing, Terms,
};
use fairwave_units::{Duration, Rate, Time};

const TICK: Duration = Duration::from_millis(20);
const CARD: CardId = CardId(0);

/// Twenty processes of four users.
fn tick(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("machine_tick");
    for rows in [100_u32, 1000, 10_000] {
        group.throughput(Throughput::Elements(u64::from(rows)));
        for (name, row, obey) in [("GTP", row as fn(u32) -> MachineRow, obey as Obey), ("Tally", row_of_tally, take)] {
            let limits = MachineLimits::default();
            let mut machine = Machine::new(
                Time::ZERO,
                MachineConfig { interval: TICK, share_by: ShareBy::User, limits, drain: true, fair_start: true },
            );
            let capacity = CardCapacity { send: Some(Rate::gbps(10.0)), receive: Some(Rate::gbps(10.0)) };
            machine.set_card(Time::ZERO, CARD, capacity);
            let members: Vec<MemberId> = (0..20).filter_map(|process| machine.join(process % 4, false).ok()).collect();
            let mut table: Vec<(MemberId, u32, MachineRow)> =
                (0..rows).map(|at| (members[at as usize % members.len()], at, row(at))).collect();
            let mut now = Time::from_secs(10);
            group.bench_function(BenchmarkId::new(format!("look and tick, {name}"), rows), |bencher| {
                bencher.iter(|| {
                    now = now.saturating_add(TICK);
                    for (member, at, row) in &mut table {
                        row.measured_at = now;
                        machine.look(now, *member, *at, Some(row));
                    }
                    let tick = machine.ticks() + 1;
                    for grant in black_box(machine.tick(now)) {
                        obey(&mut table[grant.row as usize].2, grant, tick);
                    }
                });
            });
        }
    }
    group.finish();
}

/// Applies a grant to a process's row at a tick.
type Obey = fn(&mut MachineRow, &MachineGrant, u64);

/// Each session uses what it was granted, except for a hair of noise.
fn obey(row: &mut MachineRow, grant: &MachineGrant, _tick: u64) {
    row.measured = grant.grant.expected * (1.0 - 1e-9 * f64::from(grant.row % 7));
}

/// Each process takes the grant, and has what was before it reserved until its next look; what few want changes by a
/// hundredth each tick.
fn take(row: &mut MachineRow, grant: &MachineGrant, tick: u64) {
    row.measured = grant.grant.expected;
    if let Some(said) = &mut row.standing {
        said.taken = tick;
        said.standing.reserved = said.standing.granted.max(grant.grant.expected);
        said.standing.granted = grant.grant.expected;
        said.standing.claim = said.standing.claim.map(|_| claim(grant.row) * (1.0 + 0.01 * (tick % 7) as f64));
    }
}

/// Every other session receives, and every third can use little.
fn row(at: u32) -> MachineRow {
    MachineRow {
        generation: 1,
        direction: if at.is_multiple_of(2) { Direction::Sending } else { Direction::Receiving },
        card: Some(CARD),
        measured: Rate::ZERO,
        measured_at: Time::ZERO,
        terms: Terms { maximum: at.is_multiple_of(3).then(|| Rate::mbps(0.1)), ..Terms::default() },
        rtt: Duration::from_millis(10),
        waiting: Some(Duration::ZERO),
        start: Rate::ZERO,
        standing: None,
    }
}

/// Claim of every third session.
fn claim(at: u32) -> Rate {
    Rate::mbps(0.1 + 1e-4 * f64::from(at % 97))
}

fn row_of_tally(at: u32) -> MachineRow {
    let claim = at.is_multiple_of(3).then(|| claim(at));
    let standing = Standing {
        claim,
        is_application_limited: claim.is_some(),
        limit: claim.filter(|_| at.is_multiple_of(2)),
        granted: Rate::ZERO,
        reserved: Rate::ZERO,
        is_silent: false,
        is_plain: false,
    };
    MachineRow { terms: Terms::default(), standing: Some(MachineStanding { standing, taken: 0 }), ..row(at) }
}

criterion_group!(benches, tick);
criterion_main!(benches);
