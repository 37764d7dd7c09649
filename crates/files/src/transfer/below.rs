//! Paths below a directory that never lead out of it.
//!
//! The kernel resolves a path in one call that follows no link (`openat2`), or it is opened name by name where the
//! kernel has no such call. So links that are created concurrently do no harm.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use fairwave_host::assert_may_wait;
use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;

use crate::sys;

/// Max attempts: the kernel returns EAGAIN when something was renamed during the lookup.
const TRIES: usize = 16;

/// Opens a path below a directory. No link is followed.
pub(crate) fn open_below(directory: impl AsFd, path: &[u8], flags: OFlags, mode: Mode) -> rustix::io::Result<OwnedFd> {
    /// Whether the kernel has no such call, or a sandbox hides it.
    static IS_MISSING: AtomicBool = AtomicBool::new(false);
    assert_may_wait();
    let directory = directory.as_fd();
    open_with(|path| sys::open_below(directory, path, flags, mode), &IS_MISSING, directory, path, flags, mode)
}

/// Opens with a system call that may be missing: after the first such error it is not tried again.
fn open_with(
    call: impl Fn(&[u8]) -> rustix::io::Result<OwnedFd>,
    is_missing: &AtomicBool,
    directory: BorrowedFd<'_>,
    path: &[u8],
    flags: OFlags,
    mode: Mode,
) -> rustix::io::Result<OwnedFd> {
    if is_missing.load(Relaxed) {
        return walk(directory, path, flags, mode);
    }
    for _ in 0..TRIES {
        match call(path) {
            Err(Errno::AGAIN) => {}
            // Filters of system calls that do not know it answer with the latter.
            Err(Errno::NOSYS | Errno::PERM) => {
                let opened = walk(directory, path, flags, mode);
                if opened.is_ok() {
                    is_missing.store(true, Relaxed);
                }
                return opened;
            }
            opened => return opened,
        }
    }
    walk(directory, path, flags, mode)
}

/// Opens a path one name at a time: without `..` and links, each step leads down.
fn walk(directory: BorrowedFd<'_>, path: &[u8], flags: OFlags, mode: Mode) -> rustix::io::Result<OwnedFd> {
    let step = sys::WAY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut at: Option<OwnedFd> = None;
    let mut names = path.split(|byte| *byte == b'/').peekable();
    while let Some(name) = names.next() {
        if matches!(name, b"" | b"." | b"..") {
            return Err(Errno::NOENT);
        }
        let from = at.as_ref().map_or(directory, AsFd::as_fd);
        at = Some(match names.peek() {
            Some(_) => openat(from, name, step, Mode::empty())?,
            None => openat(from, name, flags | OFlags::NOFOLLOW, mode)?,
        });
    }
    at.ok_or(Errno::NOENT)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Read;
    use std::os::unix::fs::symlink;

    use super::*;

    const READ: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NOFOLLOW);

    fn content(fd: OwnedFd) -> String {
        let mut content = String::new();
        fs::File::from(fd).read_to_string(&mut content).unwrap();
        content
    }

    fn open(path: &std::path::Path) -> OwnedFd {
        rustix::fs::open(path, sys::WAY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).unwrap()
    }

    /// With links of all kinds; the same with the call and without it.
    #[test]
    fn open_below__follows_no_link() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("root");
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::create_dir(place.path().join("outside")).unwrap();
        fs::write(root.join("a/file"), "x").unwrap();
        for (link, target) in [
            ("up", ".."),
            ("abs", "/"),
            ("a/here", "."),
            ("a/b/loop", "loop"),
            ("fd", "/proc/self/cwd"),
            ("a/to-file", "file"),
        ] {
            symlink(target, root.join(link)).unwrap();
        }
        let root = open(&root);
        let whole = |path: &str, flags| open_below(&root, path.as_bytes(), flags, Mode::empty());
        let stepwise = |path: &str, flags| walk(root.as_fd(), path.as_bytes(), flags, Mode::empty());
        for open in [&whole as &dyn Fn(&str, OFlags) -> rustix::io::Result<OwnedFd>, &stepwise] {
            assert_eq!(content(open("a/file", READ).unwrap()), "x");
            assert!(open("a/b", READ | OFlags::DIRECTORY).is_ok());
            for path in [
                "up",
                "up/outside",
                "abs/etc",
                "abs/etc/passwd",
                "a/here",
                "a/here/b",
                "a/b/loop",
                "fd",
                "fd/x",
                "a/to-file",
            ] {
                let error = open(path, READ).unwrap_err();
                assert!(matches!(error, Errno::LOOP | Errno::NOTDIR | Errno::XDEV), "{path}: {error}");
            }
            for path in ["a/none", "a/b/../../x", "/etc/passwd", ""] {
                assert!(open(path, READ).is_err(), "{path}");
            }
        }
    }

    #[test]
    fn open_with__without_the_call_each_name_is_opened() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir_all(place.path().join("data/real")).unwrap();
        fs::write(place.path().join("data/real/a"), "a").unwrap();
        let parent = open(place.path());
        for error in [Errno::NOSYS, Errno::PERM] {
            let (calls, is_missing) = (std::cell::Cell::new(0), AtomicBool::new(false));
            let call = |_: &[u8]| {
                calls.set(calls.get() + 1);
                Err(error)
            };
            let open = |path: &[u8]| open_with(call, &is_missing, parent.as_fd(), path, READ, Mode::empty());
            // A missing file is not evidence about the system call.
            assert!(open(b"data/gone").is_err());
            for _ in 0..3 {
                assert_eq!(content(open(b"data/real/a").unwrap()), "a", "{error}");
            }
            assert_eq!(calls.get(), 2, "{error}: it is not tried again");
        }
    }
}
