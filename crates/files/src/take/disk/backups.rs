//! Keeps files that are replaced or deleted.

use std::os::fd::{AsFd, OwnedFd};

use fairwave_host::OwnPlaces;
use rustix::fs::{AtFlags, fstat, linkat, renameat, unlinkat};
use rustix::io::Errno;

use crate::format::backup::Backup;
use crate::format::names::RelativePath;
use crate::sys::{mount, node_id};
use crate::take::disk::tree::{Tree, look, make_below, open_below};

/// Mode of directories that are made for backups, before the umask.
const MODE: u16 = 0o777;

/// Gives an entry of an open directory its backup's name as well, in place of an older backup. Returns whether it has
/// only that one: on a file system without hard links it is moved. No place of `own` gets a backup.
pub(crate) fn keep(
    backup: &Backup,
    tree: &Tree,
    own: Option<&OwnPlaces>,
    parent: impl AsFd,
    path: &RelativePath,
) -> rustix::io::Result<bool> {
    let to = backup.of(path).map_err(|_| Errno::NAMETOOLONG)?;
    let made = if backup.is_beside() { None } else { Some(make(tree, own, to.parent())?) };
    let directory = made.as_ref().map_or(parent.as_fd(), AsFd::as_fd);
    let link = || linkat(&parent, path.name(), directory, to.name(), AtFlags::empty());
    let linked = match link() {
        Err(Errno::EXIST) if look(&parent, path.name())? == look(directory, to.name())? => Ok(()),
        // An older backup is not lost to a link that cannot be made.
        Err(Errno::EXIST) if mount(parent.as_fd()) != mount(directory) => Err(Errno::XDEV),
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
fn make(tree: &Tree, own: Option<&OwnPlaces>, path: &[u8]) -> rustix::io::Result<OwnedFd> {
    let mut directory = tree.directory(b"")?;
    for name in path.split(|byte| *byte == b'/') {
        let next = match open_below(&directory, name) {
            Err(Errno::NOENT) if own.is_some_and(|own| node(&directory).is_ok_and(|at| own.is_next(at, name))) => {
                return Err(Errno::ACCESS);
            }
            Err(Errno::NOENT) => make_below(&directory, name, MODE)?.0,
            opened => opened?,
        };
        directory = next;
        let here = node(&directory)?;
        if own.is_some_and(|own| own.is_directory(here)) {
            return Err(Errno::ACCESS);
        }
    }
    Ok(directory)
}

/// Device and inode.
fn node(directory: &OwnedFd) -> rustix::io::Result<(u64, u64)> {
    fstat(directory).map(|stat| node_id(&stat))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::fs;
    use std::path::Path;

    use super::*;

    /// By any path, such as that of a bind mount: they are identified by device and inode.
    #[test]
    fn keep__puts_nothing_where_keys_are() {
        let place = tempfile::tempdir().unwrap();
        for directory in ["mine/fairwave", "d"] {
            fs::create_dir_all(place.path().join(directory)).unwrap();
        }
        fs::write(place.path().join("mine/fairwave/identity"), "key").unwrap();
        fs::write(place.path().join("identity"), "evil").unwrap();
        let own = OwnPlaces::at(["mine/fairwave", "d/fairwave"].map(|own| place.path().join(own)));
        let tree = Tree::open(place.path()).unwrap();
        let path = RelativePath::new(b"identity").unwrap();
        for directory in ["mine/fairwave", "d/fairwave", "mine/fairwave/x"] {
            let backup = Backup::new(OsStr::new(""), Some(Path::new(directory))).unwrap();
            let kept = keep(&backup, &tree, Some(&own), tree.root(), &path);
            assert_eq!(kept, Err(Errno::ACCESS), "{directory}");
        }
        assert_eq!(fs::read(place.path().join("mine/fairwave/identity")).unwrap(), b"key");
        assert!(!place.path().join("d/fairwave").exists());
        let backup = Backup::new(OsStr::new(""), Some(Path::new("d"))).unwrap();
        assert_eq!(keep(&backup, &tree, Some(&own), tree.root(), &path), Ok(false));
        assert_eq!(fs::read(place.path().join("d/identity")).unwrap(), b"evil");
    }
}
