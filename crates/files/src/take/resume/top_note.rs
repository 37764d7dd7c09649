//! The name that an unfinished transfer gives to the received tree.
//!
//! `cp tree rem` makes `rem` of the tree if there is no `rem`, and puts the tree into it if there is one. After an
//! interrupt `rem` exists, made by the call itself: the note in the directory of temporaries records the meaning of the
//! first call. It holds a MAC under a key of this host, the name, and the path that has this name if only that is taken.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{FileType, Mode, OFlags, openat, renameat};

use crate::sys::fdatasync;
use crate::take::disk::sparse::write_all;
use crate::take::disk::tree::{Old, There, Tree, look};
use crate::take::resume::homes::directory_name;
use crate::take::resume::kept_key::KeptKey;
use crate::take::resume::key::TemporaryKey;
use crate::take::resume::temps::is_ours;

/// The place where an unfinished transfer may have made the destination: this name in the directory around it.
#[derive(Clone, Debug)]
pub(crate) struct Former {
    pub(crate) tree: Arc<Tree>,
    pub(crate) name: Vec<u8>,
}

const NAME: &str = "top";
const NEXT: &str = "top.new";
/// No name with its path is longer.
const MOST_BYTES: u64 = 8192;

impl Former {
    /// Of a destination that has a name, and a directory around it that can be read.
    pub(crate) fn of(destination: &Path) -> Option<Self> {
        let (parent, name) = (destination.parent()?, destination.file_name()?);
        let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        Some(Self { tree: Arc::new(Tree::open(parent).ok()?), name: name.as_bytes().to_vec() })
    }

    /// Whether this transfer, of only this path if it is of one, started there under that name, and is unfinished.
    pub(crate) fn is_unfinished(&self, key: &KeptKey, transfer: &TemporaryKey, only: Option<&[u8]>) -> bool {
        let is_noted = || read(&self.tree, key, transfer).is_some_and(|noted| noted == content(&self.name, only));
        is_directory(&self.tree, &self.name) && is_noted()
    }
}

/// Whether there is a directory of that name at the destination's top.
pub(crate) fn is_directory(tree: &Tree, name: &[u8]) -> bool {
    matches!(look(tree.root(), name), Ok(Old::There(There { kind: FileType::Directory, .. })))
}

/// Notes the name in the directory of a transfer's temporaries; `key` is the transfer's.
pub(crate) fn write(temporaries: &OwnedFd, key: &KeptKey, name: &[u8], only: Option<&[u8]>) -> io::Result<()> {
    let noted = content(name, only);
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(temporaries, NEXT, flags, Mode::RUSR | Mode::WUSR)?;
    write_all(&file, 0, &[&key.mac(&noted)[..], &noted].concat())?;
    fdatasync(&file)?;
    Ok(renameat(temporaries, NEXT, temporaries, NAME)?)
}

fn content(name: &[u8], only: Option<&[u8]>) -> Vec<u8> {
    only.map_or_else(|| name.to_vec(), |only| [name, b"\0", only].concat())
}

/// The note of this user on this host.
fn read(tree: &Tree, key: &KeptKey, transfer: &TemporaryKey) -> Option<Vec<u8>> {
    let directory = directory_name(transfer);
    let temporaries = tree.directory(&directory).ok()?;
    if !is_ours(tree, &directory, &temporaries).ok()? {
        return None;
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(openat(&temporaries, OsStr::new(NAME), flags, Mode::empty()).ok()?);
    let mut noted = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut noted).ok()?;
    let (mac, name) = noted.split_first_chunk::<16>()?;
    key.of_transfer(transfer).is_mac(name, mac).then(|| name.to_vec())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::take::resume::temps::Temps;

    const KEY: KeptKey = KeptKey::new([7; 32]);

    #[test]
    fn is_unfinished__the_same_transfer_under_the_same_name() {
        let place = tempfile::tempdir().unwrap();
        let tree = Arc::new(Tree::open(place.path()).unwrap());
        let former = |name: &str| Former::of(&place.path().join(name)).unwrap();
        fs::create_dir(place.path().join("rem")).unwrap();
        fs::create_dir(place.path().join("other")).unwrap();
        assert!(!former("rem").is_unfinished(&KEY, &[1; 16], None), "nothing is there of it");
        let temps = Temps::open(Arc::clone(&tree), &[1; 16]).unwrap();
        assert!(!former("rem").is_unfinished(&KEY, &[1; 16], None), "it goes by its own name");
        write(temps.directory(), &KEY.of_transfer(&[1; 16]), b"a longer name", None).unwrap();
        write(temps.directory(), &KEY, b"rem", None).unwrap();
        assert!(!former("rem").is_unfinished(&KEY, &[1; 16], None), "under another key");
        write(temps.directory(), &KEY.of_transfer(&[1; 16]), b"rem", None).unwrap();
        assert!(former("rem").is_unfinished(&KEY, &[1; 16], None));
        assert!(!former("rem").is_unfinished(&KEY, &[2; 16], None), "another transfer");
        assert!(!former("rem").is_unfinished(&KEY, &[1; 16], Some(b"data/a")), "of something else");
        assert!(!former("other").is_unfinished(&KEY, &[1; 16], None), "another name");
        // An entry of others in its place does not count as its own.
        fs::remove_dir(place.path().join("rem")).unwrap();
        std::os::unix::fs::symlink("other", place.path().join("rem")).unwrap();
        assert!(!former("rem").is_unfinished(&KEY, &[1; 16], None));
        fs::remove_file(place.path().join("rem")).unwrap();
        fs::create_dir(place.path().join("rem")).unwrap();
        temps.clear();
        assert!(!former("rem").is_unfinished(&KEY, &[1; 16], None), "it is finished");
    }
}
