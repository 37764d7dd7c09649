//! Which files a call chooses, in the words of rsync.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use clap::{ArgMatches, FromArgMatches};
use fairwave_files::{Filter, RuleError, RuleList, escaped};

use crate::common::failure::{CommandFailure, plain};

/// Said where the list of names is empty.
pub(crate) const NOTHING: &str = "nothing to copy: --files-from names no file";
/// No list of rules or names is larger.
const MAX_LIST_BYTES: u64 = 256 << 20;

#[derive(Clone, Debug, clap::Args)]
struct Words {
    /// Skip files that match PATTERN, as in rsync; the first matching pattern decides
    #[arg(long, value_name = "PATTERN", allow_hyphen_values = true)]
    exclude: Vec<OsString>,
    /// Copy files that match PATTERN, regardless of later patterns
    #[arg(long, value_name = "PATTERN", allow_hyphen_values = true, hide_short_help = true)]
    include: Vec<OsString>,
    /// Read --exclude patterns from FILE (- for stdin), one per line
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    exclude_from: Vec<OsString>,
    /// Read --include patterns from FILE (- for stdin), one per line
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    include_from: Vec<OsString>,
    /// Copy only the paths listed in FILE (- for stdin), one per line, with everything below them; paths are relative
    /// to the source directory or the share
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    files_from: Option<OsString>,
    /// Entries of those files end in a zero byte instead of a newline
    #[arg(long = "from0", short = '0', hide_short_help = true)]
    from0: bool,
    /// Skip files larger than SIZE: bytes, or with K, M, G (powers of 1024) or KB, MB, GB (powers of 1000)
    #[arg(long, value_name = "SIZE", value_parser = bytes, hide_short_help = true)]
    max_size: Option<u64>,
    /// Skip files smaller than SIZE
    #[arg(long, value_name = "SIZE", value_parser = bytes, hide_short_help = true)]
    min_size: Option<u64>,
    /// Do not cross file system boundaries: mount points are copied as empty directories
    #[arg(long, short = 'x', hide_short_help = true)]
    one_file_system: bool,
    /// Skip what the .gitignore files of the copied trees ignore; --delete keeps it
    #[arg(long, hide_short_help = true)]
    gitignore: bool,
}

/// Where rules are named.
#[derive(Clone, Copy, Debug)]
enum RulesIn {
    Word { includes: bool },
    List { includes: bool },
}

/// Contents of a file that an option names.
type Contents<'a> = dyn FnMut(&str, &OsStr) -> Result<Vec<u8>, CommandFailure> + 'a;

/// Which files a call chooses.
#[derive(Clone, Debug)]
pub(crate) struct ChoiceArgs {
    words: Words,
    /// In the order of the call: the first rule that matches decides.
    rules: Vec<(RulesIn, OsString)>,
}

/// The same, with the contents of the files that it names.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    pub(crate) filter: Filter,
    /// The names in --files-from.
    pub(crate) names: Option<Vec<OsString>>,
}

impl ChoiceArgs {
    /// Reads the files with rules and names.
    pub(crate) fn read(&self, command: &str) -> Result<Choice, CommandFailure> {
        self.read_by(command, &mut |option, file| contents(command, option, file))
    }

    /// As [`read`](Self::read); returns the contents of the files as well, in the order in which they were read.
    pub(crate) fn read_and_keep(&self, command: &str) -> Result<(Choice, Vec<Vec<u8>>), CommandFailure> {
        let mut all = Vec::new();
        let choice = self.read_by(command, &mut |option, file| {
            let text = contents(command, option, file)?;
            all.push(text.clone());
            Ok(text)
        })?;
        Ok((choice, all))
    }

    /// As [`read`](Self::read), of files whose contents came from another machine.
    pub(crate) fn read_from(&self, command: &str, contents: Vec<Vec<u8>>) -> Result<Choice, CommandFailure> {
        let mut contents = contents.into_iter();
        self.read_by(command, &mut |option, _| {
            contents
                .next()
                .ok_or_else(|| CommandFailure::Usage(format!("{command}: {option}: the contents are missing")))
        })
    }

    fn read_by(&self, command: &str, contents: &mut Contents<'_>) -> Result<Choice, CommandFailure> {
        let Words { files_from, from0, max_size, min_size, one_file_system, gitignore, .. } = &self.words;
        let mut list = RuleList::default();
        let wrong = |error: RuleError| {
            CommandFailure::usage(format!("{command}: {error}"), "name the files with --files-from instead")
        };
        for (kind, word) in &self.rules {
            match *kind {
                RulesIn::Word { includes } => list.add(word.as_bytes(), includes).map_err(wrong)?,
                RulesIn::List { includes } => {
                    let option = if includes { "--include-from" } else { "--exclude-from" };
                    let text = contents(option, word)?;
                    lines(&text, *from0).try_for_each(|line| list.add(line, includes)).map_err(wrong)?;
                }
            }
        }
        let names = match files_from {
            Some(file) => {
                let text = contents("--files-from", file)?;
                Some(lines(&text, *from0).map(below).collect())
            }
            None => None,
        };
        let filter = Filter {
            rules: list.compile().map_err(wrong)?,
            min_bytes: min_size.unwrap_or(0),
            max_bytes: *max_size,
            stays_on_file_system: *one_file_system,
            obeys_gitignore: *gitignore,
        };
        Ok(Choice { filter, names })
    }
}

impl Choice {
    /// Whether the call names no file at all.
    pub(crate) fn is_nothing(&self) -> bool {
        self.names.as_ref().is_some_and(Vec::is_empty)
    }
}

/// Whether there is one source, if names are relative to it. A source that ends in `/.` is what is in it, as for cp and
/// rsync: then no names mean all of them.
pub(crate) fn read_sources<S: AsRef<OsStr>>(
    command: &str,
    choice: &mut Choice,
    sources: &[S],
) -> Result<(), CommandFailure> {
    let (count, has_names) = (sources.len(), choice.names.is_some());
    if sources.iter().any(|source| source.as_ref().as_bytes().ends_with(b"/.")) {
        choice.names.get_or_insert_default();
    }
    if choice.names.is_none() || count == 1 {
        return Ok(());
    }
    let (what, hint) = if has_names {
        ("--files-from needs one source directory", "name the directory that the names in the file are relative to")
    } else {
        ("the content of a directory (DIR/.) is copied by itself", "copy the others with a second call")
    };
    Err(CommandFailure::usage(format!("{command}: {what}, and {count} were given"), hint))
}

impl FromArgMatches for ChoiceArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let words = Words::from_arg_matches(matches)?;
        let mut rules = Vec::new();
        for (id, kind, values) in [
            ("include", RulesIn::Word { includes: true }, &words.include),
            ("exclude", RulesIn::Word { includes: false }, &words.exclude),
            ("include_from", RulesIn::List { includes: true }, &words.include_from),
            ("exclude_from", RulesIn::List { includes: false }, &words.exclude_from),
        ] {
            let places = matches.indices_of(id).into_iter().flatten();
            rules.extend(places.zip(values).map(|(place, value)| (place, kind, value.clone())));
        }
        rules.sort_by_key(|(place, ..)| *place);
        Ok(Self { words, rules: rules.into_iter().map(|(_, kind, value)| (kind, value)).collect() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl clap::Args for ChoiceArgs {
    fn augment_args(command: clap::Command) -> clap::Command {
        Words::augment_args(command)
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Words::augment_args_for_update(command)
    }
}

fn contents(command: &str, option: &str, file: &OsStr) -> Result<Vec<u8>, CommandFailure> {
    let name = if file == "-" { "stdin".to_owned() } else { escaped(file.as_bytes()) };
    let read = || {
        let mut text = Vec::new();
        let source: &mut dyn Read = if file == "-" { &mut io::stdin().lock() } else { &mut File::open(file)? };
        source.take(MAX_LIST_BYTES + 1).read_to_end(&mut text)?;
        if text.len() as u64 > MAX_LIST_BYTES {
            return Err(io::Error::other(format!("larger than {} MiB", MAX_LIST_BYTES >> 20)));
        }
        Ok(text)
    };
    read().map_err(|error: io::Error| {
        let hint = format!("{option} takes a file with one entry a line, or - for stdin");
        CommandFailure::usage(format!("{command}: {name}: {}", plain(&error)), &hint)
    })
}

/// The lines of a list, without empty ones and comments. As in rsync, a carriage return also ends a line.
fn lines(text: &[u8], from0: bool) -> impl Iterator<Item = &[u8]> {
    let is_end = move |byte: &u8| if from0 { *byte == 0 } else { matches!(byte, b'\n' | b'\r') };
    text.split(is_end).filter(|line| !matches!(line.first(), None | Some(b';' | b'#')))
}

/// A name as rsync reads it: a leading slash means nothing, and `..` leads no higher than the top.
fn below(line: &[u8]) -> OsString {
    let mut names: Vec<&[u8]> = Vec::new();
    for name in line.split(|byte| *byte == b'/') {
        match name {
            b"" | b"." => {}
            b".." => _ = names.pop(),
            name => names.push(name),
        }
    }
    OsString::from_vec(names.join(&b'/'))
}

/// A size as rsync writes it: `1.5K`, `100MB`, `2GiB`, `1M-1`.
fn bytes(text: &str) -> Result<u64, String> {
    let wrong = || format!("\"{}\" is not a size: use the form 4096, 10M, 1.5G or 100MB", text.escape_debug());
    let (number, offset) = match text.strip_suffix("-1") {
        Some(number) => (number, -1),
        None => text.strip_suffix("+1").map_or((text, 0), |number| (number, 1)),
    };
    let digits = number.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
    let (number, unit) = number.split_at(digits);
    let unit = unit.trim_start().to_ascii_lowercase();
    let (letter, base) = match unit.strip_suffix("ib") {
        Some(letter) => (letter, 1024_f64),
        None => unit.strip_suffix('b').map_or((unit.as_str(), 1024.0), |letter| (letter, 1000.0)),
    };
    let power = ["", "k", "m", "g", "t", "p"].iter().position(|known| *known == letter).ok_or_else(wrong)?;
    let number: f64 = number.parse().map_err(|_| wrong())?;
    let bytes = number * base.powi(i32::try_from(power).map_err(|_| wrong())?);
    // 2^63 is the bound of rsync.
    if bytes >= 2_f64.powi(63) {
        return Err(format!("\"{}\" is too large", text.escape_debug()));
    }
    (bytes as u64).checked_add_signed(offset).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes__as_rsync_reads_them() {
        for (text, expected) in [
            ("0", 0),
            ("4096", 4096),
            ("1K", 1024),
            ("1kb", 1000),
            ("1KiB", 1024),
            ("1.5m", 1_572_864),
            ("1.5 MB", 1_500_000),
            ("1.5mb-1", 1_499_999),
            ("2g+1", 2_147_483_649),
            ("1p", 1 << 50),
            ("12b", 12),
        ] {
            assert_eq!(bytes(text), Ok(expected), "{text}");
        }
        for wrong in ["", "x", "1x", "-1", "0-1", "1m+2", "1.2.3", "99999999999P", "1 M B", "k", "nan"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn lines__have_comments_and_no_empty_ones() {
        let read = |text: &'static [u8], from0| lines(text, from0).collect::<Vec<_>>();
        assert_eq!(read(b"a\n\n#b\n;c\r\n d \n- e", false), [&b"a"[..], b" d ", b"- e"]);
        assert_eq!(read(b"a\nb\0\0#c\0d", true), [&b"a\nb"[..], b"d"]);
    }

    #[test]
    fn below__leads_no_higher_than_the_top() {
        for (line, name) in [("/a//b/", "a/b"), ("../../x", "x"), ("a/../b", "b"), ("./", ""), ("..", "")] {
            assert_eq!(below(line.as_bytes()), name, "{line}");
        }
    }
}
