//! One session's rule by itself.

use std::sync::{Mutex, MutexGuard, PoisonError};

use fairwave_schemes::scheme;
use fairwave_schemes::session::{Solo, controller_from, window_schemes};
use fairwave_units::{Duration, Time};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::options::read_options;

/// A session's rule with its clock, for `fairwave.Controller` to wrap.
#[pyclass(frozen, module = "fairwave._core")]
pub(crate) struct Controller {
    solo: Mutex<Solo>,
}

#[pymethods]
impl Controller {
    #[new]
    #[pyo3(signature = (scheme, initial_window_packets, initial_ssthresh_packets, options))]
    fn new(
        scheme: &str,
        initial_window_packets: Option<f64>,
        initial_ssthresh_packets: f64,
        options: &Bound<'_, PyDict>,
    ) -> PyResult<Self> {
        let entry = scheme::find(scheme).filter(|entry| window_schemes().any(|name| name == entry.name));
        let entry = entry.ok_or_else(|| {
            let names: Vec<_> = window_schemes().collect();
            let names = names.join(", ");
            PyValueError::new_err(format!("scheme: \"{scheme}\" has no window rule\nhint: use one of {names}"))
        })?;
        if let Some(packets) = initial_window_packets {
            window("initial_window_packets", packets)?;
        }
        if initial_ssthresh_packets != f64::INFINITY {
            window("initial_ssthresh_packets", initial_ssthresh_packets)?;
        }
        let options = read_options(entry, options)?;
        let rule = controller_from(entry.name, &options, initial_window_packets, initial_ssthresh_packets)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(Self { solo: Mutex::new(Solo::new(rule)) })
    }

    #[pyo3(signature = (acked_packets, rtt_s, now_s))]
    fn on_ack(&self, acked_packets: i128, rtt_s: f64, now_s: Option<f64>) -> PyResult<()> {
        let acked = packets("acked_packets", acked_packets, 1)?;
        let rtt = Duration::from_secs_f64(rtt_s).filter(|rtt| !rtt.is_zero()).ok_or_else(|| {
            PyValueError::new_err(format!("rtt_s: {rtt_s} must be a time above zero and below 584 years, in seconds"))
        })?;
        let mut solo = self.lock();
        match now_s {
            Some(now_s) => {
                let now = time(now_s, solo.now())?;
                solo.advance_to(now);
            }
            None => solo.advance_by_acks(acked, rtt),
        }
        solo.on_ack(acked, rtt);
        Ok(())
    }

    #[pyo3(signature = (in_flight_packets, now_s))]
    fn on_loss(&self, in_flight_packets: Option<i128>, now_s: Option<f64>) -> PyResult<()> {
        let in_flight = in_flight_packets.map(|count| packets("in_flight_packets", count, 0)).transpose()?;
        let mut solo = self.lock();
        if let Some(now_s) = now_s {
            let now = time(now_s, solo.now())?;
            solo.advance_to(now);
        }
        solo.on_loss(in_flight);
        Ok(())
    }

    fn on_timeout(&self) {
        self.lock().on_timeout();
    }

    #[getter]
    fn window_packets(&self) -> f64 {
        self.lock().window_packets()
    }

    #[setter]
    fn set_window_packets(&self, window_packets: f64) -> PyResult<()> {
        window("window_packets", window_packets)?;
        self.lock().set_window_packets(window_packets);
        Ok(())
    }

    #[getter]
    fn ssthresh_packets(&self) -> f64 {
        self.lock().ssthresh_packets()
    }

    #[getter]
    fn now_s(&self) -> f64 {
        self.lock().now().as_secs_f64()
    }
}

impl Controller {
    fn lock(&self) -> MutexGuard<'_, Solo> {
        self.solo.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// As many packets as a sender can count.
const MAX_PACKETS: u32 = u32::MAX;

fn window(argument: &str, packets: f64) -> PyResult<()> {
    if (1.0..=f64::from(MAX_PACKETS)).contains(&packets) {
        return Ok(());
    }
    Err(PyValueError::new_err(format!("{argument}: {packets} must be a number of packets from 1 to {MAX_PACKETS}")))
}

fn packets(argument: &str, count: i128, least: u32) -> PyResult<u32> {
    u32::try_from(count).ok().filter(|count| *count >= least).ok_or_else(|| {
        PyValueError::new_err(format!(
            "{argument}: {count} must be a whole number of packets from {least} to {MAX_PACKETS}"
        ))
    })
}

fn time(now_s: f64, clock: Time) -> PyResult<Time> {
    let now = Duration::from_secs_f64(now_s).map(|since| Time::ZERO.saturating_add(since)).ok_or_else(|| {
        PyValueError::new_err(format!("now_s: {now_s} must be a time from 0 to 584 years, in seconds"))
    })?;
    // In seconds, as the caller reads the clock: the returned time may be passed back.
    let clock_s = clock.as_secs_f64();
    if now_s < clock_s {
        return Err(PyValueError::new_err(format!(
            "now_s: {now_s} must be at least {clock_s}, the current time of the session's clock"
        )));
    }
    Ok(now)
}
