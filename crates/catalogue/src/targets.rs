//! Compares the papers' statements with the claims here: `papers/targets.toml` names, for every stated value, the
//! claim, or the line of a file, that has it.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use crate::data::papers;
use crate::experiment::list;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Targets {
    target: Vec<Target>,
}

/// A value that a paper states.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Target {
    /// Paper and place, "000, Table 1".
    at: String,
    /// Its name.
    quantity: String,
    /// The value, or "qualitative".
    stated: String,
    /// Factor by which the claim's value is larger, in its unit or relative to its capacity.
    times: Option<f64>,
    /// The id of an experiment, "file PATH", or "none".
    by: String,
    /// The words of a claim, a part of a file, or the reason why there is no claim.
    what: String,
}

fn targets() -> Vec<Target> {
    let file: Targets = toml::from_str(include_str!("../../../papers/targets.toml")).unwrap();
    file.target
}

/// Every number that claims state, by experiment and words, as in the data.
fn stated_numbers() -> BTreeMap<(String, String), Vec<f64>> {
    let mut all: BTreeMap<(String, String), Vec<f64>> = BTreeMap::new();
    for (paper, text) in papers() {
        let table: toml::Table = text.parse().unwrap();
        for experiment in table["experiment"].as_array().unwrap() {
            let id = format!("{paper}/{}", experiment["id"].as_str().unwrap());
            for claim in experiment.get("claim").and_then(|claims| claims.as_array()).into_iter().flatten() {
                let keys = ["value", "at_most", "at_least", "below", "above", "paper", "between"];
                let values = keys.iter().filter_map(|key| claim.get(key));
                let each = values.flat_map(|value| value.as_array().cloned().unwrap_or_else(|| vec![value.clone()]));
                let number = |value: toml::Value| value.as_float().or(value.as_integer().map(|whole| whole as f64));
                let what = claim["what"].as_str().unwrap().to_owned();
                all.entry((id.clone(), what)).or_default().extend(each.filter_map(number));
            }
        }
    }
    all
}

#[test]
fn targets__are_each_judged_by_a_claim_or_stand_in_a_file() {
    let stated = stated_numbers();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for target in targets() {
        let seen = format!("{}: {} {}: {}: {}", target.at, target.quantity, target.stated, target.by, target.what);
        if let Some(file) = target.by.strip_prefix("file ") {
            let text = std::fs::read_to_string(root.join(file)).unwrap_or_else(|error| panic!("{seen}: {error}"));
            assert!(!target.what.is_empty() && text.contains(&target.what), "{seen}: not in the file");
            continue;
        }
        if target.by == "none" {
            assert!(!target.what.is_empty(), "{seen}");
            continue;
        }
        let numbers = stated.get(&(target.by.clone(), target.what.clone()));
        let numbers = numbers.unwrap_or_else(|| panic!("{seen}: unknown claim"));
        // If no claim states the number itself, it is in the words.
        let near = |value: f64| numbers.iter().any(|number| (number - value).abs() <= 1e-3 * value.abs());
        match (target.times, target.stated.parse::<f64>()) {
            (Some(times), Ok(value)) => assert!(near(times * value), "{seen}: the claim states {numbers:?}"),
            (Some(_), Err(_)) => panic!("{seen}: `times` of no number"),
            (None, _) => {}
        }
    }
}

#[test]
fn targets__with_a_number_are_stated_by_their_claim() {
    let stated = stated_numbers();
    let of_claims = targets().into_iter().filter(|target| list().iter().any(|one| one.id == target.by));
    let numeric: Vec<_> = of_claims.filter_map(|target| Some((target.stated.parse::<f64>().ok()?, target))).collect();
    let in_other_words: Vec<_> = numeric
        .iter()
        .filter(|(value, target)| {
            let value = value * target.times.unwrap_or(1.0);
            let numbers = &stated[&(target.by.clone(), target.what.clone())];
            !numbers.iter().any(|number| (number - value).abs() <= 1e-3 * value.abs())
        })
        .map(|(value, target)| format!("{}: {} {value}", target.at, target.quantity))
        .collect();
    assert!(numeric.len() > 180 && in_other_words.len() <= 10, "{} {in_other_words:#?}", numeric.len());
}

#[test]
fn targets__three_have_no_claim() {
    let unjudged: Vec<_> = targets().into_iter().filter(|target| target.by == "none").collect();
    // Losses of a Dummynet box of 2006.
    assert!(unjudged.len() == 3 && unjudged.iter().all(|target| target.at == "002, Table IX.1"), "{unjudged:?}");
}
