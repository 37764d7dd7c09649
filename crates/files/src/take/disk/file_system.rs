//! File systems by their `statfs` numbers.

pub(crate) const EXT4: u64 = 0xef53;
pub(crate) const XFS: u64 = 0x5846_5342;
pub(crate) const TMPFS: u64 = 0x0102_1994;
pub(crate) const BTRFS: u64 = 0x9123_683e;

/// Whether what a file occupies is known as soon as it is written, on a file system of this kind.
pub(crate) fn keeps_count(kind: u64) -> bool {
    matches!(kind, EXT4 | XFS | TMPFS)
}
