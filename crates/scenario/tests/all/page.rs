//! `docs/reference/scenario-files.md` is correct: every example on it builds, and every key of the format is on it.
#![allow(non_snake_case)]

use fairwave_scenario::{Document, Selection};

const PAGE: &str = include_str!("../../../../docs/reference/scenario-files.md");

/// The TOML blocks with the line of their start.
fn blocks() -> Vec<(usize, String)> {
    let (mut blocks, mut open) = (Vec::new(), None);
    for (number, line) in PAGE.lines().enumerate() {
        match (&mut open, line) {
            (None, "```toml") => open = Some((number + 2, String::new())),
            (Some(_), "```") => blocks.extend(open.take()),
            (Some((_, text)), line) => {
                text.push_str(line);
                text.push('\n');
            }
            (None, _) => {}
        }
    }
    blocks
}

#[test]
fn examples__build_separately_or_after_the_first() {
    let blocks = blocks();
    assert!(blocks.len() >= 6, "only {} examples", blocks.len());
    for (line, text) in &blocks {
        let text = if text.starts_with("name =") { text.clone() } else { blocks[0].1.clone() + text };
        let file = format!("the example on line {line}");
        let document = Document::parse(&file, text.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
        let shipped = include_str!("../../../../scenarios/web-search.csv");
        let document = document.with_files(|name| match name {
            "web-search.csv" => Ok(shipped.into()),
            _ => Err("no such file".into()),
        });
        for case in document.cases(&Selection::default()).unwrap_or_else(|error| panic!("{error}")) {
            document.build(&case).unwrap_or_else(|error| panic!("{error}"));
        }
    }
}
