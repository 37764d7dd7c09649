//! A daemon with processes that are no network: who shares what, who comes and goes, and who means harm.

#![allow(non_snake_case, missing_docs)]

mod guest;
mod hostile;

use std::path::PathBuf;

use fairwave_daemon::{Daemon, Settings, ShownState, ask};
use fairwave_host::door::{DOOR_VERSION, DoorError, DoorStream, Question, monotonic_ns};
use fairwave_proto::CardCapacity;
use fairwave_table::{GrantState, VERSION};
use fairwave_units::{Duration, Rate};

use guest::{Guest, join, near, until};

/// A machine of 700 Mb/s each way whose daemon ticks each 5 ms, in a directory of its own.
struct World {
    place: tempfile::TempDir,
    daemon: Option<Daemon>,
}

impl World {
    fn new() -> Self {
        let mut world = Self { place: tempfile::tempdir().unwrap(), daemon: None };
        world.start();
        world
    }

    fn socket(&self) -> PathBuf {
        self.place.path().join("d.sock")
    }

    fn settings(&self) -> Settings {
        let capacity = Some(Rate::mbps(700.0));
        let everything = Some(CardCapacity { send: capacity, receive: capacity });
        Settings { interval: Duration::from_millis(5), everything, ..Settings::at(self.socket()) }
    }

    fn start(&mut self) {
        self.daemon = Some(Daemon::start(self.settings()).unwrap());
    }

    fn stop(&mut self) {
        self.daemon = None;
    }

    fn come(&self) -> Guest {
        Guest::come(&self.socket())
    }

    fn daemon(&self) -> &Daemon {
        self.daemon.as_ref().unwrap()
    }
}

#[test]
fn sessions__of_two_processes_have_a_third_each() {
    let world = World::new();
    let (mut one, mut other) = (world.come(), world.come());
    one.open(0.0);
    one.open(10.0);
    other.open(600.0);
    // 233.33 = 700 / 3
    until(&mut [&mut one, &mut other], |guests| {
        near(&guests[0].rates(), &[233.33; 2], 0.03) && near(&guests[1].rates(), &[233.33], 0.03)
    });
    // One leaves: its share is taken up.
    other.close(0);
    until(&mut [&mut one, &mut other], |guests| near(&guests[0].rates(), &[350.0; 2], 0.03));
    // A process ends without a word.
    other.open(0.0);
    until(&mut [&mut one, &mut other], |guests| near(&guests[1].rates(), &[233.33], 0.03));
    drop(other);
    until(&mut [&mut one], |guests| near(&guests[0].rates(), &[350.0; 2], 0.03));
}

#[test]
fn sessions__that_want_less_leave_it_to_others_and_each_way_has_its_own_capacity() {
    let world = World::new();
    let mut one = world.come();
    for rate in [0.0, 0.0, 0.0] {
        one.open(rate);
    }
    one.sessions[0].limit = 100.0;
    one.sessions[2].receives = true;
    until(&mut [&mut one], |guests| near(&guests[0].rates(), &[100.0, 600.0, 700.0], 0.03));
    let shown = ask(&world.socket()).unwrap();
    let of = |receives: bool| shown.nodes.iter().find(|node| node.receives == receives).unwrap();
    assert_eq!((of(false).sessions, of(true).sessions), (2, 1));
    assert_eq!((of(false).capacity_bps, shown.sessions.len(), shown.users.len()), (7e8, 3, 1));
    assert!(of(false).gap_to_max_min.unwrap() < 0.05, "{shown:?}");
    assert!(shown.sessions.iter().all(|row| row.state == ShownState::Shares && row.command == "guest"), "{shown:?}");
}

#[test]
fn daemon__that_comes_back_hands_out_no_more_than_its_processes_had() {
    let mut world = World::new();
    let (mut one, mut other) = (world.come(), world.come());
    one.open(0.0);
    other.open(0.0);
    other.open(0.0);
    until(&mut [&mut one, &mut other], |guests| near(&guests[1].rates(), &[233.33; 2], 0.03));
    let before: Vec<f64> = [one.rates(), other.rates()].concat();
    world.stop();
    world.start();
    assert!(world.daemon().snapshot().is_grace, "a tick or two of two seconds are over");
    // They come back one after the other; somebody new comes as well.
    let come_back = |rates: &[f64]| {
        let mut guest = world.come();
        for rate in rates {
            guest.open(*rate);
        }
        guest
    };
    let mut one = come_back(&before[..1]);
    let mut new = come_back(&[0.0]);
    let all = |guests: &[&mut Guest]| guests.iter().flat_map(|guest| guest.rates()).sum::<f64>();
    let (mut ticks, mut largest) = (0, 0.0_f64);
    until(&mut [&mut one, &mut new], |guests| {
        ticks += 1;
        // Those who are away go on with what they had.
        largest = largest.max(all(guests) + before[1] + before[2]);
        ticks > 20
    });
    assert!(largest <= 1.02 * 700.0, "{largest} Mb/s at once");
    assert_eq!(new.rates(), [0.0]);
    let mut other = come_back(&before[1..]);
    until(&mut [&mut one, &mut new, &mut other], |guests| {
        largest = largest.max(all(guests));
        near(&[guests[0].rates(), guests[1].rates(), guests[2].rates()].concat(), &[175.0; 4], 0.03)
    });
    // What a newcomer gets others have given up a tick later.
    assert!(largest <= 1.05 * 700.0, "{largest} Mb/s at once");
}

#[test]
fn door__refuses_other_versions_and_other_clocks() {
    let world = World::new();
    let ask = |question: &Question| {
        let refused = DoorStream::connect(&world.socket()).unwrap().ask_for_seat(question).unwrap_err();
        let DoorError::Refused(why) = refused else { panic!("{refused}") };
        why
    };
    let join =
        |version: u32, layout: u64, clock_ns: u64| Question::Join { version, layout, clock_ns, command: String::new() };
    assert!(ask(&join(DOOR_VERSION + 1, VERSION, monotonic_ns())).contains("want to be of one version"));
    assert!(ask(&join(DOOR_VERSION, VERSION + 1, monotonic_ns())).contains("want to be of one version"));
    assert!(ask(&join(DOOR_VERSION, VERSION, monotonic_ns() + 3_600_000_000_000)).contains("time namespace"));
    assert!(ask(&Question::More).contains("does not take part"));
    assert_eq!(world.daemon().snapshot().counts.refused_processes, 4);
}

#[test]
fn socket__of_a_killed_daemon_is_taken_over_and_one_that_lives_is_not() {
    let mut world = World::new();
    let error = Daemon::start(world.settings()).err().unwrap().to_string();
    assert!(error.contains("a daemon listens there already"), "{error}");
    world.stop();
    assert!(!world.socket().exists());
    drop(std::os::unix::net::UnixListener::bind(world.socket()).unwrap());
    assert!(matches!(DoorStream::connect(&world.socket()), Err(DoorError::Nobody { .. })));
    world.start();
    world.come();
}

#[test]
fn segments__come_until_the_user_has_as_many_rows_as_it_may() {
    let world = World::new();
    let mut guest = world.come();
    let mut more = 0;
    let why = loop {
        match guest.stream.ask_for_seat(&Question::More) {
            Ok(_) => more += 1,
            Err(error) => break error.to_string(),
        }
    };
    // 4096 rows of a user / 256 a segment.
    assert_eq!(more, 16, "{why}");
    assert!(why.contains("a user has 4096 sessions at the most"), "{why}");
    // It goes on with what it has.
    guest.open(0.0);
    until(&mut [&mut guest], |guests| guests[0].sessions[0].state == Some(GrantState::Granted));
    let mut again = DoorStream::connect(&world.socket()).unwrap();
    let _two = again.ask_for_seat(&join(&world.socket())).unwrap();
    assert!(again.ask_for_seat(&join(&world.socket())).unwrap_err().to_string().contains("takes part already"));
}
