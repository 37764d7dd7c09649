//! The max-min allocation of a scenario file.

use fairwave_scenario::{AllocationLimit, Scenario, WorkKind};
use fairwave_units::Time;
use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::scenario_error;
use crate::simulate::{Changes, check_memory, parse};

/// Columns `name`, `from`, `to`, `rate_bps`, `limited_by` of the first case of a scenario, and notes for people.
#[pyfunction]
#[pyo3(signature = (file, text, changes, at))]
pub(crate) fn allocate<'py>(
    py: Python<'py>,
    file: &str,
    text: &[u8],
    changes: Changes,
    at: Option<&str>,
) -> PyResult<(Bound<'py, PyDict>, Vec<String>)> {
    let selection = changes.selection(py)?;
    let at = at.map(|text| parse::<Time>(py, "at", text)).transpose()?;
    let (scenario, notes, allocation) = py
        .detach(|| {
            let document = fairwave_catalogue::document(file, text)?;
            let cases = document.cases(&selection)?;
            let case = cases.first().expect("a document has at least one case");
            check_memory(file, &document, &cases[..1], WorkKind::Allocate, 1)?;
            let (scenario, notes) = document.build(case)?;
            let allocation = fairwave_scenario::allocate(&scenario, at)?;
            Ok((scenario, notes, allocation))
        })
        .map_err(|mistake| scenario_error(py, &mistake))?;
    let columns = PyDict::new(py);
    let sessions = &scenario.sessions;
    let node = |index: u32| &*scenario.nodes[index as usize].name;
    let rates: Vec<f64> = allocation.rates.iter().map(|rate| rate.as_bps()).collect();
    let limits: Vec<_> = allocation.limited_by.iter().map(|by| by.map(|by| limit_name(&scenario, by))).collect();
    columns.set_item("name", sessions.iter().map(|session| &*session.name).collect::<Vec<_>>())?;
    columns.set_item("from", sessions.iter().map(|session| node(session.from)).collect::<Vec<_>>())?;
    columns.set_item("to", sessions.iter().map(|session| node(session.to)).collect::<Vec<_>>())?;
    columns.set_item("rate_bps", rates.into_pyarray(py))?;
    columns.set_item("limited_by", limits)?;
    Ok((columns, notes))
}

fn limit_name(scenario: &Scenario, by: AllocationLimit) -> &str {
    match by {
        AllocationLimit::Demand => "demand",
        AllocationLimit::Source(node) | AllocationLimit::Sink(node) => &scenario.nodes[node as usize].name,
        AllocationLimit::Link(link) => &scenario.links[link as usize].name,
    }
}
