//! A server that may be reached again after its connection was lost.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use fairwave_host::Lock;

use super::client::Sftp;

/// Opens a connection to the server.
pub type SftpConnect = Box<dyn Fn() -> io::Result<Sftp> + Send + Sync>;

/// An SFTP server, with one connection at a time.
pub struct SftpServer {
    connect: SftpConnect,
    current: Lock<Arc<Sftp>>,
    /// One thread connects at a time, and others wait for it: no lock of those that are held for moments.
    turn: Mutex<()>,
}

impl SftpServer {
    /// Connects to it.
    pub fn open(connect: SftpConnect) -> io::Result<Self> {
        let current = Lock::new(Arc::new(connect()?));
        Ok(Self { connect, current, turn: Mutex::default() })
    }

    /// The connection as of now, which may be lost.
    pub(crate) fn current(&self) -> Arc<Sftp> {
        Arc::clone(&self.current.lock())
    }

    /// The connection, or another one if it was lost.
    pub(crate) fn connected(&self) -> io::Result<Arc<Sftp>> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let current = self.current();
        if !current.is_lost() {
            return Ok(current);
        }
        let next = Arc::new((self.connect)()?);
        *self.current.lock() = Arc::clone(&next);
        Ok(next)
    }
}
