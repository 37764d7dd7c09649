//! Where files are until they are whole: one hidden directory at the destination's top.

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use data_encoding::HEXLOWER;
use rustix::fs::{
    AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, RenameFlags, StatxFlags, fchmod, flock, fstat, fstatfs,
    ftruncate, futimens, linkat, mkdirat, openat, renameat, renameat_with, statat, statx, symlinkat, unlinkat,
    utimensat,
};
use rustix::io::Errno;
use thiserror::Error;

use super::aside::{Aside, STEP_BYTES, give_back};
use super::buffer::ALIGNMENT;
use super::disk_error::{DiskError, Doing};
use super::file_system::{BTRFS, EXT4, TMPFS, XFS};
use super::journal::BootId;
use super::key::{TemporaryKey, TemporaryStamp};
use super::sparse::{Below, has_hole, write_all, write_sparse};
use super::tree::{Old, There, Tree, look, times};
use crate::format::manifest::Meta;
use crate::format::names::{RelativePath, TEMPORARIES};
use crate::format::short_hash::short;

/// The directory of a transfer's temporaries. It is locked as long as this lives.
#[derive(Debug)]
pub(crate) struct Temps {
    tree: Arc<Tree>,
    name: Vec<u8>,
    directory: OwnedFd,
    /// What the process takes off the modes of what it makes.
    umask: u16,
    aside: Aside,
    /// Whether nothing there outlives the system in any case.
    is_in_memory: bool,
    /// Whether files can be written before they have a name, as far as is known.
    has_unnamed: AtomicBool,
    /// Whether what is written can go past the page cache, as far as is known.
    has_direct: AtomicBool,
}

/// A temporary that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FoundTemporary {
    pub(crate) bytes: u64,
    pub(crate) stamp: TemporaryStamp,
}

/// Why there is no place for temporaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum TempsError {
    #[error(
        "another transfer with this ticket is writing there\nhint: wait for its end, or choose another destination"
    )]
    Busy,
    #[error("the directory of its unfinished transfers belongs to somebody else")]
    Foreign,
    #[error(transparent)]
    Disk(#[from] DiskError),
}

/// Room for larger files is set aside ahead, and if they are to be durable they are written past the page cache.
pub(super) const LARGE: u64 = 64 << 20;
const NEW: OFlags =
    OFlags::WRONLY.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const UNNAMED: OFlags = OFlags::WRONLY.union(OFlags::TMPFILE).union(OFlags::CLOEXEC);
const OLD: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);
/// The mount's name: `STATX_MNT_ID_UNIQUE`, which older kernels do not know, and `STATX_MNT_ID`, which they may use
/// again.
const MOUNT: StatxFlags = StatxFlags::from_bits_retain(0x4000 | 0x1000);
/// What is done last to a file.
pub(super) const PLACE: &str = "put it in its place";
/// The one symbolic link that is being made.
const LINK: &[u8] = b"link";

/// The name of the directory for a transfer.
pub(crate) fn directory_name(transfer: &TemporaryKey) -> Vec<u8> {
    [TEMPORARIES, HEXLOWER.encode(transfer).as_bytes()].concat()
}

/// Whether that is the name of such a directory.
pub(crate) fn is_temporaries(name: &[u8]) -> bool {
    name.strip_prefix(TEMPORARIES).is_some_and(|key| read_key(key).is_some())
}

impl Temps {
    /// The directory for a transfer, made if it is not there.
    pub(crate) fn open(tree: Arc<Tree>, transfer: &TemporaryKey) -> Result<Self, TempsError> {
        let name = directory_name(transfer);
        match mkdirat(tree.root(), name.as_slice(), Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(DiskError { doing: "make a directory for unfinished files", error }.into()),
        }
        let directory = tree.directory(&name).doing("open the directory of unfinished files")?;
        let stat = fstat(&directory).doing("look at the directory of unfinished files")?;
        if stat.st_uid != rustix::process::geteuid().as_raw() {
            return Err(TempsError::Foreign);
        }
        // Some network file systems lock no directories, which says nothing about others.
        if flock(&directory, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
            return Err(TempsError::Busy);
        }
        let kind = fstatfs(&directory).map_or(0, |stat| stat.f_type as u64);
        let is_in_memory = kind == TMPFS;
        let aside = Aside::new(!is_in_memory && kind != BTRFS);
        let has_unnamed = AtomicBool::new(true);
        let has_direct = AtomicBool::new(kind == EXT4 || kind == XFS);
        Ok(Self { tree, name, directory, umask: umask(), aside, is_in_memory, has_unnamed, has_direct })
    }

    pub(crate) fn tree(&self) -> &Tree {
        &self.tree
    }

    pub(crate) fn directory(&self) -> &OwnedFd {
        &self.directory
    }

    /// Whether the file system is in memory: then nothing there can be made durable.
    pub(crate) fn is_in_memory(&self) -> bool {
        self.is_in_memory
    }

    /// Names the time for which what was written here is in the page cache at least: since this start of the system,
    /// and since the file system was mounted.
    pub(crate) fn since(&self, boot: BootId) -> BootId {
        let mount = statx(&self.directory, "", AtFlags::EMPTY_PATH, MOUNT).map_or(0, |stat| stat.stx_mnt_id);
        let mut hasher = blake3::Hasher::new();
        hasher.update(&boot).update(&mount.to_le_bytes());
        short(&hasher)
    }

    /// No room is set aside, and so nothing occupies more than what is written.
    pub(crate) fn set_nothing_aside(&self) {
        self.aside.forbid();
    }

    /// All temporaries.
    pub(crate) fn list(&self) -> rustix::io::Result<HashMap<TemporaryKey, FoundTemporary>> {
        let mut list = HashMap::new();
        for entry in Dir::read_from(&self.directory)? {
            let entry = entry?;
            let Some(key) = read_key(entry.file_name().to_bytes()) else { continue };
            if let Ok(Some(found)) = self.find(&key) {
                list.insert(key, found);
            }
        }
        Ok(list)
    }

    /// Whether there is no temporary, and whoever comes next has nothing to go on with.
    pub(crate) fn is_empty(&self) -> bool {
        self.list().is_ok_and(|list| list.is_empty())
    }

    /// Those of these temporaries that are there.
    pub(crate) fn stamps(&self, keys: impl IntoIterator<Item = TemporaryKey>) -> Vec<(TemporaryKey, TemporaryStamp)> {
        keys.into_iter().filter_map(|key| Some((key, self.find(&key).ok()??.stamp))).collect()
    }

    /// A temporary, if it is there.
    pub(crate) fn find(&self, key: &TemporaryKey) -> rustix::io::Result<Option<FoundTemporary>> {
        match statat(&self.directory, &name(key)[..], AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile => {
                let ns = u32::try_from(stat.st_ctime_nsec).unwrap_or(0);
                let stamp = TemporaryStamp { ctime_s: stat.st_ctime, ctime_ns: ns };
                Ok(u64::try_from(stat.st_size).ok().map(|bytes| FoundTemporary { bytes, stamp }))
            }
            Ok(_) | Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes a file that is there as a whole: nothing of an older one with this name stays.
    ///
    /// Its length is right only when all of it is written: then, a transfer that was killed in between takes it for
    /// unfinished.
    pub(crate) fn write_whole(&self, key: &TemporaryKey, content: &[u8], meta: Meta) -> Result<(), DiskError> {
        self.fill(&self.create(key, meta.mode)?, content, meta)
    }

    /// Writes a file that is there as a whole before it has any name, and gives it its own, at which nothing is, in the
    /// open directory `parent`. Where the system cannot do that it is false, and nothing has happened.
    ///
    /// That is cheaper than a temporary, since threads that make and move names in one directory wait for each other;
    /// and if it is interrupted nothing is left.
    pub(crate) fn write_at_place(
        &self,
        parent: impl AsFd,
        name: &[u8],
        content: &[u8],
        meta: Meta,
    ) -> Result<bool, DiskError> {
        if !self.has_unnamed.load(Relaxed) {
            return Ok(false);
        }
        let mode = Mode::from_raw_mode(meta.mode.into());
        let file = match openat(&self.directory, ".", UNNAMED, mode) {
            // File systems that cannot, and kernels that do not know the flag.
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOENT) => {
                self.has_unnamed.store(false, Relaxed);
                return Ok(false);
            }
            opened => opened.doing("create it")?,
        };
        self.fill(&file, content, meta)?;
        match linkat(&file, "", parent, name, AtFlags::EMPTY_PATH) {
            Ok(()) => Ok(true),
            Err(error @ Errno::EXIST) => Err(DiskError { doing: PLACE, error }),
            // Before Linux 6.10 root alone may; and some file systems have one name a file.
            Err(_) => {
                self.has_unnamed.store(false, Relaxed);
                Ok(false)
            }
        }
    }

    fn fill(&self, file: &OwnedFd, content: &[u8], meta: Meta) -> Result<(), DiskError> {
        let written = write_sparse(file, 0, content, Below::Hole).doing("write it")?;
        if written < content.len() as u64 {
            ftruncate(file, content.len() as u64).doing("write it")?;
        }
        if meta.mode & self.umask != 0 {
            fchmod(file, Mode::from_raw_mode(meta.mode.into())).doing("set its mode")?;
        }
        futimens(file, &times(meta)).doing("set its time")
    }

    /// Makes a file of so many bytes, whose parts come later: nothing is below them.
    pub(crate) fn begin(&self, key: &TemporaryKey, bytes: u64) -> Result<(), DiskError> {
        let file = self.create(key, 0o600)?;
        ftruncate(&file, bytes).doing("make it that large")
    }

    /// A block of a file that was begun is about to be written: sets room aside for it and some that follow, if it is a
    /// large file. Whether room is below it.
    pub(crate) fn set_aside(
        &self,
        key: &TemporaryKey,
        file: impl AsFd,
        bytes: u64,
        offset: u64,
        block_bytes: u64,
    ) -> bool {
        bytes >= LARGE && self.aside.is_possible() && self.aside.set(key, file, bytes, offset, block_bytes)
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

    /// The same of a file that a transfer left behind which was killed: whether there could be something.
    pub(crate) fn give_back_all(&self, key: &TemporaryKey, bytes: u64) -> bool {
        let file = if bytes >= LARGE && self.aside.is_possible() { self.reopen(key).ok() } else { None };
        file.inspect(|file| give_back(file, 0, bytes)).is_some()
    }

    /// Opens a file that was begun, for reading and writing.
    pub(crate) fn reopen(&self, key: &TemporaryKey) -> rustix::io::Result<OwnedFd> {
        openat(&self.directory, &name(key)[..], OLD | OFlags::RDWR, Mode::empty())
    }

    /// Writes whole pages of a file that was begun past the page cache: how many bytes from the first on. `offset` is a
    /// multiple of 4 KiB. What would have holes, what the file system does not take so, and what is less than a page at
    /// the end, is left.
    ///
    /// It costs the processor a third of what writing through the cache does or less, and nothing of it is left to be
    /// done when the file is made durable.
    pub(crate) fn write_directly(&self, key: &TemporaryKey, offset: u64, bytes: &[u8]) -> rustix::io::Result<usize> {
        let whole = bytes.len() / ALIGNMENT * ALIGNMENT;
        if whole == 0 || !self.has_direct.load(Relaxed) || has_hole(bytes) {
            return Ok(0);
        }
        let flags = OLD | OFlags::WRONLY | OFlags::DIRECT;
        let opened = openat(&self.directory, &name(key)[..], flags, Mode::empty());
        match opened.and_then(|file| write_all(file, offset, &bytes[..whole])) {
            Ok(()) => Ok(whole),
            // Not at all, or not at these edges.
            Err(Errno::INVAL) => {
                self.has_direct.store(false, Relaxed);
                Ok(0)
            }
            Err(error) => Err(error),
        }
    }

    /// Opens a file for nothing but its being made durable or read.
    pub(crate) fn read(&self, key: &TemporaryKey) -> rustix::io::Result<OwnedFd> {
        openat(&self.directory, &name(key)[..], OLD | OFlags::RDONLY, Mode::empty())
    }

    /// All parts of a file are written: it gets its mode and its time.
    pub(crate) fn finish(&self, key: &TemporaryKey, meta: Meta) -> Result<(), DiskError> {
        self.aside.forget(key);
        let old = look(&self.directory, &name(key)).doing("look at it")?;
        if matches!(old, Old::There(there) if there.meta == meta) {
            return Ok(());
        }
        let file = self.read(key).doing("open it")?;
        fchmod(&file, Mode::from_raw_mode(meta.mode.into())).doing("set its mode")?;
        futimens(&file, &times(meta)).doing("set its time")
    }

    /// Removes a temporary, if it is there.
    pub(crate) fn remove(&self, key: &TemporaryKey) {
        self.aside.forget(key);
        // What cannot be removed now is found by the next transfer.
        let _ = unlinkat(&self.directory, &name(key)[..], AtFlags::empty());
    }

    /// Moves a temporary to its place, which is in the open directory `parent`. What was there when the file was
    /// planned is replaced; what came meanwhile is not: that is how two names that the file system takes for one
    /// are told.
    pub(crate) fn place(
        &self,
        key: &TemporaryKey,
        parent: impl AsFd,
        path: &RelativePath,
        old: Old,
    ) -> rustix::io::Result<()> {
        self.move_to(&name(key), parent, path, old)
    }

    /// Makes a symbolic link and moves it to its place.
    pub(crate) fn link(
        &self,
        parent: impl AsFd,
        path: &RelativePath,
        target: &[u8],
        meta: Meta,
        old: Old,
    ) -> Result<(), DiskError> {
        let _ = unlinkat(&self.directory, LINK, AtFlags::empty());
        symlinkat(target, &self.directory, LINK).doing("make a link")?;
        // Some file systems keep no times of links.
        let _ = utimensat(&self.directory, LINK, &times(meta), AtFlags::SYMLINK_NOFOLLOW);
        self.move_to(LINK, parent, path, old).doing("put a link in its place")
    }

    fn move_to(&self, from: &[u8], parent: impl AsFd, path: &RelativePath, old: Old) -> rustix::io::Result<()> {
        if old == Old::Nothing {
            match renameat_with(&self.directory, from, &parent, path.name(), RenameFlags::NOREPLACE) {
                // Not all file systems can.
                Err(Errno::INVAL | Errno::NOSYS) => {}
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
        renameat(&self.directory, from, &parent, path.name())
    }

    /// The transfer is complete: nothing of it stays but what it brought.
    pub(crate) fn clear(&self) {
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

    fn create(&self, key: &TemporaryKey, mode: u16) -> Result<OwnedFd, DiskError> {
        let (name, mode) = (name(key), Mode::from_raw_mode(mode.into()));
        match openat(&self.directory, &name[..], NEW, mode) {
            Err(Errno::EXIST) => {
                unlinkat(&self.directory, &name[..], AtFlags::empty()).doing("remove an older part of it")?;
                openat(&self.directory, &name[..], NEW, mode).doing("create it")
            }
            other => other.doing("create it"),
        }
    }
}

fn name(key: &TemporaryKey) -> [u8; 32] {
    let mut name = [0; 32];
    HEXLOWER.encode_mut(key, &mut name);
    name
}

fn read_key(name: &[u8]) -> Option<TemporaryKey> {
    HEXLOWER.decode(name).ok()?.try_into().ok()
}

/// What the process takes off the modes of what it makes. Linux tells it without changing it for a moment.
pub(super) fn umask() -> u16 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let text = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    text.and_then(|text| u16::from_str_radix(text.trim(), 8).ok()).unwrap_or(0o777)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::super::buffer::Buffer;
    use super::*;

    const META: Meta = Meta { mode: 0o640, mtime_s: -5, mtime_ns: 7 };
    const KEY: TemporaryKey = [1; 16];

    fn open() -> (tempfile::TempDir, Temps) {
        let place = tempfile::tempdir().unwrap();
        let temps = Temps::open(Arc::new(Tree::open(place.path()).unwrap()), &[9; 16]).unwrap();
        (place, temps)
    }

    fn bytes(temps: &Temps) -> Option<u64> {
        temps.find(&KEY).unwrap().map(|found| found.bytes)
    }

    fn path(name: &str) -> RelativePath {
        RelativePath::new(name.as_bytes()).unwrap()
    }

    #[test]
    fn open__one_at_a_time() {
        let (place, temps) = open();
        let again = || Temps::open(Arc::new(Tree::open(place.path()).unwrap()), &[9; 16]);
        assert_eq!(again().unwrap_err(), TempsError::Busy);
        drop(temps);
        again().unwrap().clear();
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }

    #[test]
    fn write_whole__replaces_an_older_one_and_sets_mode_and_time() {
        let (place, temps) = open();
        for (content, mode) in [(vec![1; 100_000], 0o400), (vec![0; 9000], 0o777), (vec![2; 10], 0o640)] {
            temps.write_whole(&KEY, &content, Meta { mode, ..META }).unwrap();
            assert_eq!(bytes(&temps), Some(content.len() as u64));
            let file = place.path().join(".fairwave-09090909090909090909090909090909/01010101010101010101010101010101");
            assert!(fs::read(&file).unwrap() == content);
            let meta = fs::metadata(file).unwrap();
            assert_eq!((meta.mode() & 0o7777, meta.mtime(), meta.mtime_nsec()), (mode.into(), -5, 7));
        }
        let list: Vec<_> = temps.list().unwrap().into_iter().map(|(key, found)| (key, found.bytes)).collect();
        assert_eq!(list, [(KEY, 10)]);
    }

    #[test]
    fn place__replaces_what_was_there_when_it_was_planned_and_nothing_else() {
        let (place, temps) = open();
        let parent = temps.tree().directory(b"").unwrap();
        let write = || temps.write_whole(&KEY, b"new", META).unwrap();
        write();
        temps.place(&KEY, &parent, &path("a"), Old::Nothing).unwrap();
        // Somebody puts another there after the plan: as a file system does that takes two names for one.
        write();
        assert_eq!(temps.place(&KEY, &parent, &path("a"), Old::Nothing), Err(Errno::EXIST));
        let old = look(&parent, b"a").unwrap();
        // The first still has its inode while the second is made.
        let first = fs::File::open(place.path().join("a")).unwrap();
        fs::remove_file(place.path().join("a")).unwrap();
        fs::write(place.path().join("a"), "somebody's").unwrap();
        assert_eq!(temps.place(&KEY, &parent, &path("a"), old), Err(Errno::EXIST));
        drop(first);
        assert_eq!(fs::read(place.path().join("a")).unwrap(), b"somebody's");
        temps.place(&KEY, &parent, &path("a"), look(&parent, b"a").unwrap()).unwrap();
        assert_eq!(fs::read(place.path().join("a")).unwrap(), b"new");
        // What is gone meanwhile is in nobody's way.
        write();
        let old = look(&parent, b"a").unwrap();
        fs::remove_file(place.path().join("a")).unwrap();
        temps.place(&KEY, &parent, &path("a"), old).unwrap();
    }

    #[test]
    fn write_at_place__all_of_it_or_nothing() {
        let (place, temps) = open();
        let parent = temps.tree().directory(b"").unwrap();
        for (name, content, mode) in [("a", vec![1; 100_000], 0o400), ("b", vec![0; 9000], 0o777), ("c", vec![], 0o640)]
        {
            assert_eq!(temps.write_at_place(&parent, name.as_bytes(), &content, Meta { mode, ..META }), Ok(true));
            assert!(fs::read(place.path().join(name)).unwrap() == content);
            let meta = fs::metadata(place.path().join(name)).unwrap();
            assert_eq!((meta.mode() & 0o7777, meta.mtime(), meta.mtime_nsec()), (mode.into(), -5, 7));
        }
        // What somebody put there is not replaced.
        let again = temps.write_at_place(&parent, b"a", b"other", META);
        assert_eq!(again, Err(DiskError { doing: PLACE, error: Errno::EXIST }));
        assert_eq!(fs::metadata(place.path().join("a")).unwrap().len(), 100_000);
        // A name that cannot be given is no file, and no more are tried.
        let gone = place.path().join("gone");
        fs::create_dir(&gone).unwrap();
        let directory = temps.tree().directory(b"gone").unwrap();
        fs::remove_dir(&gone).unwrap();
        assert_eq!(temps.write_at_place(&directory, b"x", b"other", META), Ok(false));
        assert_eq!(temps.write_at_place(&parent, b"x", b"other", META), Ok(false));
        assert!(!place.path().join("x").exists() && temps.list().unwrap().is_empty());
    }

    #[test]
    fn write_directly__what_it_leaves_can_be_written_through_the_cache() {
        let (_place, temps) = open();
        let mut content = Buffer::new(50_000);
        content.iter_mut().enumerate().for_each(|(at, byte)| *byte = (at % 251) as u8 + 1);
        for (kind, is_known) in [(false, false), (true, false), (true, true)] {
            temps.has_direct.store(kind, Relaxed);
            temps.begin(&KEY, 60_000).unwrap();
            // One that begins elsewhere in memory is refused by most disks.
            let bytes = if is_known { &content[1..] } else { &content[..] };
            let done = temps.write_directly(&KEY, 8192, bytes).unwrap();
            assert!(done == 0 || kind && done == bytes.len() / 4096 * 4096);
            let file = temps.reopen(&KEY).unwrap();
            write_sparse(&file, 8192 + done as u64, &bytes[done..], Below::Hole).unwrap();
            let mut read = vec![9; bytes.len()];
            rustix::io::pread(&file, &mut read, 8192).unwrap();
            assert!(read == bytes);
        }
        // Holes are left to those who make them.
        temps.has_direct.store(true, Relaxed);
        content[4096..8192].fill(0);
        assert_eq!(temps.write_directly(&KEY, 0, &content), Ok(0));
    }

    #[test]
    fn begin__a_file_has_its_length_at_once() {
        let (_place, temps) = open();
        temps.begin(&KEY, 10 << 20).unwrap();
        assert_eq!(bytes(&temps), Some(10 << 20));
        temps.finish(&KEY, META).unwrap();
        let There { meta, .. } = There::new(&fstat(temps.read(&KEY).unwrap()).unwrap());
        assert_eq!(meta, META);
        temps.remove(&KEY);
        assert_eq!(bytes(&temps), None);
    }

    #[test]
    fn since__is_another_time_after_another_boot() {
        let (_place, temps) = open();
        assert_eq!(temps.since([1; 16]), temps.since([1; 16]));
        assert_ne!(temps.since([1; 16]), temps.since([2; 16]));
    }

    #[test]
    fn open__a_link_in_its_place_is_not_followed() {
        let place = tempfile::tempdir().unwrap();
        let (root, outside) = (place.path().join("root"), place.path().join("outside"));
        fs::create_dir(&root).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::set_permissions(&outside, fs::Permissions::from_mode(0o777)).unwrap();
        let name = String::from_utf8(directory_name(&[9; 16])).unwrap();
        std::os::unix::fs::symlink(&outside, root.join(name)).unwrap();
        let opened = Temps::open(Arc::new(Tree::open(&root).unwrap()), &[9; 16]);
        assert!(matches!(opened, Err(TempsError::Disk(_))));
    }
}
