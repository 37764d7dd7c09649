//! The walk of the roots: one directory after the other, in an order that depends only on the names.

use std::ffi::CString;
use std::io;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Dir, FileType, Mode, Stat, fstat, openat, readlinkat, statat};
use rustix::io::Errno;

use super::attributes::AttributeLister;
use super::list_options::ListOptions;
use super::roots::Roots;
use crate::filter::choice::Verdicts;
use crate::filter::gitignore::{self, GITIGNORE, Gitignores};
use crate::filter::selection::NameSelection;
use crate::format::attributes::NodeKind;
use crate::format::holes::{Holes, MAX_HOLES, MIN_HOLE};
use crate::format::manifest::{FileIdentity, MAX_PATH_BYTES, Meta, TreeEntry};
use crate::format::names::is_reserved;
use crate::format::reason::reason;
use crate::format::short_hash::short;
use crate::sys::{LOOK, device, may_be_generated, node_id};
use crate::transfer::boot::directory_id;
use crate::transfer::memory::{LISTS, Room};

/// Calls `found` for every entry below the roots: a directory, then its entries except directories, then those, each by
/// name; and for the holes of a file before it. A directory that cannot be listed is a failed entry; an entry that is
/// removed during the walk is ignored. Entries that were not requested are left out; a requested name that does not
/// exist is a failed entry. For a taker that deletes, the rules come first, and entries that are left out for another
/// reason are named.
pub(crate) fn scan(
    roots: &Roots,
    listing: ListOptions,
    found: &mut dyn FnMut(&TreeEntry<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let ListOptions { changed_until_unix_s, filter, names: asked, depth, holder, lists_left_out, lists_attributes } =
        listing;
    let changed_until_s = changed_until_unix_s.map_or(i64::MAX, |until| i64::try_from(until).unwrap_or(i64::MAX));
    let stays_on = filter.stays_on_file_system.then_some(0);
    if lists_left_out {
        filter.rules.iter().try_for_each(|(pattern, includes)| found(&TreeEntry::Rule { includes, pattern }))?;
    }
    let ignored = filter.obeys_gitignore.then(|| Ignored::new(Room::new(&LISTS, holder)));
    let verdicts = Verdicts::new(filter);
    let (names, bytes, holes) = (Vec::new(), Vec::new(), 0);
    let attributes = lists_attributes.then(AttributeLister::default);
    let mut walk = Walk {
        roots,
        changed_until_s,
        asked,
        depth,
        verdicts,
        ignored,
        stays_on,
        lists_left_out,
        attributes,
        found,
        names,
        bytes,
        holes,
    };
    for name in roots.names() {
        match roots.stat(name) {
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Directory => {
                walk.stays_on = walk.stays_on.map(|_| node_id(&stat).0);
                walk.tree(name)?;
            }
            Ok(stat) => walk.leaf(name, &stat, None)?,
            Err(error) => walk.fail(name, &error)?,
        }
    }
    for name in walk.asked.missed() {
        (walk.found)(&TreeEntry::Failed { path: name, reason: &reason(&Errno::NOENT.into()) })?;
    }
    ControlFlow::Continue(())
}

/// The identity of a file: its size, its time and its inode. Device numbers may change at each boot; and the time of
/// the last change of attributes moves with each link, each mode and each snapshot.
pub(crate) fn identity(stat: &Stat) -> FileIdentity {
    identity_before(stat, stat.st_size.cast_unsigned(), (stat.st_mtime, meta(stat).mtime_ns))
}

/// The identity of a file that has grown since it had this size and this time.
pub(crate) fn identity_before(stat: &Stat, bytes: u64, (mtime_s, mtime_ns): (i64, u32)) -> FileIdentity {
    let mut said = [0; 32];
    let numbers = [bytes, mtime_s.cast_unsigned(), mtime_ns.into(), node_id(stat).1];
    for (place, number) in said.chunks_exact_mut(8).zip(numbers) {
        place.copy_from_slice(&number.to_le_bytes());
    }
    FileIdentity(short(blake3::Hasher::new().update(&said)))
}

/// When a file was last changed, in its content or its attributes. It cannot be set.
pub(crate) type ChangeTime = (i64, u32);

pub(crate) fn changed_at(stat: &Stat) -> ChangeTime {
    (stat.st_ctime, u32::try_from(stat.st_ctime_nsec).unwrap_or(0))
}

/// Max size of a generated file, as those of /proc and /sys are, bytes: it is read completely when it is listed, since
/// its length is unknown before that, and its content differs each time.
const MAX_MADE_BYTES: usize = 16 << 20;
/// Larger files than this have a length: those of /sys claim a page.
const MAX_CLAIMED_BYTES: u64 = 64 << 10;
const LONG_MADE: &str = "it has no length before it is read, and more than 16 MiB";
const MANY_MADE: &str = "files that have no length before they are read have more than 64 MiB in all";

/// Whether a file may be made when it is read: it occupies nothing.
fn may_be_made_when_read(stat: &Stat) -> bool {
    let bytes = stat.st_size.cast_unsigned();
    stat.st_blocks == 0 && may_be_generated(stat) && bytes <= MAX_CLAIMED_BYTES
}

/// Said of Fairwave's own places.
const OWN: &str = "holds Fairwave's keys, which are never sent";

/// Of what has changed since the first session of a transfer whose ticket has expired.
const CHANGED: &str = "it changed after the transfer began, whose ticket has expired since";

struct Walk<'a> {
    roots: &'a Roots,
    changed_until_s: i64,
    asked: NameSelection,
    depth: Option<usize>,
    verdicts: Verdicts,
    /// Rules of the `.gitignore` files, if they are obeyed.
    ignored: Option<Ignored>,
    /// The device of the root, if others are not entered.
    stays_on: Option<u64>,
    lists_left_out: bool,
    /// Lists all attributes, for an archive.
    attributes: Option<AttributeLister>,
    found: &'a mut dyn FnMut(&TreeEntry<'_>) -> ControlFlow<()>,
    /// The names of a directory: the start and end of each in `bytes`.
    names: Vec<(usize, usize)>,
    bytes: Vec<u8>,
    /// Holes that were reported.
    holes: usize,
}

/// The rules of the `.gitignore` files of a walk.
struct Ignored {
    rules: Gitignores,
    /// Memory for them, once there are any.
    room: Room,
}

impl Ignored {
    fn new(room: Room) -> Self {
        Self { rules: Gitignores::default(), room }
    }
}

impl Walk<'_> {
    /// A directory and all below it. One descriptor is open at a time, however deep it is.
    fn tree(&mut self, root: &[u8]) -> ControlFlow<()> {
        let mut waiting = if self.enters(root) { vec![root.to_vec()] } else { Vec::new() };
        while let Some(path) = waiting.pop() {
            let before = waiting.len();
            self.directory(&path, &mut waiting)?;
            // The next one popped is the first by name.
            waiting[before..].reverse();
        }
        ControlFlow::Continue(())
    }

    fn directory(&mut self, path: &[u8], waiting: &mut Vec<Vec<u8>>) -> ControlFlow<()> {
        let opened = self.roots.open_directory(path).and_then(|fd| Ok((fstat(&fd)?, Dir::new(fd)?)));
        let (stat, mut directory) = match opened {
            Ok(opened) => opened,
            // Without the top, nothing is known of what should be there.
            Err(error) if error.kind() == io::ErrorKind::NotFound && !path.is_empty() => {
                return ControlFlow::Continue(());
            }
            Err(error) => return self.fail(path, &error),
        };
        if self.roots.is_own(&stat) {
            return (self.found)(&TreeEntry::Skipped { path, reason: OWN });
        }
        if path.is_empty() && stat.st_nlink == 0 {
            return self.fail(path, &Errno::NOENT.into());
        }
        // The parents of a requested name are not part of the copy.
        if !path.is_empty() && self.asked.takes(path) {
            if let Some(attributes) = &mut self.attributes {
                attributes.list(&stat, directory.fd().ok(), self.found)?;
            }
            (self.found)(&TreeEntry::Identity(directory_id(&stat)))?;
            (self.found)(&TreeEntry::Directory { path, meta: meta(&stat) })?;
        }
        if self.stays_on.is_some_and(|device| node_id(&stat).0 != device) {
            return if self.lists_left_out {
                (self.found)(&TreeEntry::Kept { path })
            } else {
                ControlFlow::Continue(())
            };
        }
        let error = self.list(&mut directory).err();
        if let Err(reason) = self.read_gitignore(path) {
            // Without its rules it is not known what to leave out.
            return (self.found)(&TreeEntry::Failed { path: shown(path), reason: &reason });
        }
        let (names, bytes) = (std::mem::take(&mut self.names), std::mem::take(&mut self.bytes));
        let stem = if path.is_empty() { Vec::new() } else { [path, b"/"].concat() };
        let (mut below, mut has_long) = (stem, false);
        let stem = below.len();
        for &(start, end) in &names {
            let name = &bytes[start..end];
            // Unfinished files of other transfers are never read.
            if is_reserved(name) {
                continue;
            }
            below.truncate(stem);
            below.extend_from_slice(name);
            if below.len() > MAX_PATH_BYTES {
                has_long = true;
                continue;
            }
            let fd = directory.fd();
            match fd.and_then(|fd| statat(fd, name, AtFlags::SYMLINK_NOFOLLOW)) {
                Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Directory => {
                    let names = || below.split(|byte| *byte == b'/').count();
                    if self.ignores(&below, true) {
                        self.leave_out(&below)?;
                    } else if self.depth.is_some_and(|depth| names() >= depth) {
                        (self.found)(&TreeEntry::Directory { path: &below, meta: meta(&stat) })?;
                    } else if self.enters(&below) {
                        waiting.push(below.clone());
                    }
                }
                Ok(stat) => self.leaf(&below, &stat, fd.ok().map(|fd| (fd, name)))?,
                Err(Errno::NOENT) => {}
                Err(error) if self.asked.takes(&below) => self.fail(&below, &error.into())?,
                Err(_) => {}
            }
        }
        (self.names, self.bytes) = (names, bytes);
        if has_long {
            let reason = format!("contains paths of more than {MAX_PATH_BYTES} bytes");
            (self.found)(&TreeEntry::Failed { path: shown(path), reason: &reason })?;
        }
        error.map_or(ControlFlow::Continue(()), |error| self.fail(path, &error))
    }

    /// Reads the rules of the directory whose names are listed.
    fn read_gitignore(&mut self, directory: &[u8]) -> Result<(), String> {
        let Some(ignored) = &mut self.ignored else { return Ok(()) };
        let is_there = self.names.iter().any(|&(start, end)| self.bytes.get(start..end) == Some(GITIGNORE));
        let slash: &[u8] = if directory.is_empty() { b"" } else { b"/" };
        let opened = || self.roots.open_file(&[directory, slash, GITIGNORE].concat());
        let content = if is_there { gitignore::content(opened()) } else { Ok(None) };
        let content = content.map_err(|error| format!("cannot read its .gitignore file: {}", reason(&error)))?;
        if content.is_some() && ignored.room.bytes() == 0 && !ignored.room.grow(Gitignores::MAX_BYTES) {
            return Err("this end has no memory left for the rules of .gitignore files".to_owned());
        }
        ignored.rules.enter(directory, content.as_deref()).map_err(|error| error.to_string())
    }

    /// Whether `.gitignore` files leave a path out.
    fn ignores(&self, path: &[u8], is_directory: bool) -> bool {
        self.ignored.as_ref().is_some_and(|ignored| ignored.rules.ignores(path, is_directory))
    }

    /// Names an entry that is left out, for a taker that deletes.
    fn leave_out(&mut self, path: &[u8]) -> ControlFlow<()> {
        let is_named = self.lists_left_out && self.asked.takes(path);
        if is_named { (self.found)(&TreeEntry::Kept { path }) } else { ControlFlow::Continue(()) }
    }

    /// Whether a directory is listed: it is asked for, or something in it, and it is not excluded.
    fn enters(&mut self, path: &[u8]) -> bool {
        let asked = &mut self.asked;
        let is_asked = asked.takes(path) || path.is_empty() || asked.is_above(path);
        is_asked && (path.is_empty() || self.verdicts.takes(path, true, |above| asked.is_above(above)))
    }

    /// Whether an entry that is not a directory is listed.
    fn chooses(&mut self, path: &[u8], stat: &Stat) -> bool {
        let asked = &mut self.asked;
        let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        asked.takes(path)
            && self.verdicts.takes(path, false, |above| asked.is_above(above))
            && (!is_file || self.verdicts.takes_bytes(stat.st_size.cast_unsigned()))
    }

    /// Records the names in a directory, in order; those that were read before an error count.
    fn list(&mut self, directory: &mut Dir) -> io::Result<()> {
        self.names.clear();
        self.bytes.clear();
        let mut outcome = Ok(());
        while let Some(entry) = directory.read() {
            match entry.as_ref().map(|entry| entry.file_name().to_bytes()) {
                Ok(b"." | b"..") => {}
                Ok(name) => {
                    let start = self.bytes.len();
                    self.bytes.extend_from_slice(name);
                    self.names.push((start, self.bytes.len()));
                }
                Err(error) => {
                    outcome = Err((*error).into());
                    break;
                }
            }
        }
        let bytes = &self.bytes;
        self.names.sort_unstable_by(|one, other| bytes[one.0..one.1].cmp(&bytes[other.0..other.1]));
        outcome
    }

    /// Adds an entry that is not a directory, by its name in an open one.
    fn leaf(&mut self, path: &[u8], stat: &Stat, at: Option<(BorrowedFd<'_>, &[u8])>) -> ControlFlow<()> {
        if self.ignores(path, false) {
            return self.leave_out(path);
        }
        if !self.chooses(path, stat) {
            // Rules are in the list; sizes are not.
            let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
            let is_sized = is_file && !self.verdicts.takes_bytes(stat.st_size.cast_unsigned());
            return if is_sized { self.leave_out(path) } else { ControlFlow::Continue(()) };
        }
        let meta = meta(stat);
        let what = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile if self.roots.is_own(stat) => {
                return (self.found)(&TreeEntry::Skipped { path, reason: OWN });
            }
            // Nobody sets that time but the clock.
            FileType::RegularFile | FileType::Symlink if stat.st_ctime > self.changed_until_s => {
                return (self.found)(&TreeEntry::Skipped { path, reason: CHANGED });
            }
            FileType::RegularFile if may_be_made_when_read(stat) => match self.read_whole(path, stat) {
                Ok(Some(content)) => {
                    let bytes = content.len() as u64;
                    let identity = FileIdentity(short(blake3::Hasher::new().update(&content)));
                    if !self.roots.keep(path, content) {
                        return (self.found)(&TreeEntry::Failed { path, reason: MANY_MADE });
                    }
                    self.attributes(path, stat, at)?;
                    return (self.found)(&TreeEntry::File { path, bytes, meta, identity });
                }
                Ok(None) => return self.file(path, stat, at),
                Err(Errno::FBIG) => return (self.found)(&TreeEntry::Failed { path, reason: LONG_MADE }),
                Err(error) => return self.fail(path, &error.into()),
            },
            FileType::RegularFile => return self.file(path, stat, at),
            FileType::Symlink => match target(at) {
                Ok(target) if (1..=MAX_PATH_BYTES).contains(&target.len()) => {
                    self.attributes(path, stat, None)?;
                    return (self.found)(&TreeEntry::Symlink { path, meta, target: &target });
                }
                Ok(_) => return (self.found)(&TreeEntry::Failed { path, reason: "the link's target is too long" }),
                Err(Errno::NOENT) => return ControlFlow::Continue(()),
                Err(error) => return self.fail(path, &error.into()),
            },
            kind @ (FileType::Fifo | FileType::CharacterDevice | FileType::BlockDevice)
                if self.attributes.is_some() =>
            {
                self.attributes(path, stat, at)?;
                let (kind, device) = match kind {
                    FileType::Fifo => (NodeKind::Fifo, 0),
                    FileType::CharacterDevice => (NodeKind::Character, device(stat)),
                    _ => (NodeKind::Block, device(stat)),
                };
                return (self.found)(&TreeEntry::Node { path, meta, kind, device });
            }
            FileType::Fifo => "a FIFO",
            FileType::Socket => "a socket",
            FileType::CharacterDevice | FileType::BlockDevice => "a device",
            FileType::Directory | FileType::Unknown => "not a file, directory or link",
        };
        (self.found)(&TreeEntry::Skipped { path, reason: &format!("{what} cannot be copied") })
    }

    /// For an archive, the attributes of an entry that is listed next.
    fn attributes(&mut self, path: &[u8], stat: &Stat, at: Option<(BorrowedFd<'_>, &[u8])>) -> ControlFlow<()> {
        let Some(attributes) = &mut self.attributes else { return ControlFlow::Continue(()) };
        let is_link = FileType::from_raw_mode(stat.st_mode) == FileType::Symlink;
        let entry = match at {
            Some((directory, name)) => openat(directory, name, LOOK, Mode::empty()).ok(),
            None if is_link => None,
            None => self.roots.open_file(path).ok(),
        };
        let is_same = |entry: &OwnedFd| fstat(entry).is_ok_and(|now| now.st_ino == stat.st_ino);
        let entry = entry.filter(is_same);
        attributes.list(stat, entry.as_ref().map(AsFd::as_fd), self.found)
    }

    /// A regular file, and its holes before it.
    fn file(&mut self, path: &[u8], stat: &Stat, at: Option<(BorrowedFd<'_>, &[u8])>) -> ControlFlow<()> {
        let bytes = stat.st_size.cast_unsigned();
        self.attributes(path, stat, at)?;
        for pairs in self.holes(path, stat).to_pairs() {
            (self.found)(&TreeEntry::Holes { pairs: &pairs })?;
        }
        (self.found)(&TreeEntry::File { path, bytes, meta: meta(stat), identity: identity(stat) })
    }

    /// The content of a file that is made when it is read, if its length is not the one that it has by `stat`.
    fn read_whole(&self, path: &[u8], stat: &Stat) -> Result<Option<Vec<u8>>, Errno> {
        // Read errors are reported at the read, as for other files.
        let Ok(file) = self.roots.open_file(path) else { return Ok(None) };
        let mut content = Vec::new();
        let mut room = vec![0; 64 << 10];
        loop {
            match rustix::io::read(&file, &mut room[..]) {
                Ok(0) => break,
                Ok(count) => content.extend_from_slice(&room[..count]),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
            if content.len() > MAX_MADE_BYTES {
                return Err(Errno::FBIG);
            }
        }
        Ok((content.len() as u64 != stat.st_size.cast_unsigned()).then_some(content))
    }

    /// The holes of a file, if it is still the file that was listed. Read errors are reported at the read.
    fn holes(&mut self, path: &[u8], stat: &Stat) -> Holes {
        let bytes = stat.st_size.cast_unsigned();
        // In blocks of 512 bytes, whatever the file system's are.
        let is_full = stat.st_blocks.cast_unsigned().saturating_mul(512) >= bytes;
        if is_full || bytes < MIN_HOLE || self.holes >= MAX_HOLES {
            return Holes::default();
        }
        let Ok(file) = self.roots.open_file(path) else { return Holes::default() };
        let holes = Holes::find(&file, bytes, MAX_HOLES - self.holes);
        if !fstat(&file).is_ok_and(|now| identity(&now) == identity(stat)) {
            return Holes::default();
        }
        self.holes += holes.len();
        holes
    }

    fn fail(&mut self, path: &[u8], error: &io::Error) -> ControlFlow<()> {
        (self.found)(&TreeEntry::Failed { path: shown(path), reason: &reason(error) })
    }
}

/// The target of a link, by its name in an open directory.
fn target(at: Option<(BorrowedFd<'_>, &[u8])>) -> rustix::io::Result<Vec<u8>> {
    let (directory, name) = at.ok_or(Errno::INVAL)?;
    readlinkat(directory, name, Vec::new()).map(CString::into_bytes)
}

/// The path of a failure: that of the top has no name.
fn shown(path: &[u8]) -> &[u8] {
    if path.is_empty() { b"." } else { path }
}

pub(crate) fn meta(stat: &Stat) -> Meta {
    let mtime_ns = u32::try_from(stat.st_mtime_nsec).unwrap_or(0);
    Meta { mode: (stat.st_mode & 0o777) as u16, mtime_s: stat.st_mtime, mtime_ns }
}

#[cfg(test)]
mod tests;
