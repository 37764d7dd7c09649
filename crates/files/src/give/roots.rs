//! The paths that are given away, and the way to what is below them.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fairwave_host::{Lock, OwnPlaces, assert_may_wait};
use rustix::fs::{CWD, Mode, OFlags, openat};

use crate::sftp::tree::SftpTree;
use crate::sys::{WAY, node_id};
use crate::transfer::below::open_below;
use crate::transfer::error::ShareError;

/// The roots that are given: each path by the last of its names.
///
/// A root that is a symbolic link is followed, since the user named it; links below it are not. The paths of the
/// manifest are resolved below the directory that contains the given path, even if the path to it has changed.
#[derive(Debug)]
pub(crate) struct Roots {
    given: Vec<Root>,
    by_name: HashMap<Vec<u8>, usize>,
    /// Whether the paths of the manifest are those below the only root, a directory.
    is_inside: bool,
    /// Places that are never given, wherever the walk meets them.
    own: OwnPlaces,
    /// The contents of generated files (/proc, /sys), by their paths, and their total bytes.
    kept: Lock<Kept>,
}

/// Contents by path, and the sum of their bytes.
type Kept = (HashMap<Vec<u8>, Arc<[u8]>>, usize);

/// All of them have no more bytes than this.
const MAX_KEPT_BYTES: usize = 64 << 20;

#[derive(Debug)]
struct Root {
    /// As the manifest has it.
    name: Vec<u8>,
    /// The directory that it lies in.
    parent: OwnedFd,
    /// Its name there: the target's, if a link was given.
    real_name: Vec<u8>,
}

/// Roots that are found, or paths that are resolved when a walk starts.
#[expect(clippy::large_enum_variant, reason = "one for a session, and soon taken apart")]
pub(crate) enum GivenPaths {
    Found(Roots),
    Named(Vec<PathBuf>),
    /// Of an SFTP server.
    Far(Arc<SftpTree>),
}

impl From<Roots> for GivenPaths {
    fn from(roots: Roots) -> Self {
        Self::Found(roots)
    }
}

impl From<Vec<PathBuf>> for GivenPaths {
    fn from(paths: Vec<PathBuf>) -> Self {
        Self::Named(paths)
    }
}

impl Roots {
    /// Finds what lies at these paths.
    pub(crate) fn find(paths: &[PathBuf]) -> Result<Self, ShareError> {
        if paths.is_empty() {
            return Err(ShareError::Nothing);
        }
        assert_may_wait();
        // Resolved each time: they may have been created since, or moved.
        let own = OwnPlaces::find();
        let (mut given, mut by_name) = (Vec::new(), HashMap::new());
        for (index, path) in paths.iter().enumerate() {
            if let Some(place) = own.around(path) {
                return Err(ShareError::own(path, place));
            }
            let root = Root::find(path)?;
            if let Some(other) = by_name.insert(root.name.clone(), index) {
                return Err(ShareError::Twice { first: paths[other].clone(), second: path.clone() });
            }
            given.push(root);
        }
        Ok(Self { given, by_name, is_inside: false, own, kept: Lock::default() })
    }

    /// Finds a directory whose contents are given: it has the empty name.
    pub(crate) fn find_inside(path: &Path) -> Result<Self, ShareError> {
        assert_may_wait();
        let own = OwnPlaces::find();
        if let Some(place) = own.around(path) {
            return Err(ShareError::own(path, place));
        }
        let flags = WAY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let parent = openat(CWD, path, flags, Mode::empty());
        let parent = parent.map_err(|error| ShareError::Unreadable { path: path.to_owned(), error: error.into() })?;
        let root = Root { name: Vec::new(), parent, real_name: b".".to_vec() };
        let by_name = HashMap::from([(Vec::new(), 0)]);
        Ok(Self { given: vec![root], by_name, is_inside: true, own, kept: Lock::default() })
    }

    /// The names that were given, in the order in which they were.
    pub(crate) fn names(&self) -> impl Iterator<Item = &[u8]> {
        self.given.iter().map(|root| root.name.as_slice())
    }

    /// Whether a directory or a file is one that is never given.
    pub(crate) fn is_own(&self, stat: &rustix::fs::Stat) -> bool {
        let node = node_id(stat);
        self.own.is_directory(node) || self.own.is_file(node)
    }

    /// Opens a file to be read. Neither a link nor what waits for a writer holds it up.
    pub(crate) fn open_file(&self, path: &[u8]) -> io::Result<OwnedFd> {
        self.open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)
    }

    /// Opens a directory to be listed.
    pub(crate) fn open_directory(&self, path: &[u8]) -> io::Result<OwnedFd> {
        self.open(path, OFlags::RDONLY | OFlags::DIRECTORY)
    }

    /// Keeps the content of a generated file. Returns whether there was room.
    pub(crate) fn keep(&self, path: &[u8], content: Vec<u8>) -> bool {
        let mut kept = self.kept.lock();
        let (all, bytes) = &mut *kept;
        *bytes += content.len();
        let fits = *bytes <= MAX_KEPT_BYTES;
        if fits {
            all.insert(path.to_vec(), content.into());
        }
        fits
    }

    /// The content of a file that is made when it is read, as it was listed.
    pub(crate) fn kept(&self, path: &[u8]) -> Option<Arc<[u8]>> {
        self.kept.lock().0.get(path).cloned()
    }

    /// Looks at what lies at a given name itself.
    pub(crate) fn stat(&self, name: &[u8]) -> io::Result<rustix::fs::Stat> {
        let root = self.root(name)?;
        let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
        Ok(rustix::fs::statat(&root.parent, root.real_name.as_slice(), flags)?)
    }

    fn root(&self, name: &[u8]) -> io::Result<&Root> {
        let root = self.by_name.get(name).and_then(|index| self.given.get(*index));
        root.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn open(&self, path: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        if self.is_inside {
            let root = self.root(b"")?;
            return match path {
                b"" => Ok(openat(&root.parent, ".", flags, Mode::empty())?),
                path => Ok(open_below(&root.parent, path, flags, Mode::empty())?),
            };
        }
        let (name, rest) = match path.iter().position(|byte| *byte == b'/') {
            Some(at) => path.split_at(at),
            None => (path, &[][..]),
        };
        let root = self.root(name)?;
        let opened = if root.name == root.real_name {
            open_below(&root.parent, path, flags, Mode::empty())
        } else {
            open_below(&root.parent, &[root.real_name.as_slice(), rest].concat(), flags, Mode::empty())
        };
        Ok(opened?)
    }
}

impl Root {
    fn find(path: &Path) -> Result<Self, ShareError> {
        let unreadable = |error: io::Error| ShareError::Unreadable { path: path.to_owned(), error };
        let real = path.canonicalize().map_err(unreadable)?;
        let (Some(parent), Some(real_name)) = (real.parent(), real.file_name()) else {
            return Err(ShareError::Nameless { path: path.to_owned() });
        };
        // "." and ".." are known by the name of where they lead.
        let name = path.file_name().unwrap_or(real_name).as_bytes().to_vec();
        let kind = real.metadata().map_err(unreadable)?.file_type();
        if !kind.is_file() && !kind.is_dir() {
            return Err(ShareError::Special { path: path.to_owned() });
        }
        let flags = WAY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let parent = openat(CWD, parent, flags, Mode::empty()).map_err(|error| unreadable(error.into()))?;
        let root = Self { name, parent, real_name: real_name.as_bytes().to_vec() };
        // An early error to the user is better than a late one in a list.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        open_below(&root.parent, &root.real_name, flags, Mode::empty()).map_err(|error| unreadable(error.into()))?;
        Ok(root)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Read;
    use std::os::unix::fs::symlink;

    use super::*;

    fn content(fd: OwnedFd) -> String {
        let mut content = String::new();
        fs::File::from(fd).read_to_string(&mut content).unwrap();
        content
    }

    fn find(paths: &[&Path]) -> Result<Roots, ShareError> {
        Roots::find(&paths.iter().map(|path| path.to_path_buf()).collect::<Vec<_>>())
    }

    #[test]
    fn find__by_the_last_name() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir_all(place.path().join("data/deep")).unwrap();
        fs::write(place.path().join("data/deep/a"), "deep").unwrap();
        fs::write(place.path().join("b"), "file").unwrap();
        let roots = find(&[&place.path().join("data/deep/.."), &place.path().join("b")]).unwrap();
        assert_eq!(roots.names().collect::<Vec<_>>(), [b"data".as_slice(), b"b"]);
        assert_eq!(content(roots.open_file(b"data/deep/a").unwrap()), "deep");
        assert_eq!(content(roots.open_file(b"b").unwrap()), "file");
        for missing in [&b"c"[..], b"b/c", b"", b"/"] {
            assert!(roots.open_file(missing).is_err(), "{missing:?}");
        }
    }

    #[test]
    fn find__a_link_that_was_named_is_followed() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("v1")).unwrap();
        fs::write(place.path().join("v1/a"), "one").unwrap();
        symlink("v1", place.path().join("latest")).unwrap();
        let roots = find(&[&place.path().join("latest")]).unwrap();
        assert_eq!(roots.names().collect::<Vec<_>>(), [b"latest"]);
        assert_eq!(content(roots.open_file(b"latest/a").unwrap()), "one");
    }

    #[test]
    fn find__what_cannot_be_given_is_named() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        for directory in ["one", "two"] {
            fs::create_dir(at(directory)).unwrap();
            fs::write(at(directory).join("a"), "").unwrap();
        }
        assert!(matches!(find(&[]), Err(ShareError::Nothing)));
        assert!(matches!(find(&[&at("gone")]), Err(ShareError::Unreadable { .. })));
        assert!(matches!(find(&[Path::new("/")]), Err(ShareError::Nameless { .. })));
        assert!(matches!(find(&[Path::new("/dev/null")]), Err(ShareError::Special { .. })));
        let error = find(&[&at("one/a"), &at("two"), &at("two/a")]).unwrap_err();
        assert!(
            matches!(&error, ShareError::Twice { first, second } if *first == at("one/a") && *second == at("two/a"))
        );
    }
}
