//! Directories for the sockets of a run's daemons.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, fstat, open, stat};

const PREFIX: &str = "fairwave-testbed-";

/// A directory that is removed on drop, or by the next run if the process is killed.
pub(crate) struct SocketDir {
    pub(crate) path: PathBuf,
    /// Locked while the process lives, whatever process ids another container sees.
    _lock: OwnedFd,
}

impl SocketDir {
    pub(crate) fn new() -> io::Result<Self> {
        let base = std::env::temp_dir();
        remove_left(&base);
        Self::below(&base)
    }

    fn below(base: &Path) -> io::Result<Self> {
        loop {
            let chance = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
            let path = base.join(format!("{PREFIX}{}-{}", std::process::id(), chance.tv_nsec));
            // An existing one belongs to another process.
            DirBuilder::new().mode(0o700).create(&path)?;
            // Another run may remove it before this point.
            match lock(&path, FlockOperation::LockExclusive) {
                Ok(lock) if is_at(&lock, &path) => return Ok(Self { path, _lock: lock }),
                Ok(_) | Err(rustix::io::Errno::NOENT) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Drop for SocketDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Removes the directories of killed runs, which hold no lock.
fn remove_left(base: &Path) {
    let Ok(entries) = fs::read_dir(base) else { return };
    for entry in entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX)) {
        let path = entry.path();
        if let Ok(lock) = lock(&path, FlockOperation::NonBlockingLockExclusive)
            && fstat(&lock).is_ok_and(|found| found.st_uid == rustix::process::geteuid().as_raw())
        {
            let _ = fs::remove_dir_all(&path);
        }
    }
}

fn lock(path: &Path, operation: FlockOperation) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = open(path, flags, Mode::empty())?;
    flock(&directory, operation)?;
    Ok(directory)
}

fn is_at(directory: &OwnedFd, path: &Path) -> bool {
    let (Ok(held), Ok(there)) = (fstat(directory), stat(path)) else { return false };
    (held.st_dev, held.st_ino) == (there.st_dev, there.st_ino)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remove_left__removes_only_directories_of_killed_runs() {
        let base = SocketDir::new().unwrap();
        let runs = SocketDir::below(&base.path).unwrap();
        let killed = base.path.join(format!("{PREFIX}7-9"));
        let other = base.path.join("something-else");
        for path in [&killed, &other] {
            fs::create_dir(path).unwrap();
            fs::write(path.join("a.sock"), "").unwrap();
        }
        let linked = base.path.join(format!("{PREFIX}8-9"));
        std::os::unix::fs::symlink(&other, &linked).unwrap();
        remove_left(&base.path);
        assert!(!killed.exists());
        assert!(runs.path.exists() && other.join("a.sock").exists() && linked.is_symlink());
    }
}
