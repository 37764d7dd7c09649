//! The streams of a session about files.

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
