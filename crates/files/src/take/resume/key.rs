//! Keys of temporaries.

/// Names a temporary: a hash of all that makes a file the same file.
pub(crate) type TemporaryKey = [u8; 16];

/// Time of a temporary's last change of content, mode or times (ctime): programs cannot set it, except by the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TemporaryStamp {
    pub(crate) ctime_s: i64,
    pub(crate) ctime_ns: u32,
    /// The mount that it is on: what was not written to the disk is lost with that.
    pub(crate) mount: u64,
}
