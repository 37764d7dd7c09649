//! A dry run's plan for each file.

use std::sync::Arc;

use crate::format::fields::MAX_PATH_BYTES;
use crate::format::results::FileAction;

/// Before each path: the action, the file's length, and that of the path.
const HEAD_BYTES: usize = 1 + 8 + 2;

/// A dry run's plan for each file and link, in the order of the giver's list. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlannedFiles {
    /// All of them, one behind the other: a tree may have millions.
    records: Arc<Vec<u8>>,
}

/// A dry run's plan for a file or a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedFile<'a> {
    /// Its path relative to the share, as bytes: not necessarily text. Never print it unescaped.
    pub path: &'a [u8],
    /// The planned action.
    pub action: FileAction,
    /// Its length in bytes; of a link or directory 0.
    pub bytes: u64,
}

impl PlannedFile<'_> {
    /// Its memory in a list, bytes.
    pub(crate) fn memory_bytes(&self) -> u64 {
        (HEAD_BYTES + self.path.len()) as u64
    }
}

impl PlannedFiles {
    /// Adds one.
    pub(crate) fn push(&mut self, file: PlannedFile<'_>) {
        let PlannedFile { path, action, bytes } = file;
        let path = &path[..path.len().min(MAX_PATH_BYTES)];
        // It is shared only once it is complete.
        let records = Arc::make_mut(&mut self.records);
        records.push(action.code());
        records.extend(bytes.to_le_bytes());
        records.extend((path.len() as u16).to_le_bytes());
        records.extend(path);
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = PlannedFile<'_>> {
        let mut rest = self.records.as_slice();
        std::iter::from_fn(move || {
            let (head, after) = rest.split_first_chunk::<HEAD_BYTES>()?;
            let [action, bytes @ .., low, high] = *head;
            let (path, after) = after.split_at_checked(usize::from(u16::from_le_bytes([low, high])))?;
            rest = after;
            Some(PlannedFile { path, action: FileAction::of_code(action)?, bytes: u64::from_le_bytes(bytes) })
        })
    }

    /// Approximate memory, bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.records.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iter__gives_what_was_pushed() {
        let files = [
            PlannedFile { path: b"a/\xff", action: FileAction::New, bytes: u64::MAX },
            PlannedFile { path: &[b'x'; 4096], action: FileAction::Update, bytes: 0 },
            PlannedFile { path: b"b", action: FileAction::Skip, bytes: 7 },
        ];
        let mut planned = PlannedFiles::default();
        for file in files {
            planned.push(file);
        }
        assert_eq!(planned.iter().collect::<Vec<_>>(), files);
        assert_eq!(PlannedFiles::default().iter().next(), None);
    }
}
