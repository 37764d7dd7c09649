//! Runs scenarios, the cases of a file on all cores.

use std::str::FromStr;
use std::time::Instant;

use fairwave_catalogue::{in_order, lab, memory};
use fairwave_scenario::{Case, Document, Record, ScenarioError as Mistake, Selection, Settings, WorkKind};
use fairwave_schemes::scheme::Model;
use fairwave_units::{Duration, ParseError, Time};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::error::{parse_error, scenario_error};
use crate::interrupt::{Stop, interruptible};
use crate::own::{GivenRule, OwnRules, check_signals};
use crate::run::{Run, ways};

/// The caller's changes to a file.
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
/// scenario's usual one. `only_one` refuses more than one run.
#[pyfunction]
#[pyo3(signature = (file, text, changes, window, model, only_one, own=Vec::new()))]
#[expect(clippy::too_many_arguments, reason = "those of the Python function, one by one")]
pub(crate) fn simulate(
    py: Python<'_>,
    file: &str,
    text: &[u8],
    changes: Changes,
    window: Option<(String, String)>,
    model: Option<&str>,
    only_one: bool,
    own: Vec<GivenRule>,
) -> PyResult<(Vec<Run>, Vec<String>)> {
    let selection = changes.selection(py)?;
    let window = match window {
        Some((from, to)) => Some(parse_window(py, &from, &to)?),
        None => None,
    };
    let model = parse_model(model)?;
    let own = OwnRules::read(own)?;
    let prepare = || {
        let document = fairwave_catalogue::document(file, text)?;
        let cases = document.cases(&selection)?;
        if only_one && cases.len() > 1 {
            return Err(several(file, &cases));
        }
        let side_by_side = if own.is_some() { 1 } else { workers(&cases) };
        let work = WorkKind::Run(model.unwrap_or(Model::Fluid), RECORD);
        check_memory(file, &document, &cases, work, side_by_side)?;
        Ok((document, cases))
    };
    let prepared = match &own {
        None => py.detach(prepare),
        Some(own) => own.during(py, prepare)?,
    };
    let (document, cases) = prepared.map_err(|mistake| scenario_error(py, &mistake))?;
    let lab = RunningCases { file, document: &document, cases: &cases, window, model };
    let (mut runs, mut notes) = (Vec::new(), Vec::new());
    let outcome = match &own {
        None => interruptible(py, |stop| lab.run_all(stop))?,
        Some(own) => own.during(py, || cases.iter().map(|case| lab.run_case(case, &check_signals)).collect())?,
    };
    for (run, more) in outcome.map_err(|mistake| scenario_error(py, &mistake))? {
        runs.push(run);
        notes.extend(more);
    }
    Ok((runs, notes))
}

/// The text of a shipped scenario by its name; `None` for an unknown name.
#[pyfunction]
pub(crate) fn shipped(name: &str) -> Option<&'static str> {
    fairwave_catalogue::scenario_text(name)
}

/// One run was asked for, and there are more.
fn several(file: &str, cases: &[Case]) -> Mistake {
    let mut labels: Vec<&str> = cases.iter().filter_map(|case| case.variant.as_deref()).collect();
    labels.dedup();
    let hint = format!("choose a variant: {}", labels.join(", "));
    let message = format!("runs=1 requires a single run, the file has {}", cases.len());
    Mistake { file: file.to_owned(), line: None, message, hint: Some(hint) }
}

/// How many cases run side by side.
fn workers(cases: &[Case]) -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(cases.len())
}

/// Refuses what takes more memory than there is, before any scenario is made.
pub(crate) fn check_memory(
    file: &str,
    document: &Document,
    cases: &[Case],
    work: WorkKind,
    side_by_side: usize,
) -> Result<(), Mistake> {
    let Some(limit) = memory::available_bytes() else { return Ok(()) };
    let mut cases: Vec<&Case> = cases.iter().collect();
    cases.dedup_by(|a, b| a.variant == b.variant);
    for size in cases.into_iter().filter_map(|case| document.size(case)) {
        size.check(work, side_by_side as u64, limit).map_err(|error| Mistake {
            file: file.to_owned(),
            line: None,
            message: error.to_string(),
            hint: Some("use fewer sessions, a longer sample or a machine with more memory".to_owned()),
        })?;
    }
    Ok(())
}

/// The model of that name.
pub(crate) fn parse_model(name: Option<&str>) -> PyResult<Option<Model>> {
    let model = name.map(|name| lab::MODELS.iter().copied().find(|model| model.name() == name).ok_or(name)).transpose();
    model.map_err(|name| {
        PyValueError::new_err(format!("model: unknown model \"{name}\"\nhint: use \"fluid\" or \"packet\""))
    })
}

pub(crate) fn parse_window(py: Python<'_>, from: &str, to: &str) -> PyResult<(Time, Time)> {
    let window: (Time, Time) = (parse(py, "window", from)?, parse(py, "window", to)?);
    if window.0 < window.1 {
        return Ok(window);
    }
    let message = format!("\"{from}..{to}\" must end after it starts");
    Err(scenario_error(py, &Mistake { file: "window".to_owned(), line: None, message, hint: None }))
}

/// The quantity that a text of the call stands for; `argument` is its name.
pub(crate) fn parse<T: FromStr<Err = ParseError>>(py: Python<'_>, argument: &str, text: &str) -> PyResult<T> {
    text.parse().map_err(|error| parse_error(py, argument, &error))
}

/// Python may ask for any table of a run later.
const RECORD: Record = Record { rates: true, queues: true, windows: true, distances: true };

/// A file's cases while they run.
struct RunningCases<'a> {
    file: &'a str,
    document: &'a Document,
    cases: &'a [Case],
    window: Option<(Time, Time)>,
    model: Option<Model>,
}

type Outcome = Result<(Run, Vec<String>), Mistake>;

impl RunningCases<'_> {
    /// The results of the cases, in their order, or the first mistake; the cases so far if it was stopped.
    fn run_all(&self, stop: &Stop) -> Result<Vec<(Run, Vec<String>)>, Mistake> {
        // `None` is the error of a case that was stopped.
        let one = |index: usize| match Stop::part(|| self.run_case(&self.cases[index], &|| stop.check())) {
            Some(outcome) => outcome.map_err(Some),
            None => Err(None),
        };
        in_order(self.cases.len(), workers(self.cases), one, |outcomes| {
            let mut runs = Vec::with_capacity(self.cases.len());
            while let Some((_, outcome)) = outcomes.wait() {
                match outcome {
                    Ok(run) => runs.push(run),
                    Err(Some(mistake)) => return Err(mistake),
                    Err(None) => break,
                }
            }
            Ok(runs)
        })
    }

    fn run_case(&self, case: &Case, check: &dyn Fn()) -> Outcome {
        let (scenario, notes) = self.document.build(case)?;
        let mut progress = |_| check();
        let settings = Settings { record: RECORD, window: self.window, progress: Some(&mut progress), trace: None };
        let began = Instant::now();
        let mut run = lab::simulate(&scenario, self.model, settings).map_err(|error| Mistake {
            file: self.file.to_owned(),
            line: None,
            message: error.message(),
            hint: error.hint(),
        })?;
        run.summary.engine.set_wall_s(began.elapsed().as_secs_f64());
        let ways = ways(&scenario, &run);
        Ok((Run { run, title: scenario.title, ways }, notes))
    }
}
