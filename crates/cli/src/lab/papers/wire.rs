//! Experiments with real programs: the testbed, as the catalogue requests it, and its reports.

#[cfg(feature = "testbed")]
mod programs;

use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};

#[cfg(not(feature = "testbed"))]
use fairwave_catalogue::OnTestbed;
use fairwave_catalogue::{ExperimentOutcome, WireNotes};
#[cfg(not(feature = "testbed"))]
use fairwave_scenario::{Scenario, Settings};

use crate::common::failure::{CommandFailure, Done};
use crate::common::terminal::{WARY, paint};

#[cfg(feature = "testbed")]
pub(super) use programs::{enter, on_testbed};

/// Runs that failed on an available testbed: failures, not skips.
#[derive(Default)]
pub(super) struct Broken(Mutex<Vec<String>>);

impl Broken {
    /// A failure of the command, if there was one.
    pub(super) fn into_done(self) -> Done {
        let failures = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        if failures.is_empty() { Ok(()) } else { Err(CommandFailure::Run(failures.join("\n"))) }
    }
}

/// Without the testbed these runs are skipped.
#[cfg(not(feature = "testbed"))]
pub(super) fn on_testbed(_: &Scenario, _: Settings<'_>, _: &Broken) -> Result<OnTestbed, String> {
    Ok(OnTestbed::Skipped { reason: "this build has no testbed".to_owned() })
}

/// Adds the notes of a run with real programs to its claims.
pub(super) fn append_notes(text: &mut String, notes: &WireNotes) {
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
