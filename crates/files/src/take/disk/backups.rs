//! Keeps files that are replaced or deleted.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, linkat, renameat, unlinkat};
use rustix::io::Errno;

use crate::format::backup::Backup;
use crate::format::names::RelativePath;
use crate::take::disk::tree::{Tree, look, make_below};

/// Mode of directories that are made for backups, before the umask.
const MODE: u16 = 0o777;

/// Gives an entry of an open directory its backup's name as well, in place of an older backup. Returns whether it has
/// only that one: on a file system without hard links it is moved.
pub(crate) fn keep(backup: &Backup, tree: &Tree, parent: impl AsFd, path: &RelativePath) -> rustix::io::Result<bool> {
    let to = backup.of(path).map_err(|_| Errno::NAMETOOLONG)?;
    let made = if backup.is_beside() { None } else { Some(make(tree, to.parent())?) };
    let directory = made.as_ref().map_or(parent.as_fd(), AsFd::as_fd);
    let link = || linkat(&parent, path.name(), directory, to.name(), AtFlags::empty());
    let linked = match link() {
        Err(Errno::EXIST) if look(&parent, path.name())? == look(directory, to.name())? => Ok(()),
        Err(Errno::EXIST) => unlinkat(directory, to.name(), AtFlags::empty()).and_then(|()| link()),
        linked => linked,
    };
    match linked {
        Ok(()) => Ok(false),
        // Not all file systems have hard links, and a foreign file may not be linked to.
        Err(Errno::PERM | Errno::NOTSUP | Errno::MLINK | Errno::NOSYS) => {
            renameat(&parent, path.name(), directory, to.name()).map(|()| true)
        }
        Err(error) => Err(error),
    }
}

/// Opens a directory of the destination, and makes those that are missing. No link is followed.
fn make(tree: &Tree, path: &[u8]) -> rustix::io::Result<OwnedFd> {
    let mut directory = tree.directory(b"")?;
    for name in path.split(|byte| *byte == b'/') {
        directory = make_below(&directory, name, MODE)?.0;
    }
    Ok(directory)
}
