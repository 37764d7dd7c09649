//! Names that a tree may have at the destination, and their escaping for a terminal.
//!
//! A path comes from the peer and can contain anything. A path that [`RelativePath::new`] accepts is strictly below the
//! destination, as long as no symbolic link is followed on the way: `take::disk::tree` sees to that.

use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use thiserror::Error;

use super::manifest::MAX_PATH_BYTES;

/// Max length of one name of a path, bytes, as Linux's `NAME_MAX`.
pub(crate) const MAX_NAME_BYTES: usize = 255;
/// Max depth of a path, directories. Real trees have tens; a path of 4096 bytes could have 2047, each of which costs a
/// block of the disk.
pub(crate) const MAX_DEPTH: usize = 256;
/// Prefix of the names of Fairwave's temporary files and directories, in any directory of a destination.
pub(crate) const TEMPORARIES: &[u8] = b".fairwave-";

/// A path below the destination: at least one name, never `.` or `..`, separated by one `/`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RelativePath(Box<[u8]>);

/// Why a path is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum NameError {
    #[error("empty name")]
    Empty,
    #[error("absolute path: only paths below the destination are written")]
    Absolute,
    #[error("path with an empty component")]
    EmptyName,
    #[error("path with a component '.'")]
    Dot,
    #[error("path with a component '..': only paths below the destination are written")]
    DotDot,
    #[error("name with a zero byte")]
    Nul,
    #[error("path component of {0} bytes, the maximum is {MAX_NAME_BYTES}")]
    LongName(usize),
    #[error("path of {0} bytes, the maximum is {MAX_PATH_BYTES}")]
    LongPath(usize),
    #[error("path of depth {0}, the maximum is {MAX_DEPTH}")]
    Deep(usize),
    #[error("names that start with '.fairwave-' are reserved for unfinished transfers")]
    Reserved,
}

impl RelativePath {
    /// The path, if nothing is wrong with it.
    pub(crate) fn new(path: &[u8]) -> Result<Self, NameError> {
        if path.is_empty() {
            return Err(NameError::Empty);
        }
        if path.len() > MAX_PATH_BYTES {
            return Err(NameError::LongPath(path.len()));
        }
        if path.first() == Some(&b'/') {
            return Err(NameError::Absolute);
        }
        if path.contains(&0) {
            return Err(NameError::Nul);
        }
        for name in path.split(|byte| *byte == b'/') {
            match name {
                b"" => return Err(NameError::EmptyName),
                b"." => return Err(NameError::Dot),
                b".." => return Err(NameError::DotDot),
                _ if name.len() > MAX_NAME_BYTES => return Err(NameError::LongName(name.len())),
                _ if is_reserved(name) => return Err(NameError::Reserved),
                _ => {}
            }
        }
        let path = Self(path.into());
        match path.depth() {
            0..=MAX_DEPTH => Ok(path),
            depth => Err(NameError::Deep(depth)),
        }
    }

    /// All of it.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Its last name.
    pub(crate) fn name(&self) -> &[u8] {
        self.split().1
    }

    /// All but its last name: empty for what lies at the destination's top.
    pub(crate) fn parent(&self) -> &[u8] {
        self.split().0
    }

    /// Number of directories that contain it.
    pub(crate) fn depth(&self) -> usize {
        self.0.split(|byte| *byte == b'/').skip(1).count()
    }

    fn split(&self) -> (&[u8], &[u8]) {
        match self.0.iter().rposition(|byte| *byte == b'/') {
            Some(at) => (&self.0[..at], &self.0[at + 1..]),
            None => (&[], &self.0),
        }
    }
}

/// Whether a file system may treat a name of a path as one of the temporaries': some fold case, and some ignore
/// invisible characters (Unicode's Default_Ignorable_Code_Point, as ext4 with casefold does), all of which are outside
/// ASCII.
pub(crate) fn is_reserved(name: &[u8]) -> bool {
    let seen = name.iter().filter(|byte| byte.is_ascii()).take(TEMPORARIES.len());
    seen.map(u8::to_ascii_lowercase).eq(TEMPORARIES.iter().copied())
}

impl fmt::Debug for RelativePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&escaped(&self.0))
    }
}

/// A path of this machine as a terminal may show it: see [`escaped`].
pub(crate) fn shown(path: &Path) -> String {
    escaped(path.as_os_str().as_bytes())
}

/// A name as a terminal may show it: what is not printable (controls, marks that turn the direction of text, what is
/// not UTF-8) as `\xNN` for each byte, a backslash doubled. Different names look different.
pub fn escaped(name: &[u8]) -> String {
    let mut text = String::with_capacity(name.len());
    for chunk in name.utf8_chunks() {
        for character in chunk.valid().chars() {
            if character == '\\' {
                text.push_str("\\\\");
            } else if is_printable(character) {
                text.push(character);
            } else {
                let mut bytes = [0; 4];
                character.encode_utf8(&mut bytes).bytes().for_each(|byte| push_byte(&mut text, byte));
            }
        }
        chunk.invalid().iter().for_each(|byte| push_byte(&mut text, *byte));
    }
    text
}

fn push_byte(text: &mut String, byte: u8) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    text.push_str("\\x");
    text.push(char::from(DIGITS[usize::from(byte >> 4)]));
    text.push(char::from(DIGITS[usize::from(byte & 15)]));
}

/// The standard library has the table, behind the escapes of strings: controls, formats (which bidi marks are),
/// separators, and what has no meaning are escaped there; a mark that follows a letter is not.
fn is_printable(character: char) -> bool {
    if matches!(character, '"' | '\'') {
        return true;
    }
    let mut bytes = [b'a'; 5];
    let length = character.encode_utf8(&mut bytes[1..]).len();
    let text = std::str::from_utf8(&bytes[..=length]).expect("a letter and a character");
    text.escape_debug().nth(1) == Some(character)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn new__refuses_what_does_not_stay_below() {
        let long = [b'x'; MAX_NAME_BYTES + 1];
        let deep = b"x/".repeat(MAX_PATH_BYTES / 2 + 1);
        let levels = b"x/".repeat(MAX_DEPTH + 1);
        let hostile: [(&[u8], NameError); 28] = [
            (b"", NameError::Empty),
            (b"/", NameError::Absolute),
            (b"/etc/passwd", NameError::Absolute),
            (b"//etc", NameError::Absolute),
            (b"..", NameError::DotDot),
            (b"../a", NameError::DotDot),
            (b"a/../../b", NameError::DotDot),
            (b"a/..", NameError::DotDot),
            (b".", NameError::Dot),
            (b"./a", NameError::Dot),
            (b"a/./b", NameError::Dot),
            (b"a/", NameError::EmptyName),
            (b"a//b", NameError::EmptyName),
            (b"a\0b", NameError::Nul),
            (b"\0", NameError::Nul),
            (b".fairwave-0123456789abcdef", NameError::Reserved),
            (b".fairwave-x/journal", NameError::Reserved),
            (b"sub/.fairwave-0123456789abcdef/journal", NameError::Reserved),
            (b"a/b/.FAIRWAVE-x", NameError::Reserved),
            (b"a/.fairwave-", NameError::Reserved),
            ("a/\u{200b}.fair\u{200d}wave-x/b".as_bytes(), NameError::Reserved),
            (b".FAIRWAVE-0123456789abcdef", NameError::Reserved),
            (b".Fairwave-x/journal", NameError::Reserved),
            ("\u{200b}.fair\u{200d}wave-x".as_bytes(), NameError::Reserved),
            (".fairwave\u{ad}-".as_bytes(), NameError::Reserved),
            (&[&levels[..], b"f"].concat(), NameError::Deep(257)),
            (&long, NameError::LongName(256)),
            (&deep, NameError::LongPath(4098)),
        ];
        for (path, error) in hostile {
            assert_eq!(RelativePath::new(path), Err(error), "{}", escaped(path));
        }
    }

    #[test]
    fn new__takes_every_other_name() {
        for path in [
            &b"a"[..],
            b"a/b",
            b"...",
            b"..a",
            b"a..",
            b"-rf",
            b" ",
            b"\n",
            b"\xff\xfe",
            b"a/x.fairwave-x",
            b".fairwave",
            b"a/.fairwave/b",
            b"fairwave-x",
            &[&b"x/".repeat(MAX_DEPTH)[..], b"f"].concat(),
            b"C:\\x",
            b"~",
        ] {
            assert_eq!(RelativePath::new(path).unwrap().as_bytes(), path);
        }
    }

    #[test]
    fn parent__and_name() {
        let path = RelativePath::new(b"a/b/c").unwrap();
        assert_eq!((path.parent(), path.name(), path.depth()), (&b"a/b"[..], &b"c"[..], 2));
        let path = RelativePath::new(b"a").unwrap();
        assert_eq!((path.parent(), path.name(), path.depth()), (&b""[..], &b"a"[..], 0));
    }

    #[test]
    fn escaped__keeps_what_a_terminal_may_show() {
        for name in
            ["a b.txt", "it's \"x\"", "\u{e4}\u{f6}\u{fc}", "\u{65e5}\u{672c}", "e\u{301}", "\u{1f600}", "-rf *"]
        {
            assert_eq!(escaped(name.as_bytes()), name);
        }
    }

    #[test]
    fn escaped__shows_what_a_terminal_must_not_get() {
        for (name, shown) in [
            (&b"\x1b[2J"[..], "\\x1b[2J"),
            (b"a\nb\r\tc\x7f", "a\\x0ab\\x0d\\x09c\\x7f"),
            (b"\xc2\x9b31m", "\\xc2\\x9b31m"),
            (b"\xff\xfe", "\\xff\\xfe"),
            (b"a\\x1b", "a\\\\x1b"),
            ("\u{202e}gpj.exe".as_bytes(), "\\xe2\\x80\\xaegpj.exe"),
            ("\u{2066}\u{200b}\u{feff}".as_bytes(), "\\xe2\\x81\\xa6\\xe2\\x80\\x8b\\xef\\xbb\\xbf"),
            ("\u{2028}\u{e0041}".as_bytes(), "\\xe2\\x80\\xa8\\xf3\\xa0\\x81\\x81"),
        ] {
            assert_eq!(escaped(name), shown);
        }
    }

    proptest! {
        #[test]
        fn new__never_leaves_the_destination(path in prop::collection::vec(prop::sample::select(&b"/.a\0"[..]), 0..12)) {
            if let Ok(path) = RelativePath::new(&path) {
                let mut depth = 0_i32;
                for name in path.as_bytes().split(|byte| *byte == b'/') {
                    depth += match name { b".." => -1, b"." | b"" => 0, _ => 1 };
                    prop_assert!(depth > 0);
                }
                prop_assert!(!path.as_bytes().contains(&0));
            }
        }

        #[test]
        fn escaped__is_printable_and_says_every_byte(name in prop::collection::vec(any::<u8>(), 0..40)) {
            let shown = escaped(&name);
            prop_assert!(shown.chars().all(|character| !character.is_control()));
            prop_assert_eq!(unescaped(&shown), name);
        }
    }

    fn unescaped(text: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut rest = text.as_bytes();
        while let Some((&first, more)) = rest.split_first() {
            rest = match (first, more.first()) {
                (b'\\', Some(b'x')) => {
                    bytes.push(u8::from_str_radix(std::str::from_utf8(&more[1..3]).unwrap(), 16).unwrap());
                    &more[3..]
                }
                (b'\\', _) => {
                    bytes.push(b'\\');
                    &more[1..]
                }
                _ => {
                    bytes.push(first);
                    more
                }
            };
        }
        bytes
    }
}
