//! `docs/explanation/threats.md` says which test shows each bound. A row that names none, or one that there is not, fails here.

#![allow(non_snake_case)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn threats__every_row_names_tests_that_there_are() {
    let page = fs::read_to_string(root().join("docs/explanation/threats.md")).expect("the page is in the tree");
    let tests = tests_below(&root().join("crates"));
    let mut rows = 0;
    let mut wrong = Vec::new();
    for (number, row) in (1..).zip(page.lines()).filter(|(_, line)| is_row(line)) {
        rows += 1;
        let named = names(row.trim_end_matches('|').rsplit('|').next().unwrap_or_default());
        if named.is_empty() {
            wrong.push(format!("line {number} names no test"));
        }
        let missing = named.into_iter().filter(|name| !tests.contains(name));
        wrong.extend(missing.map(|name| format!("line {number}: there is no test {name}")));
    }
    assert!(rows > 60, "the page has its table: {rows} rows");
    assert!(wrong.is_empty(), "docs/explanation/threats.md: {wrong:#?}");
}

#[test]
fn names__are_the_code_words_of_a_cell() {
    assert_eq!(names(" `a__b`, and `c__d` "), ["a__b", "c__d"]);
    assert!(names("in words").is_empty());
}

/// A row of a table of threats: they have four cells, and their heads and rules begin otherwise.
fn is_row(line: &str) -> bool {
    line.starts_with("| ") && !line.starts_with("| who |") && line.matches(" | ").count() >= 3
}

/// What stands between back quotes.
fn names(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The names of all functions that `#[test]` stands before, in all files of Rust below a directory.
fn tests_below(directory: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(directory).expect("a directory of the tree").map(|entry| entry.expect("an entry").path())
    {
        if entry.is_dir() {
            found.extend(tests_below(&entry));
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            found.extend(tests_in(&fs::read_to_string(&entry).expect("a file of the tree")));
        }
    }
    found
}

fn tests_in(text: &str) -> BTreeSet<String> {
    let mut is_test = false;
    let mut found = BTreeSet::new();
    for line in text.lines().map(str::trim_start) {
        if line.starts_with("#[test]") {
            is_test = true;
        } else if let Some(rest) = line.strip_prefix("fn ").filter(|_| is_test) {
            found.extend(rest.split('(').next().map(str::to_owned));
            is_test = false;
        }
    }
    found
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
