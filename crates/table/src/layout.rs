//! Layout of the two memories of a segment, in words of 64 bits.
//!
//! Both start with a label of [`LABEL_WORDS`], which identifies them. In the process's, [`HEAD_WORDS`] follow, of which
//! the first four mark the used rows, and then its rows; in the daemon's, its report follows, and then its rows.

/// Of the layout: both ends say theirs.
pub const VERSION: u64 = 3;
/// Rows of a segment. A row is a session and a direction.
pub const ROWS: usize = 256;
/// Processes of one user at the daemon.
pub const PROCESSES_A_USER: usize = 64;
/// Rows of one user.
pub const ROWS_A_USER: usize = 4096;
/// Rows of all users.
pub const ROWS_IN_ALL: usize = 65_536;

/// Words of the label, of both memories.
pub const LABEL_WORDS: usize = 16;
/// Words behind the label: the used rows, or the tick report.
pub const HEAD_WORDS: usize = 16;
/// A process's row: its sequence and 23 values, 192 bytes, which are three lines of a cache.
pub const PROCESS_ROW_WORDS: usize = 24;
/// The daemon's row: its sequence and 3 values, 32 bytes.
pub(crate) const GRANT_ROW_WORDS: usize = 4;
/// Words that say which rows are used, a bit a row.
pub(crate) const USED_WORDS: usize = ROWS / 64;

/// Memory is mapped in pages. 64 KiB is a multiple of every page size that Linux has by default anywhere.
const WHOLE_BYTES: usize = 65_536;

/// Bytes of a memory whose rows have `row_words` words.
pub(crate) const fn bytes(row_words: usize) -> usize {
    (row(row_words, ROWS) * 8).next_multiple_of(WHOLE_BYTES)
}

/// The first word of a row.
pub(crate) const fn row(row_words: usize, at: usize) -> usize {
    LABEL_WORDS + HEAD_WORDS + at * row_words
}
