//! Entries that are not at the destination: a list that is shared and bounded.

use std::ops::Deref;
use std::sync::Arc;

/// Max entries of a list; more are only counted.
pub const MAX_LISTED: usize = 100_000;
/// Max bytes of a list: entries that do not fit are only counted, and so are all that follow.
pub const MAX_LISTED_BYTES: usize = 16 << 20;

/// Approximate memory of an entry besides its path and its reason, bytes, with the allocator's overhead.
const ENTRY_BYTES: usize = size_of::<Failure>() + 32;

/// An entry that is not at the destination, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Its path relative to the share, as bytes: not necessarily text. Never print it unescaped.
    pub path: Vec<u8>,
    /// Why, as one line.
    pub reason: String,
}

/// Entries that are not at the destination, in the order in which that was found: as a slice of them. Cheap to clone.
///
/// It holds at most [`MAX_LISTED`] entries and [`MAX_LISTED_BYTES`]; an [`Outcome`](crate::Outcome) counts all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failures {
    shared: Arc<FailuresShared>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct FailuresShared {
    entries: Vec<Failure>,
    /// Of all that were to be listed, up to the first that was not.
    bytes: usize,
}

impl Failures {
    /// Adds an entry, if there is room.
    pub(crate) fn push(&mut self, path: &[u8], reason: String) {
        let FailuresShared { entries, bytes } = &*self.shared;
        if entries.len() >= MAX_LISTED || *bytes > MAX_LISTED_BYTES {
            return;
        }
        // It is shared only once it is complete.
        let shared = Arc::make_mut(&mut self.shared);
        shared.bytes += ENTRY_BYTES + path.len() + reason.len();
        if shared.bytes <= MAX_LISTED_BYTES {
            shared.entries.push(Failure { path: path.to_vec(), reason });
        }
    }

    /// Approximate memory, bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.shared.bytes.min(MAX_LISTED_BYTES)
    }
}

impl Deref for Failures {
    type Target = [Failure];

    fn deref(&self) -> &[Failure] {
        &self.shared.entries
    }
}

impl<'a> IntoIterator for &'a Failures {
    type Item = &'a Failure;
    type IntoIter = std::slice::Iter<'a, Failure>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn push__ends_with_the_first_that_does_not_fit() {
        let mut list = Failures::default();
        let path = [b'x'; 4096];
        for _ in 0..MAX_LISTED {
            list.push(&path, String::new());
        }
        // 16 MiB / (4096 + 80)
        assert_eq!(list.len(), MAX_LISTED_BYTES / (4096 + ENTRY_BYTES));
        list.push(b"short", String::new());
        assert!(list.iter().all(|failure| failure.path.len() == 4096));
        assert!(list.bytes() <= MAX_LISTED_BYTES);
    }

    #[test]
    fn clone__copies_no_entries() {
        let mut list = Failures::default();
        list.push(b"a", "gone".to_owned());
        let other = list.clone();
        assert!(std::ptr::eq(&raw const list[0], &raw const other[0]));
        list.push(b"b", "gone".to_owned());
        assert_eq!((list.len(), other.len()), (2, 1));
    }
}
