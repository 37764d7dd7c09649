//! Errors of the rooms below as Python exceptions.

use fairwave_scenario::ScenarioError as Mistake;
use fairwave_study::StudyError;
use fairwave_units::ParseError;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;

pyo3::create_exception!(
    fairwave,
    ScenarioError,
    PyValueError,
    "An error in a scenario file or in an argument that changes it.\n\n\
     The message has the file, the line, the problem and a hint; the attributes `file`, `line` (or None), `message`\n\
     and `hint` (or None) hold the parts."
);

/// A mistake with all its parts.
pub(crate) fn scenario_error(py: Python<'_>, mistake: &Mistake) -> PyErr {
    let error = ScenarioError::new_err(mistake.to_string());
    let value = error.value(py);
    let set = value
        .setattr("file", mistake.file.as_str())
        .and_then(|()| value.setattr("line", mistake.line))
        .and_then(|()| value.setattr("message", mistake.message.as_str()))
        .and_then(|()| value.setattr("hint", mistake.hint.as_deref()));
    set.err().unwrap_or(error)
}

/// A text of the call that is not the quantity it should be; `argument` is its name.
pub(crate) fn parse_error(py: Python<'_>, argument: &str, error: &ParseError) -> PyErr {
    let mistake =
        Mistake { file: argument.to_owned(), line: None, message: error.to_string(), hint: Some(error.hint()) };
    scenario_error(py, &mistake)
}

/// A failure of the room below as Python's exception.
pub(crate) fn failed(py: Python<'_>, error: &StudyError) -> PyErr {
    let hint = error.hint();
    match error {
        StudyError::Scenario(mistake) => scenario_error(py, mistake),
        StudyError::Io { .. } => {
            PyOSError::new_err(format!("{error}{}", hint.map_or(String::new(), |hint| format!("\nhint: {hint}"))))
        }
        _ => scenario_error(py, &Mistake { file: "sweep".into(), line: None, message: error.to_string(), hint }),
    }
}

/// An error of the system or of a peer.
pub(crate) fn system(error: impl std::fmt::Display) -> PyErr {
    PyOSError::new_err(error.to_string())
}
