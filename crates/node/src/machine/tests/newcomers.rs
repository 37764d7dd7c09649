//! Sessions that come.

use super::*;

/// With sessions that have their parts at their first tick.
fn world() -> World {
    let mut world = World::new(ShareBy::User);
    world.machine.config.fair_start = true;
    world
}

fn start(world: &World) -> f64 {
    (world.machine.start(CARD, Direction::Sending).as_mbps() * 1e3).round() / 1e3
}

#[test]
fn start__is_a_process_s_part_of_what_is_granted_to_nobody() {
    let mut world = world();
    let members = [1, 1, 2].map(|user| world.member(user));
    world.tick();
    // A part is left to a process that comes.
    assert_eq!(start(&world), 700.0 / 4.0);
    world.open(members[0], 0);
    world.sessions[0].limit = 100.0;
    world.run_for(Duration::from_secs(1));
    // It uses 100 of 700, and may go on to 160 = 100 + 0.1 x 600.
    assert_eq!(start(&world), (700.0 - 160.0) / 4.0);
    world.sessions[0].limit = f64::INFINITY;
    world.run_for(SETTLED);
    assert_eq!(start(&world), 0.0);
    // There is no such node.
    assert_eq!(world.machine.start(CARD, Direction::Receiving), Rate::ZERO);
}

#[test]
fn tick__sessions_that_come_have_their_parts_at_once_and_the_others_make_room() {
    let mut world = world();
    let [one, other] = [1, 2].map(|user| world.member(user));
    world.open(one, 0);
    world.run_for(SETTLED);
    assert_eq!(world.rates(), [700.0]);
    for row in 0..10 {
        world.open(other, row);
    }
    // One that can use little has no more than that.
    world.sessions[10].ask = |row| row.terms.desired = Some(Rate::mbps(5.0));
    world.tick();
    // 350 = 700 / 2 a user, and 35 = 350 / 10. The tenth's 30 are found by steps: 0.1 x 0.2 x (350 - 5) / 9 = 0.767.
    assert_eq!(world.rates()[1..10], [35.767; 9]);
    assert!(world.sum() <= 700.0 * 1.1, "{}", world.sum());
    // Without, each starts by a step.
    let mut world = World::new(ShareBy::Session);
    for user in 0..2 {
        let member = world.member(1);
        world.open(member, 0);
        world.run_for(Duration::from_millis(if user == 0 { 3000 } else { 20 }));
    }
    // 35 = 0.1 x 700 / 2
    assert_eq!(world.rates()[1], 35.0);
}
