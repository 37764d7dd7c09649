//! The kept parts of incomplete blocks.

use std::os::unix::fs::FileExt;

use super::fake::{Fake, file};
use super::resume::{NARROW, interrupt, temporaries};
use super::*;

/// Little comes at a time, and so a session can be cut anywhere.
const SLOW: LoopbackPath = LoopbackPath { piece_bytes: 2000, ..NARROW };
/// The list, the hashes, and bytes in flight: each session may receive this many bytes in addition to the missing ones.
const BESIDE: u64 = 150_000;
const MB: u64 = 1_000_000;

/// Gets from a fake giver until this many bytes have arrived, if it does not end before.
fn get_fake(world: &World, content: &[u8], get: &Get, bytes: u64) -> Run {
    let (sink, transfer) = take(world.options(get)).unwrap();
    let mut loopback = Loopback::open(Box::new(Fake::new([file("a", content)])), Box::new(sink), true, get.way);
    while loopback.carried[1] < bytes && transfer.wait(Some(fairwave_units::Duration::ZERO)).is_none() {
        loopback.step();
    }
    loopback.cut();
    finish(&loopback, &transfer)
}

#[test]
fn parts__each_cut_within_a_block_advances() {
    for bytes in [3_500_000, 2 * BLOCK + 700_000] {
        let world = World::new();
        world.file("only", content(1, bytes));
        let get = Get { way: SLOW, ..Get::default() };
        let (mut sum, mut cuts) = (0, 0);
        let mut there = 0;
        while sum < bytes as u64 - 600_000 {
            let run = interrupt(&world, &get, 500_000);
            assert!(matches!(run.outcome.ended, Ended::Failed(_)), "{:?}", run.outcome);
            sum += run.carried;
            cuts += 1;
            assert!(run.there >= there + 400_000, "{} bytes, and {there} before", run.there);
            there = run.there;
        }
        let last = world.get_all(&get);
        let hash: [u8; 32] = blake3::hash(&content(1, bytes)).into();
        assert_eq!(last.outcome.blake3, Some(hash));
        // All but what came in the last session was there before it.
        assert!(last.resumed >= there && last.there == bytes as u64, "{} of {there}", last.resumed);
        sum += last.carried;
        let most = bytes as u64 + (cuts + 1) * BESIDE;
        assert!(sum <= most, "{cuts} cuts: {sum} bytes for {bytes}");
    }
}

#[test]
fn parts__over_a_way_that_loses_and_reorders() {
    let world = World::new();
    world.file("only", content(1, 3_500_000));
    let mut sum = 0;
    for seed in 1..5 {
        let get = Get { way: LoopbackPath { seed, room: Bytes::new(1 << 20), ..ROUGH }, ..Get::default() };
        sum += interrupt(&world, &get, 700_000).carried;
    }
    sum += world.get_all(&Get::default()).carried;
    // With each cut the smallest of the parts are left out, and what was on its way.
    assert!(sum <= 3_500_000 + 5 * BESIDE, "{sum} bytes");
}

#[test]
fn parts__of_small_files_that_share_a_parcel() {
    let world = World::new();
    (0..300).for_each(|i| _ = world.file(&i.to_string(), content(i as u8, 3000)));
    let get = Get { way: SLOW, ..Get::default() };
    let first = interrupt(&world, &get, 600_000);
    let second = world.get_all(&get);
    assert!(
        first.carried + second.carried <= 300 * (3000 + 200) + BESIDE,
        "{} and then {}",
        first.carried,
        second.carried
    );
}

#[test]
fn parts__holes_are_no_parts() {
    let world = World::new();
    world.file("sparse", "");
    let sparse = fs::OpenOptions::new().write(true).open(world.data().join("sparse")).unwrap();
    sparse.set_len(4 << 20).unwrap();
    sparse.write_all_at(&content(1, 1 << 20), 1 << 20).unwrap();
    sparse.write_all_at(&content(2, 1 << 20), 3 << 20).unwrap();
    drop(sparse);
    let get = Get { way: SLOW, ..Get::default() };
    let mut sum = interrupt(&world, &get, 700_000).carried;
    sum += interrupt(&world, &get, 700_000).carried;
    let last = world.get_all(&get);
    assert!(sum + last.carried <= (2 << 20) + 3 * BESIDE, "{sum} and then {}", last.carried);
}

#[test]
fn parts__a_file_that_was_cut_or_changed_costs_what_is_behind() {
    let bytes = 3_000_000;
    for damage in 0..6 {
        let world = World::new();
        world.file("only", content(1, bytes));
        let get = Get { way: SLOW, ..Get::default() };
        interrupt(&world, &get, 2 * MB);
        let path = temporaries(&world).join("parts");
        let mut parts = fs::read(&path).unwrap();
        assert!(parts.len() as u64 > 2 * MB - BESIDE, "{} bytes are kept", parts.len());
        match damage {
            // In the middle of the last part, of a head, and all of it.
            0 => parts.truncate(parts.len() - 1),
            1 => parts.truncate(30),
            2 => parts.clear(),
            // Another version; a length that is more than a block; a byte.
            3 => parts[3] = 2,
            4 => parts[4 + 31] = 0xff,
            _ => parts[100_000] ^= 1,
        }
        fs::write(&path, parts).unwrap();
        let run = world.get_all(&get);
        assert!(run.resumed == 0 && run.carried <= bytes as u64 + BESIDE, "{damage}: {} bytes came", run.carried);
    }
}

#[test]
fn parts__what_is_not_right_costs_its_block_once() {
    // The giver's file has changed, with the same identity.
    let (old, new) = (content(1, 3_000_000), content(2, 3_000_000));
    let world = World::new();
    let get = Get { way: SLOW, ..Get::default() };
    let first = get_fake(&world, &old, &get, 2 * MB);
    assert!((2 * MB - BESIDE..2 * MB + BESIDE).contains(&first.there), "{}", first.there);
    // A session that finds it out, and is cut again.
    let second = get_fake(&world, &new, &get, 2 * MB);
    assert!((MB - BESIDE..MB + BESIDE).contains(&second.there), "{}", second.there);
    // The existing parts are right: only the rest is sent.
    let last = get_fake(&world, &new, &get, u64::MAX);
    assert!(last.outcome.is_complete(), "{:?}", last.outcome);
    assert!(last.carried <= 3 * MB - second.there + BESIDE, "{} bytes came", last.carried);
    assert!(last.resumed == second.there, "{} of {}", last.resumed, second.there);
    assert!(fs::read(world.to().join("a")).unwrap() == new);
    assert_eq!(fs::read_dir(world.to()).unwrap().count(), 1);
}

#[test]
fn parts__that_were_not_right_are_gone_though_nobody_has_time_to_say_so() {
    let (old, new) = (content(1, 1_500_000), content(2, 1_500_000));
    let world = World::new();
    let get = Get { way: SLOW, ..Get::default() };
    get_fake(&world, &old, &get, MB);
    let parts = temporaries(&world).join("parts");
    let (sink, transfer) = take(world.options(&get)).unwrap();
    let mut loopback = Loopback::open(Box::new(Fake::new([file("a", &new)])), Box::new(sink), true, get.way);
    // The rest is 500 000 bytes; what comes behind them comes again, from the block's beginning.
    while loopback.carried[1] < MB {
        let was_there = parts.exists() || loopback.carried[1] > 300_000;
        assert!(was_there, "as long as nothing is wrong they stay, for who is killed");
        loopback.step();
    }
    assert!(!parts.exists());
    loopback.run_out(LASTS);
    assert!(finish(&loopback, &transfer).outcome.is_complete());
    assert!(fs::read(world.to().join("a")).unwrap() == new);
}

#[test]
fn parts__of_a_file_that_changed_are_of_no_use() {
    let world = World::new();
    world.file("only", content(1, 3_000_000));
    let get = Get { way: SLOW, ..Get::default() };
    interrupt(&world, &get, 2 * MB);
    world.file("only", content(2, 3_000_000));
    let second = interrupt(&world, &get, MB);
    assert!(second.there <= MB + BESIDE, "{}", second.there);
    let kept = fs::metadata(temporaries(&world).join("parts")).unwrap().len();
    assert!(kept <= MB + BESIDE, "{kept} bytes are kept");
    // The temporary is the same for both contents, and its blocks are proved again: at most the new file comes.
    let last = world.get_all(&get);
    assert!(last.carried <= 3_000_000 + BESIDE, "{} bytes came", last.carried);
}

#[test]
fn parts__are_kept_where_the_next_session_does_not_come_to_them() {
    let world = World::new();
    world.file("only", content(1, 3_000_000));
    let get = Get { way: SLOW, ..Get::default() };
    interrupt(&world, &get, 2 * MB);
    for _ in 0..2 {
        // The list is not read.
        let (mut loopback, transfer) = world.open(&get);
        loopback.cut();
        finish(&loopback, &transfer);
    }
    let last = world.get_all(&get);
    assert!(last.carried <= MB + 2 * BESIDE, "{} bytes came", last.carried);
}

#[test]
fn parts__count_in_a_quota_and_leave_it_to_their_blocks() {
    for bytes in [3_000_000, 2 * BLOCK] {
        let world = World::new();
        world.file("only", content(1, bytes));
        // The directories, and the journal with its blocks.
        let quota = Quota::new(Bytes::new(bytes as u64 + 40_960));
        let get = Get { way: SLOW, quota: Some(quota.clone()), ..Get::default() };
        let mut sum = 0;
        for _ in 0..2 {
            sum += interrupt(&world, &get, MB).carried;
        }
        assert!(quota.left() < bytes as u64 - MB, "{} bytes are left", quota.left());
        let last = world.get_all(&get);
        assert!(sum + last.carried <= bytes as u64 + 3 * BESIDE, "{sum} and then {}", last.carried);
    }
}

#[test]
fn parts__where_nothing_can_be_written_nothing_is_kept() {
    let world = World::new();
    world.file("only", content(1, 3_000_000));
    let get = Get { way: SLOW, ..Get::default() };
    interrupt(&world, &get, MB);
    // As a disk that is full: what was kept before stays.
    let next = temporaries(&world).join("parts.new");
    fs::create_dir(&next).unwrap();
    let second = interrupt(&world, &get, MB);
    assert_eq!(second.there, 0);
    fs::remove_dir(&next).unwrap();
    let last = world.get_all(&get);
    assert!((2 * MB - BESIDE..2 * MB + BESIDE).contains(&last.carried), "{} bytes came", last.carried);
}
