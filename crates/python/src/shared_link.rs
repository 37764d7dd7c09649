//! Links with a learner's session, many at a time.

use std::sync::{Mutex, PoisonError};

use fairwave_fluid::{LinkDraws, Observation, Round, SharedLink};
use fairwave_schemes::scheme;
use fairwave_schemes::session::window_schemes;
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Links, each with its seed, for `fairwave.gym` to step together.
#[pyclass(frozen, module = "fairwave._core")]
pub(crate) struct SharedLinks {
    draws: LinkDraws,
    links: Mutex<Vec<SharedLink>>,
}

/// Observations, rewards, whether episodes ended, rates and fair rates.
type Stepped<'py> = (
    Bound<'py, PyArray2<f32>>,
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<bool>>,
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<f64>>,
);

#[pymethods]
impl SharedLinks {
    /// One link a seed.
    #[new]
    fn new(
        seeds: Vec<u64>,
        capacity_bps: (f64, f64),
        rtt_s: (f64, f64),
        queue_bdp: (f64, f64),
        loss: (f64, f64),
        rival: Option<&str>,
        rounds: u32,
    ) -> PyResult<Self> {
        let rival = rival.map(|name| {
            let known =
                scheme::find(name).map(|entry| entry.name).filter(|name| window_schemes().any(|it| it == *name));
            known.ok_or_else(|| {
                let names = window_schemes().collect::<Vec<_>>().join(", ");
                PyValueError::new_err(format!("rival: \"{name}\" has no window rule\nhint: use one of {names}"))
            })
        });
        let draws = LinkDraws { capacity_bps, rtt_s, queue_bdp, loss, rival: rival.transpose()?, rounds };
        Ok(Self { links: Mutex::new(links(&draws, seeds)?), draws })
    }

    /// Starts an episode of every link: of new seeds, or the next of the present ones.
    fn reset<'py>(&self, py: Python<'py>, seeds: Option<Vec<u64>>) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let seen: Vec<Observation> = {
            let mut all = self.links.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(seeds) = seeds {
                *all = links(&self.draws, seeds)?;
            }
            all.iter_mut().map(SharedLink::begin).collect()
        };
        rows(py, seen.iter())
    }

    /// One step of every link.
    fn step<'py>(&self, py: Python<'py>, actions: PyReadonlyArray1<'py, f64>) -> PyResult<Stepped<'py>> {
        let actions = actions.as_slice()?;
        let rounds: Vec<Round> = py.detach(|| {
            let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
            if links.len() != actions.len() {
                return Err(PyValueError::new_err(format!("actions: {} for {} links", actions.len(), links.len())));
            }
            Ok(links.iter_mut().zip(actions).map(|(link, action)| link.step(*action)).collect())
        })?;
        let column = |of: fn(&Round) -> f64| PyArray1::from_iter(py, rounds.iter().map(of));
        Ok((
            rows(py, rounds.iter().map(|round| &round.observation))?,
            column(|round| round.reward),
            PyArray1::from_iter(py, rounds.iter().map(|round| round.is_last)),
            column(|round| round.rate_bps),
            column(|round| round.fair_bps),
        ))
    }
}

fn links(draws: &LinkDraws, seeds: Vec<u64>) -> PyResult<Vec<SharedLink>> {
    let made = seeds.into_iter().map(|seed| SharedLink::new(draws.clone(), seed)).collect::<Result<_, _>>();
    made.map_err(|error| PyValueError::new_err(error.to_string()))
}

/// Observations as an array with a row a link.
fn rows<'py, 'a>(py: Python<'py>, seen: impl Iterator<Item = &'a Observation>) -> PyResult<Bound<'py, PyArray2<f32>>> {
    let numbers =
        seen.flat_map(|it| [it.log2_window, it.rtt_excess, it.delivered, it.lost].map(|number| number as f32));
    let flat = PyArray1::from_vec(py, numbers.collect());
    flat.reshape([flat.len() / 4, 4])
}
