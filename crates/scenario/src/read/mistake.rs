//! A mistake, before it is known which file it is in.

use std::fmt::Display;

use super::tree::Place;

/// What is wrong, where, and how to mend it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Mistake {
    pub(crate) place: Place,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl Mistake {
    pub(crate) fn new(place: Place, message: impl Into<String>) -> Self {
        Self { place, message: message.into(), hint: None }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn maybe_hint(mut self, hint: Option<String>) -> Self {
        self.hint = hint.or(self.hint);
        self
    }
}

/// The outcome of reading a part of a file.
pub(crate) type Reading<T> = Result<T, Mistake>;

/// "did you mean ...?", if one of the words is close to what was written; else the words themselves if they are few.
pub(crate) fn did_you_mean<'a>(written: &str, words: impl IntoIterator<Item = &'a str>) -> Option<String> {
    const FEW: usize = 24;
    let (mut best, mut all, mut count) = (None, String::new(), 0_usize);
    for word in words {
        count += 1;
        if count <= FEW {
            if count > 1 {
                all.push_str(", ");
            }
            all.push_str(word);
        }
        // A comparison costs the product of the lengths: long rubbish is like nothing.
        if written.len() <= 100 && count <= 100_000 {
            let likeness = strsim::damerau_levenshtein(&written.to_lowercase(), &word.to_lowercase());
            if likeness <= (written.chars().count().max(word.chars().count()) / 3).clamp(1, 4)
                && best.is_none_or(|(least, _)| likeness < least)
            {
                best = Some((likeness, word));
            }
        }
    }
    match best {
        Some((_, word)) => Some(format!("did you mean \"{word}\"?")),
        None if (1..=FEW).contains(&count) => Some(format!("known: {all}")),
        None => None,
    }
}

/// A value in a message: in quotes, escaped, and cut where it is long.
pub(crate) fn quoted(text: impl Display) -> String {
    const MOST: usize = 60;
    let text = text.to_string();
    let mut head: String = text.chars().take(MOST).flat_map(char::escape_debug).collect();
    if text.chars().nth(MOST).is_some() {
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
        assert_eq!(did_you_mean("capcity", keys).as_deref(), Some("did you mean \"capacity\"?"));
        assert_eq!(did_you_mean("Queue", keys).as_deref(), Some("did you mean \"queue\"?"));
        assert_eq!(did_you_mean("bandwidth", keys).as_deref(), Some("known: name, capacity, queue"));
        assert_eq!(did_you_mean("x", []), None);
    }

    #[test]
    fn quoted__cuts_and_escapes() {
        assert_eq!(quoted("a\nb"), r#""a\nb""#);
        assert_eq!(quoted("x".repeat(99)).chars().count(), 63); // 60, the ellipsis and two quotes
    }
}
