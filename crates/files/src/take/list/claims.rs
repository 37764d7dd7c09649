//! Which paths of the destination a transfer has given away already.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use thiserror::Error;

use crate::format::footprint::of_table;
use crate::format::names::RelativePath;
use crate::format::short_hash::short;

/// The claim on each path. A path is a hash of 16 bytes here: a list of millions stays small.
#[derive(Debug, Default)]
pub(crate) struct PathClaims {
    paths: HashMap<[u8; 16], PathClaim>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathClaim {
    /// A file or a link: nothing else can have this path.
    Leaf,
    /// A directory that was listed.
    Directory,
    /// A directory that something lies in, and that was not listed so far.
    Parent,
}

/// Why a path cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum ClaimRefusal {
    #[error("another entry has the same path")]
    Path,
    #[error("a parent of its path is another entry that is not a directory")]
    Parent,
}

impl PathClaims {
    /// Bytes that it takes in memory.
    pub(crate) fn memory_bytes(&self) -> u64 {
        of_table(&self.paths)
    }

    /// Whether nothing is claimed.
    pub(crate) fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// The claim on a path.
    pub(crate) fn get(&self, path: &[u8]) -> Option<PathClaim> {
        self.paths.get(&hash(path)).copied()
    }

    /// The giver has something at a path that is not listed, or whose content is not.
    pub(crate) fn keep(&mut self, path: &RelativePath) {
        if self.claim(path, PathClaim::Leaf).is_err()
            && let Some(claim) = self.paths.get_mut(&hash(path.as_bytes()))
            && *claim == PathClaim::Directory
        {
            *claim = PathClaim::Parent;
        }
    }

    /// Gives a path away, with all directories above it.
    pub(crate) fn claim(&mut self, path: &RelativePath, claim: PathClaim) -> Result<(), ClaimRefusal> {
        for (at, _) in path.as_bytes().iter().enumerate().rev().filter(|(_, byte)| **byte == b'/') {
            match self.paths.entry(hash(&path.as_bytes()[..at])) {
                Entry::Vacant(entry) => _ = entry.insert(PathClaim::Parent),
                Entry::Occupied(entry) if *entry.get() == PathClaim::Leaf => return Err(ClaimRefusal::Parent),
                // The parents were claimed with it.
                Entry::Occupied(_) => break,
            }
        }
        match self.paths.entry(hash(path.as_bytes())) {
            Entry::Vacant(entry) => _ = entry.insert(claim),
            Entry::Occupied(mut entry) if claim == PathClaim::Directory && *entry.get() == PathClaim::Parent => {
                entry.insert(claim);
            }
            Entry::Occupied(_) => return Err(ClaimRefusal::Path),
        }
        Ok(())
    }
}

fn hash(path: &[u8]) -> [u8; 16] {
    short(blake3::Hasher::new().update(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claim__the_second_of_two_fails() {
        let mut claims = PathClaims::default();
        let mut claim = |path: &str, claim| claims.claim(&RelativePath::new(path.as_bytes()).unwrap(), claim);
        assert_eq!(claim("a", PathClaim::Leaf), Ok(()));
        assert_eq!(claim("a", PathClaim::Leaf), Err(ClaimRefusal::Path));
        assert_eq!(claim("a", PathClaim::Directory), Err(ClaimRefusal::Path));
        assert_eq!(claim("a/b/c", PathClaim::Leaf), Err(ClaimRefusal::Parent));
        assert_eq!(claim("A", PathClaim::Leaf), Ok(()));
        assert_eq!(claim("d/e/f", PathClaim::Leaf), Ok(()));
        assert_eq!(claim("d/e", PathClaim::Leaf), Err(ClaimRefusal::Path));
        assert_eq!(claim("d/e", PathClaim::Directory), Ok(()));
        assert_eq!(claim("d/e", PathClaim::Directory), Err(ClaimRefusal::Path));
        assert_eq!(claim("d/e/g", PathClaim::Leaf), Ok(()));
        assert_eq!(claim("d/e/g/h/i", PathClaim::Leaf), Err(ClaimRefusal::Parent));
    }
}
