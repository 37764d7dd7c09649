//! Runs scenarios, the cases of a file on all cores, and lets Ctrl-C through.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration as Wall, Instant};

use fairwave_fluid::{Record, Settings};
use fairwave_scenario::{Case, Document, ScenarioError as Mistake, Selection};
use fairwave_units::{Duration, ParseError, Time};
use pyo3::prelude::*;

use crate::error::{parse_error, scenario_error};
use crate::run::Run;

/// What the caller changes about a file.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Changes {
    scheme: Option<String>,
    seed: Option<u64>,
    duration: Option<String>,
    set: Vec<(String, String)>,
    variant: Option<String>,
}

impl Changes {
    pub(crate) fn selection(self, py: Python<'_>) -> PyResult<Selection> {
        let duration = self.duration.map(|text| parse::<Duration>(py, "duration", &text)).transpose()?;
        let Self { scheme, seed, set, variant, .. } = self;
        Ok(Selection { scheme, seed, duration, set, variant })
    }
}

/// Runs every case of a scenario in the fluid model: the runs in order, and notes for people.
#[pyfunction]
#[pyo3(signature = (file, text, changes, window))]
pub(crate) fn simulate(
    py: Python<'_>,
    file: &str,
    text: &[u8],
    changes: Changes,
    window: Option<(String, String)>,
) -> PyResult<(Vec<Run>, Vec<String>)> {
    let selection = changes.selection(py)?;
    let window = match window {
        Some((from, to)) => Some(parse_window(py, &from, &to)?),
        None => None,
    };
    let (document, cases) = py
        .detach(|| {
            let document = Document::parse(file, text)?;
            let cases = document.cases(&selection)?;
            Ok((document, cases))
        })
        .map_err(|mistake| scenario_error(py, &mistake))?;
    let lab = Lab { file, document: &document, cases: &cases, window, stop: AtomicBool::new(false) };
    let (mut runs, mut notes) = (Vec::new(), Vec::new());
    for outcome in py.detach(|| lab.run_all())? {
        let (run, more) = outcome.map_err(|mistake| scenario_error(py, &mistake))?;
        runs.push(run);
        notes.extend(more);
    }
    Ok((runs, notes))
}

fn parse_window(py: Python<'_>, from: &str, to: &str) -> PyResult<(Time, Time)> {
    let window: (Time, Time) = (parse(py, "window", from)?, parse(py, "window", to)?);
    if window.0 < window.1 {
        return Ok(window);
    }
    let message = format!("\"{from}..{to}\" is no span of time: it must end after it begins");
    Err(scenario_error(py, &Mistake { file: "window".to_owned(), line: None, message, hint: None }))
}

/// The quantity that a text of the call stands for; `argument` is its name.
pub(crate) fn parse<T: FromStr<Err = ParseError>>(py: Python<'_>, argument: &str, text: &str) -> PyResult<T> {
    text.parse().map_err(|error| parse_error(py, argument, &error))
}

/// A file's cases while they run.
struct Lab<'a> {
    file: &'a str,
    document: &'a Document,
    cases: &'a [Case],
    window: Option<(Time, Time)>,
    stop: AtomicBool,
}

type Outcome = Result<(Run, Vec<String>), Mistake>;

/// What unwinds out of a simulation that Python asked to stop.
struct Stopped;

impl Lab<'_> {
    #[expect(clippy::redundant_closure_for_method_calls, reason = "the method is not general over its lifetime")]
    /// Outcomes in the order of the cases, up to the first mistake. Called without the interpreter's lock.
    fn run_all(&self) -> PyResult<Vec<Outcome>> {
        let workers = std::thread::available_parallelism().map_or(1, usize::from).min(self.cases.len());
        let next = AtomicUsize::new(0);
        let mut outcomes: Vec<Option<Outcome>> = self.cases.iter().map(|_| None).collect();
        std::thread::scope(|scope| {
            let (sender, receiver) = mpsc::channel();
            for _ in 0..workers {
                let (sender, next) = (sender.clone(), &next);
                scope.spawn(move || {
                    while let Some((index, outcome)) = self.run_next(next) {
                        if outcome.is_err() {
                            next.store(self.cases.len(), Ordering::Relaxed);
                        }
                        if sender.send((index, outcome)).is_err() {
                            break;
                        }
                    }
                });
            }
            drop(sender);
            loop {
                match receiver.recv_timeout(Wall::from_millis(50)) {
                    Ok((index, outcome)) => outcomes[index] = Some(outcome),
                    Err(mpsc::RecvTimeoutError::Timeout) => Python::attach(|py| py.check_signals())
                        .inspect_err(|_| self.stop.store(true, Ordering::Relaxed))?,
                    Err(mpsc::RecvTimeoutError::Disconnected) => return Ok::<(), PyErr>(()),
                }
            }
        })?;
        // Cases are taken in order, so all before the first mistake have an outcome.
        Ok(outcomes.into_iter().map_while(|outcome| outcome).collect())
    }

    /// Runs the next case that nobody has taken; `None` when there is none or when it was stopped.
    fn run_next(&self, next: &AtomicUsize) -> Option<(usize, Outcome)> {
        let index = next.fetch_add(1, Ordering::Relaxed);
        let case = self.cases.get(index)?;
        match catch_unwind(AssertUnwindSafe(|| self.run_case(case))) {
            Ok(outcome) => Some((index, outcome)),
            Err(cause) if cause.is::<Stopped>() => None,
            Err(cause) => resume_unwind(cause),
        }
    }

    fn run_case(&self, case: &Case) -> Outcome {
        let (scenario, notes) = self.document.build(case)?;
        let mut progress = |_| {
            if self.stop.load(Ordering::Relaxed) {
                // The only way out of a simulation before its end; run_next catches it, nothing is printed.
                resume_unwind(Box::new(Stopped));
            }
        };
        let settings = Settings {
            record: Record { rates: true, queues: true, distances: true },
            window: self.window,
            progress: Some(&mut progress),
        };
        let began = Instant::now();
        let mut run = fairwave_fluid::simulate(&scenario, settings).map_err(|error| {
            let text = error.to_string();
            let (message, hint) =
                text.split_once("\nhint: ").map_or((&*text, None), |(message, hint)| (message, Some(hint)));
            Mistake {
                file: self.file.to_owned(),
                line: None,
                message: message.to_owned(),
                hint: hint.map(str::to_owned),
            }
        })?;
        run.summary.engine.wall_s = began.elapsed().as_secs_f64();
        Ok((Run { run, title: scenario.title }, notes))
    }
}
