//! Attacks of a process on the memory that it shares with the daemon, and bad memory handed by a daemon to a process:
//! no process dies of it, and no other rows change.

#![allow(non_snake_case)]
#![cfg(target_os = "linux")]

use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsFd, OwnedFd};

use fairwave_schemes::Terms;
use fairwave_table::{
    DaemonSegment, GrantRow, GrantState, ProcessRow, ProcessSegment, ROWS, RowError, SegmentMemory, TableError,
    TickReport,
};
use fairwave_units::{Bytes, Duration, Rate, Time};
use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags};
use rustix::io::{Errno, FdFlags};

const ROWS_BYTES: u64 = 65_536;

fn row(measured: f64) -> ProcessRow {
    ProcessRow {
        generation: 0,
        session: 7,
        receives: false,
        measured: Rate::mbps(measured),
        measured_at: Time::from_nanos(1),
        terms: Terms::default(),
        rtt: Duration::from_millis(20),
        waiting: None,
        start: Rate::ZERO,
        path: None,
        remote: None,
        limited_by: 0,
        peer: IpAddr::V4(Ipv4Addr::LOCALHOST),
        wire_bytes: Bytes::ZERO,
        lost: 0,
        holding: None,
    }
}

fn grant(generation: u16, mbps: f64) -> GrantRow {
    let expected = Rate::mbps(mbps);
    GrantRow { generation, state: GrantState::Granted, expected, target: expected }
}

fn tick_report(tick: u64) -> TickReport {
    TickReport { tick, interval: Duration::from_millis(20), ..TickReport::default() }
}

/// Another descriptor of the same memory.
fn again(fd: &OwnedFd) -> OwnedFd {
    fd.try_clone().unwrap()
}

fn segment() -> (DaemonSegment, SegmentMemory, ProcessSegment) {
    let (daemon, memory) = DaemonSegment::make().unwrap();
    let handed = SegmentMemory { rows: again(&memory.rows), grants: again(&memory.grants) };
    (daemon, memory, ProcessSegment::map(handed).unwrap())
}

#[test]
fn rows__go_one_way_and_grants_the_other() {
    let (daemon, _, mut process) = segment();
    assert_eq!(daemon.used().count(), 0);
    let [first, second] = [(); 2].map(|()| process.take_row().unwrap());
    assert!(process.set_row(first, &row(10.0)) && process.set_row(second, &row(20.0)));
    assert_eq!(daemon.used().collect::<Vec<_>>(), [first.at, second.at]);
    let read = daemon.row(second.at).unwrap();
    assert_eq!((read.measured, read.generation), (Rate::mbps(20.0), second.generation));
    assert_eq!((process.grant(second), process.tick_report(), process.pulse()), (None, None, 0));
    daemon.set_grant(second.at, &grant(second.generation, 23.0)).unwrap();
    daemon.set_tick_report(&tick_report(1));
    assert_ne!(process.pulse(), 0);
    assert_eq!(
        (process.tick_report(), process.grant(second)),
        (Some(tick_report(1)), Some(grant(second.generation, 23.0)))
    );
    assert_eq!(process.grant(first), None);
}

#[test]
fn take_row__of_a_session_that_is_over_is_not_given_its_grant() {
    let (daemon, _, mut process) = segment();
    let old = process.take_row().unwrap();
    process.set_row(old, &row(10.0));
    daemon.set_grant(old.at, &grant(old.generation, 90.0)).unwrap();
    assert!(process.give_back(old) && !process.give_back(old));
    assert_eq!((daemon.used().count(), daemon.row(old.at)), (0, Err(RowError::Free)));
    let new = process.take_row().unwrap();
    assert_eq!(new.at, old.at);
    assert_eq!(process.grant(new), None, "the grant is for the session before");
    assert!(!process.set_row(old, &row(1.0)), "the row is another's");
}

#[test]
fn take_row__gives_each_row_once() {
    let (daemon, _, mut process) = segment();
    let mut places: Vec<usize> = std::iter::from_fn(|| process.take_row()).map(|place| place.at).collect();
    places.sort_unstable();
    assert_eq!(places, (0..ROWS).collect::<Vec<_>>());
    assert_eq!(daemon.row(ROWS), Err(RowError::NoRow));
    assert_eq!(daemon.row(usize::MAX), Err(RowError::NoRow));
    assert_eq!(daemon.set_grant(ROWS, &grant(0, 1.0)), Err(RowError::NoRow));
}

/// Without the seals the daemon's next look would raise SIGBUS, and end it.
#[test]
fn process__cannot_change_the_size_of_what_the_daemon_maps() {
    let (daemon, memory, mut process) = segment();
    let place = process.take_row().unwrap();
    process.set_row(place, &row(10.0));
    for fd in [&memory.rows, &memory.grants] {
        for bytes in [0, 4096, ROWS_BYTES * 2] {
            assert_eq!(rustix::fs::ftruncate(fd, bytes), Err(Errno::PERM), "{bytes}");
        }
        assert_eq!(rustix::fs::fcntl_add_seals(fd, SealFlags::WRITE), Err(Errno::PERM));
        // Opening a descriptor again does not bypass the seal.
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(fd));
        let opened = std::fs::OpenOptions::new().write(true).open(&path);
        if let Ok(file) = opened {
            assert_eq!(rustix::fs::ftruncate(&file, 0), Err(Errno::PERM));
        }
        assert!(std::fs::OpenOptions::new().write(true).truncate(true).open(&path).is_err());
    }
    assert_eq!(daemon.row(place.at).map(|row| row.measured), Ok(Rate::mbps(10.0)));
}

/// A hole gives its pages back to the system: what the daemon reads there is zeros, and no fault.
#[test]
fn process__that_punches_a_hole_has_no_rows() {
    let (daemon, memory, mut process) = segment();
    let place = process.take_row().unwrap();
    process.set_row(place, &row(10.0));
    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    rustix::fs::fallocate(&memory.rows, hole, 0, ROWS_BYTES).unwrap();
    assert_eq!((daemon.used().count(), daemon.row(place.at)), (0, Err(RowError::Free)));
    // And it cannot do that to what the daemon writes.
    assert_eq!(rustix::fs::fallocate(&memory.grants, hole, 0, ROWS_BYTES), Err(Errno::PERM));
}

#[test]
fn process__cannot_write_grants() {
    let (daemon, memory, process) = segment();
    assert_eq!(rustix::io::pwrite(&memory.grants, &[255; 8], 256), Err(Errno::PERM));
    // A mapping for reading is all that it can have; `ProcessSegment` has no other.
    let (_other, others) = DaemonSegment::make().unwrap();
    let swapped = SegmentMemory { rows: again(&memory.grants), grants: others.grants };
    let error = ProcessSegment::map(swapped).err().unwrap();
    assert!(matches!(error, TableError::System { errno: Errno::PERM, .. }), "{error}");
    daemon.set_tick_report(&tick_report(3));
    assert_eq!(process.tick_report().map(|tick_report| tick_report.tick), Some(3));
}

#[test]
fn process__that_writes_rubbish_is_read_in_finite_time_and_as_rows_or_errors() {
    let (daemon, memory, _process) = segment();
    let seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = seed;
    for round in 0..200 {
        let bytes: Vec<u8> = (0..ROWS_BYTES)
            .map(|_| {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                (random >> 56) as u8
            })
            .collect();
        rustix::io::pwrite(&memory.rows, &bytes, 0).unwrap();
        assert!(daemon.used().all(|at| at < ROWS));
        for at in 0..ROWS {
            if let Ok(row) = daemon.row(at) {
                assert!(row.measured.as_bps().is_finite() && row.terms.weight > 0.0, "round {round}: {row:?}");
            }
        }
    }
    // All ones: every sequence is odd, every row is used.
    rustix::io::pwrite(&memory.rows, &vec![255; ROWS_BYTES as usize], 0).unwrap();
    assert_eq!(daemon.used().count(), ROWS);
    assert!((0..ROWS).all(|at| daemon.row(at) == Err(RowError::Busy)));
}

/// As a process leaves it that is killed between its first store and its last.
#[test]
fn process__that_dies_in_the_middle_of_a_write_leaves_a_row_that_nobody_waits_for() {
    let (daemon, memory, mut process) = segment();
    let [whole, broken] = [(); 2].map(|()| process.take_row().unwrap());
    assert!(process.set_row(whole, &row(10.0)) && process.set_row(broken, &row(20.0)));
    // Its label, its used rows, and the rows before it; a row is 192 bytes, its sequence in front.
    let at = (32 * 8 + broken.at * 192) as u64;
    let mut sequence = [0; 8];
    rustix::io::pread(&memory.rows, &mut sequence, at).unwrap();
    let odd = u64::from_ne_bytes(sequence) + 1;
    rustix::io::pwrite(&memory.rows, &odd.to_ne_bytes(), at).unwrap();
    drop(process);
    assert_eq!(daemon.row(broken.at), Err(RowError::Busy));
    assert_eq!(daemon.row(whole.at).map(|row| row.measured), Ok(Rate::mbps(10.0)));
}

#[test]
fn map__of_what_is_no_segment_says_what_it_is() {
    let map = |rows: OwnedFd, grants: OwnedFd| ProcessSegment::map(SegmentMemory { rows, grants }).err().unwrap();
    let (_daemon, memory) = DaemonSegment::make().unwrap();
    let memfd = |bytes: u64, seals: SealFlags| {
        let fd = rustix::fs::memfd_create("some", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        rustix::fs::ftruncate(&fd, bytes).unwrap();
        rustix::fs::fcntl_add_seals(&fd, seals).unwrap();
        fd
    };
    let sealed = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
    let (pipe, _end) = rustix::pipe::pipe().unwrap();
    assert_eq!(map(pipe, again(&memory.grants)), TableError::NoMemory("process's"));
    let file: OwnedFd = std::fs::File::open("/proc/self/exe").unwrap().into();
    assert_eq!(map(file, again(&memory.grants)), TableError::NoMemory("process's"));
    let open = memfd(ROWS_BYTES, SealFlags::SHRINK);
    assert_eq!(map(open, again(&memory.grants)), TableError::NotSealed("process's"));
    let error = map(memfd(4096, sealed), again(&memory.grants));
    assert_eq!(error, TableError::Size { what: "process's", bytes: 4096, expected: ROWS_BYTES });
    let error = map(again(&memory.rows), memfd(ROWS_BYTES, sealed));
    assert_eq!(error, TableError::NotSealed("daemon's"), "somebody else might write grants");
    // Sealed, of the right size, and full of something else.
    let error = map(memfd(ROWS_BYTES, sealed), again(&memory.grants));
    assert_eq!(error, TableError::Label("process's"));
    let other = memfd(ROWS_BYTES, SealFlags::empty());
    let words: Vec<u8> = [u64::from_be_bytes(*b"fairwave"), 99].iter().flat_map(|word| word.to_ne_bytes()).collect();
    rustix::io::pwrite(&other, &words, 0).unwrap();
    rustix::fs::fcntl_add_seals(&other, sealed).unwrap();
    let error = map(other, again(&memory.grants));
    assert_eq!(error, TableError::Version(99));
    assert!(error.to_string().starts_with("unsupported table layout 99"), "{error}");
}

#[test]
fn make__hands_over_descriptors_that_a_child_does_not_inherit() {
    let (_daemon, memory) = DaemonSegment::make().unwrap();
    for fd in [memory.rows, memory.grants] {
        assert!(rustix::io::fcntl_getfd(fd.as_fd()).unwrap().contains(FdFlags::CLOEXEC));
    }
}

/// A process writes its rows and a daemon its grants at once, each as fast as it can: neither sees a mixture.
#[test]
fn segment__of_two_threads_at_once_has_whole_rows() {
    let (daemon, _, mut process) = segment();
    let place = process.take_row().unwrap();
    process.set_row(place, &row(0.0));
    let rounds = 20_000_u32;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 1..=rounds {
                let measured = Rate::nearest_bps(f64::from(round));
                let session = u64::from(round) * 3;
                process.set_row(place, &ProcessRow { measured, session, ..row(0.0) });
            }
        });
        let mut last = 0.0;
        while last < f64::from(rounds) {
            if let Ok(row) = daemon.row(place.at) {
                let measured = row.measured.as_bps();
                assert!(measured >= last, "an older row came back");
                assert!(measured == 0.0 || row.session as f64 == measured * 3.0, "{row:?}");
                last = measured;
            }
        }
    });
}
