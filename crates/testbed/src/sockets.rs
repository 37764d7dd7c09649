//! Where the daemons of a run have their sockets.

use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

/// A directory that is gone with this.
pub(crate) struct SocketDir {
    pub(crate) path: PathBuf,
}

impl SocketDir {
    pub(crate) fn new() -> io::Result<Self> {
        let chance = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let name = format!("fairwave-testbed-{}-{}", std::process::id(), chance.tv_nsec);
        let path = std::env::temp_dir().join(name);
        // One that is there belongs to somebody else.
        std::fs::DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self { path })
    }
}

impl Drop for SocketDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}
