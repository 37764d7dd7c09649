//! Shares of processes that come, go, and outlive the daemon.

use super::guest::{Guest, Table, near};
use fairwave_host::machine::ShownState;

#[test]
fn sessions__of_two_processes_have_a_third_each() {
    let mut table = Table::new();
    let (mut one, mut other) = (table.come(), table.come());
    one.open(0.0);
    one.open(10.0);
    other.open(600.0);
    // 233.33 = 700 / 3
    table.until(&mut [&mut one, &mut other], |guests| {
        near(&guests[0].rates(), &[233.33; 2], 0.03) && near(&guests[1].rates(), &[233.33], 0.03)
    });
    // A session closes: its share is taken up.
    other.close(0);
    table.until(&mut [&mut one, &mut other], |guests| near(&guests[0].rates(), &[350.0; 2], 0.03));
    // A process ends without a word.
    other.open(0.0);
    table.until(&mut [&mut one, &mut other], |guests| near(&guests[1].rates(), &[233.33], 0.03));
    table.leave(other);
    table.until(&mut [&mut one], |guests| near(&guests[0].rates(), &[350.0; 2], 0.03));
}

#[test]
fn sessions__that_want_less_leave_it_to_others_and_each_way_has_its_own_capacity() {
    let mut table = Table::new();
    let mut one = table.come();
    for _ in 0..3 {
        one.open(0.0);
    }
    one.sessions[0].limit = 100.0;
    one.sessions[2].receives = true;
    table.until(&mut [&mut one], |guests| near(&guests[0].rates(), &[100.0, 600.0, 700.0], 0.03));
    let shown = table.snapshot();
    let of = |receives: bool| shown.nodes.iter().find(|node| node.receives == receives).unwrap();
    assert_eq!((of(false).sessions, of(true).sessions), (2, 1));
    assert_eq!((of(false).capacity_bps, shown.sessions.len(), shown.users.len()), (7e8, 3, 1));
    assert!(of(false).gap_to_max_min.unwrap() < 0.05, "{shown:?}");
    assert!(shown.sessions.iter().all(|row| row.state == ShownState::Shares && row.command == "guest"), "{shown:?}");
}

#[test]
fn daemon__that_comes_back_hands_out_no_more_than_its_processes_had() {
    let mut table = Table::new();
    let (mut one, mut other) = (table.come(), table.come());
    one.open(0.0);
    other.open(0.0);
    other.open(0.0);
    table.until(&mut [&mut one, &mut other], |guests| near(&guests[1].rates(), &[233.33; 2], 0.03));
    let before: Vec<f64> = [one.rates(), other.rates()].concat();
    table.restart();
    let come_back = |table: &mut Table, rates: &[f64]| {
        let mut guest = table.come();
        for rate in rates {
            guest.open(*rate);
        }
        guest
    };
    // One process returns, and a new one joins.
    let (mut one, mut new) = (come_back(&mut table, &before[..1]), come_back(&mut table, &[0.0]));
    let sum = |guests: &[&Guest]| guests.iter().flat_map(|guest| guest.rates()).sum::<f64>();
    let mut largest = 0.0_f64;
    for _ in 0..40 {
        table.tick(&mut [&mut one, &mut new]);
        // The process that has not returned keeps its last grants.
        largest = largest.max(sum(&[&one, &new]) + before[1] + before[2]);
    }
    assert!(table.snapshot().is_grace, "40 ticks are 0.2 of 2 s");
    assert!(largest <= 1.02 * 700.0, "{largest} Mb/s at once");
    assert_eq!(new.rates(), [0.0]);
    let mut other = come_back(&mut table, &before[1..]);
    table.until(&mut [&mut one, &mut new, &mut other], |guests| {
        largest = largest.max(sum(&[&*guests[0], &*guests[1], &*guests[2]]));
        near(&[guests[0].rates(), guests[1].rates(), guests[2].rates()].concat(), &[175.0; 4], 0.03)
    });
    // The newcomer's part is what others gave up a tick before.
    assert!(largest <= 1.05 * 700.0, "{largest} Mb/s at once");
}
