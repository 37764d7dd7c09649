//! Which entries of a tree are copied.

use super::rules::Rules;

/// Which entries of a tree are copied, by their paths and sizes. The default is all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    /// Rules for paths.
    pub rules: Rules,
    /// Files of fewer bytes are left out.
    pub min_bytes: u64,
    /// Files of more bytes are left out.
    pub max_bytes: Option<u64>,
    /// Whether directories of other file systems than that of their root are left empty.
    pub stays_on_file_system: bool,
    /// Whether entries that the `.gitignore` files of the tree ignore are left out.
    pub obeys_gitignore: bool,
}

/// The verdicts of a filter on the entries of a list, in any order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Verdicts {
    filter: Filter,
    /// The directory that was asked for last, and whether it is entered.
    last: Option<(Vec<u8>, bool)>,
}

impl Verdicts {
    pub(crate) fn new(filter: Filter) -> Self {
        Self { filter, last: None }
    }

    #[cfg(test)]
    pub(super) fn filter(&self) -> &Filter {
        &self.filter
    }

    /// Whether a path is copied, as far as rules decide: no directory above it is excluded, and it is not itself.
    /// `implied` has the directories that are copied whatever the rules say.
    pub(crate) fn takes(&mut self, path: &[u8], is_directory: bool, implied: impl Fn(&[u8]) -> bool) -> bool {
        if self.filter.rules.is_empty() {
            return true;
        }
        let parent = path.iter().rposition(|byte| *byte == b'/').map_or(&[][..], |at| &path[..at]);
        self.enters(parent, &implied)
            && (is_directory && implied(path) || self.filter.rules.includes(path, is_directory))
    }

    /// Whether a file of this size is copied.
    pub(crate) fn takes_bytes(&self, bytes: u64) -> bool {
        bytes >= self.filter.min_bytes && self.filter.max_bytes.is_none_or(|most| bytes <= most)
    }

    /// Whether no directory on the way to what is in this one is excluded.
    fn enters(&mut self, directory: &[u8], implied: &impl Fn(&[u8]) -> bool) -> bool {
        if directory.is_empty() {
            return true;
        }
        if let Some((last, is_entered)) = &self.last
            && last == directory
        {
            return *is_entered;
        }
        let ends = directory.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        let mut above = ends.chain([directory.len()]).map(|end| &directory[..end]);
        let is_entered = above.all(|directory| implied(directory) || self.filter.rules.includes(directory, true));
        self.last = Some((directory.to_vec(), is_entered));
        is_entered
    }
}
