//! Every mistake in `mistakes.txt` gives exactly the listed message, line and hint.
#![allow(clippy::disallowed_methods, reason = "tests read files")]
#![allow(non_snake_case)]

use std::collections::BTreeSet;
use std::fmt::Write as _;

use fairwave_scenario::{Document, ScenarioError, Selection};

const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/all/mistakes.txt");

struct Entry {
    title: String,
    call: Vec<String>,
    file: String,
    expected: String,
}

#[test]
fn messages__are_those_of_the_table() {
    let text = std::fs::read_to_string(TABLE).unwrap();
    let (head, entries) = entries(&text);
    assert!(entries.len() >= 60, "only {} mistakes", entries.len());
    let titles: BTreeSet<&str> = entries.iter().map(|entry| &*entry.title).collect();
    assert_eq!(titles.len(), entries.len(), "a title stands twice");
    let (mut anew, mut wrong) = (head.to_owned(), String::new());
    for entry in &entries {
        let message = match outcome(entry) {
            Ok(()) => "no mistake was found".to_owned(),
            Err(error) => error.to_string(),
        };
        let _ = writeln!(anew, "\n=== {}", entry.title);
        for line in &entry.call {
            let _ = writeln!(anew, "$ {line}");
        }
        let _ = writeln!(anew, "{}\n---\n{message}", entry.file);
        if message != entry.expected {
            let _ = write!(wrong, "{}\n  expected {}\n  found    {message}\n", entry.title, entry.expected);
        }
    }
    let hintless: Vec<_> = entries.iter().filter(|entry| !entry.expected.contains("\nhint: ")).collect();
    if std::env::var("FAIRWAVE_BLESS").is_ok() {
        std::fs::write(TABLE, anew).unwrap();
    } else {
        assert!(wrong.is_empty(), "{wrong}");
        assert!(hintless.is_empty(), "no hint: {:?}", hintless.iter().map(|entry| &entry.title).collect::<Vec<_>>());
    }
}

fn outcome(entry: &Entry) -> Result<(), ScenarioError> {
    let mut selection = Selection::default();
    for line in &entry.call {
        let (option, value) = line.split_once(' ').unwrap();
        match option {
            "set" => {
                let (path, value) = value.split_once('=').unwrap();
                selection.set.push((path.to_owned(), value.to_owned()));
            }
            "scheme" => selection.scheme = Some(value.to_owned()),
            "variant" => selection.variant = Some(value.to_owned()),
            "duration" => selection.duration = Some(value.parse().unwrap()),
            other => panic!("{}: unknown option {other}", entry.title),
        }
    }
    let document = Document::parse("test.toml", entry.file.as_bytes())?;
    for case in document.cases(&selection)? {
        document.build(&case)?;
    }
    Ok(())
}

fn entries(text: &str) -> (&str, Vec<Entry>) {
    let (head, rest) = text.split_once("\n=== ").unwrap();
    let entry = |text: &str| {
        let (title, rest) = text.split_once('\n').unwrap();
        let (file, expected) = rest.split_once("\n---\n").unwrap();
        let (call, file): (Vec<_>, Vec<_>) = file.split('\n').partition(|line| line.starts_with("$ "));
        Entry {
            title: title.to_owned(),
            call: call.iter().map(|line| line[2..].to_owned()).collect(),
            file: file.join("\n"),
            expected: expected.trim_end().to_owned(),
        }
    };
    (head, rest.split("\n=== ").map(entry).collect())
}
