//! Places of files: `path`, or `host:path`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// A place that a call names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CpPlace {
    /// On this machine.
    Here(PathBuf),
    /// On another one, which ssh knows by this name.
    There {
        /// As ssh takes it: `host`, `user@host`.
        host: String,
        /// There; relative to the home directory.
        path: OsString,
    },
}

impl CpPlace {
    /// Reads a place as scp does: what has a colon before any slash is on another machine.
    pub(crate) fn read(word: &OsStr) -> Result<Self, String> {
        let bytes = word.as_bytes();
        let shown = || word.to_string_lossy().escape_debug().to_string();
        let (host, path) = match in_brackets(bytes) {
            Some(found) => found,
            None => match bytes.iter().position(|byte| matches!(byte, b':' | b'/')) {
                Some(at) if bytes[at] == b':' && !bytes.starts_with(b"[") => (bytes[..at].to_vec(), &bytes[at + 1..]),
                _ => return Ok(Self::Here(word.into())),
            },
        };
        let host =
            std::str::from_utf8(&host).map_err(|_| format!("\"{}\": the host name is not valid UTF-8", shown()))?;
        if host.is_empty() {
            return Err(format!("\"{}\": missing host before the colon (write ./ before a local name)", shown()));
        }
        // ssh would take it for an option.
        if host.starts_with('-') {
            return Err(format!("\"{}\": a host name must not start with \"-\"", shown()));
        }
        if host.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err(format!("\"{}\": a host name must not contain spaces", shown()));
        }
        Ok(Self::There { host: host.to_owned(), path: OsString::from_vec(path.to_vec()) })
    }
}

/// Host and path of `[address]:path` and `user@[address]:path`, the host without its brackets: an IPv6 address contains
/// colons.
fn in_brackets(bytes: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let open = bytes.iter().position(|byte| matches!(byte, b'[' | b':' | b'/')).filter(|at| bytes[*at] == b'[')?;
    let (user, rest) = bytes.split_at(open);
    if !(user.is_empty() || user.ends_with(b"@")) {
        return None;
    }
    let end = rest.windows(2).position(|pair| pair == b"]:")?;
    Some(([user, &rest[1..end]].concat(), &rest[end + 2..]))
}

/// Destination of a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// The directory that it is put into.
    pub(crate) directory: PathBuf,
    /// Its name there, if it is to be renamed.
    pub(crate) rename: Option<OsString>,
    /// Whether an earlier call with the same words may have found nothing there, and have made the directory itself.
    pub(crate) may_be_own: bool,
}

impl Target {
    /// Reads a destination as cp does: sources are copied into an existing directory; for a single source any other
    /// path is the new name. A path that ends with a slash is a directory, and so is the destination of several
    /// sources.
    ///
    /// The taker finds out whether an existing directory was made by this same call before an interrupt.
    pub(crate) fn read(path: &Path, is_single: bool) -> Self {
        let whole = Self { directory: path.to_owned(), rename: None, may_be_own: false };
        if !is_single || path.as_os_str().as_bytes().ends_with(b"/") {
            return whole;
        }
        if path.is_dir() {
            return Self { may_be_own: path.file_name().is_some(), ..whole };
        }
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return whole;
        };
        let directory = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        Self { directory: directory.to_owned(), rename: Some(name.to_owned()), may_be_own: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read__a_colon_before_any_slash_is_another_machine() {
        let there = |host: &str, path: &str| CpPlace::There { host: host.into(), path: path.into() };
        for (word, place) in [
            ("a.txt", CpPlace::Here("a.txt".into())),
            ("./a:b", CpPlace::Here("./a:b".into())),
            ("dir/a:b", CpPlace::Here("dir/a:b".into())),
            ("host:", there("host", "")),
            ("me@host:dir/a:b", there("me@host", "dir/a:b")),
            ("host:/abs", there("host", "/abs")),
            ("[2001:db8::7]:x", there("2001:db8::7", "x")),
            ("root@[::1]:dir/", there("root@::1", "dir/")),
            ("me@[2001:db8::7]:", there("me@2001:db8::7", "")),
            ("[x", CpPlace::Here("[x".into())),
            ("a[1]:b", there("a[1]", "b")),
            ("dir/[::1]:x", CpPlace::Here("dir/[::1]:x".into())),
        ] {
            assert_eq!(CpPlace::read(OsStr::new(word)), Ok(place), "{word}");
        }
    }

    #[test]
    fn target__is_a_directory_or_the_new_name_of_a_single_source() {
        let place = tempfile::tempdir().unwrap();
        let there = place.path().to_owned();
        let absent = there.join("absent");
        let whole = |path: &Path| Target { directory: path.to_owned(), rename: None, may_be_own: false };
        assert_eq!(Target::read(&there, true), Target { may_be_own: true, ..whole(&there) });
        assert_eq!(Target::read(&there, false), whole(&there));
        assert_eq!(Target::read(&there.join(""), true), whole(&there.join("")));
        assert_eq!(Target::read(Path::new(".."), true), whole(Path::new("..")));
        assert_eq!(Target::read(&absent, false), whole(&absent));
        assert_eq!(Target::read(&absent.join(""), true), whole(&absent.join("")));
        let renamed = Target { directory: there, rename: Some("absent".into()), may_be_own: false };
        assert_eq!(Target::read(&absent, true), renamed);
        assert_eq!(Target::read(Path::new("absent-too"), true).directory, Path::new("."));
        // A name that is not text is a name.
        assert_eq!(
            Target::read(Path::new(OsStr::from_bytes(b"\xff")), true).rename,
            Some(OsString::from_vec(vec![0xff]))
        );
    }

    #[test]
    fn read__a_host_that_ssh_would_take_for_an_option_is_refused() {
        for (word, says) in
            [("-oProxyCommand=x:y", "must not start"), (":a", "missing host"), ("a b:c", "must not contain spaces")]
        {
            let error = CpPlace::read(OsStr::new(word)).unwrap_err();
            assert!(error.contains(says), "{word}: {error}");
        }
    }
}
