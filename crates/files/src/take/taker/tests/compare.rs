//! Files at the destination that are compared block by block.

use super::*;

/// The block at the place of the seam comes, and what is new.
#[test]
fn get__check_of_a_file_that_grew_or_shrank_brings_what_differs() {
    let whole = content(7, 6 * BLOCK);
    let mut changed = whole[..5 * BLOCK + 1000].to_vec();
    changed[2 * BLOCK + 5] ^= 1;
    // The existing content, the given content, and the bytes that have to be sent.
    for (old, new, comes) in [
        // A growing log: only its last block, at most 4 MiB.
        (5 * BLOCK + 1000, &whole[..5 * BLOCK + 1100], 1100),
        (5 * BLOCK, &whole[..], BLOCK),
        (BLOCK, &whole[..=BLOCK], 1),
        (6 * BLOCK, &changed[..], BLOCK),
        // All of it exists already.
        (6 * BLOCK, &whole[..4 * BLOCK + 77], 0),
        (5 * BLOCK + 2000, &whole[..5 * BLOCK], 0),
        // A file of one block proves itself as a whole only.
        (6 * BLOCK, &whole[..BLOCK], BLOCK),
        (1000, &whole[..BLOCK - 5], BLOCK - 5),
    ] {
        let world = World::new();
        world.file("f", new);
        fs::create_dir(world.to().join("data")).unwrap();
        fs::write(world.to().join("data/f"), &whole[..old]).unwrap();
        let ask = Get { does_check: true, is_dry: true, ..Get::default() };
        let dry = world.get(&ask);
        assert_eq!((dry.outcome.files, dry.outcome.files_failed), (1, 0), "{old} -> {}: {:?}", new.len(), dry.outcome);
        let run = world.get_all(&Get { does_check: true, whole_file: true, ..Get::default() });
        let (least, most) = (comes as u64, comes as u64 + 20_000);
        assert!((least..most).contains(&run.carried), "{old} -> {}: {} bytes came", new.len(), run.carried);
        assert_eq!(run.resumed, (new.len() - comes) as u64, "{old} -> {}", new.len());
    }
}
