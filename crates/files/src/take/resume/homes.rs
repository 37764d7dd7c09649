//! Directories that files are made in, and what their file systems can do.
//!
//! A destination may have other file systems mounted below it. A temporary is made in the directory of its file: so the
//! file gets its name by a rename within one directory, and has inherited what files in that directory inherit (group,
//! ACL, project quota).

use std::collections::{BTreeSet, HashMap};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use data_encoding::HEXLOWER;
use fairwave_host::{Held, Lock};
use rustix::fs::{AtFlags, Dir, FileType, Stat, fstat, fstatfs, statat, unlinkat};

use crate::format::names::TEMPORARIES;
use crate::sys::{mount, node_id};
use crate::take::disk::file_system::{BTRFS, EXT4, TMPFS, XFS};
use crate::take::disk::tree::Tree;
use crate::take::resume::key::{TemporaryKey, TemporaryStamp};

/// Known capabilities of a file system below the destination.
#[derive(Debug)]
pub(crate) struct FileSystem {
    /// A directory on it.
    pub(crate) directory: OwnedFd,
    /// Its mount.
    mount: u64,
    /// Whether its contents never survive a reboot.
    pub(crate) is_in_memory: bool,
    /// Whether files can be written before they have a name.
    pub(crate) has_unnamed: Flag,
    /// Whether what is written can go past the page cache.
    pub(crate) has_direct: Flag,
    /// Whether room can be set aside.
    pub(crate) sets_aside: Flag,
}

/// A fact that holds until it turns out not to.
#[derive(Debug)]
pub(crate) struct Flag(AtomicBool);

/// An open directory that files are made in.
#[derive(Debug)]
pub(crate) struct Home {
    /// Its path below the destination.
    pub(crate) path: Arc<[u8]>,
    pub(crate) directory: OwnedFd,
    pub(crate) file_system: Arc<FileSystem>,
}

/// Location of a temporary.
#[derive(Clone, Debug)]
pub(crate) struct Spot {
    /// The path of its directory.
    pub(crate) home: Arc<[u8]>,
    pub(crate) file_system: Arc<FileSystem>,
}

/// A temporary that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FoundTemporary {
    pub(crate) bytes: u64,
    pub(crate) stamp: TemporaryStamp,
}

/// The temporaries of a transfer and their locations.
#[derive(Debug)]
pub(crate) struct Homes {
    tree: Arc<Tree>,
    /// Prefix of the names of the temporaries.
    prefix: Vec<u8>,
    spots: Lock<HashMap<TemporaryKey, Spot>>,
    /// By their devices.
    file_systems: Lock<HashMap<u64, Arc<FileSystem>>>,
}

impl Flag {
    pub(crate) fn new(is_set: bool) -> Self {
        Self(AtomicBool::new(is_set))
    }

    pub(crate) fn holds(&self) -> bool {
        self.0.load(Relaxed)
    }

    pub(crate) fn clear(&self) {
        self.0.store(false, Relaxed);
    }

    #[cfg(test)]
    pub(crate) fn set(&self, is_set: bool) {
        self.0.store(is_set, Relaxed);
    }
}

impl FileSystem {
    fn of(directory: OwnedFd) -> Self {
        let kind = fstatfs(&directory).map_or(0, |stat| stat.f_type as u64);
        let is_in_memory = kind == TMPFS;
        Self {
            mount: mount(&directory),
            directory,
            is_in_memory,
            has_unnamed: Flag::new(true),
            has_direct: Flag::new(kind == EXT4 || kind == XFS),
            sets_aside: Flag::new(!is_in_memory && kind != BTRFS),
        }
    }

    /// The stamp of a file on it.
    pub(crate) fn stamp(&self, stat: &Stat) -> TemporaryStamp {
        let ctime_ns = u32::try_from(stat.st_ctime_nsec).unwrap_or(0);
        TemporaryStamp { ctime_s: stat.st_ctime, ctime_ns, mount: self.mount }
    }
}

impl Home {
    pub(crate) fn spot(&self) -> Spot {
        Spot { home: Arc::clone(&self.path), file_system: Arc::clone(&self.file_system) }
    }
}

impl Homes {
    /// Of a transfer that has left no temporaries so far.
    pub(crate) fn new(tree: Arc<Tree>, transfer: &TemporaryKey) -> Self {
        let prefix = [&directory_name(transfer)[..], b"-"].concat();
        Self { tree, prefix, spots: Lock::default(), file_systems: Lock::default() }
    }

    /// The directory at a path below the destination.
    pub(crate) fn open(&self, path: &[u8]) -> rustix::io::Result<Home> {
        let directory = self.tree.directory(path)?;
        let file_system = self.file_system(&directory)?;
        Ok(Home { path: path.into(), directory, file_system })
    }

    fn file_system(&self, directory: &OwnedFd) -> rustix::io::Result<Arc<FileSystem>> {
        let device = node_id(&fstat(directory)?).0;
        let mut all = self.file_systems.lock();
        if let Some(known) = all.get(&device) {
            return Ok(Arc::clone(known));
        }
        let new = Arc::new(FileSystem::of(rustix::io::fcntl_dupfd_cloexec(directory, 0)?));
        all.insert(device, Arc::clone(&new));
        Ok(new)
    }

    /// Finds the temporaries that an earlier transfer of the same left in these directories.
    pub(crate) fn find(&self, places: &BTreeSet<Box<[u8]>>) -> HashMap<TemporaryKey, FoundTemporary> {
        let mut found = HashMap::new();
        for home in places.iter().filter_map(|place| self.open(place).ok()) {
            for name in self.names(&home.directory) {
                match (self.key(&name), statat(&home.directory, &*name, AtFlags::SYMLINK_NOFOLLOW)) {
                    (Some(key), Ok(stat)) if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile => {
                        let bytes = u64::try_from(stat.st_size).unwrap_or(0);
                        found.insert(key, FoundTemporary { bytes, stamp: home.file_system.stamp(&stat) });
                        self.add(&key, &home);
                    }
                    _ => _ = unlinkat(&home.directory, &*name, AtFlags::empty()),
                }
            }
        }
        found
    }

    /// Removes leftovers of an earlier transfer of the same from an open directory: after a host died, the names may
    /// exist without the journal's records.
    pub(crate) fn sweep(&self, directory: &OwnedFd) {
        for name in self.names(directory) {
            let is_known = self.key(&name).is_some_and(|key| self.lock().contains_key(&key));
            if !is_known {
                let _ = unlinkat(directory, &*name, AtFlags::empty());
            }
        }
    }

    fn names(&self, directory: &OwnedFd) -> Vec<Box<[u8]>> {
        let entries = Dir::read_from(directory).into_iter().flatten().flatten();
        let names = entries.filter(|entry| entry.file_name().to_bytes().starts_with(&self.prefix));
        names.map(|entry| entry.file_name().to_bytes().into()).collect()
    }

    /// The name of a temporary.
    pub(crate) fn name(&self, key: &TemporaryKey) -> Vec<u8> {
        [&self.prefix[..], HEXLOWER.encode(key).as_bytes()].concat()
    }

    /// A name that no file's temporary has.
    pub(crate) fn other_name(&self, word: &[u8]) -> Vec<u8> {
        [&self.prefix[..], word].concat()
    }

    /// The path of a temporary below the destination.
    pub(crate) fn path(&self, spot: &Spot, key: &TemporaryKey) -> Vec<u8> {
        let name = self.name(key);
        if spot.home.is_empty() { name } else { [&spot.home[..], b"/", &name].concat() }
    }

    fn key(&self, name: &[u8]) -> Option<TemporaryKey> {
        read_key(name.strip_prefix(&self.prefix[..])?)
    }

    /// A temporary is about to be made, or was found.
    pub(crate) fn add(&self, key: &TemporaryKey, home: &Home) {
        self.lock().insert(*key, home.spot());
    }

    /// A temporary is no more.
    pub(crate) fn forget(&self, key: &TemporaryKey) {
        self.lock().remove(key);
    }

    pub(crate) fn spot(&self, key: &TemporaryKey) -> Option<Spot> {
        self.lock().get(key).cloned()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// All temporaries, by their directories.
    pub(crate) fn all(&self) -> Vec<(TemporaryKey, Spot)> {
        let mut all: Vec<_> = self.lock().iter().map(|(key, spot)| (*key, spot.clone())).collect();
        all.sort_unstable_by(|(_, one), (_, other)| one.home.cmp(&other.home));
        all
    }

    fn lock(&self) -> Held<'_, HashMap<TemporaryKey, Spot>> {
        self.spots.lock()
    }
}

/// The name of a transfer's own directory, at the destination's top; it is the prefix of the names of its temporaries.
pub(crate) fn directory_name(transfer: &TemporaryKey) -> Vec<u8> {
    [TEMPORARIES, HEXLOWER.encode(transfer).as_bytes()].concat()
}

/// The part of a name that names the transfer, if it is of a transfer's own directory or of a temporary.
pub(crate) fn transfer_of(name: &[u8]) -> Option<&[u8]> {
    const DIGITS: usize = 2 * size_of::<TemporaryKey>();
    let (transfer, rest) = name.strip_prefix(TEMPORARIES)?.split_at_checked(DIGITS)?;
    (read_key(transfer).is_some() && matches!(rest.first(), None | Some(b'-'))).then_some(transfer)
}

fn read_key(name: &[u8]) -> Option<TemporaryKey> {
    HEXLOWER.decode(name).ok()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn transfer_of__directories_and_temporaries() {
        let hex = "00112233445566778899aabbccddeeff";
        for (name, is_one) in [
            (format!(".fairwave-{hex}"), true),
            (format!(".fairwave-{hex}-{hex}"), true),
            (format!(".fairwave-{hex}-link"), true),
            (format!(".fairwave-{hex}x"), false),
            (format!(".fairwave-{}", &hex[1..]), false),
            (".fairwave-mine".to_owned(), false),
            (hex.to_owned(), false),
        ] {
            assert_eq!(transfer_of(name.as_bytes()), is_one.then_some(hex.as_bytes()), "{name}");
        }
    }

    #[test]
    fn sweep__removes_what_is_not_known_and_nothing_else() {
        let place = tempfile::tempdir().unwrap();
        let homes = Homes::new(Arc::new(Tree::open(place.path()).unwrap()), &[9; 16]);
        let home = homes.open(b"").unwrap();
        let other = Homes::new(Arc::new(Tree::open(place.path()).unwrap()), &[8; 16]);
        let names = [homes.name(&[1; 16]), homes.name(&[2; 16]), homes.other_name(b"link"), other.name(&[1; 16])]
            .map(|name| String::from_utf8(name).unwrap());
        for name in names.iter().map(String::as_str).chain(["mine"]) {
            fs::write(place.path().join(name), "").unwrap();
        }
        homes.add(&[1; 16], &home);
        homes.sweep(&home.directory);
        let is_there = |name: &str| place.path().join(name).exists();
        assert_eq!(names.each_ref().map(|name| is_there(name)), [true, false, false, true]);
        assert!(is_there("mine"));
    }
}
