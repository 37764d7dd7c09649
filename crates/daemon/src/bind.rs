//! The daemon's socket.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;
use thiserror::Error;

/// A socket that nobody else listens at; dropping it takes it away.
pub(crate) struct BoundSocket {
    pub(crate) listener: UnixListener,
    path: PathBuf,
    /// Held as long as this is: of two daemons that begin at once one has it.
    _lock: File,
}

/// Why there is no socket.
#[derive(Debug, Error)]
pub enum BindError {
    /// Another daemon has it.
    #[error("{}: a daemon listens there already", .0.display())]
    Taken(PathBuf),
    /// The system says no.
    #[error("{}: {source}", path.display())]
    System {
        /// The socket.
        path: PathBuf,
        /// What it says.
        source: io::Error,
    },
}

impl BoundSocket {
    /// Binds it; what a daemon left that was killed is removed.
    pub(crate) fn bind(path: &Path) -> Result<Self, BindError> {
        let system = |source| BindError::System { path: path.to_owned(), source };
        if let Some(dir) = path.parent().filter(|dir| !dir.as_os_str().is_empty() && !dir.exists()) {
            // Others must be able to come in, and nobody else to put a socket there.
            fs::DirBuilder::new().recursive(true).mode(0o755).create(dir).map_err(system)?;
        }
        let lock = File::create(path.with_extension("lock")).map_err(system)?;
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
        // All users of the machine take part; who they are the system says.
        fs::set_permissions(path, Permissions::from_mode(0o666)).map_err(system)?;
        listener.set_nonblocking(true).map_err(system)?;
        Ok(Self { listener, path: path.to_owned(), _lock: lock })
    }
}

impl Drop for BoundSocket {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
        let _ = fs::remove_file(self.path.with_extension("lock"));
    }
}
