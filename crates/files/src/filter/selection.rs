//! Which entries of a tree are asked for by name.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};

use super::glob::Glob;

/// Names and patterns that were asked for, each with all below it; without any, everything is.
#[derive(Clone, Debug, Default)]
pub(crate) struct NameSelection {
    /// Whether an entry was found for each.
    names: BTreeMap<Vec<u8>, bool>,
    /// Patterns, and whether an entry was found for each.
    globs: Vec<(Glob, bool)>,
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

    /// Of names, and of paths with wildcards.
    pub(crate) fn with_globs(names: &[&[u8]], globs: &[&[u8]]) -> Self {
        let read: Vec<_> = globs.iter().map(|word| (*word, Glob::new(word))).collect();
        let literal = read.iter().filter(|(_, glob)| glob.is_none()).map(|(word, _)| *word);
        let names: Vec<_> = names.iter().copied().chain(literal).collect();
        let selection = Self::new(&names);
        let takes_all = !names.is_empty() && selection.is_all();
        let globs = read.into_iter().filter(|_| !takes_all).filter_map(|(_, glob)| Some((glob?, false))).collect();
        Self { globs, ..selection }
    }

    /// Whether everything is asked for.
    pub(crate) fn is_all(&self) -> bool {
        self.names.is_empty() && self.globs.is_empty()
    }

    /// The only name, if nothing else is asked for.
    pub(crate) fn only(&self) -> Option<&[u8]> {
        let mut names = self.names.keys().filter(|_| self.names.len() == 1 && self.globs.is_empty());
        names.next().map(Vec::as_slice)
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
        for (glob, is_found) in &mut self.globs {
            if glob.takes(path) {
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
            || self.globs.iter().any(|(glob, _)| glob.is_above(directory))
    }

    /// The names and patterns without any entry.
    pub(crate) fn missed(&self) -> impl Iterator<Item = &[u8]> {
        let names = self.names.iter().filter(|(_, is_found)| !**is_found).map(|(name, _)| name.as_slice());
        names.chain(self.globs.iter().filter(|(_, is_found)| !is_found).map(|(glob, _)| glob.as_bytes()))
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
    fn with_globs__names_and_patterns() {
        let mut selection = NameSelection::with_globs(&[b"b"], &[b"a/*.h5", b"none*"]);
        for (path, is_asked) in
            [("a/x.h5", true), ("a/x.h5/y", true), ("a", false), ("a/x", false), ("b/c", true), ("none", true)]
        {
            assert_eq!(takes(&mut selection, path), is_asked, "{path}");
        }
        assert_eq!(selection.missed().count(), 0);
        assert!(selection.is_above(b"a") && !selection.is_above(b"b"));
        let mut selection = NameSelection::with_globs(&[], &[b"*.h5"]);
        assert!(!takes(&mut selection, "x") && !selection.is_all());
        assert_eq!(selection.missed().collect::<Vec<_>>(), [b"*.h5"]);
        assert_eq!(NameSelection::new(["./a/b/"]).only(), Some(&b"a/b"[..]));
        assert_eq!(NameSelection::new(["a", "b"]).only(), None);
        assert_eq!(NameSelection::with_globs(&[b"a"], &[b"*"]).only(), None);
        assert!(NameSelection::with_globs(&[b"."], &[b"*"]).is_all());
        assert_eq!(NameSelection::with_globs(&[], &[b"a[b"]).only(), Some(&b"a[b"[..]));
    }

    #[test]
    fn new__without_names_everything_is_asked_for() {
        assert!(takes(&mut NameSelection::default(), "x"));
        assert!(takes(&mut NameSelection::new(["a", "./"]), "x"));
    }
}
