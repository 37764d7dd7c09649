//! Text in lines that a terminal has room for.

use std::fmt::Write as _;

/// Columns of text.
const WIDTH: usize = 80;

/// Words as lines of [`WIDTH`] columns.
pub(super) fn paragraph(words: &str) -> String {
    let mut text = String::new();
    wrapped(&mut text, "", 0, words);
    text
}

/// Adds words in lines of [`WIDTH`] columns: `first` stands before the first, as many blanks as it is wide before the
/// others.
pub(super) fn wrapped(text: &mut String, first: &str, indent: usize, words: &str) {
    text.push_str(first);
    let mut column = indent;
    for word in words.split_whitespace() {
        let wide = word.chars().count();
        if column > indent && column + 1 + wide > WIDTH {
            let _ = write!(text, "\n{}", " ".repeat(indent));
            column = indent;
        } else if column > indent {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += wide;
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapped__keeps_the_margin() {
        let mut text = String::new();
        wrapped(&mut text, "ab  ", 4, &"word ".repeat(20));
        // 4 + 15 words of 4 + 14 blanks between = 78 columns.
        assert_eq!(text.lines().map(|line| line.chars().count()).collect::<Vec<_>>(), [78, 4 + 24]);
        assert!(text.lines().nth(1).unwrap().starts_with("    word"));
    }
}
