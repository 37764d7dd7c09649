//! Temporary files until they are complete: in the directories of the files, and one hidden directory at the
//! destination's top for their metadata.

use std::collections::{BTreeSet, HashMap};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fairwave_host::OwnPlaces;
use rustix::fs::{
    AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, RenameFlags, fchmod, flock, fstat, ftruncate, futimens,
    linkat, mkdirat, openat, renameat, renameat_with, statat, symlinkat, unlinkat, utimensat,
};
use rustix::io::Errno;
use thiserror::Error;

use crate::format::backup::Backup;
use crate::format::manifest::Meta;
use crate::format::names::RelativePath;
use crate::format::short_hash::short;
use crate::sys::{DIRECT, LOOK, create_unnamed, make_node, mount, name_unnamed, node_id};
use crate::take::disk::aside::{Aside, STEP_BYTES, give_back};
use crate::take::disk::attributes::Wanted;
use crate::take::disk::backups::keep;
use crate::take::disk::disk_error::{DiskError, Doing};
use crate::take::disk::sparse::{Below, has_hole, write_all, write_sparse};
use crate::take::disk::tree::{Old, There, Tree, look, times};
use crate::take::fetch::buffer::ALIGNMENT;
use crate::take::resume::homes::{FileSystem, FoundTemporary, Home, Homes, Spot, directory_name};
use crate::take::resume::kept_time::TimeProbe;
use crate::take::resume::key::{TemporaryKey, TemporaryStamp};
use crate::transfer::boot::BootId;

/// The temporaries of a transfer, and its own directory, which is locked as long as this lives.
#[derive(Debug)]
pub(crate) struct Temps {
    tree: Arc<Tree>,
    /// Of its own directory.
    name: Vec<u8>,
    directory: OwnedFd,
    /// Whether an earlier transfer of the same has left that.
    is_resumed: bool,
    homes: Arc<Homes>,
    /// The umask of the process.
    umask: u16,
    aside: Aside,
    /// How replaced files are kept.
    backup: Option<Backup>,
    /// Places that get no backup.
    own: Option<OwnPlaces>,
}

/// All of a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Finished {
    /// When.
    pub(crate) stamp: TemporaryStamp,
    /// The mode or the time that could not be set.
    pub(crate) unset: Option<DiskError>,
}

/// Reason why temporaries cannot be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum TempsError {
    #[error(
        "another transfer with this ticket is writing there\nhint: wait until it ends, or choose another destination"
    )]
    Busy,
    #[error("its directory of unfinished transfers belongs to another user")]
    Foreign,
    #[error(transparent)]
    Disk(#[from] DiskError),
}

/// Room for larger files is set aside ahead, and they are written past the page cache.
pub(crate) const LARGE: u64 = 64 << 20;
const NEW: OFlags =
    OFlags::WRONLY.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const OLD: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);
/// The last step for a file.
pub(crate) const PLACE: &str = "move it into place";
/// The one symbolic link that is being made.
const LINK: &[u8] = b"link";
/// A file that shows what a file system cuts times to.
const TIME: &[u8] = b"time";
/// A directory that shows which owner this file system gives to what this process makes.
const PROBE: &[u8] = b"-probe";

/// A process that was killed keeps its locks until it is gone, which whoever killed it may not wait for.
const RELEASE: Duration = Duration::from_secs(2);
const LOOK_EVERY: Duration = Duration::from_millis(10);

impl Temps {
    /// The directory for a transfer, created if it does not exist.
    pub(crate) fn open(tree: Arc<Tree>, transfer: &TemporaryKey) -> Result<Self, TempsError> {
        let name = directory_name(transfer);
        let until = Instant::now() + RELEASE;
        let (directory, is_resumed) = loop {
            let is_resumed = match mkdirat(tree.root(), name.as_slice(), Mode::RWXU) {
                Ok(()) => false,
                Err(Errno::EXIST) => true,
                Err(error) => return Err(DiskError { doing: "create a directory for unfinished files", error }.into()),
            };
            let directory = match tree.directory(&name) {
                // Another transfer has removed it just now.
                Err(Errno::NOENT) if Instant::now() < until => continue,
                directory => directory.doing("open the directory of unfinished files")?,
            };
            if !is_ours(&tree, &name, &directory).doing("examine the directory of unfinished files")? {
                return Err(TempsError::Foreign);
            }
            // Some network file systems cannot lock directories, which proves nothing about other writers.
            while flock(&directory, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
                if Instant::now() >= until {
                    return Err(TempsError::Busy);
                }
                std::thread::sleep(LOOK_EVERY);
            }
            // A transfer that held the lock removes the directory when it is complete.
            if is_named(&tree, &name, &directory) || Instant::now() >= until {
                break (directory, is_resumed);
            }
        };
        let homes = Arc::new(Homes::new(Arc::clone(&tree), transfer));
        let (umask, aside) = (umask(), Aside::new(true));
        Ok(Self { tree, name, directory, is_resumed, homes, umask, aside, backup: None, own: None })
    }

    /// Keeps replaced files so.
    pub(crate) fn with_backup(self, backup: Option<Backup>, own: Option<OwnPlaces>) -> Self {
        Self { backup, own, ..self }
    }

    pub(crate) fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Its own directory.
    pub(crate) fn directory(&self) -> &OwnedFd {
        &self.directory
    }

    /// The search for temporaries of an earlier transfer of the same, if there was one.
    pub(crate) fn sweeper(&self) -> Option<Arc<Homes>> {
        self.is_resumed.then(|| Arc::clone(&self.homes))
    }

    /// Probes the time resolution of the destination.
    pub(crate) fn time_probe(&self) -> TimeProbe {
        TimeProbe::new(self.homes.other_name(TIME))
    }

    /// The directory of a file.
    pub(crate) fn home(&self, path: &[u8]) -> rustix::io::Result<Home> {
        self.homes.open(path)
    }

    /// The file system that a temporary is on.
    pub(crate) fn file_system(&self, key: &TemporaryKey) -> Option<Arc<FileSystem>> {
        self.homes.spot(key).map(|spot| spot.file_system)
    }

    /// Names the time for which what was written here is in the page cache at least: since this start of the system,
    /// and since the file system was mounted.
    pub(crate) fn since(&self, boot: BootId) -> BootId {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&boot).update(&mount(&self.directory).to_le_bytes());
        short(&hasher)
    }

    /// No room is set aside, and so nothing occupies more than what is written.
    pub(crate) fn set_nothing_aside(&self) {
        self.aside.forbid();
    }

    /// Finds the temporaries that an earlier transfer of the same left in these directories.
    pub(crate) fn recall(&self, places: &BTreeSet<Box<[u8]>>) -> HashMap<TemporaryKey, FoundTemporary> {
        self.homes.find(places)
    }

    /// Whether no temporary exists, and the next transfer has nothing to resume from.
    pub(crate) fn is_empty(&self) -> bool {
        self.homes.is_empty()
    }

    /// The stamps of those of these temporaries that exist.
    pub(crate) fn stamps(&self, keys: impl IntoIterator<Item = TemporaryKey>) -> Vec<(TemporaryKey, TemporaryStamp)> {
        let stamp = |key| {
            let spot = self.homes.spot(&key)?;
            let stat = self.open_at(&spot, &key, LOOK).and_then(fstat).ok()?;
            Some((key, spot.file_system.stamp(&stat)))
        };
        keys.into_iter().filter_map(stamp).collect()
    }

    /// Writes a complete file: nothing of an older one with this name stays.
    ///
    /// Its length is right only when all of it is written: then, after a kill in between the next transfer sees it as
    /// unfinished.
    pub(crate) fn write_whole(
        &self,
        home: &Home,
        key: &TemporaryKey,
        content: &[u8],
        wanted: Wanted<'_>,
    ) -> Result<Finished, DiskError> {
        let file = self.create(home, key, wanted.first_mode())?;
        let unset = self.fill(&file, content, wanted)?;
        let stat = fstat(&file).doing("look at it")?;
        Ok(Finished { stamp: home.file_system.stamp(&stat), unset })
    }

    /// Writes a complete file without a name, and links it at its own name, which must be free. Returns `None`, with no
    /// effect, if the system cannot do that.
    ///
    /// That is cheaper than a temporary, since threads that create and rename in one directory wait for each other; and
    /// an interrupt leaves nothing behind.
    pub(crate) fn write_at_place(
        &self,
        home: &Home,
        name: &[u8],
        content: &[u8],
        wanted: Wanted<'_>,
    ) -> Result<Option<AtPlace>, DiskError> {
        let Home { directory, file_system, .. } = home;
        if !file_system.has_unnamed.holds() {
            return Ok(None);
        }
        let mode = Mode::from_raw_mode(wanted.first_mode().into());
        let file = match create_unnamed(directory, mode) {
            // File systems that cannot, kernels that do not know the flag, and a directory that was removed (EPERM on ext4).
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOENT | Errno::PERM) => {
                file_system.has_unnamed.clear();
                return Ok(None);
            }
            opened => opened.doing("create it")?,
        };
        let unset = self.fill(&file, content, wanted)?;
        match name_unnamed(&file, directory, name) {
            Ok(()) => Ok(Some(AtPlace { unset })),
            Err(error @ Errno::EXIST) => Err(DiskError { doing: PLACE, error }),
            // Before Linux 6.10 only root may; and some file systems have one name per file.
            Err(_) => {
                file_system.has_unnamed.clear();
                Ok(None)
            }
        }
    }

    /// Writes all of a file: the attribute that could not be set.
    fn fill(&self, file: &OwnedFd, content: &[u8], wanted: Wanted<'_>) -> Result<Option<DiskError>, DiskError> {
        let written = write_sparse(file, 0, content, Below::Hole).doing("write it")?;
        if written < content.len() as u64 {
            ftruncate(file, content.len() as u64).doing("write it")?;
        }
        let Wanted { meta, attributes } = wanted;
        let set = match attributes {
            Some(attributes) => attributes.apply(file, meta).map_or(Ok(()), Err),
            None if meta.mode & self.umask == 0 => Ok(()),
            None => set_mode(file, meta.mode),
        };
        Ok(set.and(set_time(file, meta)).err())
    }

    /// Creates a file of this size, whose parts follow: it is one hole.
    pub(crate) fn begin(&self, home: &Home, key: &TemporaryKey, bytes: u64) -> Result<(), DiskError> {
        let file = self.create(home, key, 0o600)?;
        ftruncate(&file, bytes).doing("set its size")
    }

    /// Preallocates space for a block of a large file that is about to be written, and for some that follow. Returns
    /// whether there is space below it.
    pub(crate) fn set_aside(
        &self,
        key: &TemporaryKey,
        file: impl AsFd,
        bytes: u64,
        offset: u64,
        block_bytes: u64,
    ) -> bool {
        if bytes < LARGE || !self.aside.is_possible() {
            return false;
        }
        let Some(file_system) = self.file_system(key).filter(|kind| kind.sets_aside.holds()) else { return false };
        let is_set = self.aside.set(key, file, bytes, offset, block_bytes);
        if !is_set {
            file_system.sets_aside.clear();
        }
        is_set
    }

    /// Nothing more is written: gives back what is set aside. The files that it was for.
    pub(crate) fn give_back(&self) -> Vec<TemporaryKey> {
        let steps = self.aside.take();
        for (key, start) in &steps {
            if let Ok(file) = self.reopen(key) {
                give_back(file, *start, start + STEP_BYTES);
            }
        }
        let mut keys: Vec<_> = steps.into_iter().map(|(key, _)| key).collect();
        keys.dedup();
        keys
    }

    /// Frees the preallocated space of a file that a killed transfer left; returns whether there may have been some.
    pub(crate) fn give_back_all(&self, key: &TemporaryKey, bytes: u64) -> bool {
        let may_have = || self.file_system(key).is_some_and(|kind| kind.sets_aside.holds());
        let file = if bytes >= LARGE && self.aside.is_possible() && may_have() { self.reopen(key).ok() } else { None };
        file.inspect(|file| give_back(file, 0, bytes)).is_some()
    }

    /// Opens an existing temporary for reading and writing.
    pub(crate) fn reopen(&self, key: &TemporaryKey) -> rustix::io::Result<OwnedFd> {
        self.open_again(key, OLD | OFlags::RDWR)
    }

    /// Writes whole pages of a temporary past the page cache; returns the number of bytes written. `offset` is a
    /// multiple of 4 KiB. Zeros that would be holes, a partial page at the end, and everything if the file system
    /// refuses direct I/O, are left to the caller.
    ///
    /// It costs at most a third of the processor time of writing through the cache, and leaves no work for the sync.
    pub(crate) fn write_directly(&self, key: &TemporaryKey, offset: u64, bytes: &[u8]) -> rustix::io::Result<usize> {
        let whole = bytes.len() / ALIGNMENT * ALIGNMENT;
        let spot = self.homes.spot(key).filter(|spot| spot.file_system.has_direct.holds());
        let Some(spot) = spot.filter(|_| whole > 0 && !has_hole(bytes)) else { return Ok(0) };
        let opened = self.open_at(&spot, key, OLD | OFlags::WRONLY | DIRECT);
        match opened.and_then(|file| write_all(file, offset, &bytes[..whole])) {
            Ok(()) => Ok(whole),
            // Not at all, or not at these edges.
            Err(Errno::INVAL) => {
                spot.file_system.has_direct.clear();
                Ok(0)
            }
            Err(error) => Err(error),
        }
    }

    /// Opens a file for nothing but its being made durable or read.
    pub(crate) fn read(&self, key: &TemporaryKey) -> rustix::io::Result<OwnedFd> {
        self.open_again(key, OLD | OFlags::RDONLY)
    }

    fn open_again(&self, key: &TemporaryKey, flags: OFlags) -> rustix::io::Result<OwnedFd> {
        self.open_at(&self.homes.spot(key).ok_or(Errno::NOENT)?, key, flags)
    }

    fn open_at(&self, spot: &Spot, key: &TemporaryKey, flags: OFlags) -> rustix::io::Result<OwnedFd> {
        self.tree.open_below(&self.homes.path(spot, key), flags, Mode::empty())
    }

    /// All parts of a file are written: it gets its mode and its time.
    pub(crate) fn finish(&self, key: &TemporaryKey, wanted: Wanted<'_>) -> Result<Finished, DiskError> {
        self.aside.forget(key);
        let spot = self.homes.spot(key).ok_or(Errno::NOENT).doing("open it")?;
        let file = self.open_at(&spot, key, OLD | OFlags::RDONLY).doing("open it")?;
        let mut stat = fstat(&file).doing("look at it")?;
        let mut unset = None;
        let Wanted { meta, attributes } = wanted;
        if attributes.is_some() || There::new(&stat).meta != meta {
            let set = match attributes {
                Some(attributes) => attributes.apply(&file, meta).map_or(Ok(()), Err),
                None => set_mode(&file, meta.mode),
            };
            unset = set.and(set_time(&file, meta)).err();
            stat = fstat(&file).doing("look at it")?;
        }
        Ok(Finished { stamp: spot.file_system.stamp(&stat), unset })
    }

    /// A temporary is of no use any more.
    pub(crate) fn remove(&self, key: &TemporaryKey) {
        self.aside.forget(key);
        let Some(spot) = self.homes.spot(key) else { return };
        let removed = self.tree.directory(&spot.home);
        let removed = removed.and_then(|home| unlinkat(home, &*self.homes.name(key), AtFlags::empty()));
        // A failed removal is tried again at the end, when its directory is writable.
        if matches!(removed, Ok(()) | Err(Errno::NOENT)) {
            self.homes.forget(key);
        }
    }

    /// Moves a temporary to its place, in its directory `parent`. It replaces the entry that existed when the file was
    /// planned, but not a later one: that detects two names that the file system treats as equal.
    pub(crate) fn place(
        &self,
        key: &TemporaryKey,
        parent: impl AsFd,
        path: &RelativePath,
        old: Old,
    ) -> rustix::io::Result<()> {
        self.move_to(&self.homes.name(key), parent, path, old)?;
        self.homes.forget(key);
        Ok(())
    }

    /// Makes something without content in its directory `parent`. If its place is taken, it is made under a temporary
    /// name and moved.
    pub(crate) fn make(
        &self,
        parent: impl AsFd,
        path: &RelativePath,
        made: Made<'_>,
        old: Old,
    ) -> Result<(), DiskError> {
        if old == Old::Nothing {
            return made.make(&parent, path.name());
        }
        let name = self.homes.other_name(LINK);
        let _ = unlinkat(&parent, &*name, AtFlags::empty());
        made.make(&parent, &name)?;
        let moved = self.move_to(&name, &parent, path, old);
        if moved.is_err() {
            let _ = unlinkat(&parent, &*name, AtFlags::empty());
        }
        moved.doing(PLACE)
    }

    /// The transfer is complete: nothing of it stays but what it brought.
    pub(crate) fn clear(&self) {
        for some in self.homes.all().chunk_by(|(_, one), (_, other)| one.home == other.home) {
            let Some(Ok(home)) = some.first().map(|(_, spot)| self.tree.directory(&spot.home)) else { continue };
            for (key, _) in some {
                let _ = unlinkat(&home, &*self.homes.name(key), AtFlags::empty());
                self.homes.forget(key);
            }
        }
        let names: Vec<_> = Dir::read_from(&self.directory)
            .into_iter()
            .flatten()
            .filter_map(|entry| Some(entry.ok()?.file_name().to_owned()))
            .collect();
        for name in names {
            let _ = unlinkat(&self.directory, name, AtFlags::empty());
        }
        let _ = unlinkat(self.tree.root(), self.name.as_slice(), AtFlags::REMOVEDIR);
    }

    /// Gives a temporary of an open directory its name.
    fn move_to(&self, from: &[u8], parent: impl AsFd, path: &RelativePath, old: Old) -> rustix::io::Result<()> {
        if old == Old::Nothing {
            match renameat_with(&parent, from, &parent, path.name(), RenameFlags::NOREPLACE) {
                // Not all file systems can.
                Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {}
                other => return other,
            }
        }
        let id = |old| match old {
            Old::There(There { id, .. }) => Some(id),
            Old::Nothing => None,
        };
        if id(look(&parent, path.name())?).is_some_and(|now| Some(now) != id(old)) {
            return Err(Errno::EXIST);
        }
        if let Some(backup) = self.backup.as_ref().filter(|_| old != Old::Nothing) {
            keep(backup, &self.tree, self.own.as_ref(), &parent, path)?;
        }
        renameat(&parent, from, &parent, path.name())
    }

    fn create(&self, home: &Home, key: &TemporaryKey, mode: u16) -> Result<OwnedFd, DiskError> {
        let (name, mode) = (self.homes.name(key), Mode::from_raw_mode(mode.into()));
        self.homes.add(key, home);
        match openat(&home.directory, &*name, NEW, mode) {
            Err(Errno::EXIST) => {
                unlinkat(&home.directory, &*name, AtFlags::empty()).doing("remove an older part of it")?;
                openat(&home.directory, &*name, NEW, mode).doing("create it")
            }
            other => other.doing("create it"),
        }
    }
}

/// An entry that is made without content.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Made<'a> {
    /// A symbolic link.
    Symlink { target: &'a [u8], meta: Meta },
    /// A FIFO or a device.
    Node { kind: FileType, device: u64 },
    /// Another name of a file.
    Name { directory: BorrowedFd<'a>, name: &'a [u8] },
}

impl Made<'_> {
    fn make(self, parent: impl AsFd, name: &[u8]) -> Result<(), DiskError> {
        match self {
            Self::Symlink { target, meta } => {
                symlinkat(target, &parent, name).doing("create a link")?;
                // Some file systems keep no times of links.
                let _ = utimensat(&parent, name, &times(meta), AtFlags::SYMLINK_NOFOLLOW);
                Ok(())
            }
            Self::Node { kind, device } => {
                make_node(&parent, name, kind, Mode::RUSR | Mode::WUSR, device).doing("create it")
            }
            Self::Name { directory, name: first } => {
                linkat(directory, first, &parent, name, AtFlags::empty()).doing("create a hard link")
            }
        }
    }
}

/// A file is at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AtPlace {
    /// The mode or the time that could not be set.
    pub(crate) unset: Option<DiskError>,
}

fn set_mode(file: &OwnedFd, mode: u16) -> Result<(), DiskError> {
    fchmod(file, Mode::from_raw_mode(mode.into())).doing("set its mode")
}

fn set_time(file: &OwnedFd, meta: Meta) -> Result<(), DiskError> {
    futimens(file, &times(meta)).doing("set its time")
}

/// Whether an open directory at the destination's top still has its name.
fn is_named(tree: &Tree, name: &[u8], directory: &OwnedFd) -> bool {
    let id = |stat: rustix::fs::Stat| node_id(&stat);
    let named = statat(tree.root(), name, AtFlags::SYMLINK_NOFOLLOW).map(id);
    named.is_ok_and(|named| fstat(directory).map(id) == Ok(named))
}

/// Whether a directory at the destination's top was made by this user: its owner is that of this process's new entries.
/// It need not be this user's id: sshfs, NFS with root_squash, SMB and FAT show another.
pub(crate) fn is_ours(tree: &Tree, name: &[u8], directory: &OwnedFd) -> rustix::io::Result<bool> {
    let owner = fstat(directory)?.st_uid;
    if owner == rustix::process::geteuid().as_raw() {
        return Ok(true);
    }
    let probe = [name, PROBE].concat();
    let _ = unlinkat(tree.root(), &*probe, AtFlags::REMOVEDIR);
    mkdirat(tree.root(), &*probe, Mode::RWXU)?;
    let stat = statat(tree.root(), &*probe, AtFlags::SYMLINK_NOFOLLOW);
    let _ = unlinkat(tree.root(), &*probe, AtFlags::REMOVEDIR);
    Ok(stat?.st_uid == owner)
}

/// The umask of the process. Linux reports it without changing it for a moment.
pub(crate) fn umask() -> u16 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let text = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    text.and_then(|text| u16::from_str_radix(text.trim(), 8).ok()).unwrap_or(0o777)
}

#[cfg(test)]
mod tests;
