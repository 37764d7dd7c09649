//! A directory tree whose paths never lead out of it.
//!
//! Every path is resolved below the destination by the kernel (`openat2` with `RESOLVE_BENEATH`, and no symbolic link
//! is followed), or name by name where the kernel has no such call. So links that are created concurrently do no harm.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use fairwave_host::assert_may_wait;
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, ResolveFlags, Stat, StatxFlags, Timespec, Timestamps, mkdirat, openat, openat2,
    statat, statx, utimensat,
};
use rustix::io::Errno;

use crate::format::manifest::Meta;
use crate::format::names::RelativePath;

/// The destination's directory.
#[derive(Debug)]
pub(crate) struct Tree {
    root: OwnedFd,
    has_openat2: AtomicBool,
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
const BELOW: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_MAGICLINKS);
/// The mount's name: `STATX_MNT_ID_UNIQUE`, which older kernels do not know, and `STATX_MNT_ID`, which they may use
/// again.
const MOUNT: StatxFlags = StatxFlags::from_bits_retain(0x4000 | 0x1000);
/// Max attempts: the kernel returns EAGAIN when something was renamed during the lookup.
const TRIES: usize = 16;

impl Tree {
    /// The directory at a path that the user gave: links in that are the user's, and followed.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        assert_may_wait();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(path, flags, Mode::empty())?;
        Ok(Self { root, has_openat2: AtomicBool::new(true) })
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
        assert_may_wait();
        if self.has_openat2.load(Relaxed) {
            for _ in 0..TRIES {
                match openat2(&self.root, path, flags, mode, BELOW) {
                    Err(Errno::AGAIN) => {}
                    // Filters of system calls that do not know it answer with the latter.
                    Err(Errno::NOSYS | Errno::PERM) => return self.walk(path, flags, mode, true),
                    other => return other,
                }
            }
        }
        self.walk(path, flags, mode, false)
    }

    /// Name by name: the path has neither `..` nor links, so each step leads down.
    fn walk(&self, path: &[u8], flags: OFlags, mode: Mode, is_first: bool) -> rustix::io::Result<OwnedFd> {
        let (parent, name) = match path.iter().rposition(|byte| *byte == b'/') {
            Some(at) => (&path[..at], &path[at + 1..]),
            None => (&[][..], path),
        };
        let mut directory = None;
        for step in parent.split(|byte| *byte == b'/').filter(|step| !step.is_empty()) {
            let above = directory.as_ref().unwrap_or(&self.root);
            directory = Some(openat(above, step, DIRECTORY, Mode::empty())?);
        }
        let opened = openat(directory.as_ref().unwrap_or(&self.root), name, flags | OFlags::NOFOLLOW, mode);
        if is_first && opened.is_ok() {
            self.has_openat2.store(false, Relaxed);
        }
        opened
    }

    #[cfg(test)]
    pub(crate) fn without_openat2(self) -> Self {
        self.has_openat2.store(false, Relaxed);
        self
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
            id: (stat.st_dev, stat.st_ino),
        }
    }
}

/// Names the mount that a directory is in.
pub(crate) fn mount(directory: impl AsFd) -> u64 {
    statx(directory, "", AtFlags::EMPTY_PATH, MOUNT).map_or(0, |stat| stat.stx_mnt_id)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A destination with a directory, a file, and links of all kinds; the same with and without the kernel's help.
    fn trees() -> (tempfile::TempDir, [Tree; 2]) {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("root");
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::create_dir(place.path().join("outside")).unwrap();
        fs::write(root.join("a/file"), "x").unwrap();
        for (link, target) in
            [("up", ".."), ("abs", "/"), ("a/here", "."), ("a/b/loop", "loop"), ("fd", "/proc/self/cwd")]
        {
            symlink(target, root.join(link)).unwrap();
        }
        symlink("file", root.join("a/to-file")).unwrap();
        let trees = [Tree::open(&root).unwrap(), Tree::open(&root).unwrap().without_openat2()];
        (place, trees)
    }

    fn is_root(tree: &Tree, directory: &OwnedFd) -> bool {
        let [one, other] = [tree.root(), directory].map(|fd| There::new(&rustix::fs::fstat(fd).unwrap()).id);
        one == other
    }

    #[test]
    fn directory__follows_no_link() {
        let (_place, trees) = trees();
        for tree in &trees {
            assert!(is_root(tree, &tree.directory(b"").unwrap()));
            assert!(tree.directory(b"a").is_ok() && tree.directory(b"a/b").is_ok());
            for path in [
                "up",
                "up/outside",
                "abs",
                "abs/etc",
                "a/here",
                "a/here/b",
                "a/b/loop",
                "fd",
                "fd/x",
                "a/file",
                "a/to-file",
            ] {
                let error = tree.directory(path.as_bytes()).unwrap_err();
                assert!(matches!(error, Errno::LOOP | Errno::NOTDIR | Errno::XDEV), "{path}: {error}");
            }
            assert_eq!(tree.directory(b"a/none").unwrap_err(), Errno::NOENT);
        }
    }

    #[test]
    fn read__follows_no_link() {
        let (_place, trees) = trees();
        for tree in &trees {
            let read = |path: &str| tree.read(&RelativePath::new(path.as_bytes()).unwrap());
            assert!(read("a/file").is_ok());
            for path in ["a/to-file", "a/here/file", "up/root/a/file", "abs/etc/passwd"] {
                assert!(read(path).is_err(), "{path}");
            }
        }
    }
}
