//! Which names may stand at the top of what another end gives.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use thiserror::Error;

use crate::filter::glob::Glob;
use crate::format::names::escaped;

/// The allowed names at the top of a list: those of the requested paths.
///
/// The giver's list names each entry. A user who requests `a.bin` must not receive a `.bashrc` (as with scp,
/// CVE-2019-6111, and rsync, CVE-2022-29154): a list with any other name at its top ends the transfer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopNames {
    named: BTreeSet<OsString>,
    /// Patterns of names.
    globs: Vec<Glob>,
    /// Paths whose names only the giver knows.
    unnamed: usize,
}

/// Sees to it that a list keeps to the names that were asked for.
#[derive(Debug)]
pub(crate) struct Gate {
    names: TopNames,
    /// The names that the giver chose where it had to.
    chosen: BTreeSet<Vec<u8>>,
    /// Whether the taker renames the entry at the top.
    is_renamed: bool,
}

/// Why a list is not taken.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum Unasked {
    #[error("the peer sent \"{}\", expected {asked}", escaped(.sent))]
    Other { sent: Vec<u8>, asked: String },
    #[error(
        "the peer sent \"{}\": a name that starts with \".\" is accepted only on request\nhint: request it \
         by that name, or choose another name at the destination",
        escaped(.0)
    )]
    Hidden(Vec<u8>),
}

/// Max names shown in an error.
const MAX_TOLD: usize = 3;

impl TopNames {
    /// The names of these paths as the giver reads them: `a/b.bin` has the name `b.bin` and `a/` the name `a`. Only the
    /// giver knows the names of `.`, `..`, `/` and the empty path: it may choose one name for each, but none that
    /// starts with a dot. Of a path with wildcards, it may choose what they match.
    pub fn of<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> Self {
        let mut names = Self::default();
        for path in paths {
            // As the giver has it: see `Root::find`.
            match path.as_ref().file_name() {
                Some(name) => {
                    names.globs.extend(Glob::new(name.as_bytes()));
                    names.named.insert(name.to_owned());
                }
                None => names.unnamed += 1,
            }
        }
        names
    }

    fn described(&self) -> String {
        let mut described: Vec<_> =
            self.named.iter().take(MAX_TOLD).map(|name| format!("\"{}\"", escaped(name.as_bytes()))).collect();
        let more = self.named.len().saturating_sub(MAX_TOLD);
        if more > 0 {
            described.push(format!("{more} more"));
        }
        match self.unnamed {
            0 => {}
            1 => described.push("one directory".to_owned()),
            count => described.push(format!("{count} directories")),
        }
        match described.split_last() {
            Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
            Some((last, _)) => last.clone(),
            None => "nothing".to_owned(),
        }
    }
}

impl Gate {
    pub(crate) fn new(names: TopNames, is_renamed: bool) -> Self {
        Self { names, chosen: BTreeSet::new(), is_renamed }
    }

    /// Whether a path of the list is, or lies in, something that was asked for. It is looked at before anything else
    /// is.
    pub(crate) fn admit(&mut self, path: &[u8]) -> Result<(), Unasked> {
        let top = path.split(|byte| *byte == b'/').next().unwrap_or_default();
        let is_named = self.names.named.contains(std::ffi::OsStr::from_bytes(top));
        if is_named || self.chosen.contains(top) || self.names.globs.iter().any(|glob| glob.takes(top)) {
            return Ok(());
        }
        if self.chosen.len() >= self.names.unnamed {
            return Err(Unasked::Other { sent: path.to_vec(), asked: self.names.described() });
        }
        // Programs read files of such names in a home directory by themselves: the peer cannot choose them.
        if top.first() == Some(&b'.') && !self.is_renamed {
            return Err(Unasked::Hidden(top.to_vec()));
        }
        self.chosen.insert(top.to_vec());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate(paths: &[&str]) -> Gate {
        Gate::new(TopNames::of(paths), false)
    }

    #[test]
    fn admit__the_names_of_the_paths_and_what_lies_below() {
        let mut gate = gate(&["data/a.bin", "/x/tree/", ".config", "y/."]);
        for path in ["a.bin", "tree", "tree/.bashrc", ".config/x", "y/z"] {
            assert_eq!(gate.admit(path.as_bytes()), Ok(()), "{path}");
        }
        for path in [".bashrc", "a.bin2", "data/a.bin", "a", "", "/a.bin", "../a.bin", "./a.bin", "A.bin"] {
            assert!(gate.admit(path.as_bytes()).is_err(), "{path}");
        }
    }

    #[test]
    fn admit__one_name_for_each_path_that_has_none() {
        let mut gate = gate(&[".", "a", ".."]);
        for path in ["home/x", "up", "home/y", "a", "up/.ssh/authorized_keys"] {
            assert_eq!(gate.admit(path.as_bytes()), Ok(()), "{path}");
        }
        let error = gate.admit(b"third/\x1b[2J").unwrap_err();
        let says = "the peer sent \"third/\\x1b[2J\", expected \"a\" and 2 directories";
        assert_eq!(error.to_string(), says);
    }

    #[test]
    fn admit__what_a_pattern_matches() {
        let mut gate = gate(&["data/*.h5", "run-?/"]);
        for path in ["a.h5", "run-1/.bashrc", "*.h5"] {
            assert_eq!(gate.admit(path.as_bytes()), Ok(()), "{path}");
        }
        for path in [".a.h5", ".bashrc", "data/a.h5", "a.h5x", "run-10"] {
            assert!(gate.admit(path.as_bytes()).is_err(), "{path}");
        }
        assert!(super::tests::gate(&["*"]).admit(b".ssh/authorized_keys").is_err());
    }

    #[test]
    fn admit__a_name_that_the_giver_chooses_is_not_hidden() {
        for path in [".ssh/authorized_keys", ".bashrc", "..", "."] {
            assert!(matches!(gate(&["."]).admit(path.as_bytes()), Err(Unasked::Hidden(_))), "{path}");
        }
        // It gets another one.
        assert_eq!(Gate::new(TopNames::of(["."]), true).admit(b".config"), Ok(()));
    }

    #[test]
    fn told__some_names() {
        let described = |paths: &[&str]| TopNames::of(paths).described();
        assert_eq!(described(&["a"]), "\"a\"");
        assert_eq!(described(&["."]), "one directory");
        assert_eq!(described(&["a", "b", "c", "d", "e", ""]), "\"a\", \"b\", \"c\", 2 more and one directory");
    }
}
