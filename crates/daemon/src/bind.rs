//! The daemon's socket.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags};
use thiserror::Error;

/// A socket with this process as its only listener; dropping it removes it.
pub(crate) struct BoundSocket {
    pub(crate) listener: UnixListener,
    path: PathBuf,
    /// The directory that was made for it.
    pub(crate) made: Option<PathBuf>,
    /// Held for the lifetime of this value: of two daemons that start at once only one has it. `None` for a socket that
    /// another program bound, and removes.
    lock: Option<File>,
}

/// Reason why the socket could not be bound.
#[derive(Debug, Error)]
pub enum BindError {
    /// Another daemon has it.
    #[error("{}: a daemon is already listening", .0.display())]
    Taken(PathBuf),
    /// More than its own directory is not there.
    #[error("{}: no directory {}", path.display(), missing.display())]
    NoDirectory {
        /// The socket.
        path: PathBuf,
        /// The missing path.
        missing: PathBuf,
    },
    /// A system error.
    #[error("{}: {}", path.display(), reason(source))]
    System {
        /// The socket.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// Text of an I/O error without the system's number.
pub(crate) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

impl BoundSocket {
    /// One that is bound already, and that listens.
    pub(crate) fn handed(listener: UnixListener, path: &Path) -> Result<Self, BindError> {
        let system = |source| BindError::System { path: path.to_owned(), source };
        listener.set_nonblocking(true).map_err(system)?;
        Ok(Self { listener, path: path.to_owned(), made: None, lock: None })
    }

    /// Binds it; what a daemon left that was killed is removed.
    pub(crate) fn bind(path: &Path) -> Result<Self, BindError> {
        let system = |source| BindError::System { path: path.to_owned(), source };
        let mut made = path.parent().filter(|dir| !dir.as_os_str().is_empty() && !dir.exists());
        if let Some(dir) = made {
            // One directory, as /run/fairwave is: more than one that is not there is a slip of the pen.
            if let Some(missing) = dir.parent().filter(|above| !above.as_os_str().is_empty() && !above.exists()) {
                return Err(BindError::NoDirectory { path: path.to_owned(), missing: missing.to_owned() });
            }
            // Others must be able to connect, but not to put a socket there.
            match fs::DirBuilder::new().mode(0o755).create(dir) {
                // Another daemon that starts created it just now.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => made = None,
                done => done.map_err(system)?,
            }
        }
        let made = made.map(Path::to_owned);
        let lock = lock_file(&path.with_extension("lock")).map_err(system)?;
        match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Err(rustix::io::Errno::WOULDBLOCK) => return Err(BindError::Taken(path.to_owned())),
            held => held.map_err(|errno| system(errno.into()))?,
        }
        match UnixStream::connect(path) {
            Ok(_) => return Err(BindError::Taken(path.to_owned())),
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                fs::remove_file(path).map_err(system)?;
            }
            Err(_) => {}
        }
        let listener = UnixListener::bind(path).map_err(system)?;
        // All users of the machine take part; the system identifies them.
        fs::set_permissions(path, Permissions::from_mode(0o666)).map_err(system)?;
        listener.set_nonblocking(true).map_err(system)?;
        Ok(Self { listener, path: path.to_owned(), made, lock: Some(lock) })
    }
}

/// A file that other users cannot open, and so cannot lock.
fn lock_file(path: &Path) -> io::Result<File> {
    let no_link = OFlags::NOFOLLOW.bits().cast_signed();
    let file =
        OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).custom_flags(no_link).open(path)?;
    let metadata = file.metadata()?;
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::other(format!("{} belongs to another user", path.display())));
    }
    // One of an earlier version may be open to others.
    if metadata.mode() & 0o077 != 0 {
        file.set_permissions(Permissions::from_mode(0o600))?;
    }
    Ok(file)
}

impl Drop for BoundSocket {
    fn drop(&mut self) {
        if self.lock.is_none() {
            return;
        }
        let _ = fs::remove_file(&self.path);
        let _ = fs::remove_file(self.path.with_extension("lock"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bind__makes_one_directory_and_says_so_and_no_more() {
        let place = tempfile::tempdir().unwrap();
        let (near, far) = (place.path().join("run/d.sock"), place.path().join("a/b/d.sock"));
        let bound = BoundSocket::bind(&near).unwrap();
        assert_eq!(bound.made, Some(place.path().join("run")));
        drop(bound);
        assert_eq!(BoundSocket::bind(&near).unwrap().made, None);
        let error = BoundSocket::bind(&far).err().unwrap().to_string();
        assert!(error.ends_with(&format!("no directory {}", place.path().join("a").display())), "{error}");
        assert!(!place.path().join("a").exists());
    }

    #[test]
    fn bind__of_two_that_begin_at_once_one_has_it() {
        let place = tempfile::tempdir().unwrap();
        for round in 0..200 {
            let path = place.path().join(format!("{round}/d.sock"));
            let begin = std::sync::Barrier::new(2);
            let one = || {
                begin.wait();
                BoundSocket::bind(&path)
            };
            let (first, second) = std::thread::scope(|scope| {
                let other = scope.spawn(one);
                (one(), other.join().unwrap())
            });
            let taken = match (&first, &second) {
                (Ok(_), Err(error)) | (Err(error), Ok(_)) => error,
                (first, second) => panic!("round {round}: {:?}, {:?}", first.as_ref().err(), second.as_ref().err()),
            };
            assert!(matches!(taken, BindError::Taken(_)), "round {round}: {taken}");
        }
    }

    #[test]
    fn lock_file__is_of_its_user_alone_and_follows_no_link() {
        let place = tempfile::tempdir().unwrap();
        let (lock, other) = (place.path().join("d.lock"), place.path().join("other"));
        let mode = || fs::metadata(&lock).unwrap().mode() & 0o777;
        lock_file(&lock).unwrap();
        assert_eq!(mode(), 0o600);
        fs::set_permissions(&lock, Permissions::from_mode(0o644)).unwrap();
        lock_file(&lock).unwrap();
        assert_eq!(mode(), 0o600);
        fs::remove_file(&lock).unwrap();
        fs::write(&other, "kept").unwrap();
        std::os::unix::fs::symlink(&other, &lock).unwrap();
        assert!(lock_file(&lock).is_err());
        assert_eq!(fs::read_to_string(&other).unwrap(), "kept");
    }
}
