//! The files in the binary.

include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// The names of the shipped scenarios, sorted.
pub fn scenario_names() -> impl Iterator<Item = &'static str> {
    SCENARIOS.iter().map(|(name, _)| *name)
}

/// The text of a shipped scenario, by the name of its file without ".toml".
pub fn scenario_text(name: &str) -> Option<&'static str> {
    SCENARIOS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
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
