//! Rules that include and exclude paths: the first that matches decides.

use std::fmt;
use std::sync::Arc;

use regex::bytes::{RegexSet, RegexSetBuilder};
use thiserror::Error;

use super::pattern::expression;
use crate::format::manifest::MAX_PATH_BYTES;

/// Rules at most. rsync has no bound; lists of users have hundreds.
const MAX_RULES: usize = 10_000;
/// Bytes of all patterns at most.
const MAX_RULES_BYTES: usize = 1 << 20;
/// Memory of the compiled rules, and again of the automaton that is built while they are used, in bytes.
const MAX_COMPILED_BYTES: usize = 16 << 20;

/// A rule: a pattern, and whether what it matches is included.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    pattern: Vec<u8>,
    includes: bool,
}

/// Rules in the making, in their order.
///
/// The words are those of rsync's `--include` and `--exclude`: a line that starts with `+ ` or `- ` is an include or an
/// exclude rule wherever it stands, and `!` removes all rules before it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleList {
    rules: Vec<Rule>,
    /// Of their patterns.
    bytes: usize,
}

/// Rules that can be asked.
#[derive(Clone, Default)]
pub struct Rules {
    list: RuleList,
    /// Nothing without rules that match a path.
    compiled: Option<Arc<Compiled>>,
}

struct Compiled {
    set: RegexSet,
    /// Of each expression.
    includes: Vec<bool>,
}

/// Why a rule is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RuleError {
    /// Its pattern is longer than a path.
    #[error("a pattern of {0} bytes, the maximum is {MAX_PATH_BYTES}")]
    Long(usize),
    /// Too many rules.
    #[error("more than {MAX_RULES} rules")]
    Many,
    /// Together they are longer than they may be.
    #[error("more than {} MiB of rules", MAX_RULES_BYTES >> 20)]
    Total,
    /// The `.gitignore` files that apply to one path are too large.
    #[error("the .gitignore files on its path have more than {kib} KiB")]
    Ignored {
        /// The limit.
        kib: usize,
    },
    /// Too many of them apply to one path.
    #[error("more than {0} .gitignore files on its path")]
    Nested(usize),
    /// Together they need too much memory.
    #[error("the rules need more than {} MiB when compiled", MAX_COMPILED_BYTES >> 20)]
    Complex,
}

impl RuleList {
    /// Adds what a call names in `--include` or `--exclude`.
    pub fn add(&mut self, word: &[u8], includes: bool) -> Result<(), RuleError> {
        if word == b"!" {
            *self = Self::default();
            return Ok(());
        }
        let (pattern, includes) = match word {
            [b'+', b' ', rest @ ..] => (rest, true),
            [b'-', b' ', rest @ ..] => (rest, false),
            word => (word, includes),
        };
        if pattern.is_empty() { Ok(()) } else { self.push(pattern, includes) }
    }

    /// Adds a rule with this pattern, whatever it starts with.
    pub(crate) fn push(&mut self, pattern: &[u8], includes: bool) -> Result<(), RuleError> {
        if pattern.len() > MAX_PATH_BYTES {
            return Err(RuleError::Long(pattern.len()));
        }
        if self.rules.len() == MAX_RULES {
            return Err(RuleError::Many);
        }
        if self.bytes + pattern.len() > MAX_RULES_BYTES {
            return Err(RuleError::Total);
        }
        self.bytes += pattern.len();
        self.rules.push(Rule { pattern: pattern.to_vec(), includes });
        Ok(())
    }

    /// Bytes that it takes in memory.
    pub(crate) fn memory_bytes(&self) -> u64 {
        (self.bytes + self.rules.capacity() * size_of::<Rule>()) as u64
    }

    /// Makes them ready to be asked.
    pub fn compile(self) -> Result<Rules, RuleError> {
        let expressions = self.rules.iter().filter_map(|rule| Some((expression(&rule.pattern)?, rule.includes)));
        let (texts, includes): (Vec<_>, Vec<_>) = expressions.unzip();
        if texts.is_empty() {
            return Ok(Rules { list: self, compiled: None });
        }
        let mut set = RegexSetBuilder::new(texts);
        let set = set.unicode(false).size_limit(MAX_COMPILED_BYTES).dfa_size_limit(MAX_COMPILED_BYTES).build();
        let set = set.map_err(|_| RuleError::Complex)?;
        Ok(Rules { list: self, compiled: Some(Arc::new(Compiled { set, includes })) })
    }
}

impl Rules {
    /// The most memory that compiled rules take, bytes.
    pub(crate) const MAX_BYTES: u64 = 2 * MAX_COMPILED_BYTES as u64;

    /// Patterns, and whether they include what they match.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], bool)> {
        self.list.rules.iter().map(|rule| (rule.pattern.as_slice(), rule.includes))
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.compiled.is_none()
    }

    /// Whether a path is included, as far as its own name and place decide: what lies in an excluded directory is never
    /// asked for.
    pub(crate) fn includes(&self, path: &[u8], is_directory: bool) -> bool {
        let Some(compiled) = &self.compiled else { return true };
        let mut text = Vec::with_capacity(path.len() + 2);
        text.push(b'/');
        text.extend_from_slice(path);
        if is_directory {
            text.push(0);
        }
        compiled.set.matches(&text).iter().next().is_none_or(|first| compiled.includes[first])
    }
}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.list.fmt(f)
    }
}

impl PartialEq for Rules {
    fn eq(&self, other: &Self) -> bool {
        self.list == other.list
    }
}
