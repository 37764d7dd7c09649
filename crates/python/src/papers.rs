//! The experiments of the papers.

use std::sync::Arc;

use fairwave_catalogue::{Experiment, RunError, RunOptions};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::interrupt::{Stop, interruptible};
use crate::run::{Run, ways};

/// The result of one experiment, for `fairwave.papers.Outcome` to wrap.
#[pyclass(frozen, module = "fairwave._core")]
pub(crate) struct Outcome {
    outcome: fairwave_catalogue::ExperimentOutcome,
    runs: Vec<Py<Run>>,
}

#[pymethods]
impl Outcome {
    /// Its statement, in a line.
    #[getter]
    fn title(&self) -> &str {
        &self.outcome.experiment.title
    }

    /// The figure, table or equation.
    #[getter]
    fn cites(&self) -> &str {
        &self.outcome.experiment.cites
    }

    /// A note for the reader, or None.
    #[getter]
    fn note(&self) -> Option<&str> {
        self.outcome.experiment.note.as_deref()
    }

    /// The runs that its picture shows.
    #[getter]
    fn runs(&self, py: Python<'_>) -> Vec<Py<Run>> {
        self.runs.iter().map(|run| run.clone_ref(py)).collect()
    }

    /// Id, claims and wall time as JSON text.
    fn json(&self) -> PyResult<String> {
        serde_json::to_string(&self.outcome).map_err(|error| PyRuntimeError::new_err(error.to_string()))
    }
}

/// Columns `id`, `title`, `cites`, `scenario`, `claims`, `note` of all experiments.
#[pyfunction]
pub(crate) fn papers_list(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let columns = PyDict::new(py);
    columns.set_item("id", column(|experiment| &experiment.id))?;
    columns.set_item("title", column(|experiment| &experiment.title))?;
    columns.set_item("cites", column(|experiment| &experiment.cites))?;
    columns.set_item("scenario", column(|experiment| &experiment.scenario))?;
    columns.set_item("claims", column(Experiment::claim_count))?;
    columns.set_item("note", column(|experiment| &experiment.note))?;
    Ok(columns)
}

fn column<T>(entry: impl Fn(&'static Experiment) -> T) -> Vec<T> {
    fairwave_catalogue::list().iter().map(entry).collect()
}

/// Runs the experiments that a paper's or an experiment's id names.
#[pyfunction]
#[pyo3(signature = (id, quick))]
pub(crate) fn papers_run(py: Python<'_>, id: &str, quick: bool) -> PyResult<Vec<Outcome>> {
    let chosen = fairwave_catalogue::select(&[id]).map_err(|error| PyValueError::new_err(format!("id: {error}")))?;
    let run_all = |stop: &Stop| -> Result<Vec<_>, RunError> {
        let mut outcomes = Vec::with_capacity(chosen.len());
        fairwave_catalogue::run_all(&chosen, RunOptions { quick }, &|_| stop.check(), &mut |outcome| {
            outcomes.push(outcome);
            true
        })?;
        Ok(outcomes)
    };
    let outcomes = interruptible(py, run_all)?.map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    outcomes.into_iter().map(|outcome| wrap(py, outcome)).collect()
}

fn wrap(py: Python<'_>, mut outcome: fairwave_catalogue::ExperimentOutcome) -> PyResult<Outcome> {
    let runs = std::mem::take(&mut outcome.shown)
        .into_iter()
        .map(|shown| {
            let shown = Arc::unwrap_or_clone(shown);
            let ways = ways(&shown.scenario, &shown.run);
            Py::new(py, Run { run: shown.run, title: shown.scenario.title, ways })
        })
        .collect::<PyResult<_>>()?;
    Ok(Outcome { outcome, runs })
}
