//! Calls on files that Linux has and other systems lack, and what replaces them there.
//!
//! `linux` and `unix` have the same names. `unix` is for macOS; with `--cfg fairwave_portable` Linux takes it as well.
//! All unit tests pass there except four, which need O_TMPFILE, holes, or attributes of symbolic links.

#[cfg(all(target_os = "linux", not(fairwave_portable)))]
#[path = "linux.rs"]
mod system;
#[cfg(not(all(target_os = "linux", not(fairwave_portable))))]
#[path = "unix.rs"]
mod system;

pub(crate) use system::*;

use rustix::fs::Stat;

/// Device and inode of an entry. Their types differ between systems.
#[allow(clippy::unnecessary_cast, reason = "not on all systems")]
pub(crate) fn node_id(stat: &Stat) -> (u64, u64) {
    (stat.st_dev as u64, stat.st_ino as u64)
}

/// The device that an entry stands for.
#[allow(clippy::unnecessary_cast, reason = "not on all systems")]
pub(crate) fn device(stat: &Stat) -> u64 {
    stat.st_rdev as u64
}
