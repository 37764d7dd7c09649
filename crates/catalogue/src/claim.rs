//! A claim of `experiments.toml`, checked, and its verdict over the values of the runs.

use serde::Deserialize;

use crate::expectation::{Expectation, Tolerance};
use crate::formula::Formula;
use crate::judged::{Claim, ClaimValue, Proof};
use crate::measure::Measure;
use crate::reduce::{Reduce, worst};
use crate::sketch::PartSketch;
use crate::unit::{Dimension, Unit};
use crate::value_source::{Form, ValueSource};
use crate::verdict::Verdict;

/// A `[[experiment.claim]]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClaimData {
    what: String,
    source: ValueSource,
    measure: Option<Measure>,
    formula: Option<Formula>,
    sessions: Option<Vec<String>>,
    against: Option<AgainstData>,
    variants: Option<Vec<String>>,
    #[serde(default)]
    over_sessions: Reduce,
    #[serde(default)]
    over_runs: Reduce,
    #[serde(default)]
    over_variants: Reduce,
    value: Option<f64>,
    tolerance: Option<String>,
    at_most: Option<f64>,
    at_least: Option<f64>,
    below: Option<f64>,
    above: Option<f64>,
    between: Option<[f64; 2]>,
    of: Option<usize>,
    #[serde(default)]
    full_only: bool,
    #[serde(default)]
    quick_only: bool,
    #[serde(default)]
    unit: String,
    paper: Option<Stated>,
    condition: Option<String>,
    reason: Option<String>,
    refuted: Option<RefutedData>,
    referee: Option<f64>,
}

/// `refuted`: the reason why the printed value is wrong, and the checks that prove it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct RefutedData {
    why: String,
    proof: Vec<ClaimData>,
}

/// Reference of a claim's values, for ratios.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
enum AgainstData {
    /// "packet": the value of the same measure in the packet model, session by session.
    Model(AgainstModel),
    /// The mean of these sessions' values.
    Sessions(Vec<String>),
}

/// A model that runs in addition to the experiment's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum AgainstModel {
    Packet,
}

/// The paper's value, if it is not the expected number.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
enum Stated {
    Number(f64),
    Text(String),
}

/// A claim that is valid by itself.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CheckedClaim {
    pub(crate) what: String,
    pub(crate) source: ValueSource,
    pub(crate) subject: Subject,
    pub(crate) sessions: Option<Vec<String>>,
    /// The values are divided by the mean of these sessions' values.
    pub(crate) against: Option<Vec<String>>,
    /// The values are divided by those of the packet model.
    pub(crate) is_beside: bool,
    pub(crate) variants: Option<Vec<String>>,
    over_sessions: Reduce,
    over_runs: Reduce,
    over_variants: Reduce,
    /// `None` if an order is claimed.
    expectation: Option<Expectation>,
    of: Option<usize>,
    /// Too few draws cannot judge it: skipped if some were left out.
    pub(crate) full_only: bool,
    /// Only about the smaller network or the shorter run of `--quick`.
    pub(crate) quick_only: bool,
    unit: Unit,
    paper: Option<ClaimValue>,
    /// Our choice without which it does not hold.
    condition: Option<String>,
    pub(crate) reason: Option<String>,
    pub(crate) refuted: Option<Refutation>,
    referee: Option<f64>,
}

/// The reason why the printed value is wrong, and the proof.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Refutation {
    why: String,
    /// All of them must hold.
    pub(crate) proof: Vec<CheckedClaim>,
}

/// Subject of a claim.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Subject {
    /// A measurement in the runs.
    Measure(Measure),
    /// A formula.
    Formula(Formula),
}

impl ClaimData {
    /// Checks the combination of keys; the message names the key.
    pub(crate) fn check(self) -> Result<CheckedClaim, String> {
        let expectation = self.expectation()?;
        let subject = match (self.measure, self.formula) {
            (Some(measure), None) => Subject::Measure(measure),
            (None, Some(formula)) => Subject::Formula(formula),
            _ => return Err("needs either `measure` or `formula`".to_owned()),
        };
        let unit = Unit::named(&self.unit)
            .ok_or_else(|| format!("unknown unit \"{}\"; use one of {}", self.unit, Unit::names()))?;
        let reducers = [self.over_sessions, self.over_runs, self.over_variants];
        let orders = reducers.iter().filter(|reduce| reduce.is_order()).count();
        if orders > 1 || self.over_runs.is_order() {
            return Err("an order is taken over sessions or over variants, once".to_owned());
        }
        let plain = reducers.iter().any(|reduce| reduce.is_plain());
        let dimension = match &subject {
            _ if plain || self.against.is_some() => Dimension::Number,
            Subject::Measure(measure) => measure.dimension(),
            Subject::Formula(formula) => formula.dimension(),
        };
        if unit.dimension != dimension {
            return Err(format!("unit \"{}\" does not fit: the value is a {dimension:?}", unit.name));
        }
        let is_formula = matches!(subject, Subject::Formula(_));
        let names = [self.sessions.is_some(), self.against.is_some(), self.variants.is_some()];
        if is_formula && (reducers != [Reduce::Each; 3] || names.contains(&true)) {
            return Err("a formula has neither sessions nor runs nor variants".to_owned());
        }
        if expectation.is_some() == (orders == 1) {
            return Err("needs exactly one of value, at_most, at_least, below, above, between, or an order".to_owned());
        }
        if let Some(of) = self.of {
            let enough = matches!(expectation, Some(Expectation::AtLeast(least)) if least <= of as f64);
            if !enough || of == 0 || !matches!(self.over_runs, Reduce::CountBelow(_)) {
                return Err("`of` goes with count-below over runs, and with at_least up to it".to_owned());
            }
        }
        if self.reason.as_ref().is_some_and(|reason| reason.trim().is_empty()) {
            return Err("reason is empty".to_owned());
        }
        if self.condition.as_ref().is_some_and(|condition| condition.trim().is_empty()) {
            return Err("condition is empty".to_owned());
        }
        if self.refuted.is_some() && self.reason.is_some() {
            return Err("a claim is refuted or has a reason, not both".to_owned());
        }
        // No paper prints the results of a smaller network, and known misses there are of no use.
        let own = matches!(self.source, ValueSource::Ours | ValueSource::Derived);
        if self.quick_only && (self.full_only || !own || self.reason.is_some() || self.refuted.is_some()) {
            return Err("quick_only goes with source ours or derived, without full_only, reason, refuted".to_owned());
        }
        // A calibration that does not reproduce its value has to be repeated, not explained.
        if self.source == ValueSource::Calibrated && (self.reason.is_some() || self.refuted.is_some()) {
            return Err("a calibrated value has neither reason nor refuted".to_owned());
        }
        let refuted = self.refuted.map(RefutedData::check).transpose()?;
        let (against, is_beside) = match self.against {
            None => (None, false),
            Some(AgainstData::Model(AgainstModel::Packet)) => (None, true),
            Some(AgainstData::Sessions(sessions)) => (Some(sessions), false),
        };
        Ok(CheckedClaim {
            what: self.what,
            source: self.source,
            subject,
            sessions: self.sessions,
            against,
            is_beside,
            variants: self.variants,
            over_sessions: self.over_sessions,
            over_runs: self.over_runs,
            over_variants: self.over_variants,
            expectation,
            of: self.of,
            full_only: self.full_only,
            quick_only: self.quick_only,
            unit,
            paper: self.paper.map(|stated| match stated {
                Stated::Number(number) => ClaimValue::Number(number),
                Stated::Text(text) => ClaimValue::Text(text),
            }),
            condition: self.condition,
            reason: self.reason,
            refuted,
            referee: self.referee,
        })
    }

    fn expectation(&self) -> Result<Option<Expectation>, String> {
        let tolerance = match &self.tolerance {
            None => None,
            Some(text) => Some(Tolerance::parse(text).ok_or_else(|| {
                format!("tolerance \"{text}\" is none of \"3 %\", \"0.5\" (in the claim's unit), \"factor 4\"")
            })?),
        };
        if self.value.is_some() != tolerance.is_some() {
            return Err("value and tolerance go together".to_owned());
        }
        if self.between.is_some_and(|[low, high]| low.partial_cmp(&high) != Some(std::cmp::Ordering::Less)) {
            return Err("between goes from less to more".to_owned());
        }
        let all = [
            self.value.zip(tolerance).map(|(value, tolerance)| Expectation::Near(value, tolerance)),
            self.at_most.map(Expectation::AtMost),
            self.at_least.map(Expectation::AtLeast),
            self.below.map(Expectation::Below),
            self.above.map(Expectation::Above),
            self.between.map(|[low, high]| Expectation::Between(low, high)),
        ];
        let mut given = all.into_iter().flatten();
        let first = given.next();
        if given.next().is_some() {
            return Err("only one of value, at_most, at_least, below, above, between".to_owned());
        }
        Ok(first)
    }
}

impl RefutedData {
    fn check(self) -> Result<Refutation, String> {
        if self.why.trim().is_empty() || self.proof.is_empty() {
            return Err("refuted needs a why and a proof".to_owned());
        }
        let one = |proof: ClaimData| {
            // A paper's own number proves nothing against it, and our own number for its words is not a proof.
            if matches!(proof.source, ValueSource::Paper | ValueSource::Ours | ValueSource::Calibrated) {
                return Err("a proof's source is arithmetic, derived or reference".to_owned());
            }
            if proof.refuted.is_some() || proof.reason.is_some() || proof.full_only || proof.quick_only {
                return Err("a proof has neither refuted nor reason nor full_only nor quick_only".to_owned());
            }
            proof.check()
        };
        Ok(Refutation { why: self.why, proof: self.proof.into_iter().map(one).collect::<Result<_, _>>()? })
    }
}

impl CheckedClaim {
    /// Whether it is judged in a full run, or in one that was reduced or shortened.
    pub(crate) fn is_judged(&self, is_quick: bool) -> bool {
        if is_quick { !self.full_only } else { !self.quick_only }
    }

    /// The form in which its value is stated: words are the paper's if they have no digit.
    pub(crate) fn form(&self) -> Form {
        match &self.paper {
            _ if self.expectation.is_none() => Form::Order,
            Some(ClaimValue::Text(text)) if !text.contains(|c: char| c.is_ascii_digit()) => Form::Words,
            _ => Form::Number,
        }
    }

    /// The number that the paper prints of a variant for a part of a picture, in bit/s, seconds, bytes or plain.
    pub(crate) fn printed(&self, part: &PartSketch, variant: Option<&str>) -> Option<f64> {
        let is_paper = matches!(self.source, ValueSource::Paper | ValueSource::Calibrated);
        let is_measured = matches!(&self.subject, Subject::Measure(measure) if *measure == part.measure);
        let is_of = |names: &Vec<String>| names.iter().any(|name| Some(name.as_str()) == variant);
        let is_same = self.sessions == part.sessions && self.against == part.against && !self.is_beside;
        let is_plain =
            self.over_variants == Reduce::Each && [Reduce::Each, part.over_sessions].contains(&self.over_sessions);
        if !(is_paper && is_measured && is_same && is_plain && self.variants.as_ref().is_some_and(is_of)) {
            return None;
        }
        let value = match (&self.paper, self.expectation) {
            (Some(ClaimValue::Number(value)), _) => *value,
            (None, Some(Expectation::Near(value, _))) => value,
            _ => return None,
        };
        Some(value * self.unit.scale)
    }

    /// The proofs that its printed value is wrong; empty without `refuted`.
    pub(crate) fn proofs(&self) -> &[Self] {
        self.refuted.as_ref().map_or(&[], |refuted| &refuted.proof)
    }

    /// The verdict on a claim with the results of its proofs: it is refuted if it does not hold, and all of them do.
    pub(crate) fn with_proof(&self, claim: Claim, checks: Vec<Claim>) -> Claim {
        let Some(refuted) = &self.refuted else { return claim };
        let verdict = match claim.verdict {
            Verdict::Holds => Verdict::Holds,
            _ if checks.iter().all(|check| check.holds) => Verdict::Refuted,
            _ => Verdict::Miss,
        };
        Claim { verdict, proof: Some(Proof { why: refuted.why.clone(), checks }), ..claim }
    }

    /// The verdict over `values[variant][run][session]`, in bit/s, seconds, bytes or plain.
    pub(crate) fn judge(&self, values: &[Vec<Vec<f64>>]) -> Claim {
        let scaled = |value: &f64| *value / self.unit.scale;
        // A spread or a count is already a pure number: scale before, and undo the percent of a spread.
        let raw = self.over_sessions.is_plain() || self.over_runs.is_plain() || self.over_variants.is_plain();
        let unscale = if raw { 1.0 } else { self.unit.scale };
        let mut per_variant: Vec<Vec<f64>> = Vec::new();
        let mut runs_judged = usize::MAX;
        for runs in values {
            let rows: Vec<Vec<f64>> = runs
                .iter()
                .map(|sessions| {
                    let sessions: Vec<f64> = sessions.iter().map(|value| value / unscale).collect();
                    self.over_sessions.apply(&sessions).map_or(sessions, |one| vec![one])
                })
                .collect();
            runs_judged = runs_judged.min(rows.len());
            let columns = rows.first().map_or(0, Vec::len);
            let column = |k: usize| rows.iter().map(|row| row[k]).collect::<Vec<f64>>();
            per_variant.push(match self.over_runs {
                Reduce::Each if self.over_sessions.is_order() || self.over_variants.is_order() => {
                    // An order needs one number each: of several runs it takes the mean.
                    (0..columns).filter_map(|k| Reduce::Mean.apply(&column(k))).collect()
                }
                Reduce::Each => rows.into_iter().flatten().collect(),
                reduce => (0..columns).filter_map(|k| reduce.apply(&column(k))).collect(),
            });
        }
        let columns = per_variant.first().map_or(0, Vec::len);
        let column = |k: usize| per_variant.iter().map(|row| row[k]).collect::<Vec<f64>>();
        if self.over_sessions.is_order() {
            return self.judge_order(self.over_sessions, &per_variant);
        }
        if self.over_variants.is_order() {
            return self.judge_order(self.over_variants, &(0..columns).map(column).collect::<Vec<_>>());
        }
        let finals: Vec<f64> = match self.over_variants {
            Reduce::Each => per_variant.into_iter().flatten().collect(),
            reduce => (0..columns).filter_map(|k| reduce.apply(&column(k))).collect(),
        };
        let finals: Vec<f64> = if raw { finals.iter().map(scaled).collect() } else { finals };
        let expectation = self.expected_of(runs_judged);
        let ours = worst(&finals, &expectation);
        self.verdict(ClaimValue::Number(ours), expectation.holds(ours), Some(expectation))
    }

    /// The expectation, with a count of draws scaled to the draws that were run.
    fn expected_of(&self, runs: usize) -> Expectation {
        match (self.expectation, self.of) {
            (Some(Expectation::AtLeast(least)), Some(of)) if runs < of => {
                Expectation::AtLeast((least * runs as f64 / of as f64).ceil())
            }
            (Some(expectation), _) => expectation,
            // Unreachable: a claim without an expectation claims an order.
            (None, _) => Expectation::AtMost(f64::NAN),
        }
    }

    fn judge_order(&self, order: Reduce, rows: &[Vec<f64>]) -> Claim {
        let verdicts: Vec<(bool, String)> = rows.iter().map(|row| order.order(row)).collect();
        let holds = !verdicts.is_empty() && verdicts.iter().all(|(holds, _)| *holds);
        let shown = verdicts.iter().find(|(holds, _)| !holds).or(verdicts.first());
        let text = shown.map_or_else(String::new, |(_, text)| text.clone());
        self.verdict(ClaimValue::Text(text), holds, None)
    }

    fn verdict(&self, ours: ClaimValue, holds: bool, expectation: Option<Expectation>) -> Claim {
        let order = if self.over_sessions.is_order() { self.over_sessions } else { self.over_variants };
        let words = if order == Reduce::Increasing { "strictly increasing" } else { "strictly decreasing" };
        let stated = expectation.and_then(|expectation| expectation.stated()).map(ClaimValue::Number);
        let tolerance = expectation.map_or_else(|| words.to_owned(), |expectation| expectation.tolerance());
        let fallback = || stated.unwrap_or_else(|| ClaimValue::Text(tolerance.clone()));
        Claim {
            what: self.what.clone(),
            paper: self.paper.clone().unwrap_or_else(fallback),
            ours,
            unit: self.unit.name,
            source: self.source.name(),
            form: self.form(),
            holds,
            verdict: match (holds, &self.reason) {
                (true, _) => Verdict::Holds,
                (false, Some(_)) => Verdict::KnownMiss,
                (false, None) => Verdict::Miss,
            },
            condition: self.condition.clone().filter(|_| holds),
            reason: if holds { None } else { self.reason.clone() },
            proof: None,
            referee: self.referee,
            tolerance,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(keys: &str) -> Result<CheckedClaim, String> {
        let source = if keys.starts_with("source") { "" } else { "source = \"paper\"\n" };
        let text = format!("what = \"w\"\n{source}{keys}");
        toml::from_str::<ClaimData>(&text).map_err(|error| error.message().to_owned())?.check()
    }

    #[test]
    fn check__rejects_invalid_claims() {
        for (keys, word) in [
            ("measure = \"final-rate\"\nunit = \"Mb/s\"\nvalue = 1", "tolerance"),
            ("measure = \"final-rate\"\nunit = \"s\"\nat_most = 1", "unit"),
            ("measure = \"final-rate\"\nunit = \"furlong\"\nat_most = 1", "furlong"),
            ("measure = \"final-rate\"\nunit = \"Mb/s\"", "exactly one"),
            ("measure = \"final-rate\"\nunit = \"Mb/s\"\nat_most = 1\nat_least = 1", "only one"),
            ("measure = \"final-rate\"\nunit = \"Mb/s\"\nat_most = 1\nover_variants = \"increasing\"", "exactly one"),
            ("measure = \"final-rate\"\nunit = \"Mb/s\"\nover_runs = \"increasing\"", "order"),
            ("measure = \"final-rate\"\nunit = \"Mb/s\"\nbetween = [2, 1]", "between"),
            ("measure = \"final-rate\"\nunit = \"Mb/s\"\nat_most = 1\nof = 3", "of"),
            ("measure = \"final-rate\"\nunit = \"Mb/s\"\nat_most = 1\nreason = \" \"", "reason"),
            ("measure = \"final-rate\"\nunit = \"Mb/s\"\nat_moost = 1", "at_moost"),
            ("measure = \"final-rat\"\nunit = \"Mb/s\"\nat_most = 1", "final-rat"),
            ("measure = { distance = { at = \"1 s\", by = 3 } }\nat_most = 1", "by"),
            ("unit = \"Mb/s\"\nat_most = 1", "measure"),
            ("measure = \"final-jain\"\nat_most = 1\ncondition = \" \"", "condition"),
            ("source = \"calibrated\"\nmeasure = \"final-jain\"\nat_most = 1\nreason = \"r\"", "calibrated"),
            ("measure = \"final-jain\"\nat_most = 1\nrefuted = { why = \"w\", proof = [] }", "proof"),
            (
                "measure = \"final-jain\"\nat_most = 1\nreason = \"r\"\nrefuted = { why = \"w\", proof = [] }",
                "not both",
            ),
            (
                "measure = \"final-jain\"\nat_most = 1\nrefuted = { why = \"w\", \
                 proof = [{ what = \"p\", source = \"paper\", measure = \"final-jain\", at_most = 1 }] }",
                "source",
            ),
            ("formula = { stcp-recovery-rtts = {} }\nsessions = [\"a\"]\nunit = \"RTT\"\nat_most = 1", "formula"),
        ] {
            let message = claim(keys).unwrap_err();
            assert!(message.contains(word), "{keys}: {message}");
        }
    }

    #[test]
    fn form__is_of_the_statement_and_not_of_the_bar() {
        let rate = "measure = \"final-rate\"\nunit = \"Mb/s\"\n";
        for (keys, form) in [
            ("value = 2\ntolerance = \"1\"", Form::Number),
            ("at_least = 97\npaper = \"more than 97\"", Form::Number),
            ("at_least = 97\npaper = 100", Form::Number),
            ("at_least = 95\npaper = \"fully used\"", Form::Words),
            ("over_sessions = \"increasing\"\npaper = \"slightly more\"", Form::Order),
        ] {
            assert_eq!(claim(&format!("{rate}{keys}")).unwrap().form(), form, "{keys}");
        }
    }

    #[test]
    fn refuted__only_if_the_claim_misses_and_its_proof_holds() {
        let claim = claim(
            "measure = \"final-jain\"\nvalue = 1\ntolerance = \"0.1\"\nrefuted = { why = \"w\", \
             proof = [{ what = \"p\", source = \"arithmetic\", measure = \"final-jain\", at_most = 0.5 }] }",
        )
        .unwrap();
        let verdict = |value: f64, proof: f64| {
            let judged = |claim: &CheckedClaim, value: f64| claim.judge(&[vec![vec![value]]]);
            let check = judged(&claim.proofs()[0], proof);
            claim.with_proof(judged(&claim, value), vec![check]).verdict
        };
        assert_eq!(verdict(0.4, 0.4), Verdict::Refuted);
        assert_eq!(verdict(0.4, 0.6), Verdict::Miss);
        assert_eq!(verdict(0.95, 0.4), Verdict::Holds);
    }

    #[test]
    fn judge__takes_the_worst_of_each() {
        let claim = claim("measure = \"final-rate\"\nunit = \"Mb/s\"\nvalue = 200\ntolerance = \"2 %\"").unwrap();
        let good = claim.judge(&[vec![vec![200e6, 199e6], vec![203e6, 200e6]]]);
        assert!(good.holds);
        assert_eq!(good.ours, ClaimValue::Number(203.0));
        assert!(!claim.judge(&[vec![vec![200e6, 199e6], vec![200e6, 150e6]]]).holds);
        assert!(!claim.judge(&[]).holds, "no values, no verdict");
    }

    #[test]
    fn judge__reduces_over_sessions_then_runs_then_variants() {
        let claim = claim(
            "measure = \"final-rate\"\nunit = \"Mb/s\"\nover_sessions = \"sum\"\nover_runs = \"median\"\n\
             over_variants = \"most\"\nvalue = 30\ntolerance = \"0\"",
        )
        .unwrap();
        // Sums 3, 30, 300 Mb/s: median 30; the other variant's median is 2.
        let first = vec![vec![1e6, 2e6], vec![10e6, 20e6], vec![100e6, 200e6]];
        let second = vec![vec![1e6, 1e6], vec![1e6, 1e6], vec![5e6, 5e6]];
        assert_eq!(claim.judge(&[first, second]).ours, ClaimValue::Number(30.0));
    }

    #[test]
    fn judge__counts_draws_and_brings_the_count_down_with_them() {
        let claim = claim(
            "measure = { time-to-distance = { share = 0.1 } }\nunit = \"draws\"\n\
             over_runs = { count-below = 5 }\nat_least = 28\nof = 30",
        )
        .unwrap();
        let runs = |n: usize, late: usize| {
            vec![(0..n).map(|i| vec![if i < late { f64::INFINITY } else { 4.0 }]).collect::<Vec<_>>()]
        };
        assert!(claim.judge(&runs(30, 2)).holds);
        assert!(!claim.judge(&runs(30, 3)).holds);
        assert!(claim.judge(&runs(5, 0)).holds); // 28 of 30 is 4.67 of 5: all five
        assert!(!claim.judge(&runs(5, 1)).holds);
    }

    #[test]
    fn judge__orders_over_variants_and_sessions() {
        let rising = "measure = \"final-rate\"\nunit = \"Mb/s\"\n";
        let variants = claim(&format!("{rising}over_variants = \"increasing\"")).unwrap();
        assert!(variants.judge(&[vec![vec![1e6]], vec![vec![2e6]]]).holds);
        let miss = variants.judge(&[vec![vec![2e6]], vec![vec![1e6]]]);
        assert!(!miss.holds);
        assert_eq!(miss.ours, ClaimValue::Text("2, 1".to_owned()));
        let sessions = claim(&format!("{rising}over_sessions = \"increasing\"")).unwrap();
        assert!(sessions.judge(&[vec![vec![1e6, 2e6, 3e6]]]).holds);
        assert!(!sessions.judge(&[vec![vec![1e6, 3e6, 2e6]]]).holds);
    }

    #[test]
    fn judge__spread_is_a_share() {
        let claim = claim("measure = \"final-rate\"\nunit = \"%\"\nover_sessions = \"spread\"\nat_most = 15").unwrap();
        let within = claim.judge(&[vec![vec![100e6, 110e6]]]);
        assert!(within.holds, "{within:?}"); // 10 / 105 = 9.5 %
        assert!(!claim.judge(&[vec![vec![100e6, 150e6]]]).holds);
    }

    #[test]
    fn judge__gives_a_condition_only_for_a_claim_that_holds() {
        let claim = claim("measure = \"peak-overload\"\nat_most = 1.15\ncondition = \"in fluids\"").unwrap();
        assert_eq!(claim.judge(&[vec![vec![1.0]]]).condition.as_deref(), Some("in fluids"));
        assert_eq!(claim.judge(&[vec![vec![1.5]]]).condition, None);
    }

    #[test]
    fn judge__gives_a_reason_only_for_a_miss() {
        let claim = claim("measure = \"peak-overload\"\nat_most = 1.15\nreason = \"refuted\"").unwrap();
        assert_eq!(claim.judge(&[vec![vec![1.0]]]).reason, None);
        assert_eq!(claim.judge(&[vec![vec![1.5]]]).reason.as_deref(), Some("refuted"));
    }
}
