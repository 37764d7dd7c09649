//! Number of claims by verdict.

use serde::Serialize;

use crate::outcome::ExperimentOutcome;
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
    /// Claims whose value a paper states (source "paper"), without the refuted ones.
    pub printed: usize,
    /// Those of them that hold.
    pub printed_holds: usize,
    /// Printed values that were used for calibration and that come out: they show nothing. One that does not come out
    /// is a miss.
    pub calibrated: usize,
    /// Claims of experiments that repeat another.
    pub repeated: usize,
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
            outcome.claims.iter().for_each(|claim| counts.add(claim.verdict, claim.source));
        }
        counts
    }

    /// Counts of a single outcome.
    pub fn of_one(outcome: &ExperimentOutcome) -> Self {
        let mut counts = Self { experiments: 1, ..Self::default() };
        outcome.claims.iter().for_each(|claim| counts.add(claim.verdict, claim.source));
        counts
    }

    /// Adds a claim, with the source of its stated value.
    pub(crate) fn add(&mut self, verdict: Verdict, source: &str) {
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
            self.printed += 1;
            self.printed_holds += usize::from(verdict == Verdict::Holds);
        }
    }

    /// The counts in a sentence.
    pub fn sentence(&self) -> String {
        let repeated = match self.repeated {
            0 => String::new(),
            repeated => format!(" ({repeated} more are repeats of them)"),
        };
        let calibrated = match self.calibrated {
            0 => String::new(),
            calibrated => format!(" Not counted, as something unstated was chosen by them: {calibrated}."),
        };
        format!(
            "{} of {} claims hold in {} experiments{repeated}; refuted, each with its proof: {}; known misses, each with \
             its reason: {}; misses without a reason: {}. Of {} stated and unrefuted values of the papers, {} hold.{calibrated}",
            self.holds,
            self.claims,
            self.experiments,
            self.refuted,
            self.known_misses,
            self.misses,
            self.printed,
            self.printed_holds,
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
        assert_eq!(alone.claims, original.claims.len());
        assert_eq!(alone.claims, alone.holds + alone.refuted + alone.known_misses + alone.misses);
        // By itself a repeat counts; together with the original it does not.
        assert_eq!(VerdictCounts::of(std::slice::from_ref(&repeat)).claims, alone.claims);
        let both = VerdictCounts::of(&[original, repeat]);
        assert_eq!((both.claims, both.repeated, both.experiments), (alone.claims, alone.claims, 2));
    }

    #[test]
    fn add__counts_printed_and_unrefuted_claims() {
        let mut counts = VerdictCounts::default();
        for (verdict, source) in [
            (Verdict::Holds, "paper"),
            (Verdict::KnownMiss, "paper"),
            (Verdict::Refuted, "paper"),
            (Verdict::Holds, "ours"),
            (Verdict::Miss, "derived"),
            (Verdict::Holds, "calibrated"),
        ] {
            counts.add(verdict, source);
        }
        assert_eq!((counts.claims, counts.holds, counts.refuted), (5, 2, 1));
        assert_eq!((counts.known_misses, counts.misses), (1, 1));
        assert_eq!((counts.printed, counts.printed_holds, counts.calibrated), (2, 1, 1));
        assert!(counts.sentence().ends_with("chosen by them: 1."), "{}", counts.sentence());
        // A calibration without its effect is a miss.
        counts.add(Verdict::Miss, "calibrated");
        assert_eq!((counts.claims, counts.misses, counts.calibrated), (6, 2, 1));
    }
}
