//! One end node's rule by itself.

use std::sync::{Mutex, PoisonError};

use fairwave_schemes::node::gtp_options::{ALPHA, BETA};
use fairwave_schemes::scheme::{self, Scheme, SchemeKind};
use fairwave_schemes::{Grant, Interval, RateAllocator, Row, node};
use fairwave_units::{Duration, Rate};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::options::read_options;

/// A node rule with its state, for `fairwave.Allocator` to wrap.
#[pyclass(frozen, module = "fairwave._core")]
pub(crate) struct Allocator {
    node: Mutex<Node>,
    alpha: f64,
    beta: f64,
}

struct Node {
    rule: Box<dyn RateAllocator>,
    rows: Vec<Row>,
    grants: Vec<Grant>,
}

#[pymethods]
impl Allocator {
    #[new]
    #[pyo3(signature = (rule, options))]
    fn new(rule: &str, options: &Bound<'_, PyDict>) -> PyResult<Self> {
        let scheme = node_rule(rule)?;
        let options = read_options(scheme, options)?;
        let rule = node::allocator(rule, &options).map_err(|error| PyValueError::new_err(format!("rule: {error}")))?;
        // The ATM rules have neither alpha nor beta and look at neither.
        let number = |option| scheme.read(option, &options).unwrap_or_default();
        let (alpha, beta) = (number(&ALPHA), number(&BETA));
        Ok(Self { node: Mutex::new(Node { rule, rows: Vec::new(), grants: Vec::new() }), alpha, beta })
    }

    /// Expected rates in bit/s, in the order of the sessions. Infinity among the demands is "as much as there is".
    #[pyo3(signature = (capacity_bps, measured_bps, weights, demand_bps, elapsed_s))]
    fn allocate<'py>(
        &self,
        py: Python<'py>,
        capacity_bps: f64,
        measured_bps: PyReadonlyArray1<'py, f64>,
        weights: Option<PyReadonlyArray1<'py, f64>>,
        demand_bps: Option<PyReadonlyArray1<'py, f64>>,
        elapsed_s: f64,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let capacity = rate("capacity_bps", capacity_bps)?;
        let elapsed = Duration::from_secs_f64(elapsed_s).ok_or_else(|| {
            PyValueError::new_err(format!("elapsed_s: {elapsed_s} must be a time from 0 to 584 years, in seconds"))
        })?;
        let measured = measured_bps.as_slice()?;
        let weights = weights.as_ref().map(PyReadonlyArray1::as_slice).transpose()?;
        let demands = demand_bps.as_ref().map(PyReadonlyArray1::as_slice).transpose()?;
        for (argument, values) in [("weights", weights), ("demand_bps", demands)] {
            if let Some(values) = values.filter(|values| values.len() != measured.len()) {
                return Err(PyValueError::new_err(format!(
                    "{argument}: {} values for {} sessions: give one for each session, or omit it",
                    values.len(),
                    measured.len()
                )));
            }
        }
        let outcome = py.detach(|| {
            let mut node = self.node.lock().unwrap_or_else(PoisonError::into_inner);
            node.fill(measured, weights, demands, self.alpha, self.beta)?;
            let Node { rule, rows, grants } = &mut *node;
            rule.allocate(&Interval { capacity, elapsed }, rows, grants);
            Ok(grants.iter().map(|grant| grant.expected.as_bps()).collect::<Vec<_>>())
        });
        outcome.map(|expected| PyArray1::from_vec(py, expected)).map_err(PyValueError::new_err::<String>)
    }
}

impl Node {
    /// Fills the rows of the table; the error names the argument and the position.
    fn fill(
        &mut self,
        measured: &[f64],
        weights: Option<&[f64]>,
        demands: Option<&[f64]>,
        alpha: f64,
        beta: f64,
    ) -> Result<(), String> {
        self.rows.clear();
        for (k, &measured_bps) in measured.iter().enumerate() {
            let measured = Rate::from_bps(measured_bps).map_err(|error| format!("measured_bps[{k}]: {error}"))?;
            let mut row = Row::new(measured, alpha, beta);
            if let Some(weights) = weights {
                row.terms.weight = weights[k];
                if !(1e-6..=1e6).contains(&row.terms.weight) {
                    return Err(format!("weights[{k}]: {} must be from 1e-6 to 1e6", row.terms.weight));
                }
            }
            if let Some(demands) = demands
                && demands[k] != f64::INFINITY
            {
                row.terms.desired =
                    Some(Rate::from_bps(demands[k]).map_err(|error| format!("demand_bps[{k}]: {error}"))?);
            }
            self.rows.push(row);
        }
        self.grants.clear();
        self.grants.resize(self.rows.len(), Grant::default());
        Ok(())
    }
}

fn node_rule(name: &str) -> PyResult<&'static Scheme> {
    let is_node_rule = |scheme: &&Scheme| scheme.kind == SchemeKind::Node;
    scheme::find(name).filter(is_node_rule).ok_or_else(|| {
        let names: Vec<_> = scheme::schemes().iter().filter(is_node_rule).map(|scheme| scheme.name).collect();
        PyValueError::new_err(format!("rule: \"{name}\" is not a node rule\nhint: use one of {}", names.join(", ")))
    })
}

fn rate(argument: &str, bps: f64) -> PyResult<Rate> {
    Rate::from_bps(bps).map_err(|error| PyValueError::new_err(format!("{argument}: {error}")))
}
