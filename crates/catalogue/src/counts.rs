//! Number of claims by verdict.

use serde::Serialize;

use crate::outcome::ExperimentOutcome;
use crate::value_source::Form;
use crate::verdict::Verdict;

/// Number of claims by verdict. Claims of an experiment that repeats another one in the set are counted only in
/// `repeated`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct VerdictCounts {
    /// Experiments, including those that repeat others.
    pub experiments: usize,
    /// Claims, without the repeated and the calibrated ones: the sum of the next four.
    pub claims: usize,
    /// Those that hold.
    pub holds: usize,
    /// Claims whose printed value is proved wrong.
    pub refuted: usize,
    /// Known misses, with a reason.
    pub known_misses: usize,
    /// Misses.
    pub misses: usize,
    /// Numbers that a paper states (source "paper"), without the refuted ones.
    pub numbers: Judged,
    /// Orders that a paper states, without the refuted ones.
    pub orders: Judged,
    /// Statements of a paper in words, judged by our bar, without the refuted ones.
    pub words: Judged,
    /// Printed values that were used for calibration and that come out: they show nothing. One that does not come out
    /// is a miss.
    pub calibrated: usize,
    /// Claims of experiments that repeat another.
    pub repeated: usize,
}

/// Claims of one form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Judged {
    /// All of them.
    pub stated: usize,
    /// Those that hold.
    pub holds: usize,
}

impl VerdictCounts {
    /// Counts over some outcomes.
    pub fn of(outcomes: &[ExperimentOutcome]) -> Self {
        let is_there = |id: &str| outcomes.iter().any(|outcome| outcome.id == id);
        let mut counts = Self { experiments: outcomes.len(), ..Self::default() };
        for outcome in outcomes {
            if outcome.experiment.repeats.as_deref().is_some_and(is_there) {
                counts.repeated += outcome.claims.len();
                continue;
            }
            outcome.claims.iter().for_each(|claim| counts.add(claim.verdict, claim.source, claim.form));
        }
        counts
    }

    /// Counts of a single outcome.
    pub fn of_one(outcome: &ExperimentOutcome) -> Self {
        let mut counts = Self { experiments: 1, ..Self::default() };
        outcome.claims.iter().for_each(|claim| counts.add(claim.verdict, claim.source, claim.form));
        counts
    }

    /// Adds a claim, with the source and the form of its stated value.
    pub(crate) fn add(&mut self, verdict: Verdict, source: &str, form: Form) {
        if source == "calibrated" && verdict == Verdict::Holds {
            self.calibrated += 1;
            return;
        }
        self.claims += 1;
        *match verdict {
            Verdict::Holds => &mut self.holds,
            Verdict::Refuted => &mut self.refuted,
            Verdict::KnownMiss => &mut self.known_misses,
            Verdict::Miss => &mut self.misses,
        } += 1;
        if source == "paper" && verdict != Verdict::Refuted {
            let judged = match form {
                Form::Number => &mut self.numbers,
                Form::Order => &mut self.orders,
                Form::Words => &mut self.words,
            };
            judged.stated += 1;
            judged.holds += usize::from(verdict == Verdict::Holds);
        }
    }

    /// Printed values by form: "250 of 260 numbers, 75 of 80 orders and 60 of 61 statements in words".
    pub fn printed(&self) -> String {
        let Self { numbers, orders, words, .. } = self;
        format!(
            "{} of {} numbers, {} of {} orders and {} of {} statements in words",
            numbers.holds, numbers.stated, orders.holds, orders.stated, words.holds, words.stated
        )
    }

    /// The counts in a sentence.
    pub fn sentence(&self) -> String {
        let repeated = match self.repeated {
            0 => String::new(),
            repeated => format!(" ({repeated} more are repeats of them)"),
        };
        let noun = if self.experiments == 1 { "experiment" } else { "experiments" };
        let calibrated = match self.calibrated {
            0 => String::new(),
            calibrated => format!(" Not counted, since they were used to set up an experiment: {calibrated}."),
        };
        format!(
            "{} of {} claims hold in {} {noun}{repeated}; refuted, each with its proof: {}; known misses, each with \
             its reason: {}; misses without a reason: {}. Of what the papers print, {} hold; refuted ones are not \
             counted.{calibrated}",
            self.holds,
            self.claims,
            self.experiments,
            self.refuted,
            self.known_misses,
            self.misses,
            self.printed(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{RunOptions, run};

    #[test]
    fn counts__take_a_repeat_once() {
        let original = run("000/table2", RunOptions::default()).unwrap();
        let repeat = run("002/table-viii-2", RunOptions::default()).unwrap();
        assert_eq!(repeat.experiment.repeats.as_deref(), Some("000/table2"));
        let alone = VerdictCounts::of(std::slice::from_ref(&original));
        assert_eq!(alone.claims + alone.calibrated, original.claims.len());
        assert_eq!(alone.claims, alone.holds + alone.refuted + alone.known_misses + alone.misses);
        // By itself a repeat counts; together with the original it does not.
        assert_eq!(VerdictCounts::of(std::slice::from_ref(&repeat)).claims, alone.claims);
        assert!(alone.sentence().contains(" in 1 experiment;"), "{}", alone.sentence());
        let both = VerdictCounts::of(&[original, repeat]);
        assert_eq!((both.claims, both.repeated, both.experiments), (alone.claims, alone.claims + alone.calibrated, 2));
    }

    #[test]
    fn add__counts_printed_and_unrefuted_claims_by_their_form() {
        let mut counts = VerdictCounts::default();
        for (verdict, source, form) in [
            (Verdict::Holds, "paper", Form::Number),
            (Verdict::KnownMiss, "paper", Form::Number),
            (Verdict::Refuted, "paper", Form::Number),
            (Verdict::Holds, "paper", Form::Order),
            (Verdict::KnownMiss, "paper", Form::Words),
            (Verdict::Holds, "closed form", Form::Number),
            (Verdict::Holds, "ours", Form::Words),
            (Verdict::Miss, "derived", Form::Number),
            (Verdict::Holds, "calibrated", Form::Number),
        ] {
            counts.add(verdict, source, form);
        }
        assert_eq!((counts.claims, counts.holds, counts.refuted), (8, 4, 1));
        assert_eq!((counts.known_misses, counts.misses, counts.calibrated), (2, 1, 1));
        assert_eq!(counts.printed(), "1 of 2 numbers, 1 of 1 orders and 0 of 1 statements in words");
        assert!(counts.sentence().ends_with("set up an experiment: 1."), "{}", counts.sentence());
        // A calibration without its effect is a miss.
        counts.add(Verdict::Miss, "calibrated", Form::Number);
        assert_eq!((counts.claims, counts.misses, counts.calibrated), (9, 2, 1));
    }
}
