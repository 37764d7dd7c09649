//! The directories of a tree that is being written.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use fairwave_host::OwnPlaces;
use rustix::fs::{Mode, RawMode, Timestamps, fchmod, fstat, futimens};
use rustix::io::Errno;
use thiserror::Error;

use crate::format::acl;
use crate::format::footprint::of_table;
use crate::format::manifest::Meta;
use crate::format::names::RelativePath;
use crate::format::short_hash::short;
use crate::sys::{Node, fsync, node_id, syncfs};
use crate::take::disk::attributes::Attributes;
use crate::take::disk::disk_error::{DiskError, Doing};
use crate::take::disk::quota::{OverQuota, PAGE, Quota};
use crate::take::disk::tree::{There, Tree, make_below, open_below, times};
use crate::take::resume::homes::Homes;
use crate::transfer::xattrs::{DEFAULT_ACL, value};

/// Makes directories when their first entry is created, and sets their modes and times at the end.
///
/// Each is made below its parent's descriptor, so that a path costs each of its names once.
#[derive(Debug)]
pub(crate) struct Directories {
    tree: Arc<Tree>,
    /// Whether only to look.
    is_dry: bool,
    /// Whether none is made.
    makes_none: bool,
    /// Whether a dry run takes what is in the way of a directory for deleted.
    replaces: bool,
    /// The umask of the process.
    umask: u16,
    /// The most recently used ones, the newest first.
    recent: VecDeque<(Box<[u8]>, OpenDirectory)>,
    /// Hashes of the paths that the file system has for each.
    by_id: HashMap<(u64, u64), [u8; 16]>,
    fates: HashMap<Box<[u8]>, DirectoryFate>,
    /// Bytes of their paths.
    path_bytes: u64,
    quota: Option<Quota>,
    /// Searches existing directories for temporaries of an earlier transfer.
    sweeper: Option<Arc<Homes>>,
    /// A directory of each file system.
    by_device: BTreeMap<u64, Box<[u8]>>,
    /// Places that are never written, by any path.
    own: Option<OwnPlaces>,
}

/// The permissions of a directory at the end.
#[derive(Clone, Copy, Debug)]
enum ModeAtEnd {
    Set(u16),
    /// Those that it was made with, without these: the umask or a default ACL has taken its part.
    Clear(u16),
}

/// The final state of a directory, set at the end.
#[derive(Clone, Debug)]
struct DirectoryFate {
    mode: Option<ModeAtEnd>,
    time: Option<Timestamps>,
    /// All others, in an archive: the listed mode is set in any case.
    attributes: Option<(Meta, Arc<Attributes>)>,
    /// Whether it was created.
    is_made: bool,
}

/// An open directory.
#[derive(Clone, Debug)]
pub(crate) struct OpenDirectory {
    pub(crate) directory: Arc<OwnedFd>,
    /// Whether it was created just now, so that it contains only newer entries.
    pub(crate) is_new: bool,
    /// Permissions that a new file in it does not get: the umask, or what its default ACL forbids instead.
    pub(crate) umask: u16,
}

/// A failed change of a directory at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FinishError {
    pub(crate) path: Box<[u8]>,
    pub(crate) error: DiskError,
    /// Whether only its mode or time failed.
    pub(crate) is_attribute: bool,
}

/// Reason why a directory could not be opened.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum DirectoryError {
    #[error("the file system treats the name as equal to that of another directory")]
    Collides,
    #[error("Fairwave keeps its keys there, and nothing else is written there")]
    Own,
    #[error(transparent)]
    Disk(#[from] DiskError),
    #[error(transparent)]
    Quota(#[from] OverQuota),
}

/// Directories that are kept open.
const MAX_OPEN: usize = 32;
/// More are made durable together with all that the file system holds.
const FEW: usize = 64;
const OPEN: &str = "open its directory";
/// Mode of a directory that no list has described, before the umask.
const USUAL_MODE: u16 = 0o777;

impl Directories {
    pub(crate) fn new(tree: Arc<Tree>, is_dry: bool, umask: u16, quota: Option<Quota>) -> Self {
        let (recent, by_id, fates) = (VecDeque::new(), HashMap::new(), HashMap::new());
        let (sweeper, by_device, own) = (None, BTreeMap::new(), None);
        let (makes_none, replaces, path_bytes) = (false, false, 0);
        Self {
            tree,
            is_dry,
            makes_none,
            replaces,
            umask,
            recent,
            by_id,
            fates,
            path_bytes,
            quota,
            sweeper,
            by_device,
            own,
        }
    }

    /// Excludes these places from writing.
    pub(crate) fn keeping_out_of(self, own: Option<OwnPlaces>) -> Self {
        Self { own, ..self }
    }

    /// The destination.
    pub(crate) fn tree(&self) -> Arc<Tree> {
        Arc::clone(&self.tree)
    }

    /// Places that are never written.
    pub(crate) fn own(&self) -> Option<&OwnPlaces> {
        self.own.as_ref()
    }

    /// Makes no directories, if `makes_none`.
    pub(crate) fn making_none(self, makes_none: bool) -> Self {
        Self { makes_none, ..self }
    }

    /// Sets whether an entry in the way of a directory is deleted.
    pub(crate) fn replacing(self, replaces: bool) -> Self {
        Self { replaces, ..self }
    }

    /// An earlier transfer of the same may have left temporaries.
    pub(crate) fn sweep_with(&mut self, sweeper: Option<Arc<Homes>>) {
        self.sweeper = sweeper;
    }

    /// Opens a directory, creating it if it does not exist; `None` if it does not exist and must not be created.
    pub(crate) fn open(&mut self, path: &[u8]) -> Result<Option<OpenDirectory>, DirectoryError> {
        self.open_with(path, USUAL_MODE)
    }

    /// Opens a directory; if it is created, it has this mode, and its owner can write into it until the end.
    fn open_with(&mut self, path: &[u8], mode: u16) -> Result<Option<OpenDirectory>, DirectoryError> {
        if let Some(at) = self.recent.iter().position(|(other, _)| **other == *path) {
            let entry = self.recent.remove(at).expect("found above");
            let opened = entry.1.clone();
            self.recent.push_front(entry);
            return Ok(Some(opened));
        }
        if self.is_dry || self.makes_none {
            return match self.tree.directory(path) {
                Err(Errno::NOENT) => Ok(None),
                Err(Errno::NOTDIR | Errno::LOOP) if self.is_dry && self.replaces => Ok(None),
                opened => self.enter(path, opened.doing(OPEN)?, false).map(Some),
            };
        }
        let (mut from, mut opened) = self.nearest(path)?;
        while from < path.len() {
            let start = if from == 0 { 0 } else { from + 1 };
            let end = path[start..].iter().position(|byte| *byte == b'/').map_or(path.len(), |at| start + at);
            let mode = if end == path.len() { mode } else { USUAL_MODE };
            let (directory, is_new) = self.make(&opened.directory, &path[start..end], mode | 0o700)?;
            opened = self.enter(&path[..end], directory, is_new)?;
            from = end;
        }
        Ok(Some(opened))
    }

    /// Opens a directory in an open one, creating it if needed. Returns whether it was created.
    fn make(&self, parent: &OwnedFd, name: &[u8], mode: u16) -> Result<(OwnedFd, bool), DirectoryError> {
        let mut claim = None;
        match open_below(parent, name) {
            Err(Errno::NOENT) => {
                if let Some(own) = &self.own {
                    let stat = fstat(parent).doing("look at its directory")?;
                    if own.is_next(node_id(&stat), name) {
                        return Err(DirectoryError::Own);
                    }
                }
                if let Some(quota) = &self.quota {
                    claim = Some(quota.claim(&self.tree, PAGE)?);
                }
            }
            opened => return Ok((opened.doing(OPEN)?, false)),
        }
        let made = make_below(parent, name, mode).doing(OPEN);
        drop(claim);
        Ok(made?)
    }

    /// The deepest of the open directories on a path, or the destination, with the length of its prefix.
    fn nearest(&mut self, path: &[u8]) -> Result<(usize, OpenDirectory), DirectoryError> {
        let is_above =
            |above: &[u8]| path.strip_prefix(above).is_some_and(|rest| above.is_empty() || rest.first() == Some(&b'/'));
        let above = self.recent.iter().filter(|(above, _)| is_above(above));
        if let Some((above, opened)) = above.max_by_key(|(above, _)| above.len()) {
            return Ok((above.len(), opened.clone()));
        }
        let root = self.tree.directory(b"").doing(OPEN)?;
        Ok((0, self.enter(b"", root, false)?))
    }

    /// Takes note of an open directory.
    fn enter(&mut self, path: &[u8], directory: OwnedFd, is_new: bool) -> Result<OpenDirectory, DirectoryError> {
        let there = There::new(&fstat(&directory).doing("examine its directory")?);
        if self.own.as_ref().is_some_and(|own| own.is_directory(there.id)) {
            return Err(DirectoryError::Own);
        }
        let hash = short(blake3::Hasher::new().update(path));
        let is_first = match self.by_id.entry(there.id) {
            Entry::Vacant(entry) => {
                entry.insert(hash);
                true
            }
            Entry::Occupied(entry) if *entry.get() == hash => false,
            Entry::Occupied(_) => return Err(DirectoryError::Collides),
        };
        if is_first {
            self.by_device.entry(there.id.0).or_insert_with(|| path.into());
            if let Some(sweeper) = self.sweeper.as_ref().filter(|_| !is_new) {
                sweeper.sweep(&directory);
            }
        }
        if !self.is_dry && !path.is_empty() {
            let is_closed = there.meta.mode & 0o700 != 0o700;
            if let Entry::Vacant(entry) = self.fates.entry(path.into()) {
                self.path_bytes += path.len() as u64;
                // An unlisted one gets its former mode back.
                let mode = (!is_new && is_closed).then_some(ModeAtEnd::Set(there.meta.mode));
                let time = mode.map(|_| times(there.meta));
                entry.insert(DirectoryFate { mode, time, attributes: None, is_made: is_new });
            }
            if is_closed {
                // If this is not allowed, creating entries in it will report the error.
                let _ = set_mode(&directory, ModeAtEnd::Set(there.meta.mode | 0o700));
            }
        }
        let acl = value(&Node::new(&directory), DEFAULT_ACL).ok().flatten();
        let umask = acl.and_then(|acl| acl::permitted(&acl)).map_or(self.umask, |permitted| 0o777 & !permitted);
        let opened = OpenDirectory { directory: Arc::new(directory), is_new, umask };
        self.recent.truncate(MAX_OPEN - 1);
        self.recent.push_front((path.into(), opened.clone()));
        Ok(opened)
    }

    /// A listed directory. An existing one keeps its mode; a new one has the listed one, minus the umask.
    pub(crate) fn list(&mut self, path: &RelativePath, meta: Meta) -> Result<(), DirectoryError> {
        let was_made = self.fates.contains_key(path.as_bytes());
        self.open_with(path.as_bytes(), meta.mode)?;
        if let Some(fate) = self.fates.get_mut(path.as_bytes()) {
            fate.time = Some(times(meta));
            if fate.is_made && was_made {
                fate.mode = Some(ModeAtEnd::Set(meta.mode & !self.umask));
            } else if fate.is_made {
                fate.mode = Some(ModeAtEnd::Clear(0o700 & !meta.mode));
            }
        }
        Ok(())
    }

    /// A listed directory of an archive: it gets the listed mode and attributes.
    pub(crate) fn list_all(
        &mut self,
        path: &RelativePath,
        meta: Meta,
        attributes: Arc<Attributes>,
    ) -> Result<(), DirectoryError> {
        self.list(path, meta)?;
        if let Some(fate) = self.fates.get_mut(path.as_bytes()) {
            self.path_bytes += attributes.memory_bytes() as u64;
            fate.attributes = Some((meta, attributes));
        }
        Ok(())
    }

    /// Bytes that it takes in memory.
    pub(crate) fn memory_bytes(&self) -> u64 {
        // At the end they are sorted in a copy.
        let ordered = (self.fates.len() * size_of::<(Box<[u8]>, DirectoryFate)>()) as u64;
        of_table(&self.by_id) + of_table(&self.fates) + ordered + self.path_bytes
    }

    /// Sets modes and times at the end, deepest first, and syncs everything if `is_durable`. Returns the failed
    /// directories.
    pub(crate) fn finish(&mut self, is_durable: bool) -> Vec<FinishError> {
        let mut fates: Vec<_> = self.fates.drain().collect();
        // A path sorts before all below it.
        fates.sort_unstable_by(|one, other| other.0.cmp(&one.0));
        let is_one_by_one = fates.len() <= FEW;
        let mut failed = Vec::new();
        for (path, fate) in &fates {
            let fail = |error, is_attribute| FinishError { path: path.clone(), error, is_attribute };
            match self.finish_one(path, fate, is_durable && is_one_by_one) {
                Ok(None) => {}
                Ok(Some(error)) => failed.push(fail(error, true)),
                Err(error) => failed.push(fail(error, false)),
            }
        }
        if is_durable {
            let is_synced = !is_one_by_one && self.sync_all().is_ok();
            let mut rest = fates.iter().filter(|_| !is_synced && !is_one_by_one);
            let synced = rest.try_for_each(|(path, _)| fsync(self.tree.directory(path)?));
            let synced = synced.and_then(|()| if is_synced { Ok(()) } else { fsync(self.tree.root()) });
            let error = synced.doing("make it durable").err();
            failed.extend(error.map(|error| FinishError { path: Box::default(), error, is_attribute: false }));
        }
        failed
    }

    /// Makes all durable that the file systems of the directories hold.
    fn sync_all(&self) -> rustix::io::Result<()> {
        syncfs(self.tree.root())?;
        self.by_device.values().try_for_each(|path| syncfs(self.tree.directory(path)?))
    }

    /// The attribute that could not be set.
    fn finish_one(&self, path: &[u8], fate: &DirectoryFate, is_durable: bool) -> Result<Option<DiskError>, DiskError> {
        let directory = self.tree.directory(path).doing("open it")?;
        let set_mode = |mode| set_mode(&directory, mode).doing("set its mode");
        let set_time = |time| futimens(&directory, time).doing("set its time");
        // Each is tried: a file system may keep times and no modes.
        let mode = match &fate.attributes {
            Some((meta, attributes)) => attributes.apply(&directory, *meta).map_or(Ok(()), Err),
            None => fate.mode.map_or(Ok(()), set_mode),
        };
        let time = fate.time.as_ref().map_or(Ok(()), set_time);
        if is_durable {
            fsync(&directory).doing("make it durable")?;
        }
        Ok(mode.and(time).err())
    }
}

/// Changes the permissions. The set-group-id and the sticky bit stay, as an existing directory has them or a new one
/// inherits them.
fn set_mode(directory: &OwnedFd, mode: ModeAtEnd) -> rustix::io::Result<()> {
    let now = fstat(directory)?.st_mode & 0o7777;
    let then = match mode {
        ModeAtEnd::Set(mode) => now & !0o777 | RawMode::from(mode),
        ModeAtEnd::Clear(bits) => now & !RawMode::from(bits),
    };
    if then == now { Ok(()) } else { fchmod(directory, Mode::from_raw_mode(then)) }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::*;

    fn modes(root: &std::path::Path, names: [&str; 3]) -> [u32; 3] {
        names.map(|name| fs::metadata(root.join(name)).unwrap().mode() & 0o777)
    }

    #[test]
    fn finish__sets_what_is_listed_and_gives_back_what_is_not() {
        let place = tempfile::tempdir().unwrap();
        let mine = place.path().join("mine");
        fs::create_dir(&mine).unwrap();
        fs::set_permissions(&mine, std::os::unix::fs::PermissionsExt::from_mode(0o500)).unwrap();
        let mut directories = Directories::new(Arc::new(Tree::open(place.path()).unwrap()), false, 0o022, None);
        let listed = RelativePath::new(b"new/listed").unwrap();
        directories.list(&listed, Meta { mode: 0o550, mtime_s: 1000, mtime_ns: 0 }).unwrap();
        directories.open(b"mine/deep").unwrap();
        // It is writable until the end.
        assert_eq!(modes(place.path(), ["mine", "new/listed", "mine/deep"]).map(|mode| mode & 0o700), [0o700; 3]);
        assert!(directories.finish(true).is_empty());
        let [listed, new, deep] = modes(place.path(), ["new/listed", "new", "mine/deep"]);
        assert_eq!((listed, new & 0o700, deep & 0o700), (0o550, 0o700, 0o700));
        assert_eq!(fs::metadata(place.path().join("new/listed")).unwrap().mtime(), 1000);
    }

    /// A new directory in one of a group, and an existing one that its owner may not write into.
    #[test]
    fn finish__keeps_set_gid() {
        let place = tempfile::tempdir().unwrap();
        for (name, mode) in [("team", 0o2775), ("team/closed", 0o2555)] {
            fs::create_dir(place.path().join(name)).unwrap();
            fs::set_permissions(place.path().join(name), fs::Permissions::from_mode(mode)).unwrap();
        }
        let mut directories = Directories::new(Arc::new(Tree::open(place.path()).unwrap()), false, 0o022, None);
        let listed = RelativePath::new(b"team/new").unwrap();
        directories.list(&listed, Meta { mode: 0o550, ..Meta::default() }).unwrap();
        directories.open(b"team/closed/deep").unwrap();
        assert!(directories.finish(true).is_empty());
        let mode = |name: &str| fs::metadata(place.path().join(name)).unwrap().mode() & 0o7777;
        assert_eq!(["team/new", "team/closed"].map(mode), [0o2550, 0o2555]);
    }

    #[test]
    fn finish__leaves_what_a_default_acl_grants() {
        let place = tempfile::tempdir().unwrap();
        // Version 2; owner rwx, group rwx, others r-x, each with a tag, permissions and no id.
        let entries = [(1_u16, 7_u16), (4, 7), (0x20, 5)];
        let entries = entries.map(|(tag, bits)| [&tag.to_le_bytes()[..], &bits.to_le_bytes(), &[0xff; 4]].concat());
        let acl = [&2_u32.to_le_bytes()[..], &entries.concat()].concat();
        if rustix::fs::setxattr(place.path(), "system.posix_acl_default", &acl, rustix::fs::XattrFlags::empty())
            .is_err()
        {
            println!("skipped: this file system has no ACLs");
            return;
        }
        let mut directories = Directories::new(Arc::new(Tree::open(place.path()).unwrap()), false, 0o022, None);
        directories.list(&RelativePath::new(b"new").unwrap(), Meta { mode: 0o775, ..Meta::default() }).unwrap();
        assert!(directories.finish(true).is_empty());
        // A default ACL counts in place of the umask.
        assert_eq!(fs::metadata(place.path().join("new")).unwrap().mode() & 0o7777, 0o775);
    }

    #[test]
    fn open__is_new_as_long_as_it_is_remembered_that_it_was_made() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("old")).unwrap();
        let mut directories = Directories::new(Arc::new(Tree::open(place.path()).unwrap()), false, 0o022, None);
        let mut is_new = |path: &str| directories.open(path.as_bytes()).unwrap().unwrap().is_new;
        assert_eq!(
            [is_new(""), is_new("old"), is_new("a/b"), is_new("a/b"), is_new("a")],
            [false, false, true, true, true]
        );
        for i in 0..MAX_OPEN {
            assert!(is_new(&format!("{i}")));
        }
        assert!(!is_new("a/b"));
    }

    /// By any path: they are identified by device and inode.
    #[test]
    fn open__never_leads_into_the_places_of_keys() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir_all(place.path().join("home/state/fairwave/run")).unwrap();
        fs::create_dir(place.path().join("other")).unwrap();
        let own = OwnPlaces::at(["home/state/fairwave", "other/state/fairwave"].map(|own| place.path().join(own)));
        let directories = |root: &str| {
            let tree = Arc::new(Tree::open(&place.path().join(root)).unwrap());
            Directories::new(tree, false, 0o022, None).keeping_out_of(Some(own.clone()))
        };
        for (root, inside) in [("", "home/state/fairwave"), ("home", "state/fairwave"), ("home/state", "fairwave")] {
            let mut directories = directories(root);
            for path in [inside.to_owned(), format!("{inside}/run"), format!("{inside}/new")] {
                assert_eq!(directories.open(path.as_bytes()).unwrap_err(), DirectoryError::Own, "{root}: {path}");
            }
            assert!(directories.open(b"mine").is_ok());
        }
        // One that does not exist yet: its parents are not created.
        assert_eq!(directories("").open(b"other/state").unwrap_err(), DirectoryError::Own);
        assert!(directories("").open(b"other/more").is_ok());
    }

    #[test]
    fn open__a_dry_run_makes_nothing() {
        let place = tempfile::tempdir().unwrap();
        let mut directories = Directories::new(Arc::new(Tree::open(place.path()).unwrap()), true, 0o022, None);
        assert!(directories.open(b"a/b").unwrap().is_none());
        assert!(directories.finish(false).is_empty());
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }

    #[test]
    fn finish__a_directory_of_another_user_is_a_warning() {
        let place = crate::collector::open_place();
        let shared = place.path().join("shared");
        fs::create_dir(&shared).unwrap();
        if !rustix::process::geteuid().is_root() {
            return println!("skipped: there is one user");
        }
        fs::set_permissions(&shared, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
        let root = place.path().to_owned();
        crate::collector::as_nobody(move || {
            for is_durable in [false, true] {
                let tree = Arc::new(Tree::open(&root).unwrap());
                let mut directories = Directories::new(tree, false, 0o022, None);
                let listed = RelativePath::new(b"shared").unwrap();
                directories.list(&listed, Meta { mode: 0o755, mtime_s: 1000, mtime_ns: 0 }).unwrap();
                let errors: Vec<_> = directories.finish(is_durable);
                assert_eq!(errors.len(), 1);
                assert!(errors[0].is_attribute && *errors[0].path == *b"shared", "{errors:?}");
                assert_eq!(errors[0].error.to_string(), "cannot set its time: permission denied");
            }
        });
    }
}
