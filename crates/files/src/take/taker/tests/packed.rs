//! Blocks that are compressed on their way.

use super::fake::{Fake, file};
use super::resume::{NARROW, interrupt};
use super::*;
use crate::format::packed::{CompressLevel, pack};

const BYTES: usize = 3 * BLOCK + 12_345;
/// The hashes and the manifest.
const LISTS: u64 = 10_000;

/// Lines that differ: zstd makes them a quarter, or less.
fn text(bytes: usize) -> Vec<u8> {
    let lines =
        (0..).flat_map(|line: u64| format!("line {line}: value {}\n", line.wrapping_mul(7919) % 10_007).into_bytes());
    lines.take(bytes).collect()
}

fn auto() -> Get {
    Get { compress: Compress::Auto, ..Get::default() }
}

#[test]
fn get__text_comes_compressed() {
    let level = |level| Compress::Level(CompressLevel::new(level).unwrap());
    let carried = [Compress::Auto, level(1), level(9), Compress::Never].map(|compress| {
        let world = World::new();
        world.file("large", text(BYTES)).file("small", text(20_000)).file("tiny", "x").file("empty", "");
        world.get_all(&Get { compress, ..Get::default() }).carried
    });
    assert!(carried[..3].iter().all(|bytes| *bytes < BYTES as u64 / 2), "{carried:?}");
    assert!(carried[2] < carried[1] && carried[3] > BYTES as u64, "{carried:?}");
}

#[test]
fn get__small_files_are_compressed_one_by_one() {
    let world = World::new();
    (0..300).for_each(|i| _ = world.file(&i.to_string(), text(5000 + i)));
    let run = world.get_all(&auto());
    assert!(run.carried < 300 * 5000 / 2, "{} bytes came", run.carried);
    // Together they would be a small part of that: they differ by their lengths only.
    let alone: usize = (0..300).map(|i| pack(CompressLevel::AUTO, &mut text(5000 + i)).unwrap()).sum();
    assert!(run.carried >= alone as u64, "{} bytes came, {alone} in frames of their own", run.carried);
}

#[test]
fn get__compressed_over_a_way_that_loses_and_reorders() {
    for seed in 1..3 {
        let world = World::new();
        mixed(&world);
        world.file("large", text(BYTES)).file("small", text(20_000));
        let run = world.get_all(&Get { way: LoopbackPath { seed, ..ROUGH }, ..auto() });
        assert!(run.carried > 0);
    }
}

#[test]
fn get__random_bytes_come_as_they_are() {
    let world = World::new();
    // 40 MiB: the first are requested packed, later ones not, and the last ones again.
    (0..10).for_each(|i| _ = world.file(&format!("{i}"), content(i, BLOCK)));
    let run = world.get_all(&auto());
    assert!(run.carried < 10 * BLOCK as u64 + LISTS, "{} bytes came", run.carried);
}

#[test]
fn get__a_frame_in_a_file_is_no_frame_of_its_block() {
    let mut frame = content(1, BLOCK);
    frame[..100_000].copy_from_slice(&text(100_000));
    let length = pack(CompressLevel::AUTO, &mut frame[..100_000]).unwrap();
    let world = World::new();
    world.file("archive.zst", &frame[..length]).file("begins", &frame);
    world.get_all(&auto());
}

#[test]
fn get__a_cut_of_incompressible_blocks_loses_nothing() {
    let world = World::new();
    world.file("only", content(1, 3_500_000));
    let get = Get { way: LoopbackPath { piece_bytes: 2000, ..NARROW }, ..auto() };
    let first = interrupt(&world, &get, 1_500_000);
    let second = world.get_all(&get);
    assert!(first.carried + second.carried < 3_500_000 + 300_000, "{} and then {}", first.carried, second.carried);
}

#[test]
fn get__a_cut_of_compressed_blocks_costs_the_incomplete_ones() {
    let world = World::new();
    world.file("only", text(BYTES));
    let whole = {
        let other = World::new();
        other.file("only", text(BYTES));
        other.get_all(&auto()).carried
    };
    let get = Get { way: LoopbackPath { piece_bytes: 2000, ..NARROW }, ..auto() };
    let first = interrupt(&world, &get, whole / 2);
    let second = world.get_all(&get);
    assert!(first.carried + second.carried < 2 * whole, "{} and then {} of {whole}", first.carried, second.carried);
}

/// A giver of a file whose blocks come packed like this, if at all.
fn packed(content: &[u8], frame: Option<&[u8]>) -> (World, Run) {
    let world = World::new();
    let mut fake = Fake::new([file("data/large", content)]);
    fake.frame = frame.map(<[u8]>::to_vec);
    let run = fake.get(&world, &auto());
    assert!(run.outcome.is_complete(), "{:?}", run.outcome);
    assert!(fs::read(world.to().join("data/large")).unwrap() == content);
    (world, run)
}

#[test]
fn get__a_giver_without_packed_blocks_sends_them_as_they_are() {
    let (_, run) = packed(&text(BYTES), None);
    assert!(run.carried < BYTES as u64 + LISTS, "{} bytes came", run.carried);
}

#[test]
fn hostile__frames_that_lie_cost_each_block_once_more() {
    let frame = |content: Vec<u8>| {
        let mut block = content;
        let length = pack(CompressLevel::AUTO, &mut block).unwrap();
        block.truncate(length);
        block
    };
    let bomb = frame(vec![0; 64 << 20]);
    for (what, lie) in [
        ("another content", frame(vec![7; BLOCK])),
        ("too short", frame(text(1000))),
        ("a bomb of 64 MiB", bomb.clone()),
        ("a frame that is cut", bomb[..bomb.len() / 2].to_vec()),
        ("random bytes", content(3, 1000)),
        ("a byte", vec![0x28]),
    ] {
        let (_, run) = packed(&text(BYTES), Some(&lie));
        let most = BYTES as u64 + 4 * lie.len() as u64 + LISTS;
        assert!(run.carried <= most, "{what}: {} bytes came", run.carried);
    }
}
