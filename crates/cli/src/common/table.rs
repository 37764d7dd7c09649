//! Tables of text in columns.

use std::fmt::Write as _;

use crate::common::terminal::{BOLD, paint};

/// A table under construction.
pub(crate) struct TextTable {
    columns: Vec<TableColumn>,
    rows: Vec<Vec<String>>,
}

struct TableColumn {
    head: String,
    is_number: bool,
}

impl TextTable {
    /// Columns by their heads; a head that starts with ">" is aligned to the right, as numbers are.
    pub(crate) fn new(heads: &[&'static str]) -> Self {
        Self { columns: heads.iter().map(|head| TableColumn::of(head)).collect(), rows: Vec::new() }
    }

    /// Columns of the caller's words, which are not numbers, followed by others by their heads.
    pub(crate) fn of(words: Vec<String>, heads: &[&'static str], more: &[&'static str]) -> Self {
        let words = words.into_iter().map(|head| TableColumn { head, is_number: false });
        let columns = words.chain(heads.iter().chain(more).map(|head| TableColumn::of(head))).collect();
        Self { columns, rows: Vec::new() }
    }

    /// Adds a row; missing cells at its end stay empty.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// The text, each line with this many blanks in front.
    pub(crate) fn render(&self, indent: usize) -> String {
        let heads: Vec<String> = self.columns.iter().map(|column| column.head.clone()).collect();
        let width = |n: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(n)).chain([&heads[n]]);
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let mut text = String::new();
        for (n, row) in std::iter::once(&heads).chain(&self.rows).enumerate() {
            let mut line = " ".repeat(indent);
            for (cell, (column, width)) in row.iter().zip(self.columns.iter().zip(&widths)) {
                if line.len() > indent {
                    line += "  ";
                }
                let _ = if column.is_number { write!(line, "{cell:>width$}") } else { write!(line, "{cell:<width$}") };
            }
            let line = line.trim_end();
            text += &if n == 0 { paint(BOLD, line) } else { line.to_owned() };
            text.push('\n');
        }
        text
    }
}

impl TableColumn {
    fn of(head: &str) -> Self {
        match head.strip_prefix('>') {
            Some(head) => Self { head: head.to_owned(), is_number: true },
            None => Self { head: head.to_owned(), is_number: false },
        }
    }
}

/// A text of at most this many characters, with dots for the omitted ones.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(1)).chain(['\u{2026}']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn render__numbers_stand_to_the_right() {
        let mut table = TextTable::new(&["name", ">rate"]);
        table.row(["a".into(), "1".into()]);
        table.row(["session".into(), "10 Mb/s".into()]);
        let plain = table.render(2).replace(&BOLD.render().to_string(), "");
        let plain = plain.replace(&BOLD.render_reset().to_string(), "");
        assert_eq!(plain, "  name        rate\n  a              1\n  session  10 Mb/s\n");
    }

    #[test]
    fn shortened__marks_what_is_missing() {
        assert_eq!(shortened("abcdef", 4), "abc\u{2026}");
        assert_eq!(shortened("abcd", 4), "abcd");
    }
}
