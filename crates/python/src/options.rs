//! Options of a scheme out of keyword arguments.

use fairwave_schemes::scheme::{GivenValue, Options, Scheme};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyString};

/// The options of a scheme, by the names and with the values that scenario files take.
pub(crate) fn read_options(scheme: &'static Scheme, given: &Bound<'_, PyDict>) -> PyResult<Options> {
    let mut options = Options::default();
    for (name, value) in given {
        let name: String = name.extract()?;
        let spec = scheme.option(&name).ok_or_else(|| {
            let names: Vec<_> = scheme.options.iter().map(|option| option.name).collect();
            let (rule, names) = (scheme.name, names.join(", "));
            PyValueError::new_err(format!("option \"{name}\": {rule} has no such option\nhint: use one of {names}"))
        })?;
        let kind = value.get_type().name()?.to_string();
        let text = value.cast::<PyString>().ok().map(ToString::to_string);
        let given = match (text, value.cast::<PyBool>(), value.extract::<f64>()) {
            (Some(ref text), _, _) => spec.read(GivenValue::Text(text)),
            (_, Ok(flag), _) => spec.read(GivenValue::Flag(flag.is_true())),
            // Infinity is a number of Python as well as a word of some options.
            (_, _, Ok(f64::INFINITY)) if spec.words().contains(&"inf") => spec.read(GivenValue::Text("inf")),
            (_, _, Ok(number)) => spec.read(GivenValue::Number(number)),
            _ => spec.read(GivenValue::Other(&kind)),
        };
        let value = given.map_err(|error| PyValueError::new_err(format!("{error}\nhint: {}", error.hint())))?;
        options.set(spec, value);
    }
    Ok(options)
}
