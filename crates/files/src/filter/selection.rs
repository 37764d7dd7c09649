//! Which entries of a tree are asked for by name.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};

/// Names that were asked for, each with all below it; without any, everything is.
#[derive(Clone, Debug, Default)]
pub(crate) struct NameSelection {
    /// Whether an entry was found for each.
    names: BTreeMap<Vec<u8>, bool>,
}

impl NameSelection {
    /// Of names as people write them: `./a/` is `a`, and `.` is everything.
    pub(crate) fn new<N: AsRef<[u8]>>(names: impl IntoIterator<Item = N>) -> Self {
        let mut selection = Self::default();
        for name in names {
            let parts = name.as_ref().split(|byte| *byte == b'/').filter(|part| !matches!(*part, b"" | b"."));
            let name = parts.collect::<Vec<_>>().join(&b'/');
            if name.is_empty() {
                return Self::default();
            }
            selection.names.insert(name, false);
        }
        selection
    }

    /// Whether everything is asked for.
    pub(crate) fn is_all(&self) -> bool {
        self.names.is_empty()
    }

    /// Whether an entry was asked for, by itself or with what it lies in.
    pub(crate) fn takes(&mut self, path: &[u8]) -> bool {
        let mut is_asked = self.is_all();
        if is_asked {
            return true;
        }
        let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        for end in ends.chain([path.len()]) {
            if let Some(is_found) = self.names.get_mut(&path[..end]) {
                (is_asked, *is_found) = (true, true);
            }
        }
        is_asked
    }

    /// Whether something in a directory was asked for.
    pub(crate) fn is_above(&self, directory: &[u8]) -> bool {
        let stem = [directory, b"/"].concat();
        let next = self.names.range::<[u8], _>((Excluded(stem.as_slice()), Unbounded)).next();
        next.is_some_and(|(name, _)| name.starts_with(&stem))
    }

    /// The names without any entry.
    pub(crate) fn missed(&self) -> impl Iterator<Item = &[u8]> {
        self.names.iter().filter(|(_, is_found)| !**is_found).map(|(name, _)| name.as_slice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn takes(selection: &mut NameSelection, path: &str) -> bool {
        selection.takes(path.as_bytes())
    }

    #[test]
    fn takes__a_name_and_what_is_below_it() {
        let mut selection = NameSelection::new(["./a/b/", "c"]);
        for (path, is_asked) in
            [("a/b", true), ("a/b/x", true), ("a", false), ("a/bc", false), ("c", true), ("d", false)]
        {
            assert_eq!(takes(&mut selection, path), is_asked, "{path}");
        }
        assert_eq!(selection.missed().count(), 0);
        for (directory, is_above) in [("a", true), ("a/b", false), ("", false), ("c", false), ("a/", false)] {
            assert_eq!(selection.is_above(directory.as_bytes()), is_above, "{directory}");
        }
    }

    #[test]
    fn missed__names_that_nothing_has() {
        let mut selection = NameSelection::new(["a", "b"]);
        assert!(takes(&mut selection, "b/c"));
        assert_eq!(selection.missed().collect::<Vec<_>>(), [b"a"]);
    }

    #[test]
    fn new__without_names_everything_is_asked_for() {
        assert!(takes(&mut NameSelection::default(), "x"));
        assert!(takes(&mut NameSelection::new(["a", "./"]), "x"));
    }
}
