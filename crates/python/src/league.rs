//! The league.

use std::sync::atomic::{AtomicUsize, Ordering};

use fairwave_catalogue::{in_order, threads};
use fairwave_study::StudyError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::failed;
use crate::interrupt::{Stop, interruptible};
use crate::own::{GivenRule, OwnRules, check_signals};
use crate::table::columns;

/// A planned league, for `fairwave.league` to run.
#[pyclass(frozen, module = "fairwave._core")]
pub(crate) struct League {
    planned: fairwave_study::League,
    own: Option<OwnRules>,
    done: AtomicUsize,
}

#[pymethods]
impl League {
    #[new]
    fn new(py: Python<'_>, field: Option<Vec<String>>, own: Vec<GivenRule>) -> PyResult<Self> {
        let own = OwnRules::read(own)?;
        let plan = || fairwave_study::League::plan(field.as_deref(), own.as_ref().map_or(&[], OwnRules::schemes));
        let league = match &own {
            None => py.detach(plan),
            Some(own) => own.during(py, plan)?,
        };
        Ok(Self { planned: league.map_err(|error| failed(py, &error))?, own, done: AtomicUsize::new(0) })
    }

    /// How many runs there are.
    fn runs(&self) -> usize {
        self.planned.len()
    }

    /// How many runs ended. From any thread.
    fn done(&self) -> usize {
        self.done.load(Ordering::Relaxed)
    }

    /// The table of the scores: runs of built-in schemes in parallel, then those with the caller's rules one by one.
    fn run<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (mine, built_in): (Vec<_>, Vec<_>) = (0..self.planned.len()).partition(|run| self.planned.is_own(*run));
        let mut scores = vec![Vec::new(); self.planned.len()];
        let outcome = interruptible(py, |stop| {
            // `None` is the error of a run that was stopped.
            let one = |index: usize| {
                let scored = Stop::part(|| self.score(built_in[index], &mut || stop.check())).ok_or(None)?;
                scored.map_err(Some)
            };
            in_order(built_in.len(), threads(), one, |ended| {
                while let Some((index, scored)) = ended.wait() {
                    match scored {
                        Err(Some(error)) => return Err(error),
                        Err(None) => break,
                        Ok(scored) => scores[built_in[index]] = scored,
                    }
                }
                Ok(())
            })
        })?;
        outcome.map_err(|error| failed(py, &error))?;
        if let Some(own) = &self.own {
            for run in mine {
                let scored = own.during(py, || self.score(run, &mut check_signals))?;
                scores[run] = scored.map_err(|error| failed(py, &error))?;
            }
        }
        columns(py, self.planned.table(&scores))
    }
}

impl League {
    fn score(&self, run: usize, check: &mut dyn FnMut()) -> Result<Vec<Option<f64>>, StudyError> {
        let scored = self.planned.run(run, &mut |_| check());
        self.done.fetch_add(1, Ordering::Relaxed);
        scored
    }
}
