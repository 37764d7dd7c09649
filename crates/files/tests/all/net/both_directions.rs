//! Files through what networks do: all of it at once, in both directions.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fairwave_files::{Ended, GetOptions, PutOptions, Share, ShareOptions, Transfer, get, put};
use fairwave_testing::{Deadline, LIMIT};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng;

use crate::net::hosts::{Hosts, dedicated};
use fairwave_wan::{Way, address, device};

const CAPACITY_MBPS: f64 = 40.0;
const PATIENCE: fairwave_units::Duration = fairwave_units::Duration::from_secs(LIMIT.as_secs());

/// A file that takes some seconds, and some small ones.
fn plant(root: &Path) {
    let mut chance = Pcg64Mcg::new(5);
    fs::create_dir_all(root.join("small")).expect("there is room");
    let mut write = |path: &str, bytes: usize| {
        let mut content = vec![0; bytes];
        chance.fill_bytes(&mut content);
        fs::write(root.join(path), content).expect("there is room");
    };
    write("large", 14_000_000);
    for number in 0..50 {
        write(&format!("small/{number}"), 100 * number);
    }
}

fn assert_same(one: &Path, other: &Path) {
    for name in ["large".to_owned()].into_iter().chain((0..50).map(|number| format!("small/{number}"))) {
        let (one, other) = (fs::read(one.join(&name)), fs::read(other.join(&name)));
        assert!(one.expect("it was written") == other.expect("it came"), "{name} differs");
    }
}

/// A blackhole of 1 s, a new address, smaller packets, and losses all the time, while a transfer runs.
fn disturb(hosts: &Hosts, transfer: &Transfer, is_ipv6: bool) {
    let way = Way {
        delay: Duration::from_millis(10),
        loss: 0.005,
        duplicate: 0.005,
        late: 0.02,
        late_by: Duration::from_millis(8),
        ..Way::default()
    };
    hosts.relay.set_both(0, way);
    let reach = |bytes: u64| {
        let deadline = Deadline::new();
        while transfer.progress().bytes_done < bytes {
            deadline.check(&format!("{bytes} bytes: {:?}", transfer.progress()));
            std::thread::sleep(Duration::from_millis(2));
        }
    };
    reach(1);
    hosts.relay.set_both(0, Way { is_blackhole: true, ..way });
    // No event ends this: nothing arrives anywhere.
    std::thread::sleep(Duration::from_secs(1));
    hosts.relay.set_both(0, way);
    reach(5_000_000);
    let (space, prefix) = (&hosts.spaces[0], if is_ipv6 { 128 } else { 32 });
    space.add_address(&device(0), address(0, 2, is_ipv6), prefix).expect("root may");
    space.remove_address(&device(0), address(0, 1, is_ipv6), prefix).expect("it is there");
    reach(9_000_000);
    hosts.relay.set_both(0, Way { mtu: Some(1300), ..way });
}

fn assert_done(transfer: &Transfer) {
    let outcome = transfer.wait(Some(PATIENCE)).unwrap_or_else(|| panic!("stuck: {:?}", transfer.progress()));
    assert_eq!(outcome.ended, Ended::Done);
    assert!(outcome.is_complete(), "{:?}", outcome.failed);
}

#[test]
fn get__brings_files_whole_whatever_the_network_does() {
    let Some(_turn) = crate::net::world() else { return };
    let home = tempfile::tempdir().expect("there is room");
    let (tree, destination) = (home.path().join("tree"), home.path().join("destination"));
    plant(&tree);
    let hosts = Hosts::new(2, 41, Duration::from_millis(10));
    let share = Arc::new(Share::new(vec![tree.clone()], ShareOptions::default()).expect("it is there"));
    let config = dedicated(CAPACITY_MBPS);
    let (_server, ticket) = hosts.serve(1, &config, true, share.accept());
    let client = hosts.endpoint(0, &config);
    let options = GetOptions { destination: destination.clone(), ..GetOptions::default() };
    let transfer = get(&client, &ticket, options).expect("the giver is there");
    disturb(&hosts, &transfer, true);
    assert_done(&transfer);
    assert_same(&tree, &destination.join("tree"));
}

#[test]
fn put__brings_files_whole_whatever_the_network_does() {
    let Some(_turn) = crate::net::world() else { return };
    let home = tempfile::tempdir().expect("there is room");
    let (tree, destination) = (home.path().join("tree"), home.path().join("destination"));
    plant(&tree);
    fs::create_dir(&destination).expect("there is room");
    let hosts = Hosts::new(2, 42, Duration::from_millis(10));
    let options = ShareOptions { writable_into: Some(destination.clone()), ..ShareOptions::default() };
    let share = Arc::new(Share::new(Vec::new(), options).expect("it is there"));
    let config = dedicated(CAPACITY_MBPS);
    let (_server, ticket) = hosts.serve(1, &config, false, share.accept());
    let client = hosts.endpoint(0, &config);
    let transfer =
        put(&client, &ticket, std::slice::from_ref(&tree), &PutOptions::default()).expect("the taker is there");
    disturb(&hosts, &transfer, false);
    assert_done(&transfer);
    assert_same(&tree, &destination.join("tree"));
}
