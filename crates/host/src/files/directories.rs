//! The directories of a tree that is being written.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::fs::{Mode, fchmod, fstat, fsync, futimens, syncfs};
use rustix::io::Errno;
use thiserror::Error;

use super::disk_error::{DiskError, Doing};
use super::manifest::Meta;
use super::names::RelativePath;
use super::tree::{There, Tree, times};

/// Makes directories when something is to lie in them, and gives them their modes and times when nothing more comes.
#[derive(Debug)]
pub(crate) struct Directories {
    tree: Arc<Tree>,
    /// Whether only to look.
    is_dry: bool,
    /// Those that were used last, the newest first.
    recent: VecDeque<(Box<[u8]>, Opened)>,
    /// What the file system takes for which path.
    by_id: HashMap<(u64, u64), Box<[u8]>>,
    /// What is to become of them, for the listed ones what the list says.
    metas: HashMap<Box<[u8]>, Option<Meta>>,
}

/// An open directory.
#[derive(Clone, Debug)]
pub(crate) struct Opened {
    pub(crate) directory: Arc<OwnedFd>,
    /// Whether it was made just now, so that there is nothing in it but what was put there since.
    pub(crate) is_new: bool,
}

/// Why there is no such directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum DirectoryError {
    #[error("the file system takes another directory's name for the same")]
    Collides,
    #[error(transparent)]
    Disk(#[from] DiskError),
}

/// Directories that are kept open.
const MOST_OPEN: usize = 32;
/// More are made durable together with all that the file system holds.
const FEW: usize = 64;

impl Directories {
    pub(crate) fn new(tree: Arc<Tree>, is_dry: bool) -> Self {
        Self { tree, is_dry, recent: VecDeque::new(), by_id: HashMap::new(), metas: HashMap::new() }
    }

    /// A directory, made if it is not there; nothing if it is not there and only looked for.
    pub(crate) fn open(&mut self, path: &[u8]) -> Result<Option<Opened>, DirectoryError> {
        if let Some(at) = self.recent.iter().position(|(other, _)| **other == *path) {
            let entry = self.recent.remove(at).expect("found above");
            let opened = entry.1.clone();
            self.recent.push_front(entry);
            return Ok(Some(opened));
        }
        if !self.is_dry {
            // What is above it may have to be opened up first.
            for (at, _) in path.iter().enumerate().filter(|(_, byte)| **byte == b'/') {
                if !self.metas.contains_key(&path[..at]) {
                    self.open_one(&path[..at])?;
                }
            }
        }
        self.open_one(path)
    }

    /// A directory whose parent is there.
    fn open_one(&mut self, path: &[u8]) -> Result<Option<Opened>, DirectoryError> {
        let opened = if self.is_dry {
            match self.tree.directory(path) {
                Err(Errno::NOENT) => return Ok(None),
                opened => opened.map(|directory| (directory, false)),
            }
        } else {
            self.tree.make_directory(path)
        };
        let (directory, is_new) = opened.doing("open its directory")?;
        let there = There::new(&fstat(&directory).doing("look at its directory")?);
        match self.by_id.entry(there.id) {
            Entry::Vacant(entry) => _ = entry.insert(path.into()),
            Entry::Occupied(entry) if **entry.get() == *path => {}
            Entry::Occupied(_) => return Err(DirectoryError::Collides),
        }
        if !self.is_dry && !path.is_empty() {
            let is_closed = there.meta.mode & 0o700 != 0o700;
            // One that is not listed gets back what it had.
            self.metas.entry(path.into()).or_insert_with(|| (!is_new && is_closed).then_some(there.meta));
            if is_closed {
                // Where this is not allowed, what is to be made in it will say so.
                let _ = fchmod(&directory, Mode::from_raw_mode((there.meta.mode | 0o700).into()));
            }
        }
        let opened = Opened { directory: Arc::new(directory), is_new };
        self.recent.truncate(MOST_OPEN - 1);
        self.recent.push_front((path.into(), opened.clone()));
        Ok(Some(opened))
    }

    /// A directory that is listed.
    pub(crate) fn list(&mut self, path: &RelativePath, meta: Meta) -> Result<(), DirectoryError> {
        if self.open(path.as_bytes())?.is_some() && !self.is_dry {
            self.metas.insert(path.as_bytes().into(), Some(meta));
        }
        Ok(())
    }

    /// Nothing more comes: modes and times are set, from the deepest on, and all is made durable if `is_durable`. What
    /// could not be done to which directory.
    pub(crate) fn finish(&mut self, is_durable: bool) -> Vec<(Box<[u8]>, DiskError)> {
        let mut metas: Vec<_> = self.metas.drain().collect();
        // A path sorts before all below it.
        metas.sort_unstable_by(|one, other| other.0.cmp(&one.0));
        let is_one_by_one = metas.len() <= FEW;
        let mut failed = Vec::new();
        for (path, meta) in metas {
            if let Err(error) = self.finish_one(&path, meta, is_durable && is_one_by_one) {
                failed.push((path, error));
            }
        }
        if is_durable {
            let synced = if is_one_by_one { fsync(self.tree.root()) } else { syncfs(self.tree.root()) };
            failed.extend(synced.doing("make it durable").err().map(|error| (Box::default(), error)));
        }
        failed
    }

    fn finish_one(&self, path: &[u8], meta: Option<Meta>, is_durable: bool) -> Result<(), DiskError> {
        let directory = self.tree.directory(path).doing("open it")?;
        if let Some(meta) = meta {
            fchmod(&directory, Mode::from_raw_mode(meta.mode.into())).doing("set its mode")?;
            futimens(&directory, &times(meta)).doing("set its time")?;
        }
        if is_durable { fsync(&directory).doing("make it durable") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::MetadataExt;

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
        let mut directories = Directories::new(Arc::new(Tree::open(place.path()).unwrap()), false);
        let listed = RelativePath::new(b"new/listed").unwrap();
        directories.list(&listed, Meta { mode: 0o550, mtime_s: 1000, mtime_ns: 0 }).unwrap();
        directories.open(b"mine/deep").unwrap();
        // As long as something may come, it can be written.
        assert_eq!(modes(place.path(), ["mine", "new/listed", "mine/deep"]).map(|mode| mode & 0o700), [0o700; 3]);
        assert!(directories.finish(true).is_empty());
        let [listed, new, deep] = modes(place.path(), ["new/listed", "new", "mine/deep"]);
        assert_eq!((listed, new & 0o700, deep & 0o700), (0o550, 0o700, 0o700));
        assert_eq!(fs::metadata(place.path().join("new/listed")).unwrap().mtime(), 1000);
    }

    #[test]
    fn open__is_new_as_long_as_it_is_remembered_that_it_was_made() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("old")).unwrap();
        let mut directories = Directories::new(Arc::new(Tree::open(place.path()).unwrap()), false);
        let mut is_new = |path: &str| directories.open(path.as_bytes()).unwrap().unwrap().is_new;
        assert_eq!(
            [is_new(""), is_new("old"), is_new("a/b"), is_new("a/b"), is_new("a")],
            [false, false, true, true, true]
        );
        for i in 0..MOST_OPEN {
            assert!(is_new(&format!("{i}")));
        }
        assert!(!is_new("a/b"));
    }

    #[test]
    fn open__a_dry_run_makes_nothing() {
        let place = tempfile::tempdir().unwrap();
        let mut directories = Directories::new(Arc::new(Tree::open(place.path()).unwrap()), true);
        assert!(directories.open(b"a/b").unwrap().is_none());
        assert!(directories.finish(false).is_empty());
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }
}
