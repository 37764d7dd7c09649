use super::super::listing::Draft;
use super::*;
use crate::format::blocks::BLOCK_BYTES;
use crate::format::manifest::{FileIdentity, Meta, TreeEntry};

const MIB: u64 = 1 << 20;

fn part(lengths: &[u64]) -> ManifestPart {
    let mut draft = Draft::new([1; 32], Arc::default());
    for bytes in lengths {
        let identity = FileIdentity([1; 16]);
        let parts = draft.add(&TreeEntry::File { path: b"a", bytes: *bytes, meta: Meta::default(), identity });
        assert!(parts.iter().all(Option::is_none));
    }
    draft.finish().unwrap()
}

fn schedule(lengths: &[u64]) -> Schedule {
    let mut schedule = Schedule::default();
    let mut steps = Vec::new();
    schedule.on_part(&part(lengths), &mut steps);
    schedule.on_complete(&mut steps);
    assert!(steps.is_empty());
    schedule
}

/// Steps as text, and what is to be read.
fn taken(steps: &mut Vec<WorkStep>) -> (Vec<String>, Vec<BatchPlan>) {
    let (mut lines, mut reads) = (Vec::new(), Vec::new());
    for step in steps.drain(..) {
        lines.push(match step {
            WorkStep::Serve(stream, range) => format!("serve {} {range:?}", name(stream)),
            WorkStep::Refuse(stream, range, reason) => format!("refuse {} {range:?} {reason:?}", name(stream)),
            WorkStep::Read(batch, ReadMode { is_hashed, .. }) => {
                reads.push(batch.clone());
                format!("{} {:?}", if is_hashed { "hash" } else { "read" }, batch.bytes)
            }
        });
    }
    (lines, reads)
}

fn name(stream: u32) -> String {
    let names = [(MANIFEST, "manifest"), (TREE, "tree"), (HASHES, "hashes")];
    names.into_iter().find(|(other, _)| *other == stream).map_or(stream.to_string(), |(_, name)| name.to_owned())
}

fn read(batch: &BatchPlan, voids: Vec<Void>) -> BatchBytes {
    let (bytes, blocks) = (batch.bytes.clone(), batch.blocks.clone());
    let records = vec![0; 48 * (blocks.end - blocks.start) as usize];
    BatchBytes {
        bytes,
        blocks,
        files_ended: 0,
        hole_bytes: 0,
        content: Vec::new(),
        records,
        lists: None,
        gaps: voids.clone().into(),
        voids: voids.into(),
        is_packed: false,
    }
}

#[test]
fn on_request__lists_of_chunks_end_somewhere_in_their_slots() {
    let (mut schedule, mut steps) = (schedule(&[BLOCK_BYTES + 1, 10]), Vec::new());
    schedule.on_request(CHUNKS, 0..3 * SLOT_BYTES, &mut steps);
    let (lines, reads) = taken(&mut steps);
    // Two batches at a time are read without their bytes being asked for.
    assert_eq!((lines.len(), reads.len()), (2, 2));
    for (batch, bytes) in reads.iter().zip([100, 0]) {
        let lists = Some(vec![vec![1; bytes]]);
        let batch = BatchBytes { lists, ..read(batch, Vec::new()) };
        assert!(!schedule.on_read(&batch, &mut steps));
    }
    let lines = taken(&mut steps).0;
    for expected in ["serve 4 0..100", "refuse 4 100..8192 Shrank", "refuse 4 8192..16384 Shrank"] {
        assert!(lines.iter().any(|line| line == expected), "{expected}: {lines:?}");
    }
    // They are known.
    schedule.on_request(CHUNKS, 50..8193, &mut steps);
    let again = ["serve 4 50..100", "refuse 4 100..8192 Shrank", "refuse 4 8192..8193 Shrank"];
    assert_eq!(taken(&mut steps).0, again);
}

#[test]
fn on_request__a_batch_is_cut_only_some_times() {
    let (mut schedule, mut steps) = (schedule(&[3 * BLOCK_BYTES]), Vec::new());
    for _ in 0..10 {
        schedule.on_request(CHUNKS, 0..10, &mut steps);
        for batch in taken(&mut steps).1 {
            let batch = BatchBytes { lists: Some(vec![vec![1; 10]]), ..read(&batch, Vec::new()) };
            schedule.on_read(&batch, &mut steps);
        }
        steps.clear();
        schedule.on_list_dropped(0);
    }
    assert_eq!(schedule.cut[&0].cuts, MAX_CUTS);
    schedule.on_request(CHUNKS, 0..10, &mut steps);
    assert_eq!(taken(&mut steps).0, ["refuse 4 0..10 Shrank"]);
}

#[test]
fn on_request__a_batch_is_packed_only_some_times() {
    let (mut schedule, mut steps) = (schedule(&[3 * BLOCK_BYTES]), Vec::new());
    let stream = crate::format::streams::packed(None);
    for _ in 0..10 {
        schedule.on_request(stream, 0..10, &mut steps);
        for batch in taken(&mut steps).1 {
            schedule.on_read(&BatchBytes { is_packed: true, ..read(&batch, Vec::new()) }, &mut steps);
            schedule.on_spent(&batch.bytes, &mut steps);
        }
        steps.clear();
        schedule.on_dropped((0, true));
    }
    assert_eq!(schedule.packs[&0], MAX_CUTS);
    schedule.on_request(stream, 0..10, &mut steps);
    assert_eq!(taken(&mut steps).0, ["refuse 8 0..10 Vanished"]);
}

#[test]
fn on_request__of_a_manifest_that_is_being_written() {
    let (mut schedule, mut steps) = (Schedule::default(), Vec::new());
    schedule.on_request(MANIFEST, 0..1000, &mut steps);
    assert!(steps.is_empty());
    let end = schedule.on_part(&part(&[5]), &mut steps);
    assert_eq!(taken(&mut steps).0, [format!("serve manifest 0..{end}")]);
    schedule.on_request(MANIFEST, 10..20, &mut steps);
    schedule.on_request(TREE, 4..6, &mut steps);
    assert_eq!(taken(&mut steps).0, ["serve manifest 10..20", "hash 0..5"]);
    schedule.on_complete(&mut steps);
    assert_eq!(taken(&mut steps).0, [format!("refuse manifest {end}..1000 Shrank")]);
    schedule.on_request(TREE, 4..6, &mut steps);
    schedule.on_request(HASHES, 48..100, &mut steps);
    schedule.on_request(99, 0..1, &mut steps);
    assert_eq!(
        taken(&mut steps).0,
        ["refuse tree 5..6 Shrank", "refuse hashes 48..100 Shrank", "refuse 99 0..1 Vanished"]
    );
}

#[test]
fn on_read__serves_all_who_waited_but_for_what_is_void() {
    let mut schedule = schedule(&[100, 100, 100]);
    let mut steps = Vec::new();
    schedule.on_request(HASHES, 0..144, &mut steps);
    schedule.on_request(TREE, 50..250, &mut steps);
    schedule.on_request(TREE, 40..60, &mut steps);
    let (lines, reads) = taken(&mut steps);
    assert_eq!(lines, ["hash 0..300"]);
    let void = Void { bytes: 100..200, blocks: 1..2, reason: VoidReason::Unreadable };
    assert!(schedule.on_read(&read(&reads[0], vec![void]), &mut steps));
    let expected = [
        "serve tree 40..100",
        "refuse tree 100..200 Unreadable",
        "serve tree 200..250",
        "serve hashes 0..48",
        "refuse hashes 48..96 Unreadable",
        "serve hashes 96..144",
    ];
    assert_eq!(taken(&mut steps).0, expected);
    // From memory, and from the disk after it was evicted.
    schedule.on_request(TREE, 90..110, &mut steps);
    schedule.on_dropped((0, false));
    schedule.on_request(HASHES, 0..48, &mut steps);
    schedule.on_request(TREE, 0..1, &mut steps);
    let expected = ["serve tree 90..100", "refuse tree 100..110 Unreadable", "serve hashes 0..48", "hash 0..300"];
    assert_eq!(taken(&mut steps).0, expected);
}

#[test]
fn on_request__reads_ahead_no_further_than_memory_goes() {
    let mut schedule = schedule(&[20 * BLOCK_BYTES]);
    let mut steps = Vec::new();
    schedule.on_request(TREE, MIB..80 * MIB, &mut steps);
    let (lines, reads) = taken(&mut steps);
    // 32 MiB are 8 blocks.
    assert_eq!((lines.len(), reads.len()), (8, 8));
    assert!(schedule.is_held_up());
    schedule.on_request(TREE, 2 * MIB..70 * MIB, &mut steps);
    assert!(steps.is_empty());
    assert!(schedule.on_read(&read(&reads[0], vec![]), &mut steps));
    assert_eq!(taken(&mut steps).0, [format!("serve tree {MIB}..{}", 4 * MIB)]);
    schedule.on_spent(&(0..BLOCK_BYTES), &mut steps);
    assert_eq!(taken(&mut steps).0, [format!("hash {}..{}", 32 * MIB, 36 * MIB)]);
    schedule.on_stall(&mut steps);
    assert_eq!(taken(&mut steps).1.len(), 8);
    schedule.clear();
    assert!(!schedule.is_held_up());
}

#[test]
fn on_request__hashes_wait_for_their_bytes_and_alone_when_nobody_wants_any() {
    let mut schedule = schedule(&[20 * BLOCK_BYTES]);
    let mut steps = Vec::new();
    schedule.on_request(TREE, 0..2 * BLOCK_BYTES, &mut steps);
    schedule.on_request(HASHES, 48..48 * 20, &mut steps);
    let (_, reads) = taken(&mut steps);
    assert_eq!(reads.len(), 2);
    // The first one's values were not asked for, the second one's were.
    assert!(schedule.on_read(&read(&reads[0], vec![]), &mut steps));
    assert!(schedule.on_read(&read(&reads[1], vec![]), &mut steps));
    let (lines, reads) = taken(&mut steps);
    let [one, two, three, four] = [1, 2, 3, 4].map(|block| block * BLOCK_BYTES);
    let served = [format!("serve tree 0..{one}"), format!("serve tree {one}..{two}"), "serve hashes 48..96".to_owned()];
    // Two by two.
    let alone = [format!("hash {two}..{three}"), format!("hash {three}..{four}")];
    assert_eq!(lines, [&served[..], &alone[..]].concat());
    assert!(!schedule.on_read(&read(&reads[0], vec![]), &mut steps));
    assert_eq!(taken(&mut steps).0[0], "serve hashes 96..144");
    // Of what has left memory since nothing is hashed again.
    schedule.on_dropped((2, false));
    schedule.on_request(TREE, two..two + 1, &mut steps);
    assert_eq!(taken(&mut steps).0, [format!("read {two}..{three}")]);
}

#[test]
fn hold__is_what_it_does_nothing_for() {
    let mut schedule = schedule(&[20 * BLOCK_BYTES]);
    let mut steps = Vec::new();
    assert_eq!(schedule.hold(), Hold::Peer);
    schedule.on_request(TREE, 0..BLOCK_BYTES, &mut steps);
    let (_, reads) = taken(&mut steps);
    assert_eq!(schedule.hold(), Hold::Disk);
    schedule.on_read(&read(&reads[0], vec![]), &mut steps);
    assert_eq!(schedule.hold(), Hold::Nothing);
    // Reads next to bytes that wait to be sent delay nothing.
    schedule.on_request(TREE, BLOCK_BYTES..2 * BLOCK_BYTES, &mut steps);
    assert_eq!(schedule.hold(), Hold::Nothing);
    schedule.on_spent(&reads[0].bytes, &mut steps);
    assert_eq!(schedule.hold(), Hold::Disk);
    let next = taken(&mut steps).1;
    schedule.on_read(&read(&next[0], vec![]), &mut steps);
    schedule.on_spent(&next[0].bytes, &mut steps);
    assert_eq!(schedule.hold(), Hold::Peer);
    // Of the same batch the next part.
    schedule.on_owed();
    assert_eq!(schedule.hold(), Hold::Nothing);
    schedule.on_paid();
    assert_eq!(schedule.hold(), Hold::Peer);
    schedule.on_request(HASHES, 48 * 5..48 * 6, &mut steps);
    assert_eq!(schedule.hold(), Hold::Comparing);
}

#[test]
fn on_request__hostile_ranges_cost_little() {
    let mut schedule = schedule(&[1 << 59]);
    let mut steps = Vec::new();
    for at in 0..100_000 {
        schedule.on_request(TREE, 2 * at..2 * at + 1, &mut steps);
        schedule.on_request(TREE, at << 40..u64::MAX >> 2, &mut steps);
        schedule.on_request(HASHES, at * 1000..u64::MAX >> 2, &mut steps);
        steps.retain(|step| matches!(step, WorkStep::Read(..)));
    }
    assert!(steps.len() <= 8 && schedule.tree.len() <= MAX_WAITING && schedule.parked.len() <= MAX_WAITING);
    assert!(schedule.reading.values().all(|waiting| waiting.tree.len() <= MAX_PARTS));
}
