//! A mistake, before its file is known.

use std::fmt::Display;

use super::position::Position;

/// A mistake: the problem, its place, and the remedy.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Mistake {
    pub(crate) place: Position,
    pub(crate) message: String,
    pub(crate) hint: String,
}

impl Mistake {
    pub(crate) fn new(place: Position, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { place, message: message.into(), hint: hint.into() }
    }
}

/// Result of reading a part of a file.
pub(crate) type ReadResult<T> = Result<T, Mistake>;

/// The hint for an unknown word: a similar known one, else all of them if they are few.
pub(crate) fn did_you_mean<'a>(written: &str, words: impl IntoIterator<Item = &'a str>) -> String {
    /// Maximum number of words that are listed.
    const FEW: usize = 24;
    let (mut few, mut count) = (Vec::new(), 0_usize);
    let counted = words.into_iter().inspect(|word| {
        count += 1;
        if count <= FEW {
            few.push(*word);
        }
    });
    match near(written, counted) {
        Some(word) => format!("did you mean \"{word}\"?"),
        None if count == 0 => "no names are defined".to_owned(),
        None if count <= FEW => format!("known: {}", few.join(", ")),
        None => format!("none of the {count} known names is close to it"),
    }
}

/// A known word that is similar to `written`, if there is one.
pub(crate) fn near<'a>(written: &str, words: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    /// The cost of a comparison is the product of the lengths: long words are not compared.
    const MAX_LETTERS: usize = 100;
    /// Maximum number of words that are compared.
    const MAX_WORDS: usize = 100_000;
    let lower = written.to_lowercase();
    let mut best = None;
    for (n, word) in words.enumerate() {
        if written.len() > MAX_LETTERS || word.len() > MAX_LETTERS || n >= MAX_WORDS {
            continue;
        }
        let known = word.to_lowercase();
        let distance = strsim::damerau_levenshtein(&lower, &known);
        let letters = lower.chars().count().max(known.chars().count());
        // A short word with another first letter is another word: "bbr" is not a misspelt "cbr".
        let is_slip = letters > 3 || lower.chars().next() == known.chars().next();
        let is_close = distance <= (letters / 3).min(4) || (distance == 1 && letters == 2);
        if is_slip && is_close && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, word));
        }
    }
    best.map(|(_, word)| word)
}

/// A value in a message: quoted, escaped, and truncated if it is long.
pub(crate) fn quoted(text: impl Display) -> String {
    const MAX_CHARS: usize = 60;
    let text = text.to_string();
    let mut head: String = text.chars().take(MAX_CHARS).flat_map(char::escape_debug).collect();
    if text.chars().nth(MAX_CHARS).is_some() {
        head.push('…');
    }
    format!("\"{head}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn did_you_mean__takes_the_nearest_word() {
        let keys = ["name", "capacity", "queue"];
        assert_eq!(did_you_mean("capcity", keys), "did you mean \"capacity\"?");
        assert_eq!(did_you_mean("Queue", keys), "did you mean \"queue\"?");
        assert_eq!(did_you_mean("bandwidth", keys), "known: name, capacity, queue");
        assert_eq!(did_you_mean("b", ["a"]), "known: a");
        assert_eq!(did_you_mean("s3", ["s1"]), "did you mean \"s1\"?");
        assert_eq!(did_you_mean("bbr", ["cbr"]), "known: cbr");
        assert_eq!(did_you_mean("cbt", ["cbr"]), "did you mean \"cbr\"?");
        assert_eq!(did_you_mean("x", []), "no names are defined");
    }

    #[test]
    fn quoted__cuts_and_escapes() {
        assert_eq!(quoted("a\nb"), r#""a\nb""#);
        assert_eq!(quoted("x".repeat(99)).chars().count(), 63); // 60, the ellipsis and two quotes
    }
}
