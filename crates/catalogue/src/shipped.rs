//! Checks the record in the tree against the catalogue: once it was complete nothing is missing, and nothing in it is
//! stale.

use crate::experiment::{Experiment, list};
use crate::record::VerdictRecord;
use crate::verdict::Verdict;

/// The experiment to be run again, and the command.
fn again(id: &str) -> String {
    format!("{id}: run `fairwave papers run {id} --record papers/verdict.json` at full length")
}

#[test]
fn record__once_whole_stays_whole() {
    let record = VerdictRecord::shipped().unwrap();
    for experiment in list().iter().filter(|experiment| record.whole && experiment.wire.is_none()) {
        let is_there = record.experiments.iter().any(|recorded| recorded.id == experiment.id);
        assert!(is_there, "{} is not in papers/verdict.json; {}", experiment.id, again(&experiment.id));
    }
}

#[test]
fn record__has_the_claims_in_their_present_words() {
    for recorded in VerdictRecord::shipped().unwrap().experiments {
        let experiment = list().iter().find(|experiment| experiment.id == recorded.id);
        let in_full = |experiment: &'static Experiment| experiment.claims.iter().filter(|claim| claim.is_judged(false));
        let written = experiment.map(|experiment| in_full(experiment).map(|claim| claim.what.as_str()).collect());
        let judged: Vec<_> = recorded.claims.iter().map(|claim| claim.what.as_str()).collect();
        assert_eq!(Some(judged), written, "{}", again(&recorded.id));
        let labels = experiment.map(|experiment| in_full(experiment).map(|claim| (claim.source.name(), claim.form())));
        let labels: Vec<_> = labels.into_iter().flatten().collect();
        let known: Vec<_> = recorded.claims.iter().map(|claim| (claim.source.as_str(), claim.form)).collect();
        assert_eq!(known, labels, "{}", again(&recorded.id));
    }
}

#[test]
fn record__only_misses_have_a_reason_or_a_proof() {
    for recorded in VerdictRecord::shipped().unwrap().experiments {
        let Some(experiment) = list().iter().find(|experiment| experiment.id == recorded.id) else { continue };
        let in_full = experiment.claims.iter().filter(|claim| claim.is_judged(false));
        for (claim, recorded) in in_full.zip(&recorded.claims) {
            let stated = match (&claim.reason, &claim.refuted) {
                (Some(_), _) => Verdict::KnownMiss,
                (None, Some(_)) => Verdict::Refuted,
                (None, None) => Verdict::Holds,
            };
            assert_eq!(recorded.verdict, stated, "{}: {}; {}", experiment.id, claim.what, again(&experiment.id));
        }
    }
}

#[test]
fn readme__has_the_counts_of_a_whole_record() {
    let record = VerdictRecord::shipped().unwrap();
    let words = record.counts().printed();
    let is_there = include_str!("../../../README.md").contains(&words);
    assert!(is_there || !record.whole, "README.md lacks the counts of papers/verdict.json: {words}");
}

#[test]
fn page_of_errors__names_each_refuted_experiment_and_no_other() {
    let page = include_str!("../../../docs/explanation/paper-errors.md");
    let record = VerdictRecord::shipped().unwrap();
    let is_refuted = |id: &str| {
        let of = record.experiments.iter().filter(|recorded| recorded.id == id);
        of.flat_map(|recorded| &recorded.claims).any(|claim| claim.verdict == Verdict::Refuted)
    };
    let named: Vec<&str> = page.split('`').skip(1).step_by(2).filter(|word| word.starts_with("00")).collect();
    for experiment in list().iter().filter(|experiment| experiment.repeats.is_none()) {
        assert_eq!(named.contains(&experiment.id.as_str()), is_refuted(&experiment.id), "{}", experiment.id);
    }
}
