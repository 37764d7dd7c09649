//! Sweeps.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use fairwave_catalogue::{in_order, memory};
use fairwave_study::{Grid, Parameter, Results, Row, Seeds, Study, StudyCall, StudyError, decode, encode};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::error::failed;
use crate::interrupt::{Stop, interruptible};
use crate::own::{GivenRule, OwnRules, check_signals};
use crate::simulate::{Changes, parse_model, parse_window};
use crate::table::columns;

/// A sweep with its results so far, for `fairwave.sweep` to drive.
#[pyclass(frozen, module = "fairwave._core")]
pub(crate) struct Sweep {
    study: Study,
    results: Mutex<Option<Results>>,
    own: Option<OwnRules>,
}

/// The parts of a sweep, as passed from Python.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct SweepCall {
    changes: Changes,
    grid: Vec<(String, Vec<String>)>,
    seeds: Option<GivenSeeds>,
    model: Option<String>,
    window: Option<(String, String)>,
    salt: Vec<u8>,
    jobs: usize,
}

/// Seeds as the caller said them.
#[derive(FromPyObject)]
enum GivenSeeds {
    Count(u64),
    These(Vec<u64>),
}

#[pymethods]
impl Sweep {
    /// Checks the call, and finds existing results. Without `out` the results are in memory.
    #[new]
    #[pyo3(signature = (file, text, call, out, resume, own=Vec::new()))]
    fn new(
        py: Python<'_>,
        file: &str,
        text: &[u8],
        call: SweepCall,
        out: Option<PathBuf>,
        resume: bool,
        own: Vec<GivenRule>,
    ) -> PyResult<Self> {
        let SweepCall { changes, grid, seeds, model, window, salt, jobs } = call;
        let mut whole = Grid::default();
        for (path, values) in grid {
            whole.add(Parameter { path, values }).map_err(|error| failed(py, &error))?;
        }
        let own = OwnRules::read(own)?;
        let call = StudyCall {
            own: own.as_ref().map_or(&[], OwnRules::schemes),
            selection: changes.selection(py)?,
            grid: whole,
            seeds: match seeds {
                None => Seeds::OfFile,
                Some(GivenSeeds::Count(count)) => Seeds::Count(count),
                Some(GivenSeeds::These(seeds)) => Seeds::These(seeds),
            },
            model: parse_model(model.as_deref())?,
            window: window.map(|(from, to)| parse_window(py, &from, &to)).transpose()?,
            salt,
            memory: memory::available_bytes(),
            jobs,
        };
        let plan = || Study::plan(file, text, call);
        let study = match &own {
            None => py.detach(plan),
            Some(own) => own.during(py, plan)?,
        };
        let study = study.map_err(|error| failed(py, &error))?;
        let results = py.detach(|| match out {
            Some(out) => Results::begin(&study, &out, resume),
            None => Ok(Results::in_memory(&study)),
        });
        Ok(Self { study, results: Mutex::new(Some(results.map_err(|error| failed(py, &error))?)), own })
    }

    /// Notes for people.
    fn notes(&self) -> Vec<String> {
        self.study.notes().to_vec()
    }

    /// How many runs there are.
    fn runs(&self) -> usize {
        self.study.len()
    }

    /// How many runs have a row. From any thread.
    fn done(&self) -> usize {
        self.lock().as_ref().map_or(0, Results::done)
    }

    /// Numbers of the runs without a row.
    fn missing(&self) -> Vec<usize> {
        self.lock().as_ref().map(Results::missing).unwrap_or_default()
    }

    /// The key that identifies a run.
    fn key(&self, run: usize) -> PyResult<String> {
        self.check(run)?;
        Ok(self.study.key(run).to_string())
    }

    /// Columns that say which run a row is.
    fn own_columns(&self) -> Vec<String> {
        self.study.own_columns()
    }

    /// Runs all that are missing, `jobs` side by side; with rules of the caller's own one by one.
    fn run(&self, py: Python<'_>, jobs: usize) -> PyResult<()> {
        let missing = self.missing();
        if let Some(own) = &self.own {
            for run in missing {
                let row = own.during(py, || self.study.run(run, &mut |_| check_signals()))?;
                self.keep(run, &row.map_err(|error| failed(py, &error))?).map_err(|error| failed(py, &error))?;
            }
            return Ok(());
        }
        let outcome = interruptible(py, |stop| {
            // `None` is the error of a run that was stopped.
            let one = |index: usize| {
                let run = missing[index];
                let row = Stop::part(|| self.study.run(run, &mut |_| stop.check())).ok_or(None)?;
                row.and_then(|row| self.keep(run, &row)).map_err(Some)
            };
            in_order(missing.len(), jobs.clamp(1, 1024), one, |ended| {
                while let Some((_, outcome)) = ended.wait() {
                    match outcome {
                        Err(Some(error)) => return Err(error),
                        Err(None) => break,
                        Ok(()) => {}
                    }
                }
                Ok(())
            })
        })?;
        outcome.map_err(|error| failed(py, &error))
    }

    /// Runs one and gives its row as bytes, for another process to add.
    fn one<'py>(&self, py: Python<'py>, run: usize) -> PyResult<Bound<'py, PyBytes>> {
        self.check(run)?;
        let row = match &self.own {
            Some(own) => own.during(py, || self.study.run(run, &mut |_| check_signals()))?,
            // A worker's threads are not main threads: its scheduler ends it as a process.
            None => py.detach(|| self.study.run(run, &mut |_| {})),
        };
        let mut bytes = Vec::new();
        encode(&row.map_err(|error| failed(py, &error))?, &mut bytes);
        Ok(PyBytes::new(py, &bytes))
    }

    /// Adds a row that another process made.
    fn add(&self, py: Python<'_>, run: usize, key: &str, row: &[u8]) -> PyResult<()> {
        self.check(run)?;
        let mine = self.study.key(run).to_string();
        if mine != key {
            return Err(PyRuntimeError::new_err(format!(
                "run {run} is {mine} here but {key} at a worker\nhint: install the same build of fairwave on every \
                 worker"
            )));
        }
        let row = decode(row).ok_or_else(|| PyRuntimeError::new_err(format!("run {run}: a worker sent no row")))?;
        // A task of another call may have made it.
        self.keep(run, &self.study.relabelled(run, row)).map_err(|error| failed(py, &error))
    }

    /// The existing rows as columns, in the order of the sweep.
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let table = py.detach(|| self.lock().as_ref().map(Results::table).transpose());
        columns(py, table.map_err(|error| failed(py, &error))?.unwrap_or_default())
    }

    /// Whether every point has the same numbers with each of its seeds.
    fn seeds_change_nothing(&self) -> bool {
        self.lock().as_ref().is_some_and(Results::seeds_change_nothing)
    }

    /// Writes the file and lets go of it. Nothing may be added afterwards.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        let results = self.lock().take();
        let done = py.detach(|| results.map(Results::finish).transpose());
        done.map(drop).map_err(|error| failed(py, &error))
    }
}

impl Sweep {
    fn lock(&self) -> MutexGuard<'_, Option<Results>> {
        self.results.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, run: usize, row: &Row) -> Result<(), StudyError> {
        self.lock().as_mut().map_or(Ok(()), |results| results.add(run, row))
    }

    fn check(&self, run: usize) -> PyResult<()> {
        if run < self.study.len() { Ok(()) } else { Err(PyValueError::new_err(format!("no run {run}"))) }
    }
}

/// Standard errors of a mean to either side that make its 95 % interval, with this many degrees of freedom.
#[pyfunction]
pub(crate) fn t_95(degrees: usize) -> f64 {
    fairwave_study::t_95(degrees)
}
