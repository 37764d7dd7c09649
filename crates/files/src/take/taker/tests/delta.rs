//! Files of which the destination has an older version.

use super::fake::{Fake, file};
use super::*;
use crate::delta::chunks::ChunkSizes;

const BYTES: usize = 3 * BLOCK + 12_345;
/// Chunks have 64 KiB at most.
const CHUNK: u64 = 64 << 10;
/// Lists of all chunks, hashes and the manifest: 6 bytes for each chunk of at least 4 KiB.
const LISTS: u64 = BYTES as u64 / 512 + 4096;

/// A world whose destination has an older version of the only file.
fn older(new: &[u8], old: &[u8]) -> World {
    let world = World::new();
    world.file("large", new);
    fs::create_dir(world.to().join("data")).unwrap();
    let path = world.to().join("data/large");
    fs::write(&path, old).unwrap();
    // The clock of a file system may not have moved since.
    fs::File::options().write(true).open(path).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
    world
}

fn joined(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

#[test]
fn get__inserted_bytes_cost_about_what_they_are() {
    let old = content(1, BYTES);
    let inserted = content(2, 300_001);
    for at in [0, BYTES / 2, BYTES] {
        let world = older(&joined(&[&old[..at], &inserted, &old[at..]]), &old);
        let run = world.get_all(&Get::default());
        let most = inserted.len() as u64 + 2 * CHUNK + LISTS;
        assert!(run.carried < most, "{} bytes came for those inserted at {at}, and not {most}", run.carried);
        assert!(run.resumed + most > BYTES as u64, "{} bytes were there", run.resumed);
    }
}

#[test]
fn get__removed_and_moved_bytes_cost_next_to_nothing() {
    let old = content(1, BYTES);
    let (one, two) = (BLOCK / 2, 2 * BLOCK + 77);
    let world = older(&joined(&[&old[two..], &old[one..two]]), &old);
    let run = world.get_all(&Get::default());
    assert!(run.carried < 4 * CHUNK + LISTS, "{} bytes came", run.carried);
}

#[test]
fn get__bytes_that_changed_in_place() {
    let old = content(1, BYTES);
    let mut new = old.clone();
    let places = [0, 1_000_000, BLOCK, BYTES - 1];
    for at in places {
        new[at] ^= 1;
    }
    let world = older(&new, &old);
    let run = world.get_all(&Get::default());
    // Each change costs its chunk, and one after it that starts elsewhere.
    assert!(run.carried < 2 * 4 * CHUNK + LISTS, "{} bytes came", run.carried);
}

#[test]
fn get__a_file_of_one_block_and_an_older_one() {
    let old = content(1, BLOCK - 5);
    let world = older(&joined(&[b"new", &old]), &old);
    let run = world.get_all(&Get::default());
    assert!(run.carried < 2 * CHUNK + LISTS, "{} bytes came", run.carried);
}

#[test]
fn get__over_a_bad_way_only_what_changed() {
    let old = content(1, BYTES);
    let world = older(&joined(&[&old[..BLOCK], b"new", &old[BLOCK..]]), &old);
    let run = world.get_all(&Get { way: LoopbackPath { seed: 5, ..ROUGH }, ..Get::default() });
    assert!(run.resumed > BYTES as u64 / 2, "{} bytes were there", run.resumed);
}

#[test]
fn get__whole_files_if_asked() {
    let old = content(1, BYTES);
    let world = older(&joined(&[b"new", &old]), &old);
    let run = world.get_all(&Get { whole_file: true, ..Get::default() });
    assert!(run.carried > BYTES as u64 && run.resumed == 0, "{} bytes came", run.carried);
}

#[test]
fn get__nothing_in_common_costs_a_list_more() {
    let world = older(&content(1, BYTES), &content(2, BYTES - 1));
    let run = world.get_all(&Get::default());
    assert!(run.carried < BYTES as u64 + LISTS, "{} bytes came", run.carried);
}

#[test]
fn get__the_older_file_changes_meanwhile() {
    let old = content(1, BYTES);
    let world = older(&joined(&[b"new", &old]), &old);
    let (mut loopback, transfer) = world.open(&Get::default());
    // Its inode stays: what was found in it is there no more.
    fs::write(world.to().join("data/large"), content(9, BYTES)).unwrap();
    loopback.run_out(LASTS);
    let run = finish(&loopback, &transfer);
    assert!(run.outcome.is_complete(), "{:?}", run.outcome);
    world.assert_same();
}

/// Blocks of which it had everything come as they are.
#[test]
fn get__the_older_file_is_gone_meanwhile() {
    let old = content(1, BYTES);
    let world = older(&joined(&[&old, b"new"]), &old);
    let way = LoopbackPath { piece_bytes: 500, request_bytes: 4000, ..super::resume::NARROW };
    let (mut loopback, transfer) = world.open(&Get { way, ..Get::default() });
    // The older file was read, and the lists of its blocks are on their way.
    while loopback.carried[1] < LISTS / 4 {
        loopback.step();
    }
    fs::remove_file(world.to().join("data/large")).unwrap();
    loopback.run_out(LASTS);
    let run = finish(&loopback, &transfer);
    assert!(run.outcome.is_complete(), "{:?}", run.outcome);
    world.assert_same();
}

/// The bytes that an older file lacks come once, however often the transfer is interrupted.
#[test]
fn get__what_changed_goes_on_after_an_interruption() {
    let old = content(1, 8 * BLOCK);
    let mut new = old.clone();
    let changed = 500_000;
    for block in 0..7 {
        let at = block * BLOCK + 1_000_000;
        new[at..at + changed].copy_from_slice(&content(2, changed));
    }
    let world = older(&new, &old);
    let get = Get { way: super::resume::NARROW, ..Get::default() };
    let total = 7 * (changed as u64 + 2 * CHUNK);
    let first = super::resume::interrupt(&world, &get, total / 2);
    let second = world.get_all(&get);
    // The data in the memory and one block's changes; and the lists, twice.
    let most = total + (1 << 20) + changed as u64 + 2 * (8 * BLOCK as u64 / 512 + 4096);
    let sum = first.carried + second.carried;
    assert!(sum <= most, "{sum} bytes, and not {most}");
    assert!(second.carried < total * 3 / 4, "{} bytes came in the second session", second.carried);
}

#[test]
fn get__a_renamed_file_costs_its_list() {
    let world = World::new();
    world.file("a/before", content(1, BYTES)).file("other", content(2, BYTES));
    world.get_all(&Get::default());
    fs::create_dir(world.data().join("b")).unwrap();
    fs::rename(world.data().join("a/before"), world.data().join("b/after")).unwrap();
    let most = |is_fuzzy| if is_fuzzy { LISTS } else { BYTES as u64 + LISTS };
    for is_fuzzy in [true, false] {
        let run = world.get(&Get { is_fuzzy, ..Get::default() });
        assert!(run.outcome.is_complete(), "{:?}", run.outcome);
        assert!(run.carried < most(is_fuzzy) && (is_fuzzy || run.carried > BYTES as u64), "{} bytes", run.carried);
        assert!(fs::read(world.to().join("data/b/after")).unwrap() == content(1, BYTES));
        // It is there under its former name as well: nothing was moved.
        assert!(fs::read(world.to().join("data/a/before")).unwrap() == content(1, BYTES));
        fs::remove_file(world.to().join("data/b/after")).unwrap();
    }
}

#[test]
fn get__a_file_of_the_same_size_and_time_is_no_other() {
    let world = World::new();
    world.file("new", content(1, BYTES));
    fs::create_dir(world.to().join("data")).unwrap();
    let old = world.to().join("data/old");
    fs::write(&old, content(2, BYTES)).unwrap();
    let time = fs::metadata(world.data().join("new")).unwrap().modified().unwrap();
    fs::File::options().write(true).open(&old).unwrap().set_modified(time).unwrap();
    let run = world.get(&Get { is_fuzzy: true, ..Get::default() });
    assert!(run.outcome.is_complete() && run.carried > BYTES as u64);
    assert!(fs::read(world.to().join("data/new")).unwrap() == content(1, BYTES));
}

#[test]
fn get__append_brings_only_what_is_missing_at_the_end() {
    let (world, log) = (World::new(), content(1, BYTES));
    world.file("log", &log).file("longer", &log).file("same", content(3, 9)).file("new", "n");
    fs::create_dir(world.to().join("data")).unwrap();
    let there = |name: &str| world.to().join("data").join(name);
    fs::write(there("log"), &log[..2 * BLOCK]).unwrap();
    fs::write(there("longer"), content(2, BYTES + 1)).unwrap();
    fs::write(there("same"), "unchanged").unwrap();
    let keeps = Keeps { not_shorter: true, ..Keeps::default() };
    let run = world.get(&Get { keeps, ..Get::default() });
    assert!(run.outcome.is_complete(), "{:?}", run.outcome);
    assert!(run.carried < (BYTES - 2 * BLOCK) as u64 + 2 * CHUNK + LISTS, "{} bytes came", run.carried);
    assert!(fs::read(there("log")).unwrap() == log && fs::read(there("longer")).unwrap() == content(2, BYTES + 1));
    assert_eq!([fs::read(there("same")).unwrap(), fs::read(there("new")).unwrap()], [&b"unchanged"[..], b"n"]);
    // A part that is not that of the source is found by its hash.
    fs::write(there("log"), &content(9, BYTES)[..2 * BLOCK]).unwrap();
    world.get(&Get { keeps, ..Get::default() });
    assert!(fs::read(there("log")).unwrap() == log);
}

/// A giver of a file with these lists of chunks, and a destination with an older one.
fn listed(new: &[u8], old: &[u8], lists: Vec<Vec<u8>>) -> (World, Run) {
    let world = older(new, old);
    let mut fake = Fake::new([file("data/large", new)]);
    fake.lists = lists;
    let run = fake.get(&world, &Get::default());
    (world, run)
}

fn assert_taken(world: &World, run: &Run, new: &[u8], what: &str) {
    assert!(run.outcome.is_complete(), "{what}: {:?}", run.outcome);
    assert!(fs::read(world.to().join("data/large")).unwrap() == new, "{what}");
}

#[test]
fn get__a_giver_without_chunks_sends_whole_files() {
    let old = content(1, BYTES);
    let new = joined(&[b"new", &old]);
    let (world, run) = listed(&new, &old, Vec::new());
    assert_taken(&world, &run, &new, "none");
    assert_eq!(run.resumed, 0);
}

#[test]
fn hostile__lists_of_chunks_that_lie_cost_each_block_once_more() {
    let old = content(1, BYTES);
    let mut new = old.clone();
    new[5] ^= 1;
    // The older file's own chunks: what they say of the new one is wrong.
    let sizes = ChunkSizes::of(BYTES as u64);
    let lie = |block: usize| {
        let part = block * BLOCK..BYTES.min((block + 1) * BLOCK);
        let around = sizes.around(&(part.start as u64..part.end as u64), BYTES as u64);
        let start = around.start as usize;
        sizes.list(&old[start..around.end as usize], part.start - start..part.end - start)
    };
    let lists: Vec<_> = (0..4).map(lie).collect();
    let (world, run) = listed(&new, &old, lists.clone());
    assert_taken(&world, &run, &new, "a lie");
    // The first block was made of the older file, was wrong, and came whole.
    let most = BLOCK as u64 + LISTS;
    assert!((BLOCK as u64..most).contains(&run.carried), "{} bytes came", run.carried);
    let long = |length: u32, count: usize| {
        let entry = [&length.to_le_bytes()[..3], &[7; 3]].concat();
        [&[0; 6][..], &entry.repeat(count)].concat()
    };
    let others = [
        ("lengths beyond the block", long(100_000, 1000)),
        ("a chunk bomb", long(0xff_ffff, 1)),
        ("a thousand chunks of a byte", long(1, 1300)),
        ("a lead that is none", [&[0xff; 6][..], &lists[0][6..]].concat()),
        ("a list that is cut", lists[0][..13].to_vec()),
        ("zeros", vec![0; 8 << 10]),
    ];
    for (what, list) in others {
        let (world, run) = listed(&new, &old, vec![list; 4]);
        assert_taken(&world, &run, &new, what);
        // At worst a list has one chunk, and that is wrong: all of the block but its bytes comes, and then the whole
        // block, since its hash does not tell which bytes are wrong. Beside them each list, with its slot.
        let most = 2 * BYTES as u64 + 4 * (8 << 10) + LISTS;
        assert!(run.carried < most, "{what}: {} bytes came", run.carried);
    }
}
