//! `docs/reference/glossary.md` says which type stands for a word, and in which crate. A type that is not there fails here.

#![allow(non_snake_case)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn glossary__every_type_is_in_the_crate_that_it_names() {
    let page = fs::read_to_string(root().join("docs/reference/glossary.md")).expect("the page is in the tree");
    let (mut rows, mut wrong) = (0, Vec::new());
    for (number, row) in (1..).zip(page.lines()).filter(|(_, line)| is_row(line)) {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let &[_, _, ours, room, what] = cells.as_slice() else {
            wrong.push(format!("line {number} has {} cells, not five", cells.len()));
            continue;
        };
        rows += 1;
        let types: Vec<&str> = ours.split('`').skip(1).step_by(2).collect();
        if types.is_empty() || what.is_empty() {
            wrong.push(format!("line {number} names no type, or says nothing of it"));
        }
        let there = types_below(&root().join("crates").join(room).join("src"));
        let missing = types.iter().filter(|name| !there.contains(**name));
        wrong.extend(missing.map(|name| format!("line {number}: there is no type {name} in crates/{room}")));
    }
    assert!(rows > 40, "the page has its tables: {rows} rows");
    assert!(wrong.is_empty(), "docs/reference/glossary.md: {wrong:#?}");
}

#[test]
fn types_in__are_what_is_declared() {
    let text = "pub struct Run {\n    pub(crate) enum Kind<T> {\ntrait Rule: Send {}\n// struct Gone\npub type Done = ();\nlet structure = 1;";
    assert_eq!(types_in(text), ["Done", "Kind", "Rule", "Run"].map(String::from).into());
}

/// A row of a table of words: not its head, nor the rule below that.
fn is_row(line: &str) -> bool {
    line.starts_with("| ") && !line.starts_with("| the papers |")
}

/// The names of all types that are declared in files of Rust below a directory; none where there is no directory.
fn types_below(directory: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for path in fs::read_dir(directory).into_iter().flatten().map(|entry| entry.expect("an entry").path()) {
        if path.is_dir() {
            found.extend(types_below(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.extend(types_in(&fs::read_to_string(&path).expect("a file of the tree")));
        }
    }
    found
}

fn types_in(text: &str) -> BTreeSet<String> {
    let declared = |line: &str| {
        let mut words = line.split_whitespace().skip_while(|word| word.starts_with("pub"));
        matches!(words.next()?, "struct" | "enum" | "trait" | "type").then_some(())?;
        let name = words.next()?.split(|c: char| !c.is_alphanumeric() && c != '_').next()?;
        Some(name.to_owned())
    };
    text.lines().filter_map(|line| declared(line.trim_start())).collect()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
