//! Beside traffic that asks nobody.

use super::*;

/// Runs a world whose card carries `mbps` of other traffic, seen each tick.
fn run_beside(world: &mut World, mbps: f64, span: Duration, bytes: &mut (u64, u64)) {
    let end = world.now.saturating_add(span);
    while world.now < end {
        let interval = world.machine.interval().as_secs_f64();
        let own = world.rates().iter().sum::<f64>() * 1e6 / 8.0 * interval;
        *bytes = (bytes.0 + (own + mbps * 1e6 / 8.0 * interval) as u64, bytes.1 + own as u64);
        world.machine.see_card(world.now, CARD, Direction::Sending, bytes.0, bytes.1);
        world.tick();
    }
}

#[test]
fn see_card__other_traffic_is_one_group_more() {
    let mut world = World::new(ShareBy::User);
    for user in 1..=2 {
        let member = world.member(user);
        world.open(member, 0);
    }
    let mut bytes = (0, 0);
    // Without a weight it is not looked at.
    run_beside(&mut world, 400.0, SETTLED, &mut bytes);
    assert_eq!(world.rates(), [350.0; 2]);
    assert_eq!(world.machine.other_traffic(CARD, Direction::Sending), None);
    // It wants more than its third of 700.
    world.machine.set_yield(Some(1.0));
    run_beside(&mut world, 400.0, SETTLED, &mut bytes);
    let near = |rates: Vec<f64>, expected: f64| {
        assert!(rates.iter().all(|rate| (rate - expected).abs() < 0.01 * expected), "{rates:?} {expected}");
    };
    near(world.rates(), 700.0 / 3.0);
    let other = world.machine.other_traffic(CARD, Direction::Sending).unwrap();
    assert!((other.as_mbps() - 400.0).abs() < 1.0, "{other}");
    // Of weight one half a fifth of 700 is its own.
    world.machine.set_yield(Some(0.5));
    run_beside(&mut world, 400.0, SETTLED, &mut bytes);
    near(world.rates(), 280.0);
    // 100, and a step of a tenth towards what the others leave of its share: 700 - 2 x 290 or so.
    world.machine.set_yield(Some(1.0));
    run_beside(&mut world, 100.0, SETTLED, &mut bytes);
    assert!(world.rates().iter().all(|rate| (285.0..300.0).contains(rate)), "{:?}", world.rates());
    // The other traffic ends, and so does its part; an invalid weight gives it no part at all.
    run_beside(&mut world, 0.0, SETTLED, &mut bytes);
    near(world.rates(), 350.0);
    for weight in [Some(0.0), Some(f64::NAN), Some(f64::INFINITY), None] {
        world.machine.set_yield(weight);
        run_beside(&mut world, 400.0, SETTLED, &mut bytes);
        near(world.rates(), 350.0);
    }
}

/// Own rate on a card of 700 Mb/s that is full of TCP, which takes all that is left, and of which the card counts
/// `missed_percent` less.
fn run_full(missed_percent: f64, ask: fn(&mut MachineRow)) -> f64 {
    let mut world = World::new(ShareBy::User);
    let member = world.member(1);
    let session = world.open(member, 0);
    world.sessions[session].ask = ask;
    world.machine.set_yield(Some(1.0));
    let mut bytes = (0.0, 0.0);
    // The rate at which it sends until the next tick; TCP that found its way in before has a third of the card.
    world.sessions[session].rate = 450.0;
    for _ in 0..500 {
        let (own, interval) = (world.rates()[0].min(CAPACITY), world.machine.interval().as_secs_f64());
        let of_mbps = |mbps: f64| mbps * 1e6 / 8.0 * interval;
        bytes = (bytes.0 + of_mbps(CAPACITY) * (1.0 - missed_percent / 100.0), bytes.1 + of_mbps(own));
        world.machine.see_card(world.now, CARD, Direction::Sending, bytes.0 as u64, bytes.1 as u64);
        world.tick();
    }
    world.rates()[0]
}

#[test]
fn see_card__headers_that_a_card_counts_once_for_many_packets_are_no_loss_to_other_traffic() {
    let waits: fn(&mut MachineRow) = |row| row.waiting = Some(Duration::from_millis(5));
    for missed in [0.0, 2.0, 4.0] {
        let own = run_full(missed, waits);
        assert!((own - 350.0).abs() < 4.0, "{missed} %: {own}");
    }
    // If nothing waits, a full card cannot be detected.
    let own = run_full(2.0, |_| {});
    assert!(own > 380.0, "{own}");
}
