//! The directory in which a user's Fairwave keeps what outlives a process.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use thiserror::Error;
use zeroize::Zeroizing;

use crate::network_thread::assert_may_wait;

/// No file there is larger.
const MOST_BYTES: u64 = 64 << 20;
/// Another process that holds a lock longer than this hangs.
/// Tests judge no speed.
const LOCK_TRIES: u32 = if cfg!(test) { 6000 } else { 500 };
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// The directory of what outlives a process: the host's identity, its tickets, the journals of transfers. Nobody else
/// may read it.
#[derive(Clone, Debug)]
pub struct StateDir {
    path: PathBuf,
}

/// Why the state directory cannot be used.
#[derive(Debug, Error)]
pub enum StateError {
    /// The environment names no place for it.
    #[error("no state directory: neither XDG_STATE_HOME nor HOME is an absolute path")]
    NoHome,
    /// Somebody else could change what is in it.
    #[error("{path}: owned by another user (ID {owner}); that user could read the keys", path = .path.display())]
    Owner {
        /// The directory.
        path: PathBuf,
        /// User ID of its owner.
        owner: u32,
    },
    /// The system refuses.
    #[error("{path}: {error}", path = .path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// A file there is not what was written.
    #[error("{path}: {what}", path = .path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// The problem.
        what: String,
    },
    /// The system has no randomness.
    #[error("cannot get random bytes from the system: {0}")]
    Random(#[from] getrandom::Error),
}

/// Held while a file of the state directory is read and replaced. Dropping it lets others go on.
#[derive(Debug)]
pub struct StateLock {
    _file: File,
}

impl StateDir {
    /// The user's: `$XDG_STATE_HOME/fairwave`, or `~/.local/state/fairwave`. It is made if it is not there.
    pub fn open() -> Result<Self, StateError> {
        let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = absolute("XDG_STATE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/state")));
        Self::at(home.ok_or(StateError::NoHome)?.join("fairwave"))
    }

    /// One at another place. It is made if it is not there, and closed to others if it is open to them.
    pub fn at(path: impl Into<PathBuf>) -> Result<Self, StateError> {
        let path = path.into();
        private_dir(&path)?;
        Ok(Self { path })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A directory in it, made if it is not there.
    pub fn dir(&self, name: &str) -> Result<PathBuf, StateError> {
        let path = self.path.join(name);
        private_dir(&path)?;
        Ok(path)
    }

    /// Waits until no other process holds the lock of this name, for at most 10 seconds.
    pub fn lock(&self, name: &str) -> Result<StateLock, StateError> {
        let path = self.path.join(format!("{name}.lock"));
        let io = |error| StateError::Io { path: path.clone(), error };
        let open = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path);
        let file = open.map_err(io)?;
        for _ in 0..LOCK_TRIES {
            match file.try_lock() {
                Ok(()) => return Ok(StateLock { _file: file }),
                Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
                Err(TryLockError::Error(error)) => return Err(io(error)),
            }
        }
        Err(io(io::Error::new(io::ErrorKind::TimedOut, "another process has held its lock for 10 s")))
    }

    /// The content of a file; `None` if it is not there. It may be secret.
    pub fn read(&self, name: &str) -> Result<Option<Zeroizing<Vec<u8>>>, StateError> {
        assert_may_wait();
        let path = self.path.join(name);
        let read = || -> io::Result<_> {
            let file = File::open(&path)?;
            let length = file.metadata()?.len();
            if length > MOST_BYTES {
                return Err(io::Error::other(format!("{length} bytes, the maximum is {MOST_BYTES}")));
            }
            // Growing would leave copies of secrets behind.
            let mut bytes = Zeroizing::new(Vec::with_capacity(length as usize + 1));
            file.take(MOST_BYTES).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        match read() {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(StateError::Io { path, error }),
        }
    }

    /// Replaces a file atomically and durably: readers see the old content or the new. Only its owner can read it.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), StateError> {
        assert_may_wait();
        let path = self.path.join(name);
        let hidden = self.path.join(format!(".{name}.{:016x}", getrandom::u64()?));
        let write = || -> io::Result<()> {
            let mut file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(&hidden)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            fs::rename(&hidden, &path)?;
            File::open(&self.path)?.sync_all()
        };
        write().map_err(|error| {
            // It is not there if it was renamed, and if it could not be made.
            let _ = fs::remove_file(&hidden);
            StateError::Io { path: path.clone(), error }
        })
    }
}

/// Makes a directory with access for its owner only, or checks that it is one.
pub(crate) fn private_dir(path: &Path) -> Result<(), StateError> {
    let io = |error| StateError::Io { path: path.to_owned(), error };
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(io)?;
    let meta = fs::metadata(path).map_err(io)?;
    if meta.uid() != rustix::process::geteuid().as_raw() {
        return Err(StateError::Owner { path: path.to_owned(), owner: meta.uid() });
    }
    if meta.mode() & 0o077 != 0 {
        fs::set_permissions(path, fs::Permissions::from_mode(0o700)).map_err(io)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at__is_closed_to_others() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a/fairwave");
        let state = StateDir::at(&path).unwrap();
        assert_eq!(mode(&path), 0o700);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        StateDir::at(&path).unwrap();
        assert_eq!(mode(&path), 0o700);
        assert_eq!(mode(&state.dir("journals").unwrap()), 0o700);
    }

    #[test]
    fn at__a_file_in_its_place_is_named() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("fairwave");
        fs::write(&path, "").unwrap();
        let error = StateDir::at(&path).unwrap_err().to_string();
        assert!(error.contains(path.to_str().unwrap()), "{error}");
    }

    #[test]
    fn read__of_a_file_above_the_maximum_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let state = StateDir::at(place.path()).unwrap();
        let file = File::create(place.path().join("x")).unwrap();
        file.set_len(MOST_BYTES).unwrap();
        assert_eq!(state.read("x").unwrap().unwrap().len() as u64, MOST_BYTES);
        file.set_len(MOST_BYTES + 1).unwrap();
        let error = state.read("x").unwrap_err().to_string();
        assert!(error.contains(&format!("the maximum is {MOST_BYTES}")), "{error}");
    }

    #[test]
    fn write__replaces_at_once_and_for_the_owner_alone() {
        let place = tempfile::tempdir().unwrap();
        let state = StateDir::at(place.path()).unwrap();
        assert!(state.read("x").unwrap().is_none());
        state.write("x", b"one").unwrap();
        state.write("x", b"two").unwrap();
        assert_eq!(state.read("x").unwrap().unwrap().as_slice(), b"two");
        assert_eq!(mode(&place.path().join("x")), 0o600);
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
    }

    #[test]
    fn lock__lets_one_in_after_the_other() {
        let place = tempfile::tempdir().unwrap();
        let state = StateDir::at(place.path()).unwrap();
        state.write("count", b"0").unwrap();
        let add = || {
            for _ in 0..20 {
                let _lock = state.lock("count").unwrap();
                let text = String::from_utf8(state.read("count").unwrap().unwrap().to_vec()).unwrap();
                state.write("count", (text.parse::<u32>().unwrap() + 1).to_string().as_bytes()).unwrap();
            }
        };
        std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(add))));
        assert_eq!(state.read("count").unwrap().unwrap().as_slice(), b"80");
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }
}
