//! The streams of a session about files.

use super::packed::CompressLevel;

/// The stream of the manifest.
pub(crate) const MANIFEST: u32 = 0;
/// The stream of the blocks' hashes. Lower streams are requested first: if it were above the tree, blocks would wait
/// for their hashes until everything else is requested.
pub(crate) const HASHES: u32 = 1;
/// The stream of the files' bytes.
pub(crate) const TREE: u32 = 2;
/// The stream of what the taker of a put could not write.
pub(crate) const RESULTS: u32 = 3;
/// The stream of the lists of the blocks' chunks. A giver without them refuses every request, and blocks are fetched.
pub(crate) const CHUNKS: u32 = 4;
/// The first of the streams of packed blocks, in which the giver chooses the level of compression; behind it there is one
/// for each level. A giver without them also refuses every request.
const PACKED: u32 = 8;

/// The stream of blocks that are packed at a level, or as the giver chooses.
pub(crate) fn packed(level: Option<CompressLevel>) -> u32 {
    PACKED + level.map_or(0, |level| level.number().into())
}

/// Whether a stream has packed blocks.
pub(crate) fn is_packed(stream: u32) -> bool {
    stream == PACKED || level_of(stream).is_some()
}

/// The level of a stream of packed blocks, if it has one.
pub(crate) fn level_of(stream: u32) -> Option<CompressLevel> {
    stream.checked_sub(PACKED).and_then(|level| u8::try_from(level).ok()).and_then(CompressLevel::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_packed__up_to_level_nine() {
        assert!((PACKED..=PACKED + 9).all(is_packed));
        assert!(![PACKED - 1, PACKED + 10, PACKED + 256, u32::MAX].into_iter().any(is_packed));
    }
}
