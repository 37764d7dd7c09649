//! Calls of POSIX in place of those of Linux.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{FileType, Gid, Mode, OFlags, Stat, Uid, XattrFlags};
use rustix::io::{Errno, Result};

use super::node_id;

/// Opens a directory for the way to what is below it, which takes the right to read it.
pub(crate) const WAY: OFlags = OFlags::RDONLY;
/// Opens a file or a directory for its attributes. A link cannot be opened, and a FIFO does not wait for a writer.
pub(crate) const LOOK: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);
/// Nothing goes past the page cache.
pub(crate) const DIRECT: OFlags = OFlags::empty();

/// The path is opened name by name.
pub(crate) fn open_below(_: BorrowedFd<'_>, _: &[u8], _: OFlags, _: Mode) -> Result<OwnedFd> {
    Err(Errno::NOSYS)
}

/// All files have names.
pub(crate) fn create_unnamed(_: impl AsFd, _: Mode) -> Result<OwnedFd> {
    Err(Errno::OPNOTSUPP)
}

pub(crate) fn name_unnamed(_: impl AsFd, _: impl AsFd, _: &[u8]) -> Result<()> {
    Err(Errno::OPNOTSUPP)
}

/// FIFOs and devices are made by their paths only, which may lead elsewhere by then.
pub(crate) fn make_node(_: impl AsFd, _: &[u8], _: FileType, _: Mode, _: u64) -> Result<()> {
    Err(Errno::OPNOTSUPP)
}

/// The system finds out itself.
pub(crate) fn reads_in_order(_: impl AsFd) {}

/// `F_PREALLOCATE` sets room aside at the end of a file only, and a file has its length from the beginning.
pub(crate) fn preallocate(_: impl AsFd, _: u64, _: u64) -> Result<()> {
    Err(Errno::OPNOTSUPP)
}

/// Zeros are written.
pub(crate) fn punch(_: impl AsFd, _: u64, _: u64) -> Result<()> {
    Err(Errno::OPNOTSUPP)
}

/// Makes the content of a file durable: on macOS past the disk's own cache (`F_FULLFSYNC`), if the file system can.
pub(crate) fn fdatasync(file: impl AsFd) -> Result<()> {
    flush(&file, File::sync_data)
}

/// Makes a file or a directory durable.
pub(crate) fn fsync(file: impl AsFd) -> Result<()> {
    flush(&file, File::sync_all)
}

fn flush(file: &impl AsFd, sync: impl Fn(&File) -> std::io::Result<()>) -> Result<()> {
    let file = File::from(rustix::io::fcntl_dupfd_cloexec(file, 0)?);
    sync(&file).or_else(|_| rustix::fs::fsync(&file))
}

/// Files are made durable one by one.
pub(crate) fn syncfs(_: impl AsFd) -> Result<()> {
    Err(Errno::NOSYS)
}

/// Names the mount that a directory is in: its device.
pub(crate) fn mount(directory: impl AsFd) -> u64 {
    rustix::fs::fstat(directory).map_or(0, |stat| node_id(&stat).0)
}

/// Whether a file may be made when it is read: any small one that occupies nothing.
pub(crate) fn may_be_generated(_: &Stat) -> bool {
    true
}

/// An entry that is open for reading, and its attributes.
pub(crate) struct Node<'fd>(BorrowedFd<'fd>);

impl<'fd> Node<'fd> {
    pub(crate) fn new(entry: &'fd impl AsFd) -> Self {
        Self(entry.as_fd())
    }

    pub(crate) fn chown(&self, owner: Option<Uid>, group: Option<Gid>) -> Result<()> {
        rustix::fs::fchown(self.0, owner, group)
    }

    pub(crate) fn chmod(&self, mode: Mode) -> Result<()> {
        rustix::fs::fchmod(self.0, mode)
    }

    pub(crate) fn xattr_names(&self, room: &mut [u8]) -> Result<usize> {
        rustix::fs::flistxattr(self.0, room)
    }

    pub(crate) fn xattr(&self, name: &[u8], room: &mut [u8]) -> Result<usize> {
        rustix::fs::fgetxattr(self.0, name, room)
    }

    pub(crate) fn set_xattr(&self, name: &[u8], value: &[u8]) -> Result<()> {
        // Elsewhere an ACL of Linux would be an attribute without a meaning.
        if !cfg!(target_os = "linux") && !name.starts_with(b"user.") {
            return Err(Errno::OPNOTSUPP);
        }
        rustix::fs::fsetxattr(self.0, name, value, XattrFlags::empty())
    }

    pub(crate) fn remove_xattr(&self, name: &[u8]) -> Result<()> {
        rustix::fs::fremovexattr(self.0, name)
    }
}

/// Whether an entry has no attribute of that name: ENOATTR, which is 93 on macOS and no error of these calls on Linux.
pub(crate) fn is_no_xattr(error: Errno) -> bool {
    error == Errno::NODATA || error.raw_os_error() == 93
}
