//! Paths with wildcards, as a shell reads them.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use regex::bytes::{Regex, RegexBuilder};

use super::pattern::name_expression;
use crate::format::manifest::MAX_PATH_BYTES;

/// Max paths that one glob stands for: as many as a request over ssh holds.
const MAX_EXPANDED: usize = 100_000;

/// A path with `*`, `?` or `[...]` in its names. As in a shell, a wildcard matches no slash, and no dot at the start of
/// a name. It also stands for the path that is written exactly like it.
#[derive(Clone, Debug)]
pub(crate) struct Glob {
    word: Vec<u8>,
    names: Vec<NamePattern>,
}

/// The pattern of one name of a path.
#[derive(Clone, Debug)]
struct NamePattern {
    regex: Regex,
    matches_hidden: bool,
}

/// Whether a path has wildcards.
pub fn is_glob(path: impl AsRef<OsStr>) -> bool {
    path.as_ref().as_bytes().iter().any(|byte| matches!(byte, b'*' | b'?' | b'['))
}

/// The existing paths that a path with wildcards stands for, sorted; the path itself if it exists as it is written, has
/// no wildcards or matches nothing.
pub fn expand(path: &Path) -> io::Result<Vec<PathBuf>> {
    if !is_glob(path) || path.symlink_metadata().is_ok() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = vec![PathBuf::new()];
    for part in path.components().map(std::path::Component::as_os_str) {
        match NamePattern::new(part.as_bytes()).filter(|_| is_glob(part)) {
            None => found.iter_mut().for_each(|path| path.push(part)),
            Some(pattern) => {
                let mut below = Vec::new();
                for directory in &found {
                    let place = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
                    // Like a shell, it passes over what is not a directory or cannot be read.
                    let names = place.read_dir().into_iter().flatten().flatten().map(|entry| entry.file_name());
                    below
                        .extend(names.filter(|name| pattern.matches(name.as_bytes())).map(|name| directory.join(name)));
                    if below.len() > MAX_EXPANDED {
                        let message = format!("the pattern matches more than {MAX_EXPANDED} paths");
                        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
                    }
                }
                found = below;
            }
        }
    }
    // Names behind the last wildcard need not exist.
    found.retain(|path| path.symlink_metadata().is_ok());
    found.sort();
    if found.is_empty() { Ok(vec![path.to_owned()]) } else { Ok(found) }
}

impl Glob {
    /// Reads a path as people write it; `None` if it has no wildcards or a class without an end.
    pub(crate) fn new(path: &[u8]) -> Option<Self> {
        if !is_glob(OsStr::from_bytes(path)) || path.len() > MAX_PATH_BYTES {
            return None;
        }
        let parts: Vec<_> = path.split(|byte| *byte == b'/').filter(|part| !matches!(*part, b"" | b".")).collect();
        let names = parts.iter().map(|part| NamePattern::new(part)).collect::<Option<Vec<_>>>()?;
        Some(Self { word: parts.join(&b'/'), names })
    }

    /// As the user wrote it.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.word
    }

    /// Whether it matches a path, or something that the path lies in.
    pub(crate) fn takes(&self, path: &[u8]) -> bool {
        let mut names = path.split(|byte| *byte == b'/');
        let is_as_written = || path.strip_prefix(self.word.as_slice()).is_some_and(|rest| !starts_inside_name(rest));
        self.names.iter().all(|pattern| names.next().is_some_and(|name| pattern.matches(name))) || is_as_written()
    }

    /// Whether it may match something below a directory, and not the directory itself.
    pub(crate) fn is_above(&self, directory: &[u8]) -> bool {
        let names = directory.split(|byte| *byte == b'/');
        let is_short = names.clone().count() < self.names.len();
        let is_as_written = || self.word.strip_prefix(directory).is_some_and(|rest| rest.starts_with(b"/"));
        is_short && (names.zip(&self.names).all(|(name, pattern)| pattern.matches(name)) || is_as_written())
    }
}

impl PartialEq for Glob {
    fn eq(&self, other: &Self) -> bool {
        self.word == other.word
    }
}

impl Eq for Glob {}

impl NamePattern {
    fn new(name: &[u8]) -> Option<Self> {
        let regex = RegexBuilder::new(&name_expression(name)?).unicode(false).build().ok()?;
        Some(Self { regex, matches_hidden: name.starts_with(b".") })
    }

    fn matches(&self, name: &[u8]) -> bool {
        (self.matches_hidden || !name.starts_with(b".")) && self.regex.is_match(name)
    }
}

fn starts_inside_name(rest: &[u8]) -> bool {
    !matches!(rest.first(), None | Some(b'/'))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn takes__names_as_a_shell_does() {
        for (glob, path, is_taken) in [
            ("data/*.h5", "data/a.h5", true),
            ("./data//*.h5", "data/a.h5", true),
            ("data/*.h5", "data/a.h5/below", true),
            ("data/*.h5", "data/sub/a.h5", false),
            ("data/*.h5", "data/a.h55", false),
            ("data/*", "data/.hidden", false),
            ("data/.*", "data/.hidden", true),
            ("*", ".ssh", false),
            ("run-?/[0-9]*", "run-7/3x", true),
            ("run-?/[!0-9]*", "run-7/3x", false),
            ("a[1].bin", "a1.bin", true),
            ("a[1].bin", "a[1].bin", true),
            ("a[1].bin", "a[1].binary", false),
            (r"a\*[b]", "a*b", true),
            ("**/x", "a/x", true),
            ("**/x", "a/b/x", false),
        ] {
            let read = Glob::new(glob.as_bytes()).unwrap();
            assert_eq!(read.takes(path.as_bytes()), is_taken, "{glob} {path}");
        }
        assert!(Glob::new(b"plain/name").is_none());
        assert!(Glob::new(b"a[b").is_none());
    }

    #[test]
    fn is_above__directories_that_lead_to_matches() {
        let glob = Glob::new(b"run-*/out/*.h5").unwrap();
        for (directory, is_above) in
            [("run-1", true), ("run-1/out", true), ("run-1/out/a.h5", false), ("other", false), ("run-1/in", false)]
        {
            assert_eq!(glob.is_above(directory.as_bytes()), is_above, "{directory}");
        }
    }

    #[test]
    fn expand__existing_paths_in_order() {
        let place = tempfile::tempdir().unwrap();
        for path in ["run-2/b.h5", "run-1/b.h5", "run-1/a.h5", "run-1/.c.h5", "run-3", "x[1]"] {
            let path = place.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let expanded = |glob: &str| {
            let found = expand(&place.path().join(glob)).unwrap();
            found
                .iter()
                .map(|path| path.strip_prefix(place.path()).unwrap().to_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(expanded("run-*/*.h5"), ["run-1/a.h5", "run-1/b.h5", "run-2/b.h5"]);
        assert_eq!(expanded("run-*/../run-2/b.h5"), ["run-1/../run-2/b.h5", "run-2/../run-2/b.h5"]);
        assert_eq!(expanded("run-?/a.h5"), ["run-1/a.h5"]);
        assert_eq!(expanded("x[1]"), ["x[1]"]);
        assert_eq!(expanded("none-*"), ["none-*"]);
        assert_eq!(expanded("plain"), ["plain"]);
    }

    #[test]
    fn glob__of_anything() {
        bolero::check!().with_iterations(2000).with_max_len(200).for_each(|bytes: &[u8]| {
            if let Some(glob) = Glob::new(bytes) {
                assert!(glob.takes(glob.as_bytes()) || glob.as_bytes().is_empty());
            }
        });
    }
}
