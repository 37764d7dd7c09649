//! A finished run as arrays.

use std::collections::HashMap;

use fairwave_scenario::{Scenario, SessionSpec};
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The outcome of one run, for `fairwave.Run` to wrap.
#[pyclass(frozen, module = "fairwave._core")]
#[expect(clippy::struct_field_names, reason = "the run itself is a run, too")]
pub(crate) struct Run {
    pub(crate) run: fairwave_scenario::Run,
    pub(crate) title: String,
    /// Of each session the links that its packets and their acknowledgements wait at, by number in the summary; empty
    /// where nobody asked.
    pub(crate) ways: Vec<Vec<usize>>,
}

/// Of each session the links of the summary that it crosses, there and back.
pub(crate) fn ways(scenario: &Scenario, run: &fairwave_scenario::Run) -> Vec<Vec<usize>> {
    let numbers: HashMap<&str, usize> =
        run.summary.links.iter().enumerate().map(|(number, link)| (&*link.name, number)).collect();
    let way = |session: &SessionSpec| {
        let node = |at: u32, end: &str| format!("{}:{end}", scenario.nodes[at as usize].name);
        let ends =
            [node(session.from, "out"), node(session.to, "in"), node(session.to, "out"), node(session.from, "in")];
        let links = session.path.iter().chain(&session.path_back);
        let links = links.map(|link| scenario.links[*link as usize].name.to_string());
        ends.into_iter().chain(links).filter_map(|name| numbers.get(name.as_str()).copied()).collect()
    };
    scenario.sessions.iter().map(way).collect()
}

#[pymethods]
impl Run {
    /// The scenario's title; empty if the file lacks one.
    #[getter]
    fn title(&self) -> &str {
        &self.title
    }

    /// Of each session the numbers of the links that it crosses, there and back.
    fn ways(&self) -> Vec<Vec<usize>> {
        self.ways.clone()
    }

    /// The summary as JSON text.
    fn summary(&self) -> PyResult<String> {
        serde_json::to_string(&self.run.summary)
            .map_err(|error| pyo3::exceptions::PyRuntimeError::new_err(error.to_string()))
    }

    /// Columns of rates.csv, `session` as an index into the summary's sessions.
    fn rates<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let columns = PyDict::new(py);
        let empty = fairwave_scenario::RateSamples::default();
        let samples = self.run.rates.as_ref().unwrap_or(&empty);
        let wire = if samples.wire_rate_bps.is_empty() { &samples.rate_bps } else { &samples.wire_rate_bps };
        let expected: Vec<f64> = (samples.source_expected_bps.iter().zip(&samples.sink_expected_bps))
            .map(|(source, sink)| source.min(*sink)) // of a missing one and a number, min takes the number
            .collect();
        columns.set_item("time_s", repeated_seconds(&samples.ends, samples.sessions).into_pyarray(py))?;
        columns.set_item("session", cycled(samples.ends.len(), samples.sessions).into_pyarray(py))?;
        columns.set_item("rate_bps", PyArray1::from_slice(py, &samples.rate_bps))?;
        columns.set_item("wire_rate_bps", PyArray1::from_slice(py, wire))?;
        columns.set_item("expected_bps", expected.into_pyarray(py))?;
        columns.set_item("source_expected_bps", PyArray1::from_slice(py, &samples.source_expected_bps))?;
        columns.set_item("sink_expected_bps", PyArray1::from_slice(py, &samples.sink_expected_bps))?;
        columns.set_item("target_bps", PyArray1::from_slice(py, &samples.target_bps))?;
        columns.set_item("measured_bps", PyArray1::from_slice(py, &samples.measured_bps))?;
        Ok(columns)
    }

    /// Columns of queues.csv, `link` as an index into the summary's links.
    fn queues<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let columns = PyDict::new(py);
        let empty = fairwave_scenario::QueueSamples::default();
        let samples = self.run.queues.as_ref().unwrap_or(&empty);
        columns.set_item("time_s", repeated_seconds(&samples.ends, samples.links).into_pyarray(py))?;
        columns.set_item("link", cycled(samples.ends.len(), samples.links).into_pyarray(py))?;
        columns.set_item("queue_packets", PyArray1::from_slice(py, &samples.queue_packets))?;
        columns.set_item("queue_bytes", PyArray1::from_slice(py, &samples.queue_bytes))?;
        columns.set_item("dropped_packets", PyArray1::from_slice(py, &samples.dropped_packets))?;
        if !samples.marked_packets.is_empty() {
            columns.set_item("marked_packets", PyArray1::from_slice(py, &samples.marked_packets))?;
        }
        Ok(columns)
    }

    /// Columns of windows.csv, `session` as an index into the summary's sessions.
    fn windows<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let columns = PyDict::new(py);
        let empty = fairwave_scenario::WindowSamples::default();
        let samples = self.run.windows.as_ref().unwrap_or(&empty);
        columns.set_item("time_s", repeated_seconds(&samples.ends, samples.sessions).into_pyarray(py))?;
        columns.set_item("session", cycled(samples.ends.len(), samples.sessions).into_pyarray(py))?;
        columns.set_item("cwnd_packets", PyArray1::from_slice(py, &samples.cwnd_packets))?;
        columns.set_item("ssthresh_packets", PyArray1::from_slice(py, &samples.ssthresh_packets))?;
        Ok(columns)
    }

    /// Columns of losses.csv, `session` as an index into the summary's sessions.
    fn losses<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let columns = PyDict::new(py);
        let times: Vec<f64> = self.run.losses.iter().map(|loss| loss.time.as_secs_f64()).collect();
        let sessions: Vec<u32> = self.run.losses.iter().map(|loss| loss.session).collect();
        columns.set_item("time_s", times.into_pyarray(py))?;
        columns.set_item("session", sessions.into_pyarray(py))?;
        let kinds: Vec<_> = self.run.losses.iter().map(|loss| loss.kind.name()).collect();
        columns.set_item("kind", kinds)?;
        Ok(columns)
    }

    /// The max-min vector from each instant on at which it changes, `session` as an index into the summary's sessions.
    fn max_min<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let columns = PyDict::new(py);
        let (steps, sessions) = (&self.run.max_min, self.run.summary.sessions.len());
        let instants: Vec<_> = steps.iter().map(|step| step.from).collect();
        let rates: Vec<f64> = steps.iter().flat_map(|step| step.rates_bps.iter().copied()).collect();
        columns.set_item("time_s", repeated_seconds(&instants, sessions).into_pyarray(py))?;
        columns.set_item("session", cycled(steps.len(), sessions).into_pyarray(py))?;
        columns.set_item("max_min_bps", rates.into_pyarray(py))?;
        Ok(columns)
    }

    /// Distance to the max-min vector and that vector's norm, at the end of each sample.
    fn distance<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let columns = PyDict::new(py);
        let ends = self.run.rates.as_ref().map_or(&[][..], |samples| &samples.ends);
        columns.set_item("time_s", repeated_seconds(ends, 1).into_pyarray(py))?;
        columns.set_item("distance_bps", PyArray1::from_slice(py, &self.run.distances_bps))?;
        columns.set_item("max_min_norm_bps", PyArray1::from_slice(py, &self.run.max_min_norms_bps))?;
        Ok(columns)
    }

    /// Round-trip times by session, counted: `session` as an index into the summary's sessions.
    fn round_trips<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let columns = PyDict::new(py);
        let (mut sessions, mut rtts, mut queueing, mut samples) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for ((at, delays), summary) in (0_u32..).zip(&self.run.delays).zip(&self.run.summary.sessions) {
            for (ns, count) in delays.buckets() {
                let queueing_s = ns as f64 / 1e9;
                sessions.push(at);
                rtts.push(summary.rtt_s + queueing_s);
                queueing.push(queueing_s);
                samples.push(i64::from(count));
            }
        }
        columns.set_item("session", sessions.into_pyarray(py))?;
        columns.set_item("rtt_s", rtts.into_pyarray(py))?;
        columns.set_item("queueing_s", queueing.into_pyarray(py))?;
        columns.set_item("samples", samples.into_pyarray(py))?;
        Ok(columns)
    }
}

/// Each instant in seconds, `times` times over.
fn repeated_seconds(instants: &[fairwave_units::Time], times: usize) -> Vec<f64> {
    instants.iter().flat_map(|instant| std::iter::repeat_n(instant.as_secs_f64(), times)).collect()
}

/// 0, 1, ... `length` - 1, `times` times over.
fn cycled(times: usize, length: usize) -> Vec<u32> {
    (0..times).flat_map(|_| 0..length as u32).collect()
}
