//! A destination inside the tree that is copied: each copy would be part of the next.

use rustix::fs::fstat;

use crate::format::manifest::{DirectoryId, TreeEntry};
use crate::take::disk::tree::Tree;
use crate::transfer::boot::directory_id;

/// Finds the destination among the listed directories.
#[derive(Default)]
pub(super) struct OwnDirectory {
    /// The destination's.
    id: Option<DirectoryId>,
    /// The next directory's, if it is listed.
    next: Option<DirectoryId>,
    /// The listed path of the destination, followed by `/`.
    path: Option<Vec<u8>>,
}

/// Position of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Position {
    Outside,
    /// It is the destination.
    Itself,
    /// It is in the destination.
    Inside,
}

impl OwnDirectory {
    pub(super) fn new(destination: Option<&Tree>) -> Self {
        let stat = destination.and_then(|tree| fstat(tree.root()).ok());
        Self { id: stat.as_ref().map(directory_id), ..Self::default() }
    }

    /// The next entry is a directory with this identity.
    pub(super) fn on_identity(&mut self, id: DirectoryId) {
        self.next = Some(id);
    }

    pub(super) fn on_entry(&mut self, entry: &TreeEntry<'_>, path: &[u8]) -> Position {
        let id = self.next.take();
        if id.is_some() && id == self.id && matches!(entry, TreeEntry::Directory { .. }) {
            // All that is in a directory follows it.
            self.path = Some([path, b"/"].concat());
            return Position::Itself;
        }
        match &self.path {
            Some(own) if path.starts_with(own) => Position::Inside,
            _ => Position::Outside,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Position::{Inside, Itself, Outside};
    use super::*;
    use crate::format::manifest::Meta;

    #[test]
    fn on_entry__finds_the_destination_and_what_is_in_it() {
        let mut own = OwnDirectory { id: Some(DirectoryId([1; 8])), ..OwnDirectory::default() };
        let mut at = |id: u8, path: &[u8]| {
            own.on_identity(DirectoryId([id; 8]));
            own.on_entry(&TreeEntry::Directory { path, meta: Meta::default() }, path)
        };
        let positions = [(2, &b"a"[..]), (1, b"a/b"), (3, b"a/b/c"), (4, b"a/bc")].map(|(id, path)| at(id, path));
        assert_eq!(positions, [Outside, Itself, Inside, Outside]);
        // An identity is the next entry's only, and a directory's.
        own.on_identity(DirectoryId([1; 8]));
        assert_eq!(own.on_entry(&TreeEntry::Skipped { path: b"x", reason: "a FIFO" }, b"x"), Outside);
        assert_eq!(own.on_entry(&TreeEntry::Directory { path: b"x", meta: Meta::default() }, b"x"), Outside);
    }
}
