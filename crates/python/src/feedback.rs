//! The control laws of links with explicit feedback, one interval at a time.

use fairwave_schemes::link::{AecpConfig, XcpConfig};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// XCP's two pools in bit/s: what the rates may rise, and what they have to fall.
#[pyfunction]
#[pyo3(signature = (capacity_bps, interval_s, input_bytes, queue_bytes, avg_rtt_s))]
pub(crate) fn xcp_control(
    capacity_bps: f64,
    interval_s: f64,
    input_bytes: f64,
    queue_bytes: f64,
    avg_rtt_s: f64,
) -> PyResult<(f64, f64)> {
    positive("capacity_bps", capacity_bps, "a rate", "in bit/s")?;
    positive("interval_s", interval_s, "a time", "in seconds")?;
    not_negative("input_bytes", input_bytes, "bytes")?;
    not_negative("queue_bytes", queue_bytes, "bytes")?;
    positive("avg_rtt_s", avg_rtt_s, "a time", "in seconds")?;
    let config = XcpConfig::default();
    let pools =
        fairwave_schemes::link::xcp_control(&config, capacity_bps, interval_s, input_bytes, queue_bytes, avg_rtt_s);
    Ok((pools.positive_bps, pools.negative_bps))
}

/// AECP's next rate factor in packets a second.
#[pyfunction]
#[pyo3(signature = (
    rate_packets_per_s, capacity_packets_per_s, arrival_packets_per_s, queue_packets, interval_s
))]
pub(crate) fn aecp_control(
    rate_packets_per_s: f64,
    capacity_packets_per_s: f64,
    arrival_packets_per_s: f64,
    queue_packets: f64,
    interval_s: f64,
) -> PyResult<f64> {
    positive("rate_packets_per_s", rate_packets_per_s, "a rate", "in packets a second")?;
    if !(1.0..=MOST).contains(&capacity_packets_per_s) {
        return Err(PyValueError::new_err(format!(
            "capacity_packets_per_s: {capacity_packets_per_s} must be a rate from 1 to {MOST:e}, in packets a second"
        )));
    }
    not_negative("arrival_packets_per_s", arrival_packets_per_s, "packets a second")?;
    not_negative("queue_packets", queue_packets, "packets")?;
    positive("interval_s", interval_s, "a time", "in seconds")?;
    Ok(fairwave_schemes::link::aecp_control(
        &AecpConfig::default(),
        rate_packets_per_s,
        capacity_packets_per_s,
        arrival_packets_per_s,
        queue_packets,
        interval_s,
    ))
}

/// Far above all that there is, and far enough from where products overflow.
const MOST: f64 = 1e18;
/// Min value at the other end.
const LEAST: f64 = 1e-18;

fn positive(argument: &str, value: f64, what: &str, unit: &str) -> PyResult<()> {
    if (LEAST..=MOST).contains(&value) {
        return Ok(());
    }
    Err(PyValueError::new_err(format!("{argument}: {value} must be {what} above zero and at most {MOST:e}, {unit}")))
}

fn not_negative(argument: &str, value: f64, unit: &str) -> PyResult<()> {
    if (0.0..=MOST).contains(&value) {
        return Ok(());
    }
    Err(PyValueError::new_err(format!("{argument}: {value} must be a number of {unit} from 0 to {MOST:e}")))
}
