//! Givers that claim much and send little: what they cost in time, directories, room on the disk and memory.

use std::os::unix::fs::MetadataExt;
use std::time::Instant;

use super::fake::{Fake, Said, file};
use super::*;
use crate::format::holes::Holes;

const MIB: u64 = 1 << 20;

/// Directories below a place, and bytes on the disk.
fn occupied(root: &Path) -> (usize, u64) {
    let (mut directories, mut bytes) = (0, 0);
    let mut waiting = vec![root.to_owned()];
    while let Some(path) = waiting.pop() {
        let Ok(meta) = fs::symlink_metadata(&path) else { continue };
        if meta.is_dir() {
            directories += 1;
            waiting.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else {
            bytes += meta.blocks() * 512;
        }
    }
    (directories - 1, bytes)
}

/// A path of this depth, directories.
fn deep(depth: usize) -> Vec<u8> {
    [b"x/".repeat(depth), b"f".to_vec()].concat()
}

#[test]
fn greedy__a_path_that_is_too_deep_makes_no_directory() {
    let world = World::new();
    let run = Fake::new([file(deep(2030), "f"), file("good", "good")]).get(&world, &Get::default());
    let (directories, _) = occupied(&world.to());
    assert_eq!((run.outcome.files, run.outcome.files_failed, directories), (1, 1, 0), "{:?}", run.outcome);
    assert!(run.outcome.failed[0].reason.contains("path of depth"), "{:?}", run.outcome);
}

/// A giver that claims a large file and sends its first blocks, until it is cut or stopped: bytes on the disk during
/// and after the transfer.
fn claim(world: &World, is_stopped: bool) -> [u64; 2] {
    let fake = Fake::new([Said::Begun(b"large".to_vec(), 2048 * MIB, content(1, BLOCK))]);
    let (sink, transfer) = take(world.options(&Get { durable: Durable::Group, ..Get::default() })).unwrap();
    let mut loopback = Loopback::open(Box::new(fake), Box::new(sink), true, FAIR);
    let until = Instant::now() + LASTS;
    while transfer.progress().bytes_done < BLOCK as u64 {
        assert!(Instant::now() < until, "the block does not come: {:?}", transfer.progress());
        loopback.run(Duration::from_millis(10));
    }
    loopback.run(Duration::from_millis(100));
    let meanwhile = occupied(&world.to()).1;
    if is_stopped {
        transfer.stop();
        loopback.run_out(LASTS);
    } else {
        loopback.cut();
    }
    finish(&loopback, &transfer);
    [meanwhile, occupied(&world.to()).1]
}

#[test]
fn greedy__a_claimed_length_keeps_no_room_on_the_disk() {
    for is_stopped in [false, true] {
        let world = World::new();
        let [meanwhile, afterwards] = claim(&world, is_stopped);
        println!("{meanwhile} bytes meanwhile, {afterwards} afterwards");
        // Steps of 16 MiB; the journal, and what the file system needs for itself.
        assert!(meanwhile <= 17 * MIB, "{meanwhile} bytes for 4 MiB");
        assert!(afterwards <= 5 * MIB, "{afterwards} bytes for 4 MiB");
    }
}

/// A file that is nothing but a hole takes some bytes of a list; its hash takes as long as that of data, and the transfers
/// of a process wait for each other.
#[test]
fn greedy__zeros_that_were_never_sent_are_hashed_at_a_pace() {
    let (bytes, mut holes) = (64 * MIB, Holes::default());
    holes.push(0..bytes);
    let pairs = holes.to_pairs().pop().unwrap();
    let begun = Instant::now();
    for _ in 0..16 {
        let world = World::new();
        let entries = [Said::Holes(pairs.clone()), Said::Huge(b"zeros".into(), bytes)];
        let run = Fake::new(entries).get(&world, &Get::default());
        assert!(run.outcome.blake3.is_some() && run.carried < 10_000, "{:?}", run.outcome);
    }
    // 1 GiB at 512 MiB a second, of which a quarter of a second is hashed at once.
    assert!(begun.elapsed() >= Duration::from_millis(1750), "{:?}", begun.elapsed());
}

#[test]
fn greedy__implied_directories_are_made_once_each() {
    let world = World::new();
    // As deep as is allowed, and each shares all but its last directory with the one before.
    let entries = (0..20).map(|i| file([&b"x/".repeat(255)[..], format!("{i}/f").as_bytes()].concat(), "f"));
    let run = Fake::new(entries).get(&world, &Get::default());
    let (directories, _) = occupied(&world.to());
    assert!(run.outcome.is_complete(), "{:?}", run.outcome);
    assert_eq!(directories, 255 + 20);
}

/// Bytes that the entries below a place occupy as a quota counts them: at least a page each.
fn counted(root: &Path) -> u64 {
    let (mut bytes, mut waiting) = (0, vec![root.to_owned()]);
    while let Some(path) = waiting.pop() {
        for entry in fs::read_dir(&path).into_iter().flatten().flatten() {
            // An entry may be removed during the walk.
            let Ok(meta) = entry.metadata() else { continue };
            bytes += (meta.blocks() * 512).max(4096);
            waiting.extend(meta.is_dir().then(|| entry.path()));
        }
    }
    bytes
}

#[test]
fn quota__a_file_that_exceeds_it_fails_and_says_so() {
    let world = World::new();
    // With little memory one block is written after the other.
    let get = Get { quota: Some(Quota::new(Bytes::new(12 * MIB))), memory: 1, ..Get::default() };
    let large = file("large", content(4, 20 << 20));
    let entries =
        [file("a", content(1, 8 << 20)), large, file("b", content(2, 6 << 20)), file("c", content(3, 2 << 20))];
    let run = Fake::new(entries).get(&world, &get);
    assert_eq!((run.outcome.ended.clone(), run.outcome.files), (Ended::Done, 2), "{:?}", run.outcome);
    let failed = messages(&run.outcome.failed);
    assert_eq!(failed.iter().map(|(path, _)| path.as_str()).collect::<Vec<_>>(), ["large", "b"]);
    for (path, reason) in failed {
        assert!(reason.contains("quota of uploads exceeded"), "{path}: {reason}");
    }
    assert!(counted(&world.to()) <= 12 * MIB);
}

#[test]
fn quota__empty_files_directories_and_links_count() {
    let world = World::new();
    let get = Get { quota: Some(Quota::new(Bytes::new(100 * 4096))), ..Get::default() };
    let entries = (0..200).flat_map(|i| {
        let link = Said::Link(format!("l{i}").into_bytes(), b"nowhere".to_vec());
        [Said::Directory(format!("d{i}").into_bytes()), file(format!("f{i}"), ""), link]
    });
    let run = Fake::new(entries).get(&world, &get);
    assert_eq!(run.outcome.ended, Ended::Done);
    assert!(run.outcome.failed.iter().all(|failure| failure.reason.contains("quota")), "{:?}", run.outcome.failed[0]);
    let there = fs::read_dir(world.to()).unwrap().count();
    // The journal and its directory were there when it was measured, and are gone at the end.
    assert!((90..=100).contains(&there), "{there}");
}

#[test]
fn quota__of_two_at_once_and_what_is_left_of_others() {
    let world = World::new();
    let quota = Quota::new(Bytes::new(40 * MIB));
    let begin = |name: &str, seed: u8, pieces: usize, get: &Get| {
        // Neither claims more than there is, and together they do.
        let fake = Fake::new([Said::Begun(name.into(), 36 * MIB, content(seed, pieces * BLOCK))]);
        let (sink, transfer) = take(TakeOptions { scope: name.into(), ..world.options(get) }).unwrap();
        (Loopback::open(Box::new(fake), Box::new(sink), true, FAIR), transfer)
    };
    let get = Get { quota: Some(quota), ..Get::default() };
    let mut both = [("one", 1), ("two", 2)].map(|(name, seed)| begin(name, seed, 8, &get));
    let until = Instant::now() + LASTS;
    let failed = |(_, transfer): &&(Loopback, Transfer)| transfer.progress().files_failed > 0;
    // The memory of a failed one is free soon. The other goes on, unless it wanted more in that moment.
    let is_over = |both: &[(Loopback, Transfer); 2]| {
        let alive = both.iter().find(|one| !failed(one));
        both.iter().any(|one| failed(&one))
            && alive.is_none_or(|(_, transfer)| transfer.progress().bytes_done >= 8 * MIB)
    };
    while !is_over(&both) {
        assert!(Instant::now() < until, "{:?}", both.each_ref().map(|(_, transfer)| transfer.progress()));
        for (loopback, _) in &mut both {
            loopback.run(Duration::from_millis(5));
        }
        assert!(counted(&world.to()) <= 40 * MIB, "{} bytes", counted(&world.to()));
    }
    let has_both_failed = both.iter().all(|one| failed(&one));
    for (loopback, transfer) in &mut both {
        loopback.cut();
        finish(loopback, transfer);
    }
    // Another process starts, and leftovers of the first count.
    let left = counted(&world.to());
    assert!(left <= 40 * MIB && (has_both_failed || left >= 8 * MIB), "{left} bytes");
    let again = Get { quota: Some(Quota::new(Bytes::new(40 * MIB))), ..Get::default() };
    let mine = vec![file("three", content(3, (40 * MIB - left) as usize + 4096)), file("small", "small")];
    let (sink, transfer) = take(TakeOptions { scope: b"three".to_vec(), ..world.options(&again) }).unwrap();
    let mut loopback = Loopback::open(Box::new(Fake::new(mine)), Box::new(sink), true, FAIR);
    loopback.run_out(LASTS);
    let run = finish(&loopback, &transfer);
    let failed = messages(&run.outcome.failed);
    assert!(run.outcome.files == 1 && failed.len() == 1 && failed[0].1.contains("quota"), "{:?}", run.outcome);
    assert!(counted(&world.to()) <= 40 * MIB);
}

#[test]
fn quota__what_a_failed_file_had_is_free_at_once() {
    let world = World::new();
    let get = Get { quota: Some(Quota::new(Bytes::new(14 * MIB))), memory: 1, ..Get::default() };
    // The second block of the first is never right.
    let mut fake = Fake::new([file("a", content(1, 8 << 20)), file("b", content(2, 12 << 20))]);
    fake.bytes[5 << 20] ^= 1;
    let run = fake.get(&world, &get);
    assert_eq!((run.outcome.files, run.outcome.files_failed), (1, 1), "{:?}", run.outcome);
    assert!(world.to().join("b").exists());
}
