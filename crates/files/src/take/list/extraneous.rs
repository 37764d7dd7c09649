//! Deletes what the giver does not have, in the directories that it lists.

use std::os::fd::OwnedFd;

use fairwave_host::OwnPlaces;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, fchmod, fstat, openat, statat, unlinkat};
use rustix::io::Errno;

use crate::filter::gitignore::{self, GITIGNORE, Gitignores};
use crate::filter::rules::Rules;
use crate::format::backup::Backup;
use crate::format::greeting::Deletions;
use crate::format::names::{RelativePath, is_reserved};
use crate::sys::node_id;
use crate::take::disk::backups::keep;
use crate::take::disk::disk_error::{DiskError, Doing};
use crate::take::disk::tree::Tree;
use crate::take::list::claims::{PathClaim, PathClaims};

/// Entries of the destination that the giver does not have, in the directories that it lists.
///
/// These stay: what the list names, whatever became of it; what the rules exclude, and the `.gitignore` files of the
/// destination if they are obeyed; names that are reserved for
/// temporaries; places of keys; what other file systems have; and each directory in which something stays.
pub(crate) struct Extraneous<'a> {
    pub(crate) tree: &'a Tree,
    pub(crate) claims: &'a PathClaims,
    pub(crate) rules: &'a Rules,
    /// The rules of the destination's `.gitignore` files.
    pub(crate) ignored: Gitignores,
    /// The path of an entry as the rules know it.
    pub(crate) as_listed: &'a dyn Fn(&[u8]) -> Vec<u8>,
    pub(crate) own: Option<&'a OwnPlaces>,
    /// How deleted files are kept.
    pub(crate) backup: Option<&'a Backup>,
    pub(crate) deletions: Deletions,
    pub(crate) is_dry: bool,
    /// Whether the maximum has kept something.
    pub(crate) has_left: bool,
    pub(crate) is_stopped: &'a dyn Fn() -> bool,
    pub(crate) tell: &'a mut dyn FnMut(Deletion<'_>),
}

/// What became of an extraneous entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deletion<'a> {
    /// It is deleted, or would be in a dry run.
    Done {
        /// Its path at the destination.
        path: &'a [u8],
        /// Its length, if it is a file.
        bytes: u64,
    },
    /// The maximum was reached before.
    Left,
    /// It could not be deleted.
    Failed {
        /// Its path at the destination.
        path: &'a [u8],
        /// Why.
        error: DiskError,
    },
    /// Nothing is deleted in this directory: its file system treats names as equal that the list distinguishes.
    IgnoresCase {
        /// Its path at the destination.
        path: &'a [u8],
    },
}

/// A directory that holds listed entries, or may.
struct ClaimedDirectory {
    path: Vec<u8>,
    is_listed: bool,
    /// The device of the topmost listed directory around it.
    device: Option<u64>,
}

/// A step of the deletion of a directory.
enum DirectoryStep {
    Enter(Vec<u8>),
    Leave,
}

const DELETE: &str = "delete it";
const LIST: &str = "list its directory";

impl Extraneous<'_> {
    /// Deletes them, after `count` others.
    pub(crate) fn delete(mut self, mut count: u64) {
        let top = ClaimedDirectory { path: Vec::new(), is_listed: self.deletions.at_top, device: None };
        let mut waiting = vec![top];
        while let Some(directory) = waiting.pop() {
            if (self.is_stopped)() {
                break;
            }
            let path = directory.path.clone();
            match self.claimed(directory, &mut waiting, &mut count) {
                // It may be something else than the list says, or not have been made.
                Ok(()) | Err(DiskError { error: Errno::NOENT | Errno::NOTDIR | Errno::LOOP, .. }) => {}
                Err(error) => (self.tell)(Deletion::Failed { path: &path, error }),
            }
        }
    }

    /// Deletes what is at the path of a listed entry of another kind, after `count` other deletions; returns whether it
    /// is gone.
    pub(crate) fn clear(mut self, path: &RelativePath, mut count: u64) -> Result<bool, DiskError> {
        let (parent, path) = (path.parent().to_vec(), path.as_bytes());
        let above = (0..=parent.len()).filter(|end| *end == 0 || parent.get(*end).is_none_or(|byte| *byte == b'/'));
        for end in above {
            let directory = self.tree.directory(&parent[..end]).doing(DELETE)?;
            self.read_gitignore(&parent[..end], &directory)?;
        }
        let opened = self.tree.directory(&parent).doing(DELETE)?;
        let name = &path[if parent.is_empty() { 0 } else { parent.len() + 1 }..];
        // It may be what the list names in other case.
        if folds_case(&opened, name) {
            return Ok(false);
        }
        let around = fstat(&opened).doing(DELETE)?;
        let is_gone = match self.entry(&opened, &around, name, path, &mut count) {
            Found::Directory => self.directory(path.to_vec(), &mut count),
            found => found == Found::Gone,
        };
        Ok(is_gone && !self.has_left)
    }

    /// A directory of the list, or above something in it.
    fn claimed(
        &mut self,
        directory: ClaimedDirectory,
        waiting: &mut Vec<ClaimedDirectory>,
        count: &mut u64,
    ) -> Result<(), DiskError> {
        let ClaimedDirectory { path, is_listed, mut device } = directory;
        let opened = self.tree.directory(&path).doing(LIST)?;
        let stat = fstat(&opened).doing(LIST)?;
        if self.own.is_some_and(|own| own.is_directory(node_id(&stat))) {
            return Ok(());
        }
        if is_listed {
            let first = *device.get_or_insert(node_id(&stat).0);
            if self.deletions.stays_on_file_system && first != node_id(&stat).0 {
                return Ok(());
            }
        }
        self.read_gitignore(&path, &opened)?;
        let mut extraneous = Vec::new();
        for name in names(&opened)? {
            let below = join(&path, &name);
            match self.claims.get(&below) {
                Some(PathClaim::Leaf) => {}
                Some(claim) => {
                    let is_listed = claim == PathClaim::Directory;
                    waiting.push(ClaimedDirectory { path: below, is_listed, device });
                }
                None if is_listed => extraneous.push(name),
                None => {}
            }
        }
        if extraneous.iter().any(|name| folds_case(&opened, name)) {
            (self.tell)(Deletion::IgnoresCase { path: &path });
            return Ok(());
        }
        for name in extraneous {
            let below = join(&path, &name);
            if self.entry(&opened, &stat, &name, &below, count) == Found::Directory {
                self.directory(below, count);
            }
        }
        Ok(())
    }

    /// Deletes a directory, and all in it that does not stay; returns whether it is gone. One descriptor is open at a
    /// time, however deep it is.
    fn directory(&mut self, path: Vec<u8>, count: &mut u64) -> bool {
        let mut steps = vec![DirectoryStep::Enter(path)];
        // Whether nothing stays in the directories that are being deleted.
        let mut open: Vec<(Vec<u8>, bool)> = Vec::new();
        while let Some(step) = steps.pop() {
            match step {
                DirectoryStep::Enter(path) => {
                    steps.push(DirectoryStep::Leave);
                    let is_clear = self.enter(&path, &mut steps, count).unwrap_or_else(|error| {
                        (self.tell)(Deletion::Failed { path: &path, error });
                        false
                    });
                    open.push((path, is_clear));
                }
                DirectoryStep::Leave => {
                    let Some((path, is_clear)) = open.pop() else { continue };
                    let is_gone = is_clear && self.remove_directory(&path, count);
                    match open.last_mut() {
                        Some((_, is_clear)) => *is_clear &= is_gone,
                        None => return is_gone,
                    }
                }
            }
        }
        false
    }

    /// Deletes the entries of a directory except directories, which are added to the steps. Whether nothing else stays.
    fn enter(&mut self, path: &[u8], steps: &mut Vec<DirectoryStep>, count: &mut u64) -> Result<bool, DiskError> {
        if (self.is_stopped)() {
            return Ok(false);
        }
        let opened = self.tree.directory(path).doing(DELETE)?;
        let stat = fstat(&opened).doing(DELETE)?;
        self.read_gitignore(path, &opened)?;
        let (mut is_clear, before) = (true, steps.len());
        for name in names(&opened)? {
            let below = join(path, &name);
            match self.entry(&opened, &stat, &name, &below, count) {
                Found::Directory => steps.push(DirectoryStep::Enter(below)),
                Found::Gone => {}
                Found::Stays => is_clear = false,
            }
        }
        steps[before..].reverse();
        Ok(is_clear)
    }

    /// Reads the rules of an open directory, if they are obeyed.
    fn read_gitignore(&mut self, path: &[u8], directory: &OwnedFd) -> Result<(), DiskError> {
        if !self.deletions.keeps_ignored {
            return Ok(());
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let opened = openat(directory, GITIGNORE, flags, Mode::empty());
        let content = gitignore::content(opened.map_err(Into::into));
        let failed = |error| DiskError { doing: "read its .gitignore file", error };
        let content = content.map_err(|error| failed(Errno::from_io_error(&error).unwrap_or(Errno::IO)))?;
        self.ignored.enter(path, content.as_deref()).map_err(|_| failed(Errno::FBIG))
    }

    /// An extraneous entry of an open directory: deletes it, unless it is a directory.
    fn entry(&mut self, parent: &OwnedFd, around: &Stat, name: &[u8], path: &[u8], count: &mut u64) -> Found {
        let stat = match statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Found::Gone,
            Err(error) => return self.fail(path, error),
        };
        let kind = FileType::from_raw_mode(stat.st_mode);
        let (is_directory, node) = (kind == FileType::Directory, node_id(&stat));
        let is_own =
            |own: &OwnPlaces| own.is_directory(node) || own.is_file(node) || own.is_next(node_id(around), name);
        let is_excluded =
            || !self.rules.includes(&(self.as_listed)(path), is_directory) || self.ignored.ignores(path, is_directory);
        let is_backup = self.backup.is_some_and(|backup| backup.is_one(path));
        if is_reserved(name) || is_backup || self.own.is_some_and(is_own) || is_excluded() {
            return Found::Stays;
        }
        if is_directory {
            let is_mounted = stat.st_dev != around.st_dev;
            return match (is_mounted, self.deletions.stays_on_file_system) {
                (false, _) => Found::Directory,
                (true, true) => Found::Stays,
                (true, false) => self.fail(path, Errno::BUSY),
            };
        }
        let bytes = if kind == FileType::RegularFile { stat.st_size.cast_unsigned() } else { 0 };
        self.remove(parent, name, path, AtFlags::empty(), bytes, count)
    }

    /// Deletes an empty directory; returns whether it is gone.
    fn remove_directory(&mut self, path: &[u8], count: &mut u64) -> bool {
        let (parent, name) = match path.iter().rposition(|byte| *byte == b'/') {
            Some(at) => (&path[..at], &path[at + 1..]),
            None => (&[][..], path),
        };
        match self.tree.directory(parent) {
            Ok(parent) => self.remove(&parent, name, path, AtFlags::REMOVEDIR, 0, count) == Found::Gone,
            Err(error) => self.fail(path, error) == Found::Gone,
        }
    }

    fn remove(
        &mut self,
        parent: &OwnedFd,
        name: &[u8],
        path: &[u8],
        flags: AtFlags,
        bytes: u64,
        count: &mut u64,
    ) -> Found {
        if *count >= self.deletions.most {
            self.has_left = true;
            (self.tell)(Deletion::Left);
            return Found::Gone;
        }
        let removed = if self.is_dry {
            Ok(())
        } else {
            match self.unlink(parent, name, path, flags) {
                // As rsync: the owner may make its directory writable, and it is about to be deleted.
                Err(Errno::ACCESS) if make_writable(parent) => self.unlink(parent, name, path, flags),
                removed => removed,
            }
        };
        match removed {
            Ok(()) => {
                *count += 1;
                (self.tell)(Deletion::Done { path, bytes });
                Found::Gone
            }
            Err(Errno::NOENT) => Found::Gone,
            // Something has come since.
            Err(Errno::NOTEMPTY | Errno::EXIST) if flags.contains(AtFlags::REMOVEDIR) => Found::Stays,
            Err(error) => self.fail(path, error),
        }
    }

    /// Removes an entry, whose backup stays if it is not a directory.
    fn unlink(&self, parent: &OwnedFd, name: &[u8], path: &[u8], flags: AtFlags) -> rustix::io::Result<()> {
        if let Some(backup) = self.backup.filter(|_| !flags.contains(AtFlags::REMOVEDIR)) {
            let path = RelativePath::new(path).map_err(|_| Errno::INVAL)?;
            let to = backup.of(&path).map_err(|_| Errno::NAMETOOLONG)?;
            if self.claims.get(to.as_bytes()).is_some() {
                return Err(Errno::EXIST);
            }
            if keep(backup, self.tree, self.own, parent, &path)? {
                return Ok(());
            }
        }
        unlinkat(parent, name, flags)
    }

    fn fail(&mut self, path: &[u8], error: Errno) -> Found {
        (self.tell)(Deletion::Failed { path, error: DiskError { doing: DELETE, error } });
        Found::Stays
    }
}

/// What became of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// It is a directory, to be deleted.
    Directory,
    /// It is deleted, or only the maximum has kept it.
    Gone,
    Stays,
}

fn join(path: &[u8], name: &[u8]) -> Vec<u8> {
    if path.is_empty() { name.to_vec() } else { [path, b"/", name].concat() }
}

/// The names in a directory, in order.
fn names(directory: &OwnedFd) -> Result<Vec<Vec<u8>>, DiskError> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory).doing(LIST)? {
        let entry = entry.doing(LIST)?;
        let name = entry.file_name().to_bytes();
        if !matches!(name, b"." | b"..") {
            names.push(name.to_vec());
        }
    }
    names.sort_unstable();
    Ok(names)
}

fn make_writable(directory: &OwnedFd) -> bool {
    let mode = fstat(directory).map(|stat| Mode::from_raw_mode(stat.st_mode));
    mode.is_ok_and(|mode| fchmod(directory, mode | Mode::RWXU).is_ok())
}

/// Whether an entry of a directory has the same name in other case: then it may be one that the list names.
fn folds_case(directory: &OwnedFd, name: &[u8]) -> bool {
    let Some(at) = name.iter().position(u8::is_ascii_alphabetic) else { return false };
    let mut other = name.to_vec();
    other[at] ^= 0x20;
    let node = |name: &[u8]| statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).ok().map(|stat| node_id(&stat));
    node(&other).is_some_and(|other| node(name) == Some(other))
}
