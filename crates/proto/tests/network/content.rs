//! Contents of streams: each byte follows from its position.

use super::test_random::mixed;

/// The bytes of a stream of a transfer from `offset` on, into all of `room`.
pub(crate) fn fill(transfer: usize, stream: u32, offset: u64, room: &mut [u8]) {
    let key = mixed((transfer as u64) << 32 | u64::from(stream));
    let skipped = (offset % 8) as usize;
    let mut word = offset / 8;
    let (head, rest) = room.split_at_mut(room.len().min((8 - skipped) % 8));
    if !head.is_empty() {
        let bytes = mixed(key ^ word).to_le_bytes();
        head.copy_from_slice(&bytes[skipped..skipped + head.len()]);
        word += 1;
    }
    for chunk in rest.chunks_mut(8) {
        let bytes = mixed(key ^ word).to_le_bytes();
        chunk.copy_from_slice(&bytes[..chunk.len()]);
        word += 1;
    }
}

#[test]
fn fill__is_the_same_wherever_it_begins() {
    let mut all = [0; 200];
    fill(1, 2, 1000, &mut all);
    for start in 0..40 {
        for length in 0..30 {
            let mut part = vec![0; length];
            fill(1, 2, 1000 + start as u64, &mut part);
            assert_eq!(part, all[start..start + length]);
        }
    }
    let mut other = [0; 200];
    fill(1, 3, 1000, &mut other);
    assert_ne!(all, other);
}
