use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use fairwave_units::Bytes;

use super::super::blocks::BLOCK_BYTES;
use super::super::collector::{Collector, Taken, tree};
use super::super::loopback::{FAIR, Loopback, ROUGH, Way};
use super::*;

const LASTS: std::time::Duration = std::time::Duration::from_secs(60);

/// A taker that wants nothing.
struct Nobody;

impl Handler for Nobody {}

struct Run {
    taken: Taken,
    outcome: Outcome,
}

/// Gives what is at a path to a collector; `then` happens between the list and the bytes.
fn give(path: &Path, way: Way, then: impl FnOnce() + Send + 'static) -> Run {
    give_more(path, way, true, then)
}

fn give_more(path: &Path, way: Way, wants_bytes: bool, then: impl FnOnce() + Send + 'static) -> Run {
    let ledger = Ledger::default();
    let roots = Roots::find(&[path.to_owned()]).unwrap();
    let source = Source::new(roots, [3; 16], Readers::start().unwrap(), ledger.clone());
    let (collector, taken) = Collector::new(wants_bytes, false, then);
    let mut loopback = Loopback::open(Box::new(source), Box::new(collector), true, way);
    let closed = loopback.run(LASTS);
    assert_eq!(closed, Some(CloseReason::Done), "{way:?}");
    let outcome = ledger.transfer().wait(Some(fairwave_units::Duration::ZERO)).expect("it is over");
    Run { taken: std::mem::take(&mut taken.lock().unwrap()), outcome }
}

fn edges() -> Vec<u64> {
    vec![0, 1, 1023, 70_000, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 0, 2 * BLOCK_BYTES + 5, 1, 0]
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
        let run = give(&root, Way { seed, ..ROUGH }, || {});
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
    let run = give(&root, Way { loss: 0.01, ..FAIR }, || {});
    assert!(run.taken.files == files);
    assert_eq!(run.outcome.bytes, lengths.iter().sum::<u64>());
}

#[test]
fn source__more_than_memory_keeps() {
    let place = tempfile::tempdir().unwrap();
    let (root, files) = tree(place.path(), &[25 * BLOCK_BYTES + 1]);
    // All of it is asked for at once, and some of it is lost after it has left memory.
    let way = Way { room: Bytes::new(1 << 30), reorder: 0.3, loss: 0.01, piece_bytes: 65_000, ..FAIR };
    let run = give(&root, way, || {});
    assert!(run.taken.files == files);
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

/// What becomes of files that are not what they were, and of those beside them.
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
    let reasons = [vanished, shrank, vanished, vanished, vanished, shrank, vanished, vanished];
    let failed: BTreeMap<_, _> = (1..9).map(name).zip(reasons).collect();
    files.retain(|path, _| !failed.contains_key(path));
    assert_eq!(run.taken.failed, failed);
    assert!(run.taken.files == files);
    let mut listed: Vec<_> =
        run.outcome.failed.iter().map(|failure| (failure.path.clone(), failure.reason.as_str())).collect();
    listed.sort_unstable();
    let reasons = listed.iter().map(|(_, reason)| reason.split(' ').nth(1).unwrap()).collect::<Vec<_>>();
    assert_eq!(listed.iter().map(|(path, _)| path.clone()).collect::<Vec<_>>(), (1..9).map(name).collect::<Vec<_>>());
    assert_eq!(reasons, ["vanished", "became", "was", "was", "vanished", "became", "vanished", "was"]);
    assert_eq!(run.outcome.files_failed, 8);
}

#[test]
fn source__a_file_that_may_not_be_read() {
    let place = tempfile::tempdir().unwrap();
    let (root, _) = tree(place.path(), &[5, 6, 7]);
    let locked = root.join("00001");
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o000)).unwrap();
    // Who may do anything is not locked out.
    let is_locked = fs::read(&locked).is_err();
    let run = give(&root, FAIR, || {});
    assert_eq!(run.taken.files.len(), if is_locked { 2 } else { 3 });
    if is_locked {
        assert_eq!(run.taken.failed, BTreeMap::from([(b"data/00001".to_vec(), VoidReason::Unreadable)]));
        assert_eq!(run.outcome.failed[0].reason, "Permission denied");
    }
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
    let source = Source::new(Roots::find(&[root]).unwrap(), [3; 16], Readers::start().unwrap(), ledger.clone());
    let mut loopback = Loopback::open(Box::new(source), Box::new(Nobody), true, FAIR);
    loopback.step();
    loopback.cut();
    let outcome = ledger.transfer().wait(Some(fairwave_units::Duration::ZERO)).unwrap();
    assert!(matches!(outcome.ended, Ended::Failed(_)));
}
