//! A directory tree whose paths never lead out of it: see [`open_below`](crate::transfer::below::open_below).

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use fairwave_host::assert_may_wait;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, Timespec, Timestamps, mkdirat, openat, statat, utimensat};
use rustix::io::Errno;

use crate::format::manifest::Meta;
use crate::format::names::RelativePath;
use crate::sys::node_id;
use crate::transfer::below;

/// The destination's directory.
#[derive(Debug)]
pub(crate) struct Tree {
    root: OwnedFd,
}

/// The existing entry at a path of the destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Old {
    Nothing,
    There(There),
}

/// Something at the destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct There {
    pub(crate) kind: FileType,
    pub(crate) bytes: u64,
    pub(crate) meta: Meta,
    /// Which one it is: device and inode.
    pub(crate) id: (u64, u64),
}

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

impl Tree {
    /// The directory at a path that the user gave: links in that are the user's, and followed.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        assert_may_wait();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(path, flags, Mode::empty())?;
        Ok(Self { root })
    }

    /// Opens the tree; creates it if it does not exist.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        fs::create_dir_all(path)?;
        Self::open(path)
    }

    pub(crate) fn root(&self) -> &OwnedFd {
        &self.root
    }

    /// A directory in it; the empty path is the destination itself.
    pub(crate) fn directory(&self, path: &[u8]) -> rustix::io::Result<OwnedFd> {
        if path.is_empty() {
            return rustix::io::fcntl_dupfd_cloexec(&self.root, 0);
        }
        self.open_below(path, DIRECTORY, Mode::empty())
    }

    /// Opens a file in it for reading.
    pub(crate) fn read(&self, path: &RelativePath) -> rustix::io::Result<OwnedFd> {
        // A FIFO at the path must not block the transfer.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        self.open_below(path.as_bytes(), flags, Mode::empty())
    }

    /// Opens what is in it; the path is not empty.
    pub(crate) fn open_below(&self, path: &[u8], flags: OFlags, mode: Mode) -> rustix::io::Result<OwnedFd> {
        below::open_below(&self.root, path, flags, mode)
    }
}

/// A directory in an open one; no link is followed.
pub(crate) fn open_below(parent: impl AsFd, name: &[u8]) -> rustix::io::Result<OwnedFd> {
    openat(parent, name, DIRECTORY, Mode::empty())
}

/// Makes a directory in an open one with this mode, minus the umask. Returns whether it was made: `false` if it
/// existed.
pub(crate) fn make_below(parent: impl AsFd, name: &[u8], mode: u16) -> rustix::io::Result<(OwnedFd, bool)> {
    let is_new = match mkdirat(&parent, name, Mode::from_raw_mode(mode.into())) {
        Ok(()) => true,
        Err(Errno::EXIST) => false,
        Err(error) => return Err(error),
    };
    Ok((open_below(parent, name)?, is_new))
}

/// The entry of a name in an open directory, without following links.
pub(crate) fn look(parent: impl AsFd, name: &[u8]) -> rustix::io::Result<Old> {
    assert_may_wait();
    match statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Old::There(There::new(&stat))),
        Err(Errno::NOENT) => Ok(Old::Nothing),
        Err(error) => Err(error),
    }
}

/// Gives a file that is at its place its time.
pub(crate) fn set_time(parent: impl AsFd, name: &[u8], meta: Meta) -> rustix::io::Result<()> {
    utimensat(parent, name, &times(meta), AtFlags::SYMLINK_NOFOLLOW)
}

/// The times to set: the time of the copy is not visible.
pub(crate) fn times(meta: Meta) -> Timestamps {
    let time = Timespec { tv_sec: meta.mtime_s, tv_nsec: meta.mtime_ns.into() };
    Timestamps { last_access: time, last_modification: time }
}

impl There {
    /// From the result of `stat`.
    pub(crate) fn new(stat: &Stat) -> Self {
        let meta = Meta {
            mode: (stat.st_mode & 0o777) as u16,
            mtime_s: stat.st_mtime,
            mtime_ns: u32::try_from(stat.st_mtime_nsec).unwrap_or(0),
        };
        Self {
            kind: FileType::from_raw_mode(stat.st_mode),
            bytes: u64::try_from(stat.st_size).unwrap_or(0),
            meta,
            id: node_id(stat),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn directory__is_the_destination_itself_or_below_it() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir_all(place.path().join("a/b")).unwrap();
        fs::write(place.path().join("a/file"), "x").unwrap();
        symlink("..", place.path().join("up")).unwrap();
        let tree = Tree::open(place.path()).unwrap();
        let [one, other] = [tree.root(), &tree.directory(b"").unwrap()].map(|fd| look(fd, b"a").unwrap());
        assert_eq!(one, other);
        assert!(tree.directory(b"a").is_ok() && tree.directory(b"a/b").is_ok());
        assert_eq!(tree.directory(b"a/none").unwrap_err(), Errno::NOENT);
        let read = |path: &str| tree.read(&RelativePath::new(path.as_bytes()).unwrap());
        assert!(read("a/file").is_ok());
        for path in ["up", "up/x"] {
            assert!(tree.directory(path.as_bytes()).is_err() && read(path).is_err(), "{path}");
        }
    }
}
