//! Bytes that are fetched again after an interruption.

use std::process::{Command, Stdio};

use super::fake::{Fake, Said, file};
use super::*;

/// Small requests: little is under way at a time.
pub(super) const NARROW: LoopbackPath =
    LoopbackPath { room: Bytes::new(1 << 20), piece_bytes: 60_000, request_bytes: 1 << 20, ..FAIR };

fn large_and_small(world: &World) -> u64 {
    world.file("large", content(1, 12 * BLOCK + 77));
    for i in 0..600_u32 {
        world.file(&format!("small/{i}"), content(2, 2000 + i as usize));
    }
    (12 * BLOCK + 77) as u64 + 600 * 2000 + (0..600).sum::<u64>()
}

/// Runs until this many bytes have arrived, and then cuts the network.
pub(super) fn interrupt(world: &World, get: &Get, bytes: u64) -> Run {
    let (mut loopback, transfer) = world.open(get);
    while loopback.carried[1] < bytes {
        loopback.step();
        let ended = transfer.wait(Some(fairwave_units::Duration::ZERO));
        assert!(ended.is_none(), "it ends before it is interrupted: {ended:?}");
    }
    loopback.cut();
    finish(&loopback, &transfer)
}

/// The directory of an unfinished transfer.
pub(super) fn temporaries(world: &World) -> PathBuf {
    leftovers(&world.to()).into_iter().find(|path| path.is_dir()).expect("it is not complete")
}

/// Its temporaries, wherever they are.
fn unfinished(world: &World) -> Vec<PathBuf> {
    leftovers(&world.to()).into_iter().filter(|path| path.is_file()).collect()
}

fn leftovers(root: &Path) -> Vec<PathBuf> {
    let (mut found, mut waiting) = (Vec::new(), vec![root.to_owned()]);
    while let Some(directory) = waiting.pop() {
        for path in fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
            if path.file_name().unwrap().to_str().unwrap().starts_with(".fairwave-") {
                found.push(path);
            } else if path.is_dir() {
                waiting.push(path);
            }
        }
    }
    found
}

#[test]
fn resume__what_was_under_way_is_fetched_again_and_no_more() {
    for part in 1..8 {
        let world = World::new();
        let total = large_and_small(&world);
        let get = Get { way: NARROW, ..Get::default() };
        let first = interrupt(&world, &get, total * part / 8);
        assert!(matches!(first.outcome.ended, Ended::Failed(_)));
        let second = world.get_all(&get);
        // The data in the memory, an incomplete block, a parcel of small files; and the list, twice.
        let most = total + (1 << 20) + BLOCK as u64 + (1 << 20) + 300_000;
        let sum = first.carried + second.carried;
        assert!(sum <= most, "interrupted at {part}/8: {sum} bytes for {total}");
        assert!(second.resumed > 0);
    }
}

#[test]
fn resume__many_interruptions_make_one_transfer() {
    let world = World::new();
    let total = large_and_small(&world);
    let get = Get { way: NARROW, ..Get::default() };
    for _ in 0..6 {
        interrupt(&world, &get, total / 8);
    }
    let last = world.get_all(&get);
    assert!(last.carried < total * 3 / 4, "{} of {total}", last.carried);
}

#[test]
fn resume__a_stop_is_no_failure() {
    let world = World::new();
    large_and_small(&world);
    let (mut loopback, transfer) = world.open(&Get::default());
    loopback.step();
    transfer.stop();
    loopback.run_out(LASTS);
    assert_eq!(finish(&loopback, &transfer).outcome.ended, Ended::Stopped);
}

#[test]
fn resume__with_a_torn_journal() {
    for cut in [1, 10, 57, 300, 100_000] {
        let world = World::new();
        let total = large_and_small(&world);
        let get = Get { way: NARROW, ..Get::default() };
        interrupt(&world, &get, total / 2);
        let path = temporaries(&world).join("journal");
        let journal = fs::read(&path).unwrap();
        fs::write(&path, &journal[..journal.len().saturating_sub(cut)]).unwrap();
        world.get_all(&get);
    }
}

#[test]
fn resume__after_another_boot_only_what_is_right_is_kept() {
    let world = World::new();
    let total = large_and_small(&world);
    let get = Get { way: NARROW, ..Get::default() };
    interrupt(&world, &get, total / 2);
    // The host died before the third block was on the disk.
    for path in unfinished(&world) {
        if fs::metadata(&path).unwrap().len() > BLOCK as u64 {
            let file = fs::OpenOptions::new().write(true).open(path).unwrap();
            std::os::unix::fs::FileExt::write_all_at(&file, &[0; 4096], 2 * BLOCK as u64 + 8192).unwrap();
        }
    }
    let other = Get { boot: [2; 16], ..get };
    interrupt(&world, &other, 100_000);
    let run = world.get_all(&other);
    assert!(run.resumed > 4 * BLOCK as u64, "{} bytes were kept", run.resumed);
}

/// A get of `f` with three blocks, of which the first two are kept.
fn keep_two_blocks(world: &World, get: &Get, content: &[u8]) {
    let begun = Said::Begun(b"f".to_vec(), content.len() as u64, content[..2 * BLOCK].to_vec());
    let (sink, transfer) = take(world.options(get)).unwrap();
    let mut loopback = Loopback::open(Box::new(Fake::new([begun])), Box::new(sink), true, get.way);
    while loopback.carried[1] < 2 * BLOCK as u64 || transfer.progress().bytes_done < 2 * BLOCK as u64 {
        loopback.step();
    }
    loopback.cut();
    assert!(!finish(&loopback, &transfer).outcome.is_complete());
}

/// Whatever a journal lists, and whoever wrote it.
#[test]
fn resume__kept_blocks_are_proved_by_the_givers_hashes() {
    for does_check in [false, true] {
        let get = Get { does_check, ..Get::default() };
        let [kept, given] = [1, 2].map(|seed| content(seed, 3 * BLOCK));
        let mixed = [&kept[..BLOCK], &given[BLOCK..]].concat();
        for (given, right) in [(&kept, 2), (&given, 0), (&mixed, 1)] {
            let world = World::new();
            keep_two_blocks(&world, &get, &kept);
            // Equal name, length, time and identity.
            let run = Fake::new([file("f", given)]).get(&world, &get);
            assert!(run.outcome.is_complete(), "{:?}", run.outcome);
            assert!(fs::read(world.to().join("f")).unwrap() == *given, "{right} blocks are right");
            assert_eq!(run.outcome.blake3, Some(blake3::hash(given).into()));
            assert_eq!(run.resumed, right * BLOCK as u64);
            assert!(run.carried < (3 - right) * BLOCK as u64 + 100_000, "{} bytes", run.carried);
        }
    }
}

/// Another program left a file in place of the journal, with all blocks of a file.
#[test]
fn resume__what_another_key_kept_is_not_used() {
    let world = World::new();
    let kept = content(1, 3 * BLOCK);
    keep_two_blocks(&world, &Get { kept_key: KeptKey::new([9; 32]), ..Get::default() }, &kept);
    let run = Fake::new([file("f", &kept)]).get(&world, &Get::default());
    assert!(run.outcome.is_complete(), "{:?}", run.outcome);
    assert_eq!(run.resumed, 0);
}

#[test]
fn resume__a_file_that_changed_begins_anew() {
    let world = World::new();
    world.file("large", content(1, 6 * BLOCK));
    let get = Get { way: NARROW, ..Get::default() };
    interrupt(&world, &get, 4 * BLOCK as u64);
    world.file("large", content(2, 6 * BLOCK));
    let run = world.get_all(&get);
    assert_eq!(run.resumed, 0);
}

#[test]
fn resume__a_temporary_that_was_cut_begins_anew() {
    let world = World::new();
    world.file("large", content(1, 6 * BLOCK));
    let get = Get { way: NARROW, ..Get::default() };
    interrupt(&world, &get, 4 * BLOCK as u64);
    let all = unfinished(&world);
    assert_eq!(all.len(), 1);
    fs::OpenOptions::new().write(true).open(&all[0]).unwrap().set_len(1000).unwrap();
    // Parts of incomplete blocks are tested elsewhere.
    let _ = fs::remove_file(temporaries(&world).join("parts"));
    let run = world.get_all(&get);
    assert_eq!(run.resumed, 0);
}

#[test]
fn resume__another_transfer_there_is_named() {
    let world = World::new();
    large_and_small(&world);
    let (mut first, transfer) = world.open(&Get { way: NARROW, ..Get::default() });
    while first.carried[1] < 1 << 20 {
        first.step();
    }
    let second = world.get(&Get::default());
    assert!(format!("{:?}", second.outcome.ended).contains("another transfer"), "{:?}", second.outcome.ended);
    first.run_out(LASTS);
    assert!(finish(&first, &transfer).outcome.is_complete());
    world.assert_same();
}

const PLACE: &str = "FAIRWAVE_TEST_PLACE";
const SEED: &str = "FAIRWAVE_SEED";

/// Both ends of a transfer, to be killed: it does nothing unless another test has started it.
#[test]
fn child__takes_until_it_is_killed() {
    let Some(place) = std::env::var_os(PLACE) else { return };
    let roots = Roots::find(&[Path::new(&place).join("data")]).unwrap();
    let source = GivingEnd::new(roots, [3; 16], Readers::start().unwrap(), Ledger::default());
    let world = World::at(Path::new(&place));
    let (sink, transfer) =
        take(world.options(&Get { way: NARROW, durable: Durable::Group, ..Get::default() })).unwrap();
    let mut loopback = Loopback::open(Box::new(source), Box::new(sink), true, NARROW);
    let carried = fs::File::create(Path::new(&place).join("carried")).unwrap();
    while loopback.step() || transfer.wait(Some(fairwave_units::Duration::ZERO)).is_none() {
        std::os::unix::fs::FileExt::write_all_at(&carried, &loopback.carried[1].to_le_bytes(), 0).unwrap();
    }
}

#[test]
fn resume__after_a_kill_at_any_time() {
    let seed = std::env::var(SEED).ok().and_then(|seed| seed.parse::<u64>().ok()).unwrap_or_else(|| {
        let mut seed = [0; 8];
        getrandom::fill(&mut seed).unwrap();
        u64::from_le_bytes(seed)
    });
    println!("{SEED}={seed} cargo test -p fairwave-files --lib resume__after_a_kill_at_any_time");
    let world = World::new();
    let total = large_and_small(&world);
    let (mut sum, mut kills) = (0, 0);
    let mut chance = seed;
    loop {
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "take::taker::tests::resume::child__takes_until_it_is_killed"])
            .env(PLACE, world.place.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Starting and ending take some time.
        thread::sleep(Duration::from_millis(20 + (chance >> 33) % 250));
        let is_over = child.try_wait().unwrap().is_some();
        child.kill().unwrap();
        child.wait().unwrap();
        let carried = fs::read(world.place.path().join("carried")).unwrap_or_default();
        sum += carried.try_into().map_or(0, u64::from_le_bytes);
        let _ = fs::remove_file(world.place.path().join("carried"));
        if is_over || kills == 12 {
            break;
        }
        kills += 1;
    }
    let last = world.get_all(&Get { way: NARROW, ..Get::default() });
    sum += last.carried;
    // For each kill: what was in the room, a block and a parcel that were not complete or not written, and the list.
    // The workers may have had as much again in hand.
    let most = total + (kills + 1) * (2 * (BLOCK as u64 + (2 << 20)) + 100_000);
    println!("{kills} kills, {sum} bytes for {total}");
    assert!(sum <= most, "{kills} kills: {sum} bytes for {total}, seed {seed}");
}

#[test]
fn resume__what_somebody_changed_meanwhile_is_not_believed() {
    for is_changed in [false, true] {
        let world = World::new();
        let total = large_and_small(&world);
        let get = Get { way: NARROW, ..Get::default() };
        interrupt(&world, &get, total / 2);
        let large = unfinished(&world).into_iter().rfind(|path| fs::metadata(path).unwrap().len() > BLOCK as u64);
        let large = large.expect("it is not complete");
        if is_changed {
            // With the size and the time that it had: the first block is wrong now.
            let meta = fs::metadata(&large).unwrap();
            let file = fs::OpenOptions::new().write(true).open(&large).unwrap();
            std::os::unix::fs::FileExt::write_all_at(&file, b"somebody else", 100).unwrap();
            file.set_modified(meta.modified().unwrap()).unwrap();
        }
        // It is the same as at the giver.
        let run = world.get_all(&get);
        assert!(run.resumed > BLOCK as u64, "{} bytes were kept", run.resumed);
    }
}

#[test]
fn resume__what_is_set_aside_is_free_after_a_kill() {
    let world = World::new();
    let bytes = 80 << 20;
    world.file("large", content(1, bytes));
    let get = Get { way: NARROW, durable: Durable::Group, ..Get::default() };
    interrupt(&world, &get, 30 << 20);
    let large = unfinished(&world).into_iter().rfind(|path| fs::metadata(path).unwrap().len() == bytes as u64).unwrap();
    let occupied = || fs::metadata(&large).unwrap().blocks() * 512;
    let before = occupied();
    // As a transfer leaves it that has no time to give anything back.
    let file = fs::OpenOptions::new().write(true).open(&large).unwrap();
    let keep_size = rustix::fs::FallocateFlags::KEEP_SIZE;
    if rustix::fs::fallocate(&file, keep_size, 0, bytes as u64).is_err() || occupied() < bytes as u64 {
        println!("skipped: this file system sets nothing aside");
        return;
    }
    drop(file);
    interrupt(&world, &get, 1 << 20);
    // A block may have arrived in between.
    assert!(occupied() <= before + (9 << 20), "{} bytes, and {before} before", occupied());
    world.get_all(&get);
}

#[test]
fn resume__temporaries_that_the_journal_lost_are_removed() {
    let world = World::new();
    world.file("a/b/large", content(1, 6 * BLOCK));
    let get = Get { way: NARROW, ..Get::default() };
    interrupt(&world, &get, 4 * BLOCK as u64);
    // A host died: the name was on the disk, and the journal was not.
    let [temporary] = &unfinished(&world)[..] else { panic!("one file is not complete") };
    assert_eq!(temporary.parent(), Some(&*world.to().join("data/a/b")), "it lies beside its file");
    let name = temporary.file_name().unwrap().to_str().unwrap();
    let stray = temporary.with_file_name(format!("{}{}", &name[..name.len() - 4], "beef"));
    fs::write(&stray, "x").unwrap();
    fs::write(temporaries(&world).join("journal"), "").unwrap();
    let _ = fs::remove_file(temporaries(&world).join("parts"));
    let run = world.get_all(&get);
    assert_eq!(run.resumed, 0);
    assert!(leftovers(&world.to()).is_empty());
}

#[test]
fn resume__attributes_that_moved_cost_nothing_that_came() {
    let world = World::new();
    world.file("large", content(1, 6 * BLOCK));
    let source = world.data().join("large");
    let get = Get { way: NARROW, ..Get::default() };
    interrupt(&world, &get, 4 * BLOCK as u64);
    // A hard link, a mode, and another time.
    fs::hard_link(&source, world.data().join("link")).unwrap();
    fs::remove_file(world.data().join("link")).unwrap();
    fs::set_permissions(&source, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    fs::File::open(&source).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
    let run = world.get_all(&get);
    assert!(run.resumed >= 2 * BLOCK as u64, "{} bytes were kept", run.resumed);
}
