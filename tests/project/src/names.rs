//! Names in documents: tests that pages cite as evidence, and types of the glossary.

use std::collections::BTreeSet;
use std::fs;

use super::{code_words, files_below, page, pages, root};

#[test]
fn pages__every_named_test_exists() {
    let tests = tests();
    let mut wrong = Vec::new();
    for (path, text) in pages() {
        let missing = code_words(&text).into_iter().filter(|word| is_test_name(word) && !tests.contains(word));
        wrong.extend(missing.map(|name| format!("{}: there is no test {name}", path.display())));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn threats__every_row_names_a_test() {
    let page = page("threats.md");
    let tests = tests();
    let lines: Vec<&str> = page.lines().collect();
    let mut rows = 0;
    let mut wrong = Vec::new();
    for (number, line) in lines.iter().enumerate().filter(|(_, line)| line.starts_with('|')) {
        let is_head = lines.get(number + 1).is_some_and(|next| next.starts_with("|-") || next.starts_with("| -"));
        let is_rule = line.starts_with("|-") || line.starts_with("| -");
        if is_head || is_rule {
            continue;
        }
        rows += 1;
        if !code_words(line).iter().any(|word| tests.contains(word)) {
            wrong.push(format!("line {}: {line}", number + 1));
        }
    }
    assert!(rows > 60, "only {rows} rows");
    assert!(wrong.is_empty(), "threats.md, rows without a test: {wrong:#?}");
}

#[test]
fn glossary__every_type_is_declared() {
    let types = types();
    let is_type = |word: &String| {
        word.starts_with(|c: char| c.is_ascii_uppercase())
            && word.chars().all(char::is_alphanumeric)
            && word.contains(|c: char| c.is_ascii_lowercase())
    };
    let named: BTreeSet<String> = code_words(&page("glossary.md")).into_iter().filter(is_type).collect();
    assert!(named.len() > 20, "only {} types", named.len());
    let missing: Vec<&String> = named.iter().filter(|name| !types.contains(*name)).collect();
    assert!(missing.is_empty(), "glossary.md names types that no crate declares: {missing:?}");
}

#[test]
fn is_test_name__has_two_underscores_between_words() {
    assert!(is_test_name("allocate__keeps_rate") && is_test_name("test_guide__shows"));
    for word in ["__init__", "a_b", "a__B", "worlds__", "crate::a__b"] {
        assert!(!is_test_name(word), "{word}");
    }
}

fn is_test_name(word: &str) -> bool {
    let is_part = |part: &str| !part.is_empty() && part.chars().all(|c| matches!(c, 'a'..='z' | '0'..='9' | '_'));
    word.split_once("__").is_some_and(|(function, case)| is_part(function) && is_part(case) && !case.ends_with("__"))
}

/// The names of all tests: functions of Rust that `#[test]` is before, and Python's `test_...`.
fn tests() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for path in files_below(&root(), &["rs"]) {
        let text = fs::read_to_string(&path).expect("a file of the tree");
        let mut is_test = false;
        for line in text.lines().map(str::trim_start) {
            // Tests that a macro declares: `name: ...` stands in its own file, as `fn`.
            if line.starts_with("#[test]") {
                is_test = true;
            } else if let Some(rest) = line.strip_prefix("fn ").filter(|_| is_test) {
                found.extend(rest.split('(').next().map(str::to_owned));
                is_test = false;
            }
        }
    }
    for path in files_below(&root().join("python"), &["py"]) {
        let text = fs::read_to_string(&path).expect("a file of the tree");
        let names = text.lines().filter_map(|line| line.trim_start().strip_prefix("def "));
        found.extend(
            names.filter(|name| name.starts_with("test_")).filter_map(|name| Some(name.split_once('(')?.0.into())),
        );
    }
    found
}

/// The names of all types that the crates declare.
fn types() -> BTreeSet<String> {
    let declared = |line: &str| {
        let mut words = line.split_whitespace().skip_while(|word| word.starts_with("pub"));
        matches!(words.next()?, "struct" | "enum" | "trait" | "type").then_some(())?;
        Some(words.next()?.split(|c: char| !c.is_alphanumeric() && c != '_').next()?.to_owned())
    };
    let mut found = BTreeSet::new();
    for path in files_below(&root().join("crates"), &["rs"]) {
        let text = fs::read_to_string(&path).expect("a file of the tree");
        found.extend(text.lines().filter_map(|line| declared(line.trim_start())));
    }
    found
}
