//! The results of the last full-length runs, stored in `papers/verdict.json`.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::counts::VerdictCounts;
use crate::data::verdict_text;
use crate::experiment::{Experiment, list};
use crate::judged::{ClaimValue, digits};
use crate::outcome::ExperimentOutcome;
use crate::value_source::Form;
use crate::verdict::Verdict;

/// The recorded verdicts, in the order of the catalogue.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VerdictRecord {
    /// Whether it has ever had every experiment of the catalogue: from then on, none may be missing.
    pub whole: bool,
    /// One entry per experiment.
    pub experiments: Vec<RecordedExperiment>,
}

/// An experiment of the record; its JSON form is a line of `papers run --verdict --json`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedExperiment {
    /// "002/fig-vii-2a".
    pub id: String,
    /// Version of Fairwave that ran it.
    pub version: String,
    /// Date of its end, "2026-11-22" (UTC).
    pub date: String,
    /// One entry per claim, in the order of the data.
    pub claims: Vec<RecordedClaim>,
}

/// A claim of the record; the words are those of [`crate::Claim`].
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedClaim {
    /// The claim in words.
    pub what: String,
    /// The verdict.
    pub verdict: Verdict,
    /// The source's value.
    pub paper: ClaimValue,
    /// Our value, with five digits.
    pub ours: ClaimValue,
    /// Unit of both.
    pub unit: String,
    /// Required precision.
    pub tolerance: String,
    /// Source of the stated value.
    pub source: String,
    /// Form in which it is stated.
    pub form: Form,
    /// Our choice without which it would not hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
}

/// Error of a record.
#[derive(Debug, thiserror::Error)]
#[error(
    "{file}: cannot read the recorded verdicts: {error}\nhint: `fairwave papers run all --record FILE` records them"
)]
pub struct RecordError {
    file: String,
    error: serde_json::Error,
}

impl VerdictRecord {
    /// The record in this version's binary.
    pub fn shipped() -> Result<Self, RecordError> {
        Self::parse("papers/verdict.json", verdict_text())
    }

    /// Reads a record; `file` names it in the error.
    pub fn parse(file: &str, text: &str) -> Result<Self, RecordError> {
        serde_json::from_str(text).map_err(|error| RecordError { file: file.to_owned(), error })
    }

    /// Adds the results of full-length runs, replacing earlier ones of the same experiments. The record of a skipped
    /// one is kept. Experiments that are not in the catalogue are removed.
    pub fn take(&mut self, outcomes: &[ExperimentOutcome], date: &str) {
        let is_skipped = |outcome: &ExperimentOutcome| outcome.wire.as_ref().is_some_and(|wire| wire.skipped.is_some());
        for outcome in outcomes.iter().filter(|outcome| !outcome.quick && !is_skipped(outcome)) {
            self.experiments.retain(|known| known.id != outcome.id);
            self.experiments.push(RecordedExperiment::of(outcome, date));
        }
        let place = |id: &str| list().iter().position(|experiment| experiment.id == id);
        self.experiments.retain(|known| place(&known.id).is_some());
        self.experiments.sort_by_key(|known| place(&known.id));
        // Experiments with real programs are only run by name.
        let run_by_all = list().iter().filter(|experiment| experiment.wire.is_none());
        self.whole |=
            run_by_all.map(|experiment| &experiment.id).all(|id| self.experiments.iter().any(|known| known.id == *id));
    }

    /// Number of claims by verdict.
    pub fn counts(&self) -> VerdictCounts {
        let mut counts = VerdictCounts { experiments: self.experiments.len(), ..VerdictCounts::default() };
        for recorded in &self.experiments {
            let original = experiment(&recorded.id).and_then(|experiment| experiment.repeats.as_deref());
            if original.is_some_and(|id| self.experiments.iter().any(|other| other.id == id)) {
                counts.repeated += recorded.claims.len();
                continue;
            }
            recorded.claims.iter().for_each(|claim| counts.add(claim.verdict, &claim.source, claim.form));
        }
        counts
    }

    /// The text of the file: a paragraph per experiment, a line per claim.
    pub fn to_text(&self) -> Result<String, serde_json::Error> {
        let mut text = format!("{{\"whole\": {}, \"experiments\": [\n", self.whole);
        for (number, recorded) in self.experiments.iter().enumerate() {
            let [id, version, date] = [&recorded.id, &recorded.version, &recorded.date].map(serde_json::to_string);
            let claims = recorded.claims.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>()?;
            let _ = writeln!(text, "{{\"id\": {}, \"version\": {}, \"date\": {}, \"claims\": [", id?, version?, date?);
            text += &claims.join(",\n");
            text += if number + 1 < self.experiments.len() { "\n]},\n" } else { "\n]}\n" };
        }
        text += "]}\n";
        Ok(text)
    }
}

impl RecordedExperiment {
    fn of(outcome: &ExperimentOutcome, date: &str) -> Self {
        let claims = outcome.claims.iter().map(|claim| RecordedClaim {
            what: claim.what.clone(),
            verdict: claim.verdict,
            paper: claim.paper.clone(),
            ours: brief(&claim.ours),
            unit: claim.unit.to_owned(),
            tolerance: claim.tolerance.clone(),
            source: claim.source.to_owned(),
            form: claim.form,
            condition: claim.condition.clone(),
        });
        Self {
            id: outcome.id.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            date: date.to_owned(),
            claims: claims.collect(),
        }
    }
}

/// Rounds a number to five digits, for a readable record.
fn brief(value: &ClaimValue) -> ClaimValue {
    match value {
        ClaimValue::Number(number) => digits(*number).parse().map_or_else(|_| value.clone(), ClaimValue::Number),
        ClaimValue::Text(_) => value.clone(),
    }
}

fn experiment(id: &str) -> Option<&'static Experiment> {
    list().iter().find(|experiment| experiment.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{RunOptions, run};
    use crate::wire::WireNotes;

    #[test]
    fn take__replaces_entries_in_the_order_of_the_catalogue() {
        let outcome = |id| run(id, RunOptions::default()).unwrap();
        let mut record = VerdictRecord::default();
        record.take(&[outcome("002/eq-ii-2"), outcome("000/table2")], "2026-01-01");
        record.take(&[outcome("002/eq-ii-2")], "2026-01-02");
        let rows: Vec<_> = record.experiments.iter().map(|one| (one.id.as_str(), one.date.as_str())).collect();
        assert_eq!(rows, [("000/table2", "2026-01-01"), ("002/eq-ii-2", "2026-01-02")]);
        assert_eq!(VerdictRecord::parse("x", &record.to_text().unwrap()).unwrap(), record);
        // Quick runs do not give a verdict.
        let quick = ExperimentOutcome { quick: true, ..outcome("002/sec-ii-4a") };
        record.take(&[quick], "2026-01-03");
        assert_eq!(record.experiments.len(), 2);
        // Neither do skipped ones: their record is kept.
        let before = record.clone();
        let notes = WireNotes { skipped: Some("machine busy".to_owned()), ..WireNotes::default() };
        let skipped = ExperimentOutcome { claims: Vec::new(), wire: Some(notes), ..outcome("002/eq-ii-2") };
        record.take(&[skipped], "2026-01-04");
        assert_eq!(record, before);
    }

    #[test]
    fn parse__names_the_file() {
        let error =
            VerdictRecord::parse("a/b.json", "{\"whole\": true, \"experiments\": [{}]}").unwrap_err().to_string();
        assert!(error.contains("a/b.json") && error.contains("hint"), "{error}");
    }
}
