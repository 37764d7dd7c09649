//! Names what a host offers.

use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Identifies a share to the host that offers it: the same for the same paths, so that transfers resume after a
/// restart. It is not secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShareId(pub u64);

/// Beside 0, a place that gives, and 1, one that takes.
const EXCHANGE: u8 = 2;

impl ShareId {
    /// The ID of a directory that accepts files and also offers them. It differs from that of one that only accepts: a
    /// client admitted to write only is not admitted here to read.
    pub fn of_exchange(path: impl AsRef<Path>) -> Self {
        Self::named(EXCHANGE, [path])
    }

    /// The ID of a share of these paths, as they are written: give absolute ones. Their order counts, since a share
    /// lists them in it; `is_writable` distinguishes a share that accepts files from one that offers them.
    pub fn of<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>, is_writable: bool) -> Self {
        Self::named(u8::from(is_writable), paths)
    }

    fn named<P: AsRef<Path>>(kind: u8, paths: impl IntoIterator<Item = P>) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("fairwave 1 share id");
        hasher.update(&[kind]);
        for path in paths {
            let path = path.as_ref().as_os_str().as_bytes();
            hasher.update(&(path.len() as u64).to_le_bytes()).update(path);
        }
        let mut first = [0; 8];
        first.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
        Self(u64::from_be_bytes(first))
    }
}

impl fmt::Display for ShareId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of__the_same_paths_is_the_same() {
        assert_eq!(ShareId::of(["/a", "/b"], false), ShareId::of(["/a", "/b"], false));
    }

    #[test]
    fn of_exchange__is_neither_of_the_two() {
        let both = ShareId::of_exchange("/a");
        assert_eq!(both, ShareId::of_exchange("/a"));
        assert!([false, true].into_iter().all(|is_writable| ShareId::of(["/a"], is_writable) != both));
    }

    #[test]
    fn of__other_paths_is_another() {
        let one = ShareId::of(["/a", "/b"], false);
        assert_ne!(one, ShareId::of(["/a/b"], false));
        assert_ne!(one, ShareId::of(["/b", "/a"], false));
        assert_ne!(one, ShareId::of(["/a", "/b"], true));
        assert_ne!(one, ShareId::of(["/a/", "b"], false));
    }
}
