//! A pattern of rsync's manual page, as a regular expression.
//!
//! The expression is matched against a slash, the path from the transfer's root, and a zero byte behind a directory.
//! Globs of the crate `globset` cannot carry these patterns: there `**` is special between slashes only, a class may
//! match a slash, `[[:digit:]]` is not known, and characters are UTF-8.

use std::fmt::Write as _;

/// Any byte of a path.
const ANY: &str = r"[^\x00]";
/// Any byte of a name.
const IN_NAME: &str = r"[^\x00/]";

/// A part of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Byte(u8),
    /// `?`
    One,
    /// `*`
    InName,
    /// `**`
    Any,
    /// `**/` of gitignore(5): no directory, or some.
    Directories,
    /// `[...]`
    Class(Box<[bool; 256]>),
}

/// The expression of a pattern; `None` if it matches no path.
pub(super) fn expression(pattern: &[u8]) -> Option<String> {
    let is_directory = pattern.len() > 1 && pattern.ends_with(b"/");
    let pattern = &pattern[..pattern.len() - usize::from(is_directory)];
    let has = |what: &[u8]| pattern.windows(what.len()).any(|window| window == what);
    // rsync(1): a backslash is literal in a pattern without wildcards.
    let is_wild = [b"*", b"?", b"["].into_iter().any(|wildcard| has(wildcard));
    let (start, rest) = match pattern.strip_prefix(b"/") {
        Some(rest) => ("^/", rest),
        // It may start with the slash before the first name.
        None if pattern.starts_with(b"**") => ("^", pattern),
        None => ("/", pattern),
    };
    let mut tokens = if is_wild { tokens(rest)? } else { rest.iter().copied().map(Token::Byte).collect() };
    // rsync counts the slashes of such a pattern, those in classes too, and compares as many names of the path.
    let slashes = rest.split(|byte| *byte == b'/').count() - 1;
    let is_counted = start == "/" && !has(b"**");
    if is_counted && tokens.iter().filter(|token| **token == Token::Byte(b'/')).count() < slashes {
        return None;
    }
    let is_with_directory = pattern.ends_with(b"***") && tokens.ends_with(&[Token::Byte(b'/'), Token::Any]);
    if is_with_directory {
        tokens.truncate(tokens.len() - 2);
    }
    let mut text = format!("(?-u){start}");
    for token in &tokens {
        token.write(&mut text);
    }
    text += match (is_with_directory, is_directory) {
        (false, false) => r"\x00?$",
        (false, true) => r"\x00$",
        (true, false) => r"(?:/[^\x00]*\x00?|\x00)$",
        (true, true) => r"(?:/[^\x00]*)?\x00$",
    };
    Some(text)
}

/// The expression of a line of a `.gitignore` file, without `!`; `None` if it matches no path.
pub(super) fn gitignore_expression(pattern: &[u8]) -> Option<String> {
    let (pattern, end) = match pattern.strip_suffix(b"/") {
        Some(pattern) => (pattern, r"\x00$"),
        None => (pattern, r"\x00?$"),
    };
    // A slash anywhere but at its end ties it to the directory of the file.
    let start = if pattern.contains(&b'/') { "^/" } else { "/" };
    let tokens = read_tokens(pattern.strip_prefix(b"/").unwrap_or(pattern), Stars::Gitignore)?;
    if tokens.is_empty() {
        return None;
    }
    let mut text = format!("(?-u){start}");
    for token in &tokens {
        token.write(&mut text);
    }
    Some(text + end)
}

/// The expression of one name of a path, whose wildcards match within it; `None` if it matches no name.
pub(super) fn name_expression(name: &[u8]) -> Option<String> {
    let mut text = "(?-u)^".to_owned();
    for token in &tokens(name)? {
        token.write(&mut text);
    }
    text.push('$');
    Some(text)
}

impl Token {
    fn write(&self, text: &mut String) {
        // Writing to a string does not fail.
        let _ = match self {
            Self::Byte(byte) => write!(text, r"\x{byte:02x}"),
            Self::One => write!(text, "{IN_NAME}"),
            Self::InName => write!(text, "{IN_NAME}*"),
            Self::Any => write!(text, "{ANY}*"),
            Self::Directories => write!(text, "(?:{ANY}*/)?"),
            Self::Class(bytes) => {
                text.push('[');
                for (byte, _) in bytes.iter().enumerate().filter(|(_, is_in)| **is_in) {
                    let _ = write!(text, r"\x{byte:02x}");
                }
                write!(text, "]")
            }
        };
    }
}

/// Meaning of two stars.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stars {
    /// Anything.
    Rsync,
    /// Directories between slashes, anything below a slash, else as one star.
    Gitignore,
}

/// The parts of a pattern with wildcards; `None` if one of them matches nothing.
fn tokens(pattern: &[u8]) -> Option<Vec<Token>> {
    read_tokens(pattern, Stars::Rsync)
}

fn read_tokens(pattern: &[u8], stars: Stars) -> Option<Vec<Token>> {
    let (mut tokens, mut rest) = (Vec::new(), pattern);
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        tokens.push(match byte {
            b'\\' => {
                let (&literal, after) = rest.split_first()?;
                rest = after;
                Token::Byte(literal)
            }
            b'?' => Token::One,
            b'*' => {
                let more = rest.iter().take_while(|byte| **byte == b'*').count();
                rest = &rest[more..];
                let is_after_slash = matches!(tokens.last(), None | Some(Token::Byte(b'/') | Token::Directories));
                match (more > 0, stars, rest) {
                    (true, Stars::Rsync, _) => Token::Any,
                    (true, Stars::Gitignore, [b'/', after @ ..]) if is_after_slash => {
                        rest = after;
                        Token::Directories
                    }
                    (true, Stars::Gitignore, [])
                        if matches!(tokens.last(), Some(Token::Byte(b'/') | Token::Directories)) =>
                    {
                        Token::Any
                    }
                    _ => Token::InName,
                }
            }
            b'[' => {
                let (class, after) = class(rest)?;
                rest = after;
                Token::Class(class)
            }
            byte => Token::Byte(byte),
        });
    }
    Some(tokens)
}

/// A class, and what follows it; `None` if it is malformed or empty.
fn class(pattern: &[u8]) -> Option<(Box<[bool; 256]>, &[u8])> {
    let is_negated = matches!(pattern.first(), Some(b'!' | b'^'));
    let (mut bytes, mut at) = (Box::new([false; 256]), usize::from(is_negated));
    // The start of a range.
    let mut before = None;
    let first = at;
    loop {
        let byte = *pattern.get(at)?;
        if byte == b']' && at > first {
            break;
        }
        match (byte, pattern.get(at + 1).copied()) {
            (b'\\', literal) => {
                at += 1;
                bytes[usize::from(literal?)] = true;
                before = literal;
            }
            (b'-', Some(last)) if last != b']' && before.is_some() => {
                at += if last == b'\\' { 2 } else { 1 };
                let last = *pattern.get(at)?;
                (before?..=last).for_each(|byte| bytes[usize::from(byte)] = true);
                before = None;
            }
            (b'[', Some(b':')) if class_name(&pattern[at + 2..])?.is_some() => {
                let name = class_name(&pattern[at + 2..])??;
                let is_in = posix_class(name)?;
                (0..=u8::MAX).filter(is_in).for_each(|byte| bytes[usize::from(byte)] = true);
                at += 3 + name.len();
                before = None;
            }
            _ => {
                bytes[usize::from(byte)] = true;
                before = Some(byte);
            }
        }
        at += 1;
    }
    if is_negated {
        bytes.iter_mut().for_each(|is_in| *is_in = !*is_in);
    }
    // The end of a directory's path.
    bytes[0] = false;
    bytes[usize::from(b'/')] = false;
    bytes.contains(&true).then_some((bytes, &pattern[at + 1..]))
}

/// The name in `name:]`, if one follows; the outer `None` if no class ends there.
#[expect(clippy::option_option, reason = "malformed, not a name, a name")]
fn class_name(pattern: &[u8]) -> Option<Option<&[u8]>> {
    let end = pattern.iter().position(|byte| *byte == b']')?;
    Some(pattern[..end].strip_suffix(b":"))
}

/// A class of POSIX in the C locale.
fn posix_class(name: &[u8]) -> Option<fn(&u8) -> bool> {
    Some(match name {
        b"alnum" => u8::is_ascii_alphanumeric,
        b"alpha" => u8::is_ascii_alphabetic,
        b"blank" => |byte| matches!(byte, b' ' | b'\t'),
        b"cntrl" => u8::is_ascii_control,
        b"digit" => u8::is_ascii_digit,
        b"graph" => u8::is_ascii_graphic,
        b"lower" => u8::is_ascii_lowercase,
        b"print" => |byte| matches!(byte, b' '..=b'~'),
        b"punct" => u8::is_ascii_punctuation,
        // With the vertical tab, which Rust's function does not count.
        b"space" => |byte| matches!(byte, b' ' | b'\t'..=b'\r'),
        b"upper" => u8::is_ascii_uppercase,
        b"xdigit" => u8::is_ascii_hexdigit,
        _ => return None,
    })
}
