//! A put on an SFTP server: its sources and its destination.

use std::ffi::OsString;
use std::sync::Arc;

use crate::give::list_options::ListOptions;
use crate::give::put::PutOptions;
use crate::give::roots::Roots;
use crate::sftp::connection::SftpServer;
use crate::transfer::ledger::Ledger;

/// Destination at an SFTP server.
#[derive(Clone, Debug)]
pub struct SftpDestination {
    /// A directory, or the new name of the only source. Relative paths start where the server lets them start.
    pub path: OsString,
    /// Whether a path that does not exist is the name of the only source.
    pub is_single: bool,
    /// Whether files are flushed to the server's disk before they get their names, if the server can.
    pub syncs: bool,
    /// Whether each file is read back, and compared, before it gets its name.
    pub verifies: bool,
}

/// A put on an SFTP server.
pub(super) struct SftpPut {
    pub(super) server: SftpServer,
    pub(super) roots: Arc<Roots>,
    pub(super) listing: ListOptions,
    pub(super) to: SftpDestination,
    pub(super) options: PutOptions,
    pub(super) ledger: Ledger,
}
