//! Which entries of a share are asked for.

use crate::format::names::RelativePath;

/// Names that were asked for, each with all below it; without any, everything is.
#[derive(Clone, Debug, Default)]
pub(crate) struct NameSelection {
    names: Vec<(Vec<u8>, bool)>,
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
            selection.names.push((name, false));
        }
        selection
    }

    /// Whether everything is asked for.
    pub(crate) fn is_all(&self) -> bool {
        self.names.is_empty()
    }

    /// Whether an entry was asked for, by itself or with what it lies in.
    pub(crate) fn takes(&mut self, path: &RelativePath) -> bool {
        let path = path.as_bytes();
        let mut is_asked = self.names.is_empty();
        for (name, is_found) in &mut self.names {
            if path.strip_prefix(name.as_slice()).is_some_and(|rest| rest.is_empty() || rest.first() == Some(&b'/')) {
                (is_asked, *is_found) = (true, true);
            }
        }
        is_asked
    }

    /// The names of which nothing came.
    pub(crate) fn missed(&self) -> impl Iterator<Item = &[u8]> {
        self.names.iter().filter(|(_, is_found)| !is_found).map(|(name, _)| name.as_slice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn takes(selection: &mut NameSelection, path: &str) -> bool {
        selection.takes(&RelativePath::new(path.as_bytes()).unwrap())
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
