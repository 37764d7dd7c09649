//! The calls of Linux.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{
    Advice, AtFlags, FallocateFlags, FileType, Gid, Mode, OFlags, ResolveFlags, Stat, StatxFlags, Uid, XattrFlags,
};
use rustix::io::{Errno, Result};

pub(crate) use rustix::fs::{fdatasync, fsync, syncfs};

/// Opens a directory for the way to what is below it.
pub(crate) const WAY: OFlags = OFlags::PATH;
/// Opens an entry of any kind for its attributes only. `openat2` refuses any other flag with `O_PATH`.
pub(crate) const LOOK: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// Writes past the page cache.
pub(crate) const DIRECT: OFlags = OFlags::DIRECT;

const BELOW: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS);
/// The mount's name: `STATX_MNT_ID_UNIQUE`, which older kernels do not know, and `STATX_MNT_ID`, which they may use
/// again.
const MOUNT: StatxFlags = StatxFlags::from_bits_retain(0x4000 | 0x1000);

/// Opens a path below a directory, in one call that follows no link.
pub(crate) fn open_below(directory: BorrowedFd<'_>, path: &[u8], flags: OFlags, mode: Mode) -> Result<OwnedFd> {
    rustix::fs::openat2(directory, path, flags, mode, BELOW)
}

/// Creates a file without a name, for writing.
pub(crate) fn create_unnamed(directory: impl AsFd, mode: Mode) -> Result<OwnedFd> {
    rustix::fs::openat(directory, ".", OFlags::WRONLY | OFlags::TMPFILE | OFlags::CLOEXEC, mode)
}

/// Gives a file without a name its name.
pub(crate) fn name_unnamed(file: impl AsFd, directory: impl AsFd, name: &[u8]) -> Result<()> {
    rustix::fs::linkat(file, "", directory, name, AtFlags::EMPTY_PATH)
}

/// Makes a FIFO or a device.
pub(crate) fn make_node(parent: impl AsFd, name: &[u8], kind: FileType, mode: Mode, device: u64) -> Result<()> {
    rustix::fs::mknodat(parent, name, kind, mode, device)
}

/// A file is read in order. It is advice: a file system that takes none reads as well.
pub(crate) fn reads_in_order(file: impl AsFd) {
    let _ = rustix::fs::fadvise(file, 0, None, Advice::Sequential);
}

/// Sets room aside for a part of a file.
pub(crate) fn preallocate(file: impl AsFd, offset: u64, bytes: u64) -> Result<()> {
    rustix::fs::fallocate(file, FallocateFlags::KEEP_SIZE, offset, bytes)
}

/// Makes a part of a file a hole.
pub(crate) fn punch(file: impl AsFd, offset: u64, bytes: u64) -> Result<()> {
    rustix::fs::fallocate(file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, offset, bytes)
}

/// Names the mount that a directory is in.
pub(crate) fn mount(directory: impl AsFd) -> u64 {
    rustix::fs::statx(directory, "", AtFlags::EMPTY_PATH, MOUNT).map_or(0, |stat| stat.stx_mnt_id)
}

/// Whether a file may be made when it is read, as those of /proc are: its file system has no disk.
pub(crate) fn may_be_generated(stat: &Stat) -> bool {
    rustix::fs::major(stat.st_dev) == 0
}

/// An entry that is open, at least for its path, and its attributes.
pub(crate) struct Node<'fd> {
    entry: BorrowedFd<'fd>,
    /// Its link in /proc, which leads to it and nowhere else.
    path: String,
}

impl<'fd> Node<'fd> {
    pub(crate) fn new(entry: &'fd impl AsFd) -> Self {
        let entry = entry.as_fd();
        Self { entry, path: format!("/proc/self/fd/{}", entry.as_raw_fd()) }
    }

    pub(crate) fn chown(&self, owner: Option<Uid>, group: Option<Gid>) -> Result<()> {
        rustix::fs::chownat(self.entry, "", owner, group, AtFlags::EMPTY_PATH)
    }

    pub(crate) fn chmod(&self, mode: Mode) -> Result<()> {
        rustix::fs::chmod(&*self.path, mode)
    }

    pub(crate) fn xattr_names(&self, room: &mut [u8]) -> Result<usize> {
        rustix::fs::listxattr(&*self.path, room)
    }

    pub(crate) fn xattr(&self, name: &[u8], room: &mut [u8]) -> Result<usize> {
        rustix::fs::getxattr(&*self.path, name, room)
    }

    pub(crate) fn set_xattr(&self, name: &[u8], value: &[u8]) -> Result<()> {
        rustix::fs::setxattr(&*self.path, name, value, XattrFlags::empty())
    }

    pub(crate) fn remove_xattr(&self, name: &[u8]) -> Result<()> {
        rustix::fs::removexattr(&*self.path, name)
    }
}

/// Whether an entry has no attribute of that name.
pub(crate) fn is_no_xattr(error: Errno) -> bool {
    error == Errno::NODATA
}
