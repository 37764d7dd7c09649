//! Entries that the `.gitignore` files of a tree leave out.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;

use regex::bytes::{RegexSet, RegexSetBuilder};
use rustix::fs::{FileType, fstat};
use rustix::io::Errno;

use super::pattern::gitignore_expression;
use super::rules::RuleError;
use crate::format::manifest::MAX_PATH_BYTES;

/// Name of the files with rules.
pub(crate) const GITIGNORE: &[u8] = b".gitignore";
/// Max bytes of the files that apply to one path, together. Those of large projects have a tenth of that.
const MAX_GITIGNORE_BYTES: usize = 64 << 10;
/// Max number of files that apply to one path.
const MAX_GITIGNORES: usize = 16;
/// Max memory of a compiled file, and again of the automaton that is built while it is used, bytes.
const MAX_COMPILED_BYTES: usize = 4 << 20;

/// The content of a `.gitignore` file, up to a byte more than the maximum; `None` if it is not a file. Git follows no
/// links there either.
pub(crate) fn content(opened: io::Result<OwnedFd>) -> io::Result<Option<Vec<u8>>> {
    let opened = match opened {
        Err(error) if matches!(Errno::from_io_error(&error), Some(Errno::NOENT | Errno::LOOP)) => {
            return Ok(None);
        }
        opened => opened?,
    };
    if FileType::from_raw_mode(fstat(&opened)?.st_mode) != FileType::RegularFile {
        return Ok(None);
    }
    let mut content = Vec::new();
    File::from(opened).take(MAX_GITIGNORE_BYTES as u64 + 1).read_to_end(&mut content)?;
    Ok(Some(content))
}

/// The rules of the directories that a walk is in, the outermost first. See gitignore(5).
#[derive(Default)]
pub(crate) struct Gitignores {
    levels: Vec<Level>,
}

struct Level {
    directory: Vec<u8>,
    bytes: usize,
    set: RegexSet,
    /// Whether each rule ignores what it matches.
    ignores: Vec<bool>,
}

impl Gitignores {
    /// The most memory that they take, bytes.
    pub(crate) const MAX_BYTES: u64 = 2 * (MAX_GITIGNORES * MAX_COMPILED_BYTES) as u64;

    /// The walk enters a directory, with this content of its file. After an error, the directory has no rules.
    pub(crate) fn enter(&mut self, directory: &[u8], content: Option<&[u8]>) -> Result<(), RuleError> {
        self.levels.retain(|level| below(directory, &level.directory).is_some());
        let Some(content) = content else { return Ok(()) };
        let bytes = content.len() + self.levels.iter().map(|level| level.bytes).sum::<usize>();
        if bytes > MAX_GITIGNORE_BYTES {
            return Err(RuleError::Ignored { kib: MAX_GITIGNORE_BYTES >> 10 });
        }
        if self.levels.len() == MAX_GITIGNORES {
            return Err(RuleError::Nested(MAX_GITIGNORES));
        }
        let (texts, ignores): (Vec<_>, Vec<_>) = content.split(|byte| *byte == b'\n').filter_map(rule).unzip();
        let mut set = RegexSetBuilder::new(texts);
        let set = set.unicode(false).size_limit(MAX_COMPILED_BYTES).dfa_size_limit(MAX_COMPILED_BYTES).build();
        let set = set.map_err(|_| RuleError::Complex)?;
        self.levels.push(Level { directory: directory.to_vec(), bytes: content.len(), set, ignores });
        Ok(())
    }

    /// Whether a path in that directory is ignored: the last rule that matches in the innermost file decides.
    pub(crate) fn ignores(&self, path: &[u8], is_directory: bool) -> bool {
        let verdict = self.levels.iter().rev().find_map(|level| {
            let path = below(path, &level.directory)?;
            let end: &[u8] = if is_directory { b"\0" } else { b"" };
            let subject = [b"/", path, end].concat();
            level.set.matches(&subject).iter().next_back().map(|rule| level.ignores[rule])
        });
        verdict.unwrap_or(false)
    }
}

/// The expression of a line, and whether it ignores what it matches; `None` if it is not a rule.
fn rule(line: &[u8]) -> Option<(String, bool)> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.starts_with(b"#") {
        return None;
    }
    let line = without_trailing_spaces(line);
    let (pattern, ignores) = line.strip_prefix(b"!").map_or((line, true), |pattern| (pattern, false));
    // A longer one matches no path.
    let expression = gitignore_expression(pattern).filter(|_| pattern.len() <= MAX_PATH_BYTES);
    Some((expression?, ignores))
}

/// A line without the spaces at its end, except one behind a backslash.
fn without_trailing_spaces(line: &[u8]) -> &[u8] {
    let kept = line.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1);
    let is_escaped = line[..kept].iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1;
    &line[..line.len().min(kept + usize::from(is_escaped))]
}

/// A path relative to a directory, if it is that or lies in it.
fn below<'p>(path: &'p [u8], directory: &[u8]) -> Option<&'p [u8]> {
    match path.strip_prefix(directory)? {
        rest if directory.is_empty() || rest.is_empty() => Some(rest),
        rest => rest.strip_prefix(b"/"),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::process::Command;

    use rand_pcg::Pcg64Mcg;
    use rand_pcg::rand_core::{Rng, SeedableRng};

    use super::*;

    fn entered(content: &[u8]) -> Gitignores {
        let mut rules = Gitignores::default();
        rules.enter(b"", Some(content)).unwrap();
        rules
    }

    #[test]
    fn ignores__as_gitignore_5_says() {
        for (line, path, is_ignored) in [
            ("*.o", "a/b.o", true),
            ("/*.o", "a/b.o", false),
            ("build/", "a/build", false),
            ("build/", "a/build/", true),
            ("doc/frotz", "a/doc/frotz", false),
            ("/frotz", "frotz", true),
            ("a/**/b", "a/b", true),
            ("a/**/b", "a/x/y/b", true),
            ("**/foo", "x/foo", true),
            ("abc/**", "abc", false),
            ("abc/**", "abc/x/y", true),
            ("foo**bar", "fooxbar", true),
            ("a/foo**bar", "a/foo/bar", false),
            (r"\#a", "#a", true),
            (r"\!a", "!a", true),
            ("# a", "# a", false),
            ("a  ", "a", true),
            (r"a\ ", "a ", true),
            ("a\r", "a", true),
            ("[a-c]x", "bx", true),
            ("[", "[", false),
            ("/", "a", false),
            ("", "a", false),
        ] {
            let (path, is_directory) = path.strip_suffix('/').map_or((path, false), |path| (path, true));
            assert_eq!(
                entered(line.as_bytes()).ignores(path.as_bytes(), is_directory),
                is_ignored,
                "{line:?} {path:?}"
            );
        }
        assert!(!entered(b"*.o\n!keep.o\n").ignores(b"keep.o", false), "the last rule decides");
        let mut rules = entered(b"*.log\n!x.log\n");
        rules.enter(b"sub", Some(b"!a.log\nx.log\n")).unwrap();
        assert_eq!(
            ["sub/a.log", "sub/x.log", "sub/b.log"].map(|path| rules.ignores(path.as_bytes(), false)),
            [false, true, true]
        );
        rules.enter(b"subject", None).unwrap();
        assert!(rules.ignores(b"subject/a.log", false) && !rules.ignores(b"subject/x.log", false));
    }

    /// Rules and paths of few letters, judged by git itself where it is installed.
    #[test]
    fn ignores__as_git_does() {
        let place = tempfile::tempdir().unwrap();
        let git = |args: &[&str]| Command::new("git").arg("-C").arg(place.path()).args(args).output();
        if !git(&["init", "-q"]).is_ok_and(|done| done.status.success()) {
            return;
        }
        let mut random = Pcg64Mcg::seed_from_u64(35);
        let mut pick = |from: &[&'static str]| from[random.next_u32() as usize % from.len()];
        let mut paths = Vec::new();
        for top in ["a", "b", "ab", "a b"] {
            for middle in ["a", "b", "ab"] {
                fs::create_dir_all(place.path().join(top).join(middle)).unwrap();
                for leaf in ["a", "ba", "a.b", "[a]", "b "] {
                    fs::write(place.path().join(top).join(middle).join(leaf), "").unwrap();
                    paths.push(format!("{top}/{middle}/{leaf}"));
                }
            }
        }
        for round in 0..60 {
            let lines: Vec<String> = (0..3)
                .map(|_| {
                    let parts = ["a", "b", "*", "**", "/", "/", "?", "[ab]", "[!a]", "!", r"\", ".", " ", "**/", "/**"];
                    (0..=round % 6).map(|_| pick(&parts)).collect()
                })
                .collect();
            let content = lines.join("\n");
            fs::write(place.path().join(".gitignore"), &content).unwrap();
            let done = git(&[
                &["-c", "core.quotePath=false", "check-ignore", "--no-index"],
                &paths.iter().map(String::as_str).collect::<Vec<_>>()[..],
            ]
            .concat());
            let stdout = String::from_utf8(done.unwrap().stdout).unwrap();
            let by_git: Vec<&str> = stdout.lines().map(|line| line.trim_matches('"')).collect();
            let rules = entered(content.as_bytes());
            let by_us: Vec<_> = paths.iter().filter(|path| is_left_out(&rules, path)).map(String::as_str).collect();
            assert_eq!(by_us, by_git, "{content:?}");
        }
    }

    /// Whether a path or a directory that it lies in is ignored.
    fn is_left_out(rules: &Gitignores, path: &str) -> bool {
        Path::new(path).ancestors().any(|part| {
            let part = part.to_str().unwrap();
            !part.is_empty() && rules.ignores(part.as_bytes(), part != path)
        })
    }

    #[test]
    fn enter__files_that_apply_to_a_path_are_bounded_together() {
        let mut rules = Gitignores::default();
        let half = b"a\n".repeat(MAX_GITIGNORE_BYTES / 4 + 1);
        rules.enter(b"", Some(&half)).unwrap();
        assert!(matches!(rules.enter(b"x", Some(&half)), Err(RuleError::Ignored { .. })));
        rules.enter(b"y", Some(b"b")).unwrap();
        let mut rules = Gitignores::default();
        for level in 0..MAX_GITIGNORES {
            rules.enter(vec!["d"; level].join("/").as_bytes(), Some(b"a")).unwrap();
        }
        let deep = vec!["d"; MAX_GITIGNORES].join("/");
        assert_eq!(rules.enter(deep.as_bytes(), Some(b"a")), Err(RuleError::Nested(MAX_GITIGNORES)));
        // Elsewhere there is room again.
        rules.enter(b"e", Some(b"a")).unwrap();
        // 64 KiB of the widest classes fit, or are refused: nothing is built beyond the bound.
        let wide = b"[!a]".repeat(MAX_PATH_BYTES / 4);
        let content = [&wide[..], b"\n"].concat().repeat(MAX_GITIGNORE_BYTES / (wide.len() + 1));
        let entered = Gitignores::default().enter(b"", Some(&content));
        assert!(matches!(entered, Ok(()) | Err(RuleError::Complex)));
    }
}
