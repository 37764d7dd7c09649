//! Experiments with real programs: the testbed, as the catalogue requests it, and its reports.

use std::fmt::Write as _;
use std::sync::{Mutex, OnceLock, PoisonError};

use fairwave_catalogue::{ExperimentOutcome, OnTestbed, RanOnTestbed, WireNotes, select};
use fairwave_scenario::{Scenario, Settings};
use fairwave_testbed::{Error, Options, Outcome};

use crate::common::failure::{CommandFailure, Done};
use crate::common::terminal::{WARY, paint};

/// Whether this process may have namespaces; the error is the reason why not.
static ENTERED: OnceLock<Result<(), String>> = OnceLock::new();

/// Enters namespaces if these experiments need them: call it before the process has a second thread. If the system
/// forbids it, they are skipped.
pub(super) fn enter(ids: &[String]) {
    let is_wired = select(ids).is_ok_and(|chosen| chosen.iter().any(|experiment| experiment.wire.is_some()));
    if is_wired {
        // Set once: this is the beginning of the process.
        let _ = ENTERED.set(fairwave_testbed::enter().map_err(|error| error.to_string()));
    }
}

/// Runs that failed on an available testbed: failures, not skips.
#[derive(Default)]
pub(super) struct Broken(Mutex<Vec<String>>);

impl Broken {
    /// Notes a failure, unless it is that of a system without namespaces; in words.
    fn note(&self, scenario: &str, error: &Error) -> String {
        let text = error.to_string();
        if !matches!(error, Error::Closed(_)) {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(format!("{scenario}: {text}"));
        }
        text
    }

    /// A failure of the command, if there was one.
    pub(super) fn into_done(self) -> Done {
        let failures = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        if failures.is_empty() { Ok(()) } else { Err(CommandFailure::Run(failures.join("\n"))) }
    }
}

/// Runs a scenario on the testbed. Runs that did not happen are reported as skipped, so that the report has the others.
pub(super) fn on_testbed(scenario: &Scenario, settings: Settings<'_>, broken: &Broken) -> Result<OnTestbed, String> {
    let failed = |error: Error| broken.note(&scenario.name, &error);
    ENTERED.get().cloned().unwrap_or_else(|| Err("the testbed's namespaces were not created".to_owned()))?;
    let options = Options::of_this_program().map_err(failed)?;
    let outcome = fairwave_testbed::run(scenario, settings, &options).map_err(failed)?;
    Ok(match outcome {
        Outcome::Skipped { reason, .. } => OnTestbed::Skipped { reason: format!("machine busy: {reason}") },
        Outcome::Ran(wired) => OnTestbed::Ran(Box::new(RanOnTestbed {
            lateness: wired.lateness.to_string(),
            times: wired.times_are_good,
            why: wired.why,
            run: wired.run,
        })),
    })
}

/// Adds the notes of a run with real programs to its claims.
pub(super) fn told(text: &mut String, notes: &WireNotes) {
    if notes.scale < 1.0 {
        let _ = writeln!(text, "  scaled: {} of these rates and sizes", notes.scale);
    }
    for line in &notes.lateness {
        let _ = writeln!(text, "  {line}");
    }
    if let Some(reason) = &notes.skipped {
        let _ = writeln!(text, "  {} {reason}", paint(WARY, "skipped"));
    }
    for claim in &notes.not_judged {
        let _ = writeln!(text, "  {} {}: {}", paint(WARY, "not judged"), claim.what, claim.reason);
    }
    for line in &notes.why {
        let _ = writeln!(text, "  why: {line}");
    }
}

/// The number of claims without a verdict; `None` if all have one.
pub(super) fn unjudged(outcomes: &[ExperimentOutcome]) -> Option<String> {
    let notes = || outcomes.iter().filter_map(|outcome| outcome.wire.as_ref());
    let skipped = notes().filter(|notes| notes.skipped.is_some()).count();
    let not_judged: usize = notes().map(|notes| notes.not_judged.len()).sum();
    let all = (skipped, not_judged) != (0, 0);
    all.then(|| format!("no verdict: {skipped} experiments skipped, {not_judged} claims not judged"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken__is_what_failed_and_not_what_is_closed() {
        let broken = Broken::default();
        assert_eq!(broken.note("a", &Error::Closed("no user namespaces".to_owned())), "no user namespaces");
        broken.into_done().unwrap();
        let broken = Broken::default();
        broken.note("b", &Error::System(std::io::Error::other("no device")));
        let CommandFailure::Run(text) = broken.into_done().unwrap_err() else { panic!("a failure of the run") };
        assert_eq!(text, "b: testbed: no device");
    }
}
