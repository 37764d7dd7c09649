//! Links in documents, and pages that the code names.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::{files_below, pages, root};

#[test]
fn pages__every_relative_link_resolves() {
    let mut wrong = Vec::new();
    for (path, text) in pages() {
        let folder = root().join(&path).parent().expect("a page is in a directory").to_owned();
        for target in links(&text) {
            let (file, anchor) = target.split_once('#').unwrap_or((target.as_str(), ""));
            let there = if file.is_empty() { root().join(&path) } else { folder.join(file) };
            if !there.exists() {
                wrong.push(format!("{}: {target}: there is no such file", path.display()));
            } else if !anchor.is_empty() && there.extension().is_some_and(|extension| extension == "md") {
                let headings = anchors(&fs::read_to_string(&there).expect("a page of the tree"));
                if !headings.contains(anchor) {
                    wrong.push(format!("{}: {target}: there is no such heading", path.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn code__names_only_pages_that_exist() {
    let mut wrong = Vec::new();
    let mut files = Vec::new();
    for folder in ["crates", "python", "examples", "etc", "packaging", "papers", "scenarios"] {
        files.extend(files_below(&root().join(folder), &["rs", "py", "toml", "sh", "c", "h", "service", "md", "ini"]));
    }
    for path in files {
        let text = fs::read_to_string(&path).unwrap_or_default();
        for named in text.split(|c: char| !(c.is_alphanumeric() || "/._-".contains(c))).filter(|word| is_page(word)) {
            if !root().join(named).exists() {
                wrong.push(format!("{}: {named}", path.strip_prefix(root()).expect("below the root").display()));
            }
        }
    }
    assert!(wrong.is_empty(), "pages that do not exist: {wrong:#?}");
}

#[test]
fn links__are_relative_targets_outside_of_code() {
    let text = "[a](b.md) ![p](c.svg#x) [w](https://d) `[e](f)`\n```\n[g](h.md)\n```\n[i](#j)";
    assert_eq!(links(text), ["b.md", "c.svg#x", "#j"]);
}

#[test]
fn anchors__are_as_hosts_of_markdown_make_them() {
    let text = "# The walk of a `packet`\n## Exit codes: 0, 1\n### Twice\n### Twice";
    assert_eq!(anchors(text), ["the-walk-of-a-packet", "exit-codes-0-1", "twice", "twice-1"].map(String::from).into());
}

fn is_page(word: &str) -> bool {
    word.starts_with("docs/") && Path::new(word).extension().is_some_and(|extension| extension == "md")
}

/// The targets of links and pictures that are not addresses, in order.
fn links(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut in_block = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
            continue;
        }
        if in_block {
            continue;
        }
        let prose: String = line.split('`').step_by(2).collect();
        for rest in prose.split("](").skip(1) {
            let target = rest.split([')', ' ']).next().unwrap_or_default();
            if !target.contains("://") && !target.starts_with("mailto:") && !target.is_empty() {
                found.push(target.to_owned());
            }
        }
    }
    found
}

/// The anchors of a page's headings.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut in_block = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
        }
        if in_block || !line.starts_with('#') {
            continue;
        }
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        let slug: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let same = (1..).map(|number| format!("{slug}-{number}"));
        let name = std::iter::once(slug.clone()).chain(same).find(|name| !found.contains(name));
        found.extend(name);
    }
    found
}
