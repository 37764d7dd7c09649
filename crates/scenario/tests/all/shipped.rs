//! Every shipped scenario builds, in every variant.
#![allow(clippy::disallowed_methods, reason = "tests read files")]
#![allow(non_snake_case)]

use std::path::Path;

use fairwave_scenario::{Document, Selection};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios");

#[test]
fn build__every_shipped_scenario() {
    let mut built = 0;
    for entry in std::fs::read_dir(FOLDER).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let document = Document::parse(path.to_str().unwrap(), &std::fs::read(&path).unwrap()).unwrap();
        let read = |name: &str| std::fs::read(Path::new(FOLDER).join(name)).map_err(|error| error.to_string());
        let document = document.with_files(read);
        for case in document.cases(&Selection::default()).unwrap() {
            document.build(&case).unwrap_or_else(|error| panic!("{error}"));
            built += 1;
        }
    }
    assert!(built > 0, "{FOLDER} holds no scenarios");
}
