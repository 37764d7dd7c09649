//! The files in the binary, and those next to a scenario's file.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use fairwave_scenario::{Document, ScenarioError};

include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// The names of the shipped scenarios, sorted.
pub fn scenario_names() -> impl Iterator<Item = &'static str> {
    SCENARIOS.iter().map(|(name, _)| *name)
}

/// The text of a shipped scenario, by the name of its file without ".toml".
pub fn scenario_text(name: &str) -> Option<&'static str> {
    SCENARIOS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// Parses a scenario's file. The files that it names are relative to its folder; one that is not there may be shipped.
///
/// # Errors
/// As [`Document::parse`].
pub fn document(file: &str, bytes: &[u8]) -> Result<Document, ScenarioError> {
    let folder = Path::new(file).parent().unwrap_or(Path::new("")).to_owned();
    Ok(Document::parse(file, bytes)?.with_files(move |name| companion(&folder.join(name), name)))
}

/// The bytes of a file that a scenario names.
fn companion(path: &Path, name: &str) -> Result<Vec<u8>, String> {
    let shipped = || COMPANIONS.iter().find(|(known, _)| name.strip_suffix(".csv") == Some(known));
    match fs::metadata(path) {
        Ok(meta) if !meta.is_file() => Err("not a file".into()),
        Ok(meta) if meta.len() > Document::LARGEST_BYTES as u64 => {
            Err(format!("{} bytes; the limit is {} MiB", meta.len(), Document::LARGEST_BYTES >> 20))
        }
        Ok(_) => fs::read(path).map_err(|error| error.to_string()),
        Err(error) if error.kind() == ErrorKind::NotFound => match shipped() {
            Some((_, text)) => Ok(text.as_bytes().to_vec()),
            None => Err(format!("no such file: {}", path.display())),
        },
        Err(error) => Err(error.to_string()),
    }
}

/// The papers with experiments: number and text of `experiments.toml`, followed by that of `wire.toml`.
pub(crate) fn papers() -> &'static [(&'static str, &'static str)] {
    PAPERS
}

/// The text of `papers/verdict.json`.
pub(crate) fn verdict_text() -> &'static str {
    VERDICT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenario_names__are_the_names_in_the_files() {
        for name in scenario_names() {
            let text = scenario_text(name).unwrap();
            let table: toml::Table = text.parse().unwrap();
            assert_eq!(table["name"].as_str(), Some(name));
            assert!(!table["title"].as_str().unwrap().is_empty(), "{name} has no title");
        }
    }

    #[test]
    fn scenario_readme__lists_every_file_that_is_not_a_papers() {
        let readme = include_str!("../../../scenarios/README.md");
        let of_a_paper = |name: &&str| name.starts_with(|first: char| first.is_ascii_digit());
        for name in scenario_names().filter(|name| !of_a_paper(name)) {
            assert!(readme.contains(&format!("`{name}.toml`")), "scenarios/README.md does not list {name}.toml");
        }
        let listed = readme.lines().filter_map(|line| line.strip_prefix("| `")?.split_once(".toml`"));
        for (name, _) in listed {
            assert!(scenario_text(name).is_some(), "scenarios/README.md lists {name}.toml, which does not exist");
        }
    }
}
