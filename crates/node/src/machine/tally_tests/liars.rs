//! Rows that say what is not so, and what they take by that from others.

use super::*;

/// A row that somebody writes by hand.
fn stand(reserved: f64, claim: Option<Rate>) -> MachineStanding {
    let mut said = NOTHING;
    (said.standing.reserved, said.standing.claim) = (Rate::nearest_bps(reserved), claim);
    said
}

/// One whose source is not heard, and that says it was granted as much as it has reserved.
fn silent(reserved: f64) -> MachineStanding {
    let mut said = stand(reserved, None);
    (said.standing.granted, said.standing.is_silent) = (Rate::nearest_bps(reserved), true);
    said
}

fn gtp(now: Time, measured: f64, start: f64) -> MachineRow {
    let (measured, start) = (Rate::mbps(measured), Rate::nearest_bps(start));
    MachineRow { measured, start, standing: None, ..row(now, NOTHING) }
}

impl World {
    fn until_tick(&mut self) {
        let before = self.machine.ticks();
        while self.machine.ticks() == before {
            self.step();
        }
    }

    /// Mb/s.
    fn granted(&self, member: MemberId, row: u32) -> f64 {
        self.table.get(&(member, row)).map_or(0.0, |(_, rate, _)| rate.as_mbps())
    }
}

/// A liar does `each` before each of 2 s of ticks; then an honest one of user 1 opens. What that has 20 s later.
fn beside(share_by: ShareBy, mut each: impl FnMut(&mut World, u64)) -> f64 {
    let mut world = World::new(share_by, 21);
    world.run_for(2500);
    let mut id = None;
    for n in 0..1100 {
        if n == 100 {
            let honest = world.process(1);
            id = Some(world.open(honest, 10, f64::INFINITY));
        }
        each(&mut world, n);
        world.until_tick();
    }
    world.rates()[id.unwrap() as usize]
}

/// No lie: what a session of GTP was granted is over when its packets are.
#[test]
fn tick__a_session_of_gtp_that_had_all_leaves_its_part_to_one_of_tally() {
    for limit in [f64::INFINITY, 0.0] {
        let mut world = World::new(ShareBy::User, 13);
        world.run_for(2500);
        let (member, mut rate) = (world.machine.join(2, false).unwrap(), 0.0_f64);
        let mut id = None;
        for n in 0..1500 {
            if n == 1000 {
                assert!(rate > 0.99 * CAPACITY, "{rate}");
                let process = world.process(1);
                id = Some(world.open(process, 10, f64::INFINITY));
            }
            let used = if n >= 1000 { rate.min(limit) } else { rate };
            let said = gtp(time(world.ms), used, 0.0);
            world.machine.look(time(world.ms), member, 7, Some(&said));
            world.until_tick();
            rate = world.granted(member, 7);
        }
        let found = world.rates()[id.unwrap() as usize];
        let right = if limit == 0.0 { 0.9 * CAPACITY } else { CAPACITY / 2.0 };
        assert!(found >= 0.97 * right, "uses at most {limit}: {found}");
    }
}

#[test]
fn tick__who_says_that_gtp_began_with_all_takes_no_more_than_its_part() {
    for (start, reborn) in [(1e9, 1_000_000), (1e9, 1), (3.4e38, 1), (f64::MAX, 100)] {
        for share_by in [ShareBy::User, ShareBy::Session] {
            let mut member = None;
            let found = beside(share_by, |world, n| {
                let member = *member.get_or_insert_with(|| world.machine.join(2, false).unwrap());
                let mut said = gtp(time(world.ms), 0.0, start);
                (said.generation, said.rtt) = ((n / reborn) as u16, Duration::from_secs(2));
                world.machine.look(time(world.ms), member, 3, Some(&said));
            });
            assert!(found >= 0.95 * CAPACITY / 2.0, "{start:e}, new each {reborn} ticks: {found}");
        }
    }
}

#[test]
fn tick__who_says_that_it_reserved_more_than_there_can_be_takes_no_more_than_its_part() {
    for reserved in [1e15, 1e299, 1e300, f64::MAX] {
        let mut member = None;
        let found = beside(ShareBy::User, |world, n| {
            let member = *member.get_or_insert_with(|| world.machine.join(2, false).unwrap());
            let mut said = row(time(world.ms), stand(reserved, Some(Rate::ZERO)));
            said.generation = (n / 400) as u16;
            world.machine.look(time(world.ms), member, 3, Some(&said));
        });
        assert!(found >= 0.95 * CAPACITY / 2.0, "{reserved:e}: {found}");
    }
}

/// Several who lie together, each of its own user, have no more than their parts together.
#[test]
fn tick__liars_of_several_users_take_no_more_than_their_parts() {
    for claim in [None, Some(Rate::ZERO)] {
        let mut members = Vec::new();
        let found = beside(ShareBy::User, |world, n| {
            if members.is_empty() {
                members.extend((0..6).map(|user| world.machine.join(2 + user, false).unwrap()));
            }
            for member in &members {
                let mut said = row(time(world.ms), stand(1e15, claim));
                said.generation = (n / 400) as u16;
                world.machine.look(time(world.ms), *member, 3, Some(&said));
            }
        });
        assert!(found >= 0.95 * CAPACITY / 7.0, "{claim:?}: {found}");
    }
}

/// It joins, is reported at a tick, and is gone.
#[test]
fn leave__again_and_again_of_who_was_there_for_a_tick_leaves_others_their_parts() {
    for said in [stand(1e15, Some(Rate::ZERO)), stand(1e15, None), silent(1e15), stand(0.0, None)] {
        for every in [1, 50] {
            let mut before = None;
            let found = beside(ShareBy::User, |world, n| {
                if n % every != 0 {
                    return;
                }
                if let Some(gone) = before.take() {
                    assert!(world.machine.leave(gone));
                }
                let member = world.machine.join(2, false).unwrap();
                world.machine.look(time(world.ms), member, 3, Some(&row(time(world.ms), said)));
                before = Some(member);
            });
            assert!(found >= 0.95 * CAPACITY / 2.0, "{said:?}, each {every} ticks: {found}");
        }
    }
}

/// Who is there already loses nothing by those who come and die, and one that comes then has its part: users are owners.
#[test]
fn leave__again_and_again_does_not_hold_a_third_back() {
    for said in [stand(1e15, None), silent(1e15)] {
        let (mut before, mut first) = (None, None);
        let found = beside(ShareBy::User, |world, n| {
            if first.is_none() {
                let process = world.process(3);
                first = Some(world.open(process, 10, f64::INFINITY));
            }
            if n % 7 == 0 {
                if let Some(gone) = before.replace(world.machine.join(2, false).unwrap()) {
                    assert!(world.machine.leave(gone));
                }
                world.machine.look(time(world.ms), before.unwrap(), 3, Some(&row(time(world.ms), said)));
            }
        });
        assert!(found >= 0.95 * CAPACITY / 3.0, "{said:?}: {found}");
    }
}

/// What a killed process left is over after two leases, whether others are there in the meantime or not.
#[test]
fn tick__what_was_left_behind_ages_while_nobody_is_there() {
    let mut world = World::new(ShareBy::User, 7);
    let first = world.process(1);
    world.open(first, 10, f64::INFINITY);
    world.run_for(4000);
    world.die(first);
    world.run_for(10_000);
    let second = world.process(2);
    world.open(second, 10, f64::INFINITY);
    world.run_for(500);
    assert_eq!(world.rates(), [0.0, CAPACITY]);
}

#[test]
fn tick__who_always_says_more_than_its_grant_leaves_the_smaller_user_its_part() {
    for (share_by, weight, parts) in
        [(ShareBy::User, 19.0, 20.0), (ShareBy::User, 1.0, 2.0), (ShareBy::Session, 1.0, 26.0)]
    {
        let mut world = World::new(share_by, 5);
        world.machine.set_user(2, Some(Terms { weight, ..Terms::default() }));
        let liar = world.process(2);
        world.processes[liar].lie = |row| said(row).standing.reserved = Rate::nearest_bps(1e15);
        for _ in 0..if share_by == ShareBy::Session { 25 } else { 1 } {
            world.open(liar, 10, f64::INFINITY);
        }
        world.run_for(5000);
        let honest = world.process(1);
        let id = world.open(honest, 10, f64::INFINITY);
        // What it was granted once it may hold for four leases.
        world.run_for(20_000);
        let found = world.rates()[id as usize];
        assert!(found >= 0.95 * CAPACITY / parts, "{share_by:?}, weight {weight}: {found}");
    }
}

#[test]
fn tick__a_silent_row_that_is_born_again_takes_no_more_than_its_part() {
    for share_by in [ShareBy::Session, ShareBy::User] {
        for reserved in [1e15, 1e300] {
            let mut world = World::new(share_by, 3);
            world.run_for(2500);
            let first = world.process(1);
            world.open(first, 10, f64::INFINITY);
            world.run_for(5000);
            let liar = world.machine.join(2, false).unwrap();
            for n in 0..2500_u64 {
                if n == 1000 {
                    let third = world.process(3);
                    world.open(third, 10, f64::INFINITY);
                }
                let mut said = MachineStanding { taken: u64::MAX >> 16, ..silent(reserved) };
                said.standing.reserved = Rate::nearest_bps(reserved);
                let said = MachineRow { generation: (n / 350) as u16, ..row(time(world.ms), said) };
                world.machine.look(time(world.ms), liar, 3, Some(&said));
                world.until_tick();
                assert!(world.granted(liar, 3) <= 1.001 * CAPACITY / 2.0, "{}", world.granted(liar, 3));
            }
            let rates = world.rates();
            assert!(rates.iter().all(|rate| *rate >= 0.95 * CAPACITY / 3.0), "{share_by:?} {reserved:e}: {rates:?}");
        }
    }
}
/// Whatever rows say, and however time goes: no panic, and no more is granted than there is.
#[test]
fn tick__of_any_numbers_grants_no_more_than_the_capacity() {
    let rates = [0.0, 5e-324, 1e-300, 1.0, 7e8, 1e15, 1e300, f64::MAX].map(Rate::nearest_bps);
    let mut world = World::new(ShareBy::User, 1);
    for trial in 0..300 {
        let mut draw = |below: usize| world.draw(below as u64) as usize;
        let share_by = [ShareBy::User, ShareBy::Session, ShareBy::Process][trial % 3];
        let mut machine = Machine::new(Time::ZERO, config(share_by));
        let capacities = [0.0, 1.0, 7e8, 1e100, f64::MAX].map(Rate::nearest_bps);
        let (send, receive) = (capacities[draw(5)], capacities[draw(5)]);
        machine.set_card(Time::ZERO, CARD, CardCapacity { send: Some(send), receive: Some(receive) });
        let mut members: Vec<MemberId> = (0..6).map(|at| machine.join(at % 3, at % 3 == 0).unwrap()).collect();
        // Steps of GTP go a twentieth beyond the capacity.
        let (has_gtp, mut now) = (trial % 2 == 0, Time::ZERO);
        for tick in 0..60 {
            now = match draw(12) {
                0 => now,
                1 => Time::from_nanos(now.as_nanos().saturating_sub(50_000_000)),
                2 => now.saturating_add(Duration::from_secs(9)),
                _ => machine.next_tick(),
            };
            if draw(8) == 0 {
                let at = draw(6);
                assert!(machine.leave(members[at]));
                members[at] = machine.join(at as u32 % 3, at % 3 == 0).unwrap();
            }
            for member in &members {
                for at in 0..4 {
                    let mut limit = || Some(rates[draw(8)]).filter(|_| draw(3) > 0);
                    let standing = Standing {
                        claim: limit(),
                        is_application_limited: limit().is_none(),
                        limit: limit(),
                        granted: limit().unwrap_or_default(),
                        reserved: limit().unwrap_or_default(),
                        is_silent: limit().is_none(),
                        is_plain: has_gtp && limit().is_none(),
                    };
                    let (maximum, desired) = (limit(), limit());
                    let said = MachineRow {
                        generation: draw(3) as u16,
                        direction: [Direction::Sending, Direction::Receiving][at % 2],
                        measured: rates[draw(8)],
                        measured_at: if draw(4) == 0 { Time::ZERO } else { now },
                        terms: Terms {
                            weight: [1e-100, 1e-50, 1.0, 1e100][draw(4)],
                            alpha: [1e-9, 0.1, 0.999_999_999][draw(3)],
                            beta: [0.0, 0.2, 1.0][draw(3)],
                            minimum: rates[draw(8)],
                            maximum,
                            desired,
                            group: 0,
                        },
                        rtt: Duration::from_nanos([0, 10_000_000, u64::MAX][draw(3)]),
                        waiting: Some(Duration::from_nanos(u64::MAX)).filter(|_| draw(2) == 0),
                        start: rates[draw(8)],
                        standing: (!has_gtp || draw(3) > 0)
                            .then(|| MachineStanding { standing, taken: [0, tick, u64::MAX][draw(3)] }),
                        ..row(now, NOTHING)
                    };
                    machine.look(now, *member, at as u32, Some(&said).filter(|_| draw(10) > 0));
                }
            }
            let grants = machine.tick(now).to_vec();
            assert!(
                grants
                    .iter()
                    .all(|grant| grant.grant.expected.as_bps().is_finite() && grant.grant.target.as_bps().is_finite())
            );
            if has_gtp {
                continue;
            }
            // Rows 0 and 2 send.
            for (place, capacity) in [send, receive].into_iter().enumerate() {
                let of_it = grants.iter().filter(|grant| grant.row as usize % 2 == place);
                let sum: f64 = of_it.map(|grant| grant.grant.expected.as_bps()).sum();
                assert!(sum <= 1.021 * capacity.as_bps(), "{trial}, {tick}: {sum:e} of {capacity:?}");
            }
        }
    }
}
