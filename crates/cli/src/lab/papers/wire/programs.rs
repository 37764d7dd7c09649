//! Experiments on the testbed.

use std::sync::{OnceLock, PoisonError};

use fairwave_catalogue::{OnTestbed, RanOnTestbed, select};
use fairwave_scenario::{Scenario, Settings};
use fairwave_testbed::{Error, Options, Outcome};

use super::Broken;

/// Whether this process may have namespaces; the error is the reason why not.
static ENTERED: OnceLock<Result<(), String>> = OnceLock::new();

/// Enters namespaces if these experiments need them: call it before the process has a second thread. If the system
/// forbids it, they are skipped.
pub(crate) fn enter(ids: &[String]) {
    let is_wired = select(ids).is_ok_and(|chosen| chosen.iter().any(|experiment| experiment.wire.is_some()));
    if is_wired {
        // Set once: this is the beginning of the process.
        let _ = ENTERED.set(fairwave_testbed::enter().map_err(|error| error.to_string()));
    }
}

impl Broken {
    /// Notes a failure, unless it is that of a system without namespaces; in words.
    fn note(&self, scenario: &str, error: &Error) -> String {
        let text = error.to_string();
        if !matches!(error, Error::Closed(_)) {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(format!("{scenario}: {text}"));
        }
        text
    }
}

/// Runs a scenario on the testbed. Runs that did not happen are reported as skipped, so that the report has the others.
pub(crate) fn on_testbed(scenario: &Scenario, settings: Settings<'_>, broken: &Broken) -> Result<OnTestbed, String> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::failure::CommandFailure;

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
