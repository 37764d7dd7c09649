//! What the pages say of schemes, against the list of schemes: names, defaults, header bytes. A scheme that a page
//! forgets, or that there is no more, fails here.

#![allow(non_snake_case)]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use fairwave_schemes::scheme::{Model, Scheme, SchemeKind, find, schemes};

#[test]
fn packet_lab__names_the_schemes_that_the_packet_model_runs() {
    let modelled = section("docs/packet-lab.md", "## What is modelled", "\n## GTP");
    // The items that begin with names; tables below them name schemes, too.
    let items: Vec<&str> = modelled.lines().filter(|line| line.starts_with("- `")).collect();
    assert_eq!(schemes_in(&items.join("\n")), names(|scheme| scheme.runs_in(Model::Packet)));
}

#[test]
fn packet_lab__has_the_default_of_min_rto_of_each_scheme() {
    let table = section("docs/packet-lab.md", "| `min_rto` | the time-out is at least |", "\n\n");
    let rows: Vec<Vec<&str>> = table.lines().skip(2).map(|row| row.trim_matches('|').split(" | ").collect()).collect();
    let mut named = BTreeSet::new();
    for row in &rows {
        let [value, _, of] = row[..] else { panic!("three cells: {row:?}") };
        let value = value.trim().trim_matches('`').trim_matches('"');
        let here = schemes_in(of);
        assert_eq!(here, names(|scheme| default_of(scheme, "min_rto") == Some(value)), "{value}");
        named.extend(here);
    }
    assert_eq!(named, names(|scheme| scheme.option("min_rto").is_some()));
}

#[test]
fn explicit_feedback__has_the_header_bytes_of_each_scheme_of_links() {
    let table = section("docs/explicit-feedback.md", "| scheme | header | on the way back |", "\n\n");
    let mut named = BTreeSet::new();
    for row in table.lines().skip(2) {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").collect();
        let here = schemes_in(cells[0]);
        for name in &here {
            let scheme = find(name).expect("its name is in the list");
            let bytes = [cells[1], cells[2]].map(|cell| cell.trim().to_owned());
            assert_eq!(bytes, [scheme.header, scheme.ack_header].map(|bytes| format!("{} B", bytes.get())), "{name}");
        }
        named.extend(here);
    }
    let led = |scheme: &Scheme| scheme.controller.is_some() && scheme.kind == SchemeKind::Link;
    assert_eq!(named, names(led));
}

#[test]
fn scenario_files__names_the_disciplines_that_links_run() {
    let row = section("docs/reference/scenario-files.md", "| `discipline` | the queue's rule:", "\n");
    let wanted = names(|scheme| scheme.link_controller.is_some());
    assert!(schemes_in(&row).is_superset(&wanted), "{row}\n{wanted:?}");
}

#[test]
fn schemes_in__are_words_in_back_quotes_that_the_list_has() {
    assert_eq!(schemes_in("cubic and `bic`, `vegas fast`, `no-scheme`"), ["bic", "fast", "vegas"].into());
}

/// The part of a page from one text up to the next that is another.
fn section(page: &str, from: &str, to: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(page);
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{page}: {error}"));
    let begin = text.find(from).unwrap_or_else(|| panic!("{page} has no \"{from}\""));
    let rest = &text[begin..];
    let end = rest.find(to).unwrap_or_else(|| panic!("{page} has no \"{to}\" behind \"{from}\""));
    rest[..end].to_owned()
}

/// The names of schemes between back quotes.
fn schemes_in(text: &str) -> BTreeSet<&'static str> {
    let words = text.split('`').skip(1).step_by(2).flat_map(str::split_whitespace);
    words.filter_map(|word| find(word.trim_matches(','))).map(|scheme| scheme.name).collect()
}

/// The names of the schemes of which something is true.
fn names(is_so: impl Fn(&Scheme) -> bool) -> BTreeSet<&'static str> {
    schemes().iter().filter(|scheme| is_so(scheme)).map(|scheme| scheme.name).collect()
}

fn default_of(scheme: &Scheme, option: &str) -> Option<&'static str> {
    scheme.option(option).map(|option| option.default)
}
