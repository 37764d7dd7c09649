//! A daemon at its socket, with processes that have no network: versions, joins and segments, and misuse. How it shares
//! is tested in virtual time, in `src/ticker/tests`.

#![allow(non_snake_case, missing_docs)]

mod guest;
mod hostile_guests;

use std::path::PathBuf;

use fairwave_daemon::{Daemon, Settings};
use fairwave_host::control_socket::{CONTROL_VERSION, ControlError, ControlStream, Question, monotonic_ns};
use fairwave_node::CardCapacity;
use fairwave_table::VERSION;
use fairwave_testing::wait_for;
use fairwave_units::{Duration, Rate};

use guest::{Guest, connect, join};

/// A machine of 700 Mb/s each way whose daemon ticks every 5 ms, in a separate directory.
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
fn control_socket__refuses_other_versions_and_other_clocks() {
    let world = World::new();
    let ask = |question: &Question| {
        let refused = connect(&world.socket()).join(question).unwrap_err();
        let ControlError::Refused(why) = refused else { panic!("{refused}") };
        why
    };
    let join =
        |version: u32, layout: u64, clock_ns: u64| Question::Join { version, layout, clock_ns, command: String::new() };
    assert!(ask(&join(CONTROL_VERSION + 1, VERSION, monotonic_ns())).contains("update both to the same version"));
    assert!(ask(&join(CONTROL_VERSION, VERSION + 1, monotonic_ns())).contains("update both to the same version"));
    assert!(ask(&join(CONTROL_VERSION, VERSION, monotonic_ns() + 3_600_000_000_000)).contains("time namespace"));
    assert!(ask(&Question::More).contains("the process has not joined"));
    wait_for("all four are counted", || world.daemon().snapshot().counts.refused_processes == 4);
}

#[test]
fn socket__of_a_killed_daemon_is_taken_over_and_one_that_lives_is_not() {
    let mut world = World::new();
    let error = Daemon::start(world.settings()).err().unwrap().to_string();
    assert!(error.contains("a daemon is already listening"), "{error}");
    world.stop();
    assert!(!world.socket().exists());
    drop(std::os::unix::net::UnixListener::bind(world.socket()).unwrap());
    assert!(matches!(ControlStream::connect(&world.socket()), Err(ControlError::Nobody { .. })));
    world.start();
    world.come().is_served();
}

#[test]
fn segments__come_until_the_user_has_as_many_rows_as_it_may() {
    let world = World::new();
    let mut guest = world.come();
    let mut more = 0;
    let why = loop {
        match guest.stream.join(&Question::More) {
            Ok(_) => more += 1,
            Err(error) => break error.to_string(),
        }
    };
    // 4096 rows of a user / 256 a segment.
    assert_eq!(more, 16, "{why}");
    assert!(why.contains("a user can have at most 4096 sessions"), "{why}");
    // It goes on with what it has.
    guest.is_served();
    let mut again = connect(&world.socket());
    let _two = again.join(&join()).unwrap();
    assert!(again.join(&join()).unwrap_err().to_string().contains("the process has already joined"));
}
