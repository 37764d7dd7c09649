//! Response functions over an array of loss rates.

use fairwave_schemes::response::{NoResponse, Response};
use fairwave_schemes::scheme::{self, Options};
use fairwave_schemes::session::BicConfig;
use fairwave_units::Duration;
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::options::read_options;

/// Mean windows in packets at loss rates. `form` is one of BIC's forms by its name.
#[pyfunction]
#[pyo3(signature = (scheme, loss_rate, rtt_s, form, options))]
pub(crate) fn response<'py>(
    py: Python<'py>,
    scheme: &str,
    loss_rate: PyReadonlyArray1<'py, f64>,
    rtt_s: Option<f64>,
    form: Option<&str>,
    options: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let response = read_response(scheme, options)?;
    let rtt = match rtt_s {
        Some(rtt_s) => Duration::from_secs_f64(rtt_s).filter(|rtt| !rtt.is_zero()).ok_or_else(|| {
            PyValueError::new_err(format!("rtt_s: {rtt_s} must be a time above zero and below 584 years, in seconds"))
        })?,
        None if response.depends_on_rtt() => {
            return Err(PyValueError::new_err(format!(
                "rtt_s: required for {scheme}, whose response depends on the RTT\nhint: pass rtt_s=0.1, in seconds"
            )));
        }
        None => Duration::ZERO,
    };
    let window = match (response, form) {
        (Response::Bic(bic), Some(form)) => bic_form(form).map(|window| Window::Bic(bic, window))?,
        (_, Some(_)) => {
            return Err(PyValueError::new_err(format!(
                "form: {scheme} has only one form\nhint: omit form; only bic has several"
            )));
        }
        (response, None) => Window::Plain(response, rtt),
    };
    let loss_rate = loss_rate.as_slice()?;
    if let Some(position) = loss_rate.iter().position(|loss_rate| !(*loss_rate > 0.0 && *loss_rate < 1.0)) {
        let wrong = loss_rate[position];
        return Err(PyValueError::new_err(format!("loss_rate[{position}]: {wrong} must be between 0 and 1")));
    }
    let windows = loss_rate.iter().map(|loss_rate| window.packets(*loss_rate)).collect();
    Ok(PyArray1::from_vec(py, windows))
}

/// Mean window in packets at a loss rate, by one of BIC's forms.
type BicResponse = fn(&BicConfig, f64) -> f64;

enum Window {
    Plain(Response, Duration),
    Bic(BicConfig, BicResponse),
}

impl Window {
    fn packets(&self, loss_rate: f64) -> f64 {
        match self {
            Self::Plain(response, rtt) => response.window_packets(loss_rate, *rtt),
            Self::Bic(bic, window) => window(bic, loss_rate),
        }
    }
}

fn read_response(scheme: &str, options: &Bound<'_, PyDict>) -> PyResult<Response> {
    let refuse = |error: &NoResponse| {
        let names: Vec<_> = Response::schemes().collect();
        PyValueError::new_err(format!("scheme: {error}\nhint: use one of {}", names.join(", ")))
    };
    let by_default = Response::new(scheme, &Options::default()).map_err(|error| refuse(&error))?;
    let Some(entry) = scheme::find(scheme) else { return Ok(by_default) };
    let options = read_options(entry, options)?;
    if let Some((name, _)) = options.iter().find(|(name, _)| !Response::takes(scheme, name)) {
        let takes: Vec<_> = entry.options.iter().map(|o| o.name).filter(|name| Response::takes(scheme, name)).collect();
        let hint = if takes.is_empty() {
            "no option is supported".to_owned()
        } else {
            format!("use one of {}", takes.join(", "))
        };
        return Err(PyValueError::new_err(format!(
            "option \"{name}\": no effect on the response of {scheme}\nhint: {hint}"
        )));
    }
    Response::new(scheme, &options).map_err(|error| match error {
        NoResponse::Rule(error) => PyValueError::new_err(error.to_string()),
        other => refuse(&other),
    })
}

/// BIC's forms by name.
const BIC_FORMS: [(&str, BicResponse); 5] = [
    ("paper", BicConfig::mean_window_packets),
    ("search", BicConfig::mean_window_of_search_packets),
    ("large", BicConfig::mean_window_of_large_packets),
    ("asymptote", BicConfig::mean_window_asymptote_packets),
    ("rule", BicConfig::mean_window_of_rule_packets),
];

fn bic_form(form: &str) -> PyResult<BicResponse> {
    let found = BIC_FORMS.iter().find(|(name, _)| *name == form).map(|(_, window)| *window);
    found.ok_or_else(|| {
        let names: Vec<_> = BIC_FORMS.iter().map(|(name, _)| *name).collect();
        PyValueError::new_err(format!(
            "form: unknown form \"{form}\" of bic's response\nhint: use one of {}",
            names.join(", ")
        ))
    })
}
