//! Holes at the giver are not sent, and are holes at the taker.

use std::os::unix::fs::FileExt;

use super::*;

const MIB: u64 = 1 << 20;

/// A file of this many bytes with data only at these places; returns the number of bytes of data.
fn sparse(world: &World, name: &str, bytes: u64, islands: &[(u64, usize)]) -> u64 {
    world.file(name, "");
    let path = world.data().join(name);
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(bytes).unwrap();
    for (i, (at, length)) in islands.iter().enumerate() {
        file.write_all_at(&content(i as u8, *length), *at).unwrap();
    }
    islands.iter().map(|(_, length)| *length as u64).sum()
}

/// Data at the edges of blocks, within them, and at the file's end or not there.
fn some(world: &World) -> u64 {
    let block = BLOCK as u64;
    let edges = [(0, 4096), (3 * block - 4096, 8192), (7 * block + MIB, 4096), (7 * block + 3 * MIB, 4096)];
    sparse(world, "edges", 40 * block + 123, &edges)
        + sparse(world, "tail", 9 * block + 5, &[(9 * block, 5)])
        + sparse(world, "small", 2 * MIB, &[(MIB, 4096)])
        + [1, MIB, block, block + 1, 30 * block]
            .into_iter()
            .enumerate()
            .map(|(i, bytes)| sparse(world, &format!("nothing/{i}"), bytes, &[]))
            .sum::<u64>()
        + [70_000, BLOCK]
            .map(|bytes| sparse(world, &format!("full/{bytes}"), bytes as u64, &[(0, bytes)]))
            .iter()
            .sum::<u64>()
}

fn assert_sparse(world: &World) {
    for name in ["edges", "tail", "small", "nothing/1", "nothing/4"] {
        let meta = fs::metadata(world.to().join("data").join(name)).unwrap();
        assert!(meta.blocks() * 512 <= 128 << 10, "{name}: {} bytes are on the disk", meta.blocks() * 512);
    }
}

#[test]
fn holes__do_not_travel() {
    for way in [FAIR, ROUGH] {
        let world = World::new();
        let data_bytes = some(&world);
        let (mut loopback, transfer) = world.open(&Get { way, ..Get::default() });
        loopback.run_out(LASTS);
        let (progress, run) = (transfer.progress(), finish(&loopback, &transfer));
        assert!(run.outcome.is_complete(), "{:?}", run.outcome);
        world.assert_same();
        assert_sparse(&world);
        // Of each island that has small holes about it, those too; the list; and what comes twice.
        assert!(run.carried < 2 * (data_bytes + 200_000), "{} bytes for {data_bytes}", run.carried);
        assert_eq!((progress.bytes_done, progress.bytes_held), (run.outcome.bytes, 0));
        assert_eq!(progress.bytes_total, Some(progress.bytes_holes + progress.bytes_moved()));
        assert!(progress.bytes_moved() <= data_bytes + 200_000, "{progress:?}");
    }
}

#[test]
fn holes__a_single_file_has_a_hash() {
    let block = BLOCK as u64;
    for (bytes, islands, has_hash) in [
        (MIB, &[][..], true),
        (12 * block + 1, &[], true),
        (14 * block + 9, &[(10 * block + 5, 10_000)], true),
        // Hashing these zeros takes as long as the same amount of data.
        (17 * block, &[], false),
        (50 * block + 9, &[(30 * block + 5, 10_000)], false),
    ] {
        let world = World::new();
        sparse(&world, "only", bytes, islands);
        let run = world.get_all(&Get::default());
        let hash: [u8; 32] = blake3::hash(&fs::read(world.data().join("only")).unwrap()).into();
        assert_eq!(run.outcome.blake3, has_hash.then_some(hash));
    }
}

#[test]
fn holes__however_large_take_no_time() {
    let world = World::new();
    // 8 TiB, as ext4 has room for.
    sparse(&world, "a", 1 << 43, &[(1 << 42, 5000)]);
    sparse(&world, "b", 1 << 43, &[]);
    let run = world.get(&Get::default());
    assert!(run.outcome.is_complete(), "{:?}", run.outcome);
    assert_eq!((run.outcome.bytes, run.outcome.blake3), (1 << 44, None));
    let file = fs::File::open(world.to().join("data/a")).unwrap();
    let mut island = vec![0; 5001];
    file.read_exact_at(&mut island, 1 << 42).unwrap();
    assert!(island == [content(0, 5000), vec![0]].concat());
    assert_eq!(fs::metadata(world.to().join("data/b")).unwrap().len(), 1 << 43);
    // And they are there.
    assert_eq!(world.get(&Get::default()).resumed, 1 << 44);
}

#[test]
fn holes__after_an_interruption() {
    let narrow = LoopbackPath { room: Bytes::new(1 << 20), piece_bytes: 60_000, request_bytes: 1 << 20, ..FAIR };
    for part in 1..6 {
        let world = World::new();
        let islands: Vec<_> = (0..10).map(|i| (i * 7 * BLOCK as u64 + MIB, BLOCK / 2)).collect();
        let data_bytes = sparse(&world, "a", 80 * BLOCK as u64, &islands) + sparse(&world, "b", 5 * BLOCK as u64, &[]);
        let get = Get { way: narrow, ..Get::default() };
        let (mut loopback, transfer) = world.open(&get);
        while loopback.carried[1] < data_bytes * part / 6 {
            loopback.step();
        }
        loopback.cut();
        let first = finish(&loopback, &transfer);
        let second = world.get_all(&get);
        // The data in the memory, two incomplete blocks, and the list and hashes, twice.
        let most = data_bytes + (1 << 20) + 2 * BLOCK as u64 + 300_000;
        let sum = first.carried + second.carried;
        assert!(sum <= most, "interrupted at {part}/6: {sum} bytes for {data_bytes}");
        assert!(fs::metadata(world.to().join("data/a")).unwrap().blocks() * 512 < data_bytes + MIB);
    }
}

#[test]
fn holes__a_check_finds_data_in_their_place() {
    let world = World::new();
    sparse(&world, "a", 6 * BLOCK as u64, &[(BLOCK as u64 + MIB, 5000)]);
    sparse(&world, "b", 3 * MIB, &[]);
    world.get_all(&Get::default());
    for (name, at) in [("a", 3 * BLOCK as u64 + 7), ("b", 9)] {
        let path = world.to().join("data").join(name);
        let time = fs::metadata(&path).unwrap().modified().unwrap();
        let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.write_all_at(b"x", at).unwrap();
        file.set_modified(time).unwrap();
    }
    let dry = world.get(&Get { does_check: true, is_dry: true, ..Get::default() });
    assert_eq!((dry.outcome.files, dry.placed), (2, 0));
    let run = world.get_all(&Get { does_check: true, ..Get::default() });
    assert!(run.carried < 10_000, "{} bytes", run.carried);
    assert_eq!(run.resumed, 5 * BLOCK as u64);
}

#[test]
fn holes__a_dry_run_knows_of_them() {
    let world = World::new();
    some(&world);
    let (mut loopback, transfer) = world.open(&Get { is_dry: true, ..Get::default() });
    loopback.run_out(LASTS);
    let (progress, run) = (transfer.progress(), finish(&loopback, &transfer));
    let real = { world.get_all(&Get::default()).outcome };
    assert_eq!((run.outcome.files, run.outcome.bytes), (real.files, real.bytes));
    assert_eq!(progress.bytes_holes, progress.bytes_done);
    assert!(progress.bytes_holes > 80 * BLOCK as u64);
}

#[test]
fn holes__a_file_that_changes_fails_alone() {
    let world = World::new();
    sparse(&world, "a", 20 * BLOCK as u64, &[(0, 10), (9 * BLOCK as u64, 5000)]);
    world.file("b", "b");
    let (mut loopback, transfer) = world.open(&Get::default());
    // The list is under way, and nothing that was read.
    while loopback.carried[1] == 0 {
        loopback.step();
    }
    let file = fs::OpenOptions::new().write(true).open(world.data().join("a")).unwrap();
    file.write_all_at(b"new", 15 * BLOCK as u64).unwrap();
    loopback.run_out(LASTS);
    let run = finish(&loopback, &transfer);
    assert_eq!((run.outcome.files, run.outcome.files_failed), (1, 1), "{:?}", run.outcome);
    assert!(!world.to().join("data/a").exists());
}
