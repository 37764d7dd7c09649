//! Errors of the testbed.

use fairwave_testbed::Error;

use crate::common::failure::CommandFailure;

/// The failure of the command that ends by this error.
pub(super) fn failed(error: Error) -> CommandFailure {
    let text = error.to_string();
    match error {
        Error::Interrupted => CommandFailure::Interrupted(text),
        error if error.is_of_the_call() => CommandFailure::Usage(text),
        _ => CommandFailure::Run(text),
    }
}
