//! Runs scenarios, the cases of a file on all cores.

use std::str::FromStr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Instant;

use fairwave_catalogue::lab;
use fairwave_scenario::{Case, Document, Record, ScenarioError as Mistake, Selection, Settings};
use fairwave_schemes::scheme::Model;
use fairwave_units::{Duration, ParseError, Time};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::error::{parse_error, scenario_error};
use crate::interrupt::{Stop, interruptible};
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

/// Runs every case of a scenario: the runs in order, and notes for people. `model` is "fluid", "packet" or None for the
/// scenario's usual one.
#[pyfunction]
#[pyo3(signature = (file, text, changes, window, model))]
pub(crate) fn simulate(
    py: Python<'_>,
    file: &str,
    text: &[u8],
    changes: Changes,
    window: Option<(String, String)>,
    model: Option<&str>,
) -> PyResult<(Vec<Run>, Vec<String>)> {
    let selection = changes.selection(py)?;
    let window = match window {
        Some((from, to)) => Some(parse_window(py, &from, &to)?),
        None => None,
    };
    let model =
        model.map(|name| lab::MODELS.iter().copied().find(|model| model.name() == name).ok_or(name)).transpose();
    let model = model.map_err(|name| {
        PyValueError::new_err(format!("model: there is no model \"{name}\"\nhint: use \"fluid\" or \"packet\""))
    })?;
    let (document, cases) = py
        .detach(|| {
            let document = Document::parse(file, text)?;
            let cases = document.cases(&selection)?;
            Ok((document, cases))
        })
        .map_err(|mistake| scenario_error(py, &mistake))?;
    let lab = Lab { file, document: &document, cases: &cases, window, model };
    let (mut runs, mut notes) = (Vec::new(), Vec::new());
    for outcome in interruptible(py, |stop| lab.run_all(stop))? {
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
    model: Option<Model>,
}

type Outcome = Result<(Run, Vec<String>), Mistake>;

impl Lab<'_> {
    /// Outcomes in the order of the cases, up to the first mistake.
    fn run_all(&self, stop: &Stop) -> Vec<Outcome> {
        let workers = std::thread::available_parallelism().map_or(1, usize::from).min(self.cases.len());
        let next = &AtomicUsize::new(0);
        let mut outcomes: Vec<Option<Outcome>> = self.cases.iter().map(|_| None).collect();
        std::thread::scope(|scope| {
            let (sender, receiver) = mpsc::channel();
            for _ in 0..workers {
                let sender = sender.clone();
                scope.spawn(move || {
                    while let Some((index, outcome)) = self.run_next(next, stop) {
                        if outcome.is_err() {
                            next.store(self.cases.len(), Ordering::Relaxed);
                        }
                        sender.send((index, outcome)).ok(); // the receiver stays until all senders are gone
                    }
                });
            }
            drop(sender);
            for (index, outcome) in receiver {
                outcomes[index] = Some(outcome);
            }
        });
        // Cases are taken in order, so all before the first mistake have an outcome.
        outcomes.into_iter().map_while(|outcome| outcome).collect()
    }

    /// Runs the next case that nobody has taken; `None` when there is none or when it was stopped.
    fn run_next(&self, next: &AtomicUsize, stop: &Stop) -> Option<(usize, Outcome)> {
        let index = next.fetch_add(1, Ordering::Relaxed);
        let case = self.cases.get(index)?;
        Some((index, Stop::part(|| self.run_case(case, stop))?))
    }

    fn run_case(&self, case: &Case, stop: &Stop) -> Outcome {
        let (scenario, notes) = self.document.build(case)?;
        let mut progress = |_| stop.check();
        let settings = Settings {
            record: Record { rates: true, queues: true, windows: true, distances: true },
            window: self.window,
            progress: Some(&mut progress),
            trace: None,
        };
        let began = Instant::now();
        let mut run = lab::simulate(&scenario, self.model, settings).map_err(|error| {
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
