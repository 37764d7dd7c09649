use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use fairwave_units::Bytes;

use super::super::roots::Roots;
use super::*;
use crate::collector::{Collected, Collector, as_nobody, open_place, tree};
use crate::format::blocks::BLOCK_BYTES;
use crate::loopback::{FAIR, Loopback, LoopbackPath, ROUGH};

const LASTS: std::time::Duration = std::time::Duration::from_secs(600);

/// A taker that requests nothing.
struct Nobody;

impl Handler for Nobody {}

struct Run {
    taken: Collected,
    outcome: Outcome,
}

/// Gives what is at a path to a collector; `then` happens between the list and the bytes.
fn give(path: &Path, way: LoopbackPath, then: impl FnOnce() + Send + 'static) -> Run {
    give_more(path, way, true, then)
}

fn give_more(path: &Path, way: LoopbackPath, wants_bytes: bool, then: impl FnOnce() + Send + 'static) -> Run {
    let ledger = Ledger::default();
    let roots = Roots::find(&[path.to_owned()]).unwrap();
    let source = GivingEnd::new(roots, [3; 16], Readers::start().unwrap(), ledger.clone());
    let (collector, taken) = Collector::new(wants_bytes, false, then);
    let mut loopback = Loopback::open(Box::new(source), Box::new(collector), true, way);
    let closed = loopback.run_out(LASTS);
    assert_eq!(closed, Some(CloseReason::Done), "{way:?}");
    let outcome = ledger.transfer().wait(Some(fairwave_units::Duration::ZERO)).expect("it is over");
    Run { taken: std::mem::take(&mut taken.lock().unwrap()), outcome }
}

fn edges() -> Vec<u64> {
    vec![0, 1, 1023, 70_000, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 0, 2 * BLOCK_BYTES + 5, 1, 0]
}

/// Asks for nothing by itself.
#[derive(Clone, Default)]
struct Mute(Arc<std::sync::Mutex<Option<Session>>>);

impl Handler for Mute {
    fn on_open(&mut self, session: &Session) {
        *self.0.lock().unwrap() = Some(session.clone());
    }
}

/// Each visitor of a server would have its own list.
#[test]
fn walk__lists_no_more_than_is_asked_for() {
    let place = tempfile::tempdir().unwrap();
    // Entries of some 130 bytes: 2.6 MB.
    for number in 0..20_000 {
        fs::write(place.path().join(format!("{number:0100}")), "").unwrap();
    }
    let ledger = Ledger::default();
    let roots = Roots::find(&[place.path().to_owned()]).unwrap();
    let source = GivingEnd::new(roots, [3; 16], Readers::start().unwrap(), ledger.clone());
    let mute = Mute::default();
    let mut loopback = Loopback::open(Box::new(source), Box::new(mute.clone()), true, FAIR);
    let known = || ledger.transfer().progress().files_known;
    let begin = Instant::now();
    while known() < 7000 {
        assert!(begin.elapsed() < LASTS, "nothing is listed");
    }
    for _ in 0..20 {
        std::thread::sleep(Duration::from_millis(10));
        // 1 MiB and a segment.
        assert!(known() < 10_000, "{} files", known());
    }
    mute.0.lock().unwrap().as_ref().unwrap().want(MANIFEST, 0..4 << 20);
    while known() < 20_000 {
        loopback.step();
        assert!(begin.elapsed() < LASTS, "the list does not go on");
    }
    loopback.cut();
}

#[test]
fn source__gives_files_of_all_lengths() {
    let place = tempfile::tempdir().unwrap();
    let (root, files) = tree(place.path(), &edges());
    let run = give(&root, FAIR, || {});
    assert!(run.taken.files == files);
    assert_eq!((run.outcome.ended, run.outcome.files_failed), (Ended::Done, 0));
    assert_eq!((run.outcome.files, run.outcome.bytes), (11, edges().iter().sum()));
}

#[test]
fn source__over_rough_ways() {
    for seed in [1, 2, 3] {
        let place = tempfile::tempdir().unwrap();
        let (root, files) = tree(place.path(), &[5, 0, 3000, BLOCK_BYTES + 1, 200, 0, 100_000]);
        let run = give(&root, LoopbackPath { seed, ..ROUGH }, || {});
        assert!(run.taken.files == files, "seed {seed}");
    }
}

#[test]
fn source__one_empty_file_and_one_empty_directory() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("empty"), "").unwrap();
    let run = give(&place.path().join("empty"), FAIR, || {});
    assert_eq!(run.taken.files, BTreeMap::from([(b"empty".to_vec(), vec![])]));
    fs::create_dir(place.path().join("bare")).unwrap();
    let run = give(&place.path().join("bare"), FAIR, || {});
    assert_eq!(run.taken.entries[1..], ["directory bare", "end"]);
}

#[test]
fn source__ten_thousand_small_files() {
    let place = tempfile::tempdir().unwrap();
    let lengths: Vec<_> = (0..10_000_u64).map(|index| index % 37).collect();
    let (root, files) = tree(place.path(), &lengths);
    let run = give(&root, LoopbackPath { loss: 0.01, ..FAIR }, || {});
    assert!(run.taken.files == files);
    assert_eq!(run.outcome.bytes, lengths.iter().sum::<u64>());
}

#[test]
fn source__more_than_memory_keeps() {
    let place = tempfile::tempdir().unwrap();
    let (root, files) = tree(place.path(), &[25 * BLOCK_BYTES + 1]);
    // All of it is asked for at once, and some of it is lost after it has left memory.
    let way = LoopbackPath { room: Bytes::new(1 << 30), reorder: 0.3, loss: 0.01, piece_bytes: 65_000, ..FAIR };
    let run = give(&root, way, || {});
    assert!(run.taken.files == files);
    // Bytes that were read or sent again count once.
    assert_eq!((run.outcome.files, run.outcome.bytes), (1, 25 * BLOCK_BYTES + 1));
}

#[test]
fn source__hashes_without_bytes() {
    let place = tempfile::tempdir().unwrap();
    let (root, files) = tree(place.path(), &[30 * BLOCK_BYTES, 7, BLOCK_BYTES, 0]);
    let run = give_more(&root, FAIR, false, || {});
    for (path, content) in files {
        assert_eq!(run.taken.hashes[&path], *blake3::hash(&content).as_bytes());
    }
}

#[test]
fn source__names_that_are_no_text() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().join("data");
    fs::create_dir(&root).unwrap();
    let name = b"\xff\xfe\x1b[31m\n\\";
    fs::write(root.join(std::ffi::OsStr::from_bytes(name)), "x").unwrap();
    let run = give(&root, FAIR, || {});
    assert_eq!(run.taken.files, BTreeMap::from([([b"data/", &name[..]].concat(), b"x".to_vec())]));
}

#[test]
fn source__a_sparse_file_is_zeros() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("sparse");
    fs::File::create(&path).unwrap().set_len(9 * BLOCK_BYTES).unwrap();
    let run = give(&path, FAIR, || {});
    assert!(run.taken.files[&b"sparse"[..]] == vec![0; 9 << 22]);
}

/// Changed files fail, and other files do not.
#[test]
fn source__files_that_change_fail_alone() {
    let place = tempfile::tempdir().unwrap();
    let lengths = [10, 20, 30, 40, 50, 60, BLOCK_BYTES + 9, BLOCK_BYTES + 10, BLOCK_BYTES + 11, 70];
    let (root, mut files) = tree(place.path(), &lengths);
    let change = {
        let root = root.clone();
        move || {
            let at = |index: usize| root.join(format!("{index:05}"));
            fs::remove_file(at(1)).unwrap();
            fs::write(at(2), "shorter").unwrap();
            fs::write(at(3), vec![7; 40]).unwrap();
            // More bytes in one inode: the file counts as growing.
            fs::write(at(4), vec![7; 90]).unwrap();
            fs::remove_file(at(5)).unwrap();
            fs::create_dir(at(5)).unwrap();
            fs::OpenOptions::new().write(true).open(at(6)).unwrap().set_len(BLOCK_BYTES + 1).unwrap();
            fs::rename(at(7), root.join("moved")).unwrap();
            // Another file of the same length and content in its place.
            fs::copy(at(8), root.join("copy")).unwrap();
            fs::rename(root.join("copy"), at(8)).unwrap();
        }
    };
    let run = give(&root, ROUGH, change);
    let name = |index: usize| format!("data/{index:05}").into_bytes();
    let (vanished, shrank) = (VoidReason::Vanished, VoidReason::Shrank);
    let reasons = [vanished, shrank, shrank, vanished, shrank, vanished, shrank];
    let failing = || [1, 2, 3, 5, 6, 7, 8].map(name);
    let failed: BTreeMap<_, _> = failing().into_iter().zip(reasons).collect();
    files.retain(|path, _| !failed.contains_key(path));
    files.insert(name(4), vec![7; 50]);
    assert_eq!(run.taken.failed, failed);
    assert!(run.taken.files == files);
    let mut listed: Vec<_> =
        run.outcome.failed.iter().map(|failure| (failure.path.clone(), failure.reason.as_str())).collect();
    listed.sort_unstable();
    let reasons = listed.iter().map(|(_, reason)| reason.split(' ').next().unwrap()).collect::<Vec<_>>();
    assert_eq!(listed.iter().map(|(path, _)| path.clone()).collect::<Vec<_>>(), failing());
    assert_eq!(reasons, ["vanished", "truncated", "changed", "vanished", "truncated", "vanished", "changed"]);
    // Those that are gone, and not those that became something else.
    assert_eq!((run.outcome.files_failed, run.outcome.files_vanished), (7, 3));
}

#[test]
fn source__a_file_that_may_not_be_read() {
    let place = open_place();
    let (root, _) = tree(place.path(), &[5, 6, 2 * BLOCK_BYTES, 7]);
    for name in ["00001", "00002"] {
        fs::set_permissions(root.join(name), fs::Permissions::from_mode(0o000)).unwrap();
    }
    as_nobody(move || {
        let run = give(&root, FAIR, || {});
        assert_eq!(run.taken.files.len(), 2);
        let failed = ["data/00001", "data/00002"].map(|path| (path.as_bytes().to_vec(), VoidReason::Unreadable));
        assert_eq!(run.taken.failed, BTreeMap::from(failed));
        let reasons: Vec<_> = run.outcome.failed.iter().map(|failure| failure.reason.as_str()).collect();
        assert_eq!(reasons, ["Permission denied"; 2]);
    });
}

/// Files change all the time: every received file has the listed content.
#[test]
fn source__files_that_change_all_the_time() {
    let mut changes = 0;
    for seed in 0..4_u64 {
        let place = tempfile::tempdir().unwrap();
        let lengths = [70_000; 200].into_iter().chain([5 * BLOCK_BYTES, 3 * BLOCK_BYTES + 1]).collect::<Vec<_>>();
        let (root, files) = tree(place.path(), &lengths);
        let (stop, stopped) = crossbeam_channel::bounded::<()>(0);
        let mut vandal = None;
        let run = give(&root, LoopbackPath { seed, room: Bytes::new(1 << 20), ..ROUGH }, {
            let (root, vandal) = (root.clone(), &mut vandal);
            // Times that a file system keeps change every few milliseconds.
            std::thread::sleep(Duration::from_millis(20));
            *vandal = Some(std::thread::spawn(move || {
                let mut round = seed;
                while stopped.recv_timeout(Duration::from_micros(500)).is_err_and(|error| error.is_timeout()) {
                    round = round.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    let path = root.join(format!("{:05}", (round >> 33) % 202));
                    // It may be gone already.
                    _ = match (round >> 50) % 4 {
                        0 => fs::remove_file(path),
                        1 => fs::write(path, vec![round as u8; 70_000]),
                        2 => fs::OpenOptions::new().write(true).open(path).and_then(|file| file.set_len(100)),
                        _ => fs::rename(&path, path.with_extension("moved")),
                    };
                }
            }));
            || {}
        });
        drop(stop);
        vandal.expect("it was started").join().unwrap();
        for (path, content) in &run.taken.files {
            let was = files.get(path).or_else(|| files.get(&path[..path.len().min(10)]));
            // The first content, or the start of it, or one of the new ones; never a mix.
            let is_old = was.is_some_and(|was| was.starts_with(content));
            let is_new = content.iter().all(|byte| *byte == content[0]);
            assert!(is_old || is_new, "seed {seed}: {}", path.escape_ascii());
        }
        assert_eq!(
            run.taken.files.len() + run.taken.failed.len(),
            run.taken.entries.iter().filter(|line| line.starts_with("file ")).count()
        );
        changes += run.taken.failed.len();
    }
    assert!(changes > 0, "nothing happened meanwhile");
}

#[test]
fn source__a_link_or_a_fifo_in_a_files_place_holds_up_nobody() {
    let place = tempfile::tempdir().unwrap();
    let (root, _) = tree(place.path(), &[5, 6, 7]);
    let secret = place.path().join("secret");
    fs::write(&secret, "s\u{e9}cret").unwrap();
    let change = {
        let root = root.clone();
        move || {
            fs::remove_file(root.join("00000")).unwrap();
            std::os::unix::fs::symlink(&secret, root.join("00000")).unwrap();
            fs::remove_file(root.join("00001")).unwrap();
            rustix::fs::mkfifoat(rustix::fs::CWD, root.join("00001"), rustix::fs::Mode::RUSR).unwrap();
        }
    };
    let run = give(&root, FAIR, change);
    assert_eq!(run.taken.files.len(), 1);
    assert_eq!(run.taken.failed.len(), 2);
}

#[test]
fn source__that_is_closed_forgets() {
    let place = tempfile::tempdir().unwrap();
    let (root, _) = tree(place.path(), &[BLOCK_BYTES; 3]);
    let ledger = Ledger::default();
    let source = GivingEnd::new(Roots::find(&[root]).unwrap(), [3; 16], Readers::start().unwrap(), ledger.clone());
    let mut loopback = Loopback::open(Box::new(source), Box::new(Nobody), true, FAIR);
    loopback.step();
    loopback.cut();
    let outcome = ledger.transfer().wait(Some(fairwave_units::Duration::ZERO)).unwrap();
    assert!(matches!(outcome.ended, Ended::Failed(_)));
}

/// Without a taker's doing: what one may make it hold.
#[test]
fn source__reads_and_keeps_no_more_than_it_says() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("sparse");
    fs::File::create(&path).unwrap().set_len(60 * BLOCK_BYTES).unwrap();
    let facts = fairwave_host::SessionFacts {
        peer: ([127, 0, 0, 1], 1).into(),
        is_initiator: false,
        sends: true,
        receives: false,
        carrier: fairwave_host::Carrier::Udp,
        path: fairwave_host::PathKind::Dedicated,
        declared: fairwave_host::PathDeclarations::default(),
        is_plain: false,
    };
    let (session, told) = Session::detached(facts);
    let roots = Roots::find(&[path]).unwrap();
    let mut source = GivingEnd::new(roots, [3; 16], Readers::start().unwrap(), Ledger::default());
    source.on_open(&session);
    // Served ranges of a stream, from at least this many on, until it is quiet for a while.
    let hear = |stream: u32, least: usize, quiet: u64| {
        let (mut served, mut until) = (Vec::new(), Instant::now() + LASTS);
        while let Ok((_, command)) = told.recv_deadline(until) {
            if let fairwave_host::SessionCommand::Serve { stream: other, range } = command {
                served.extend((other == stream).then_some(range));
            }
            if served.len() >= least {
                until = Instant::now() + Duration::from_millis(quiet);
            }
        }
        served
    };
    // The list is ready when its first byte is.
    source.on_request(&session, MANIFEST, 0..1);
    hear(MANIFEST, 1, 1);
    source.on_request(&session, TREE, 0..60 * BLOCK_BYTES);
    let mut ranges = hear(TREE, 8, 300);
    // 32 MiB.
    assert_eq!(ranges.len(), 8);
    let mut lent = 0;
    while let Some(range) = ranges.pop() {
        lent += range.end - range.start;
        source.lend(TREE, range, &mut |bytes| assert!(bytes.iter().all(|byte| *byte == 0))).unwrap();
        let GivingState::Open(open) = &source.state else { panic!("it is open") };
        assert!(open.batches_bytes <= MAX_CACHED_BYTES);
        if ranges.is_empty() && lent < 60 * BLOCK_BYTES {
            ranges = hear(TREE, 1, 20);
            assert!(ranges.len() <= 8);
        }
    }
    assert_eq!(lent, 60 * BLOCK_BYTES);
    let GivingState::Open(open) = &source.state else { panic!("it is open") };
    // 64 MiB.
    assert_eq!((open.batches.len(), open.batches_bytes), (16, 64 << 20));
    source.on_closed(&session, CloseReason::Done, true);
    source.on_request(&session, TREE, 0..1);
    assert_eq!(source.lend(TREE, 0..1, &mut |_| {}), Err(VoidReason::Vanished));
}
