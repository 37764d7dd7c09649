//! The walk of the roots: one directory after the other, in an order that depends only on the names.

use std::ffi::CString;
use std::io;
use std::ops::ControlFlow;

use rustix::fs::{AtFlags, Dir, FileType, Stat, fstat, readlinkat, statat};
use rustix::io::Errno;

use super::list_options::ListOptions;
use super::roots::Roots;
use crate::filter::choice::Verdicts;
use crate::filter::selection::NameSelection;
use crate::format::holes::{Holes, LEAST_HOLE, MOST_HOLES};
use crate::format::manifest::{FileIdentity, MOST_PATH_BYTES, Meta, TreeEntry};
use crate::format::names::is_reserved;
use crate::format::reason::reason;
use crate::format::short_hash::short;

/// Calls `found` for every entry below the roots: a directory, then its entries except directories, then those, each by
/// name; and for the holes of a file before it. A directory that cannot be listed is a failed entry; an entry that is
/// removed during the walk is ignored. Entries that were not requested are left out; a requested name that does not
/// exist is a failed entry.
pub(crate) fn scan(
    roots: &Roots,
    listing: ListOptions,
    found: &mut dyn FnMut(&TreeEntry<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let ListOptions { changed_until_unix_s, filter, names: asked } = listing;
    let changed_until_s = changed_until_unix_s.map_or(i64::MAX, |until| i64::try_from(until).unwrap_or(i64::MAX));
    let stays_on = filter.stays_on_file_system.then_some(0);
    let verdicts = Verdicts::new(filter);
    let (names, bytes, holes) = (Vec::new(), Vec::new(), 0);
    let mut walk = Walk { roots, changed_until_s, asked, verdicts, stays_on, found, names, bytes, holes };
    for name in roots.names() {
        match roots.stat(name) {
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Directory => {
                walk.stays_on = walk.stays_on.map(|_| stat.st_dev);
                walk.tree(name)?;
            }
            Ok(stat) => walk.leaf(name, &stat, &|| Err(Errno::INVAL))?,
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
    let mut said = [0; 32];
    let numbers = [stat.st_size.cast_unsigned(), stat.st_mtime.cast_unsigned(), stat.st_mtime_nsec, stat.st_ino];
    for (place, number) in said.chunks_exact_mut(8).zip(numbers) {
        place.copy_from_slice(&number.to_le_bytes());
    }
    FileIdentity(short(blake3::Hasher::new().update(&said)))
}

/// When a file was last changed, in its content or its attributes. It cannot be set.
pub(crate) type ChangeTime = (i64, u64);

pub(crate) fn changed_at(stat: &Stat) -> ChangeTime {
    (stat.st_ctime, stat.st_ctime_nsec)
}

/// Max size of a generated file, as those of /proc and /sys are, bytes: it is read completely when it is listed, since
/// its length is unknown before that, and its content differs each time.
const MAX_MADE_BYTES: usize = 16 << 20;
/// Larger files than this have a length: those of /sys claim a page.
const MAX_CLAIMED_BYTES: u64 = 64 << 10;
const LONG_MADE: &str = "it has no length before it is read, and more than 16 MiB";
const MANY_MADE: &str = "files that have no length before they are read have more than 64 MiB in all";

/// Whether a file may be made when it is read: it occupies nothing, on a file system without a disk.
fn may_be_made_when_read(stat: &Stat) -> bool {
    let bytes = stat.st_size.cast_unsigned();
    stat.st_blocks == 0 && rustix::fs::major(stat.st_dev) == 0 && bytes <= MAX_CLAIMED_BYTES
}

/// Said of Fairwave's own places.
const OWN: &str = "holds Fairwave's keys, which are never sent";

/// Of what has changed since the first session of a transfer whose ticket has expired.
const CHANGED: &str = "it changed after the transfer began, whose ticket has expired since";

struct Walk<'a> {
    roots: &'a Roots,
    changed_until_s: i64,
    asked: NameSelection,
    verdicts: Verdicts,
    /// The device of the root, if others are not entered.
    stays_on: Option<u64>,
    found: &'a mut dyn FnMut(&TreeEntry<'_>) -> ControlFlow<()>,
    /// The names of a directory: the start and end of each in `bytes`.
    names: Vec<(usize, usize)>,
    bytes: Vec<u8>,
    /// Holes that were reported.
    holes: usize,
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
            Err(error) if error.kind() == io::ErrorKind::NotFound => return ControlFlow::Continue(()),
            Err(error) => return self.fail(path, &error),
        };
        if self.roots.is_own(&stat) {
            return (self.found)(&TreeEntry::Skipped { path, reason: OWN });
        }
        // The parents of a requested name are not part of the copy.
        if !path.is_empty() && self.asked.takes(path) {
            (self.found)(&TreeEntry::Directory { path, meta: meta(&stat) })?;
        }
        if self.stays_on.is_some_and(|device| stat.st_dev != device) {
            return ControlFlow::Continue(());
        }
        let error = self.list(&mut directory).err();
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
            if below.len() > MOST_PATH_BYTES {
                has_long = true;
                continue;
            }
            let fd = directory.fd();
            match fd.and_then(|fd| statat(fd, name, AtFlags::SYMLINK_NOFOLLOW)) {
                Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Directory => {
                    if self.enters(&below) {
                        waiting.push(below.clone());
                    }
                }
                Ok(stat) => {
                    let target = || readlinkat(fd?, name, Vec::new()).map(CString::into_bytes);
                    self.leaf(&below, &stat, &target)?;
                }
                Err(Errno::NOENT) => {}
                Err(error) if self.asked.takes(&below) => self.fail(&below, &error.into())?,
                Err(_) => {}
            }
        }
        (self.names, self.bytes) = (names, bytes);
        if has_long {
            let reason = format!("contains paths of more than {MOST_PATH_BYTES} bytes");
            (self.found)(&TreeEntry::Failed { path, reason: &reason })?;
        }
        error.map_or(ControlFlow::Continue(()), |error| self.fail(path, &error))
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

    /// Adds an entry that is not a directory.
    fn leaf(&mut self, path: &[u8], stat: &Stat, target: &dyn Fn() -> rustix::io::Result<Vec<u8>>) -> ControlFlow<()> {
        if !self.chooses(path, stat) {
            return ControlFlow::Continue(());
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
                    return (self.found)(&TreeEntry::File { path, bytes, meta, identity });
                }
                Ok(None) => return self.file(path, stat),
                Err(Errno::FBIG) => return (self.found)(&TreeEntry::Failed { path, reason: LONG_MADE }),
                Err(error) => return self.fail(path, &error.into()),
            },
            FileType::RegularFile => return self.file(path, stat),
            FileType::Symlink => match target() {
                Ok(target) if (1..=MOST_PATH_BYTES).contains(&target.len()) => {
                    return (self.found)(&TreeEntry::Symlink { path, meta, target: &target });
                }
                Ok(_) => return (self.found)(&TreeEntry::Failed { path, reason: "the link's target is too long" }),
                Err(Errno::NOENT) => return ControlFlow::Continue(()),
                Err(error) => return self.fail(path, &error.into()),
            },
            FileType::Fifo => "a FIFO",
            FileType::Socket => "a socket",
            FileType::CharacterDevice | FileType::BlockDevice => "a device",
            FileType::Directory | FileType::Unknown => "not a file, directory or link",
        };
        (self.found)(&TreeEntry::Skipped { path, reason: &format!("{what} cannot be copied") })
    }

    /// A regular file, and its holes before it.
    fn file(&mut self, path: &[u8], stat: &Stat) -> ControlFlow<()> {
        let bytes = stat.st_size.cast_unsigned();
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
        if is_full || bytes < LEAST_HOLE || self.holes >= MOST_HOLES {
            return Holes::default();
        }
        let Ok(file) = self.roots.open_file(path) else { return Holes::default() };
        let holes = Holes::find(&file, bytes, MOST_HOLES - self.holes);
        if !fstat(&file).is_ok_and(|now| identity(&now) == identity(stat)) {
            return Holes::default();
        }
        self.holes += holes.len();
        holes
    }

    fn fail(&mut self, path: &[u8], error: &io::Error) -> ControlFlow<()> {
        (self.found)(&TreeEntry::Failed { path, reason: &reason(error) })
    }
}

fn meta(stat: &Stat) -> Meta {
    let mtime_ns = u32::try_from(stat.st_mtime_nsec).unwrap_or(0);
    Meta { mode: (stat.st_mode & 0o777) as u16, mtime_s: stat.st_mtime, mtime_ns }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    use std::os::unix::net::UnixListener;
    use std::path::{Path, PathBuf};

    use rustix::fs::{CWD, Mode, mkfifoat};

    use super::*;
    use crate::collector::{as_nobody, open_place};
    use crate::filter::choice::Filter;
    use crate::filter::rules::RuleList;

    /// Entries as lines.
    fn scanned(paths: &[PathBuf]) -> Vec<String> {
        let mut lines = Vec::new();
        let outcome = scan(&Roots::find(paths).unwrap(), ListOptions::default(), &mut |entry| {
            let text = |path: &[u8]| path.escape_ascii().to_string();
            lines.push(match *entry {
                TreeEntry::File { path, bytes, meta, .. } => format!("file {} {bytes} {:o}", text(path), meta.mode),
                TreeEntry::Holes { pairs } => {
                    let mut holes = crate::format::holes::Holes::default();
                    holes.read_pairs(pairs).unwrap();
                    format!("holes {:?}", holes.iter().collect::<Vec<_>>())
                }
                TreeEntry::Directory { path, meta } => format!("directory {} {:o}", text(path), meta.mode),
                TreeEntry::Symlink { path, target, .. } => format!("link {} {}", text(path), text(target)),
                TreeEntry::Skipped { path, reason } => format!("skipped {}: {reason}", text(path)),
                TreeEntry::Failed { path, reason } => format!("failed {}: {reason}", text(path)),
                TreeEntry::Begin { .. } | TreeEntry::End { .. } => unreachable!("the walk knows neither"),
            });
            ControlFlow::Continue(())
        });
        assert!(outcome.is_continue());
        lines
    }

    fn write(path: impl AsRef<Path>, content: &str, mode: u32) {
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn scan__everything_in_an_order_of_names() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        for directory in ["data", "data/b", "data/b/deep", "data/a", "data/c.d"] {
            fs::create_dir(at(directory)).unwrap();
            fs::set_permissions(at(directory), fs::Permissions::from_mode(0o750)).unwrap();
        }
        write(at("data/z"), "12345", 0o4711);
        write(at("data/b/deep/x"), "1", 0o600);
        write(at("data/b/y"), "", 0o644);
        write(at("data/c.d/0"), "12", 0o644);
        write(at("data").join(std::ffi::OsStr::from_bytes(b"\xff\x1b[2J\n")), "123", 0o644);
        symlink("../../etc/passwd", at("data/link")).unwrap();
        symlink("b", at("data/to-b")).unwrap();
        mkfifoat(CWD, at("data/fifo"), Mode::RUSR).unwrap();
        let _socket = UnixListener::bind(at("data/socket")).unwrap();
        write(at("single"), "1234567", 0o640);
        let expected = [
            "file single 7 640",
            "directory data 750",
            "skipped data/fifo: a FIFO cannot be copied",
            "link data/link ../../etc/passwd",
            "skipped data/socket: a socket cannot be copied",
            "link data/to-b b",
            "file data/z 5 711",
            "file data/\\xff\\x1b[2J\\n 3 644",
            "directory data/a 750",
            "directory data/b 750",
            "file data/b/y 0 644",
            "directory data/b/deep 750",
            "file data/b/deep/x 1 600",
            "directory data/c.d 750",
            "file data/c.d/0 2 644",
        ];
        assert_eq!(scanned(&[at("single"), at("data")]), expected);
    }

    /// Entries of an inside, as lines.
    fn listed_inside(root: &Path, filter: Filter, names: &[&str]) -> Vec<String> {
        let mut lines = Vec::new();
        let listing = ListOptions { filter, names: NameSelection::new(names), ..ListOptions::default() };
        let outcome = scan(&Roots::find_inside(root).unwrap(), listing, &mut |entry| {
            lines.push(match *entry {
                TreeEntry::File { path, .. } => path.escape_ascii().to_string(),
                TreeEntry::Directory { path, .. } => format!("{}/", path.escape_ascii()),
                TreeEntry::Symlink { path, target, .. } => {
                    format!("{} -> {}", path.escape_ascii(), target.escape_ascii())
                }
                TreeEntry::Failed { path, reason } => format!("failed {}: {reason}", path.escape_ascii()),
                _ => return ControlFlow::Continue(()),
            });
            ControlFlow::Continue(())
        });
        assert!(outcome.is_continue());
        lines
    }

    fn excluding(words: &[&str]) -> Filter {
        let mut rules = RuleList::default();
        for word in words {
            rules.add(word.as_bytes(), false).unwrap();
        }
        Filter { rules: rules.compile().unwrap(), ..Filter::default() }
    }

    #[test]
    fn scan__names_inside_a_directory_with_what_is_below_them() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir_all(place.path().join("a/b/c")).unwrap();
        for file in ["a/b/c/x", "a/b/y", "a/z", "top"] {
            fs::write(place.path().join(file), "1").unwrap();
        }
        symlink("top", place.path().join("link")).unwrap();
        let listed = |names: &[&str], words: &[&str]| listed_inside(place.path(), excluding(words), names);
        assert_eq!(
            listed(&["a/b", "link", "none/x"], &[]),
            ["link -> top", "a/b/", "a/b/y", "a/b/c/", "a/b/c/x", "failed none/x: No such file or directory"]
        );
        // As in rsync, rules do not judge what is only above a name; and what they exclude is not missing.
        assert_eq!(listed(&["a/b", "top"], &["/a", "c", "top"]), ["a/b/", "a/b/y"]);
        assert_eq!(listed(&[], &["b/"]), ["link -> top", "top", "a/", "a/z"]);
    }

    #[test]
    fn scan__what_is_excluded_is_not_entered_and_is_no_failure() {
        let place = open_place();
        fs::create_dir_all(place.path().join("a/closed")).unwrap();
        fs::write(place.path().join("a/big"), [0; 11]).unwrap();
        fs::write(place.path().join("a/small"), [0; 4]).unwrap();
        fs::write(place.path().join("a/fits"), [0; 10]).unwrap();
        fs::set_permissions(place.path().join("a/closed"), fs::Permissions::from_mode(0o000)).unwrap();
        let sized = Filter { min_bytes: 5, max_bytes: Some(10), ..excluding(&["closed/"]) };
        let root = place.path().to_owned();
        as_nobody(move || {
            let all = listed_inside(&root, Filter::default(), &[]);
            assert!(all.contains(&"failed a/closed: Permission denied".to_owned()), "{all:?}");
            assert_eq!(listed_inside(&root, sized, &[]), ["a/", "a/fits"]);
        });
    }

    /// Needs a file system below another that users may list: that of terminals is in most systems.
    #[test]
    fn scan__other_file_systems_are_left_empty() {
        let [dev, pts] = ["/dev", "/dev/pts"].map(|path| fs::metadata(path).map(|meta| meta.dev()).ok());
        if pts.is_none() || dev == pts {
            return;
        }
        let mut rules = RuleList::default();
        rules.add(b"/pts/***", true).unwrap();
        rules.add(b"*", false).unwrap();
        let entered = Filter { rules: rules.compile().unwrap(), ..Filter::default() };
        let listed = |filter: Filter| {
            let mut entries = 0;
            let listing = ListOptions { filter, ..ListOptions::default() };
            let _ = scan(&Roots::find_inside(Path::new("/dev")).unwrap(), listing, &mut |_| {
                entries += 1;
                ControlFlow::Continue(())
            });
            entries
        };
        // The directory, and at least `ptmx` in it.
        assert!(listed(entered.clone()) > 1);
        assert_eq!(listed(Filter { stays_on_file_system: true, ..entered }), 1);
    }

    /// Uploads that others have not finished, at any depth.
    #[test]
    fn scan__reserved_names_are_not_listed() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("data");
        for at in [".fairwave-0011", "sub/.fairwave-0011", "sub/.FAIRWAVE-0011/deep"] {
            fs::create_dir_all(root.join(at)).unwrap();
            fs::write(root.join(at).join("part"), "secret").unwrap();
        }
        fs::write(root.join("sub/.fairwave-part"), "secret").unwrap();
        fs::write(root.join("sub/fairwave-part"), "").unwrap();
        let lines = scanned(&[root]);
        assert!(!lines.iter().any(|line| line.to_lowercase().contains(".fairwave-")), "{lines:?}");
        assert!(lines.iter().any(|line| line.contains("data/sub/fairwave-part")), "{lines:?}");
    }

    /// A client that resumes after its ticket's end gets only the earlier files.
    #[test]
    fn scan__what_changed_since_is_left_out() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("file"), "").unwrap();
        symlink("file", place.path().join("link")).unwrap();
        let changed_s = fs::symlink_metadata(place.path().join("link")).unwrap().ctime();
        let roots = Roots::find(&[place.path().to_owned()]).unwrap();
        let listed = |until: i64| {
            let mut entries = Vec::new();
            let outcome = scan(
                &roots,
                ListOptions { changed_until_unix_s: Some(until as u64), ..ListOptions::default() },
                &mut |entry| {
                    entries.push(matches!(entry, TreeEntry::File { .. } | TreeEntry::Symlink { .. }));
                    ControlFlow::Continue(())
                },
            );
            assert!(outcome.is_continue());
            entries
        };
        assert_eq!(listed(changed_s), [false, true, true]);
        assert_eq!(listed(changed_s - 2), [false, false, false]);
    }

    #[test]
    fn scan__files_of_proc_have_the_length_that_is_read() {
        let version = fs::read("/proc/version").unwrap();
        let lines = scanned(&[PathBuf::from("/proc/version")]);
        assert_eq!(lines.len(), 1);
        assert!(lines[0].starts_with(&format!("file version {} ", version.len())), "{lines:?}");
        // Reading an endless file stops; one with a stated length has that length.
        let roots = Roots::find(&[PathBuf::from("/proc/version")]).unwrap();
        assert!(roots.kept(b"version").is_none());
        let _ = scan(&roots, ListOptions::default(), &mut |_| ControlFlow::Continue(()));
        assert_eq!(roots.kept(b"version").as_deref(), Some(&version[..]));
    }

    #[test]
    fn scan__holes_come_before_their_file() {
        let place = tempfile::tempdir().unwrap();
        let file = fs::File::create(place.path().join("sparse")).unwrap();
        file.set_len(1 << 40).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &[1; 8192], 1 << 30).unwrap();
        let lines = scanned(&[place.path().join("sparse")]);
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0], format!("holes {:?}", [0..1_u64 << 30, (1 << 30) + 8192..1 << 40]));
        assert!(lines[1].starts_with("file sparse 1099511627776 "), "{lines:?}");
    }

    #[test]
    fn scan__a_directory_that_cannot_be_listed_is_one_entry() {
        let place = open_place();
        let root = place.path().join("data");
        fs::create_dir_all(root.join("locked/in")).unwrap();
        fs::create_dir_all(root.join("open")).unwrap();
        fs::set_permissions(root.join("locked"), fs::Permissions::from_mode(0o000)).unwrap();
        as_nobody(move || {
            let lines = scanned(&[root]);
            assert_eq!(lines[1..], ["failed data/locked: Permission denied", "directory data/open 755"]);
        });
        fs::set_permissions(place.path().join("data/locked"), fs::Permissions::from_mode(0o700)).unwrap();
    }

    #[test]
    fn scan__paths_that_are_too_long() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("data")).unwrap();
        let mut parent = rustix::fs::open(
            place.path().join("data"),
            rustix::fs::OFlags::PATH | rustix::fs::OFlags::DIRECTORY,
            Mode::empty(),
        )
        .unwrap();
        let name = "d".repeat(250);
        // 4 + 16 x 251 = 4020, and one more is 4271.
        for _ in 0..17 {
            rustix::fs::mkdirat(&parent, &name, Mode::RWXU).unwrap();
            let flags = rustix::fs::OFlags::PATH | rustix::fs::OFlags::DIRECTORY;
            parent = rustix::fs::openat(&parent, &name, flags, Mode::empty()).unwrap();
        }
        let lines = scanned(&[place.path().join("data")]);
        assert_eq!(lines.len(), 18);
        assert!(
            lines[17].starts_with("failed data/") && lines[17].ends_with(": contains paths of more than 4096 bytes")
        );
    }

    #[test]
    fn scan__stops_when_told() {
        let place = tempfile::tempdir().unwrap();
        for name in ["a", "b", "c"] {
            fs::write(place.path().join(name), "").unwrap();
        }
        let mut count = 0;
        let roots = Roots::find(&[place.path().to_owned()]).unwrap();
        let outcome = scan(&roots, ListOptions::default(), &mut |_| {
            count += 1;
            if count == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert_eq!((outcome, count), (ControlFlow::Break(()), 2));
    }

    #[test]
    fn identity__changes_with_the_file() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a");
        let look = || identity(&rustix::fs::stat(&path).unwrap());
        fs::write(&path, "one").unwrap();
        let before = look();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        fs::hard_link(&path, place.path().join("link")).unwrap();
        assert_eq!(look(), before, "attributes are not its content");
        fs::write(&path, "onetwo").unwrap();
        let after = look();
        assert_ne!(after, before);
        fs::write(place.path().join("b"), "onetwo").unwrap();
        fs::rename(place.path().join("b"), &path).unwrap();
        assert_ne!(look(), after);
    }
}
