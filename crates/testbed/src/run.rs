//! A run of a scenario: calibrated, repeated if the machine was busy, and reported like a run of the simulators.

use std::time::Duration as StdDuration;

use fairwave_scenario::report::{Recording, run_of};
use fairwave_scenario::{MeanWindow, Run, Scenario, Settings};
use fairwave_schemes::scheme::Model;
use fairwave_units::Time;

use crate::attempt::{RunReports, attempt};
use crate::calibration::{Calibration, calibrate};
use crate::end_message::Sent;
use crate::error::Error;
use crate::lateness::Lateness;
use crate::plan::Plan;
use crate::programs::Processes;
use crate::tcp::check_congestion;

/// Duration of each of the two loads of a calibration.
const CALIBRATION: StdDuration = StdDuration::from_millis(500);
/// A session with less than this share of its max-min rate at its end misses it.
const MISSES: f64 = 0.95;

/// Options of a run.
pub struct Options<'a> {
    /// The program that is started at each node, with its arguments: it calls [`end`](crate::end()).
    pub command: Vec<String>,
    /// Distribution of a node's sessions over processes.
    pub processes: Processes,
    /// Number of attempts while the machine is busy.
    pub attempts: u32,
    /// Whether a run on a busy machine counts as one.
    pub accepts_busy: bool,
    /// Called about twenty times a second: whether to end now.
    pub is_interrupted: &'a dyn Fn() -> bool,
    /// Called with progress messages for users.
    pub tell: &'a dyn Fn(&str),
}

impl Options<'_> {
    /// The defaults of the command `fairwave`: this program itself is at each node.
    ///
    /// # Errors
    ///
    /// If the system does not know the path of this program.
    pub fn of_this_program() -> Result<Self, Error> {
        let program = std::env::current_exe()?;
        let program =
            program.into_os_string().into_string().map_err(|_| std::io::Error::other("its path is not valid UTF-8"))?;
        let command = vec![program, "testbed".into(), "end".into()];
        let processes = Processes::Node;
        Ok(Self { command, processes, attempts: 3, accepts_busy: false, is_interrupted: &|| false, tell: &|_| {} })
    }
}

/// Result of a scenario.
pub enum Outcome {
    /// A run.
    Ran(Box<Wired>),
    /// The machine was too busy at each attempt.
    Skipped {
        /// The reason why the last attempt is not a run of the scenario.
        reason: String,
        /// The relay's performance before it.
        calibration: Box<Calibration>,
        /// Lateness of the last attempt.
        lateness: Box<Lateness>,
    },
}

/// A run with real programs, and its accuracy.
pub struct Wired {
    /// The run, in the form common to all simulators.
    pub run: Run,
    /// The relay's performance before it.
    pub calibration: Calibration,
    /// Lateness during the run.
    pub lateness: Lateness,
    /// Number of attempts.
    pub attempts: u32,
    /// Whether times of the run may be judged; if not, why.
    pub times_are_good: Result<(), String>,
    /// For each session that misses its max-min rate, its limit.
    pub why: Vec<String>,
}

/// Checks that the testbed has all features that a scenario needs.
///
/// # Errors
///
/// The missing feature, and an alternative.
pub fn check(scenario: &Scenario) -> Result<(), Error> {
    Plan::of(scenario).map(drop)
}

/// A program that is its own end node does not measure other traffic of the card: daemons do.
fn refuse_yields(scenario: &Scenario, processes: Processes) -> Result<(), Error> {
    match scenario.nodes.iter().find(|node| node.yields.is_some()) {
        Some(node) if processes == Processes::Node => Err(Error::unfit(
            format!("node \"{}\" yields to other traffic, which requires a daemon per node", node.name),
            "use --processes session, or simulate it",
        )),
        _ => Ok(()),
    }
}

/// Runs a scenario. To be called after [`enter`](crate::enter).
///
/// # Errors
///
/// If the scenario needs features that the testbed does not have, the system refuses an operation, or a program fails.
/// A busy machine is not an error.
pub fn run(scenario: &Scenario, mut settings: Settings<'_>, options: &Options<'_>) -> Result<Outcome, Error> {
    let plan = Plan::of(scenario)?;
    refuse_yields(scenario, options.processes)?;
    for name in &plan.congestions {
        check_congestion(name).map_err(|error| {
            Error::unfit(
                error.to_string(),
                format!("run `sudo modprobe tcp_{name}` to load it, if the system provides it"),
            )
        })?;
    }
    let mut attempts = 0;
    loop {
        attempts += 1;
        let interrupted = || if (options.is_interrupted)() { Err(Error::Interrupted) } else { Ok(()) };
        let calibration = calibrate(&options.command, CALIBRATION, &mut || interrupted())?;
        (options.tell)(&calibration.to_string());
        let mut passed = Time::ZERO;
        let mut look = |now: StdDuration| {
            let now = Time::from_nanos(now.as_nanos() as u64);
            // Progress never decreases, even if a run is repeated.
            if let Some(progress) = settings.progress.as_mut().filter(|_| now > passed) {
                progress(now);
                passed = now;
            }
            interrupted()
        };
        let seen = attempt(&plan, options.processes, &options.command, &mut look)?;
        let lateness = Lateness::of(&seen);
        (options.tell)(&lateness.to_string());
        let Some(reason) = lateness.busy().filter(|_| !options.accepts_busy) else {
            return wired(scenario, &plan, &seen, (calibration, lateness, attempts), &settings);
        };
        (options.tell)(&format!("machine busy: {reason}"));
        if attempts >= options.attempts {
            let (calibration, lateness) = (Box::new(calibration), Box::new(lateness));
            return Ok(Outcome::Skipped { reason, calibration, lateness });
        }
    }
}

fn wired(
    scenario: &Scenario,
    plan: &Plan,
    seen: &RunReports,
    (calibration, lateness, attempts): (Calibration, Lateness, u32),
    settings: &Settings<'_>,
) -> Result<Outcome, Error> {
    let MeanWindow { from, to, closes_early } = MeanWindow::of(scenario, settings.window);
    let done = seen.ends.iter().flat_map(|end| end.arrived.values()).map(|one| one.completed_ns);
    // If every session ends by itself the window ends with the last of them.
    let last = done.collect::<Option<Vec<u64>>>().and_then(|done| done.into_iter().max());
    let to = last.filter(|_| closes_early).map_or(to, |last| Time::from_nanos(last).min(to).max(from));
    let window = (from, to);
    let counts = crate::counts::counts(scenario, plan, seen, window);
    let asked = Recording { window, record: settings.record };
    let run = run_of(scenario, Model::Testbed, counts, &asked, &mut |_| {})?;
    let times_are_good = lateness.times_are_good();
    let why = why(&run, seen);
    Ok(Outcome::Ran(Box::new(Wired { run, calibration, lateness, attempts, times_are_good, why })))
}

/// Limits, as reported by the ends, of sessions that are below their max-min rates at the end, or that ended early.
fn why(run: &Run, seen: &RunReports) -> Vec<String> {
    let mut lines = Vec::new();
    for (index, session) in run.summary.sessions.iter().enumerate() {
        let sink = seen.ends.iter().find_map(|end| end.arrived.get(&index));
        let source = seen.ends.iter().find_map(|end| end.sent.get(&index));
        if let Some(ended) = sink.and_then(|sink| sink.ended.as_ref()) {
            lines.push(ended_early(&session.name, ended, source));
            continue;
        }
        if session.final_wire_rate_bps >= MISSES * session.max_min_bps {
            continue;
        }
        let share = session.final_wire_rate_bps / session.max_min_bps * 100.0;
        let said = [("source", source.map(|one| &one.because)), ("sink", sink.map(|one| &one.because))];
        let said = said.into_iter().filter_map(|(end, said)| Some((end, said.filter(|said| !said.is_empty())?)));
        let said: Vec<_> = said.map(|(end, said)| format!("at the {end}: {said}")).collect();
        lines.push(format!("{}: {share:.0} % of its max-min rate; {}", session.name, said.join("; ")));
    }
    lines
}

/// The line of a session that ended early: the sink's reason, and the source's if it failed.
fn ended_early(name: &str, ended: &str, source: Option<&Sent>) -> String {
    let failed = source.and_then(|source| source.failed.as_ref());
    let at_source = failed.map_or_else(String::new, |failed| format!("; at the source: {failed}"));
    format!("{name}: {ended}{at_source}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ended_early__has_the_word_of_a_source_that_failed() {
        let failed = Sent { failed: Some("no TCP bbr".to_owned()), ..Sent::default() };
        assert_eq!(ended_early("a", "reset", Some(&failed)), "a: reset; at the source: no TCP bbr");
        assert_eq!(ended_early("a", "reset", Some(&Sent::default())), "a: reset");
        assert_eq!(ended_early("a", "reset", None), "a: reset");
    }
}
