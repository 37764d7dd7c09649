//! Tests of the project itself: which crate may use which, and that the documents state facts.
//!
//! They check facts (a named test exists, a link resolves, a type is declared), never the layout of a page.

#![cfg(test)]
#![allow(non_snake_case)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

mod crates;
mod cycles;
mod links;
mod names;
mod schemes;
mod walks;

/// The root of the checkout.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All files below a directory with one of these extensions, without build output and hidden directories.
fn files_below(directory: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut paths: Vec<PathBuf> =
        fs::read_dir(directory).into_iter().flatten().map(|entry| entry.expect("a directory entry").path()).collect();
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            let is_output = ["target", "out", "report", "report-wire", "site", "node_modules"].contains(&name.as_str());
            if !is_output && !name.starts_with('.') {
                found.extend(files_below(&path, extensions));
            }
        } else if path.extension().is_some_and(|extension| extensions.iter().any(|wanted| extension == *wanted)) {
            found.push(path);
        }
    }
    found
}

/// Every Markdown page of the project with its path relative to the root.
fn pages() -> Vec<(PathBuf, String)> {
    let pages = files_below(&root(), &["md"]);
    assert!(pages.len() > 10, "only {} pages", pages.len());
    pages
        .into_iter()
        .map(|path| {
            let text = fs::read_to_string(&path).expect("a page of the tree");
            (path.strip_prefix(root()).expect("found below the root").to_owned(), text)
        })
        .collect()
}

/// The one page of this name, wherever it is in `docs/`.
fn page(name: &str) -> String {
    let mut found: Vec<String> =
        pages().into_iter().filter(|(path, _)| path.starts_with("docs") && path.ends_with(name)).map(|p| p.1).collect();
    assert_eq!(found.len(), 1, "docs/ has one page {name}");
    found.remove(0)
}

/// What is between single back quotes in a text, outside of code blocks.
fn code_words(text: &str) -> BTreeSet<String> {
    let mut in_block = false;
    let mut words = BTreeSet::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
        } else if !in_block {
            words.extend(line.split('`').skip(1).step_by(2).map(str::to_owned));
        }
    }
    words
}

#[test]
fn code_words__are_between_back_quotes_outside_of_blocks() {
    let text = "a `b__c` and `d`\n```sh\n`e`\n```\n`f`";
    assert_eq!(code_words(text), ["b__c", "d", "f"].map(String::from).into());
}
