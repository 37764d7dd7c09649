//! Long work that Ctrl-C stops.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// Whether Python wants the work to stop.
pub(crate) struct Stop(AtomicBool);

/// The payload that unwinds out of stopped work.
pub(crate) struct Stopped;

impl Stop {
    /// To be called now and then from within the work, on any of its threads: does not return once Python wants it to
    /// stop, as simulators have no other way out before their end. Nothing is printed.
    pub(crate) fn check(&self) {
        if self.0.load(Ordering::Relaxed) {
            resume_unwind(Box::new(Stopped));
        }
    }

    /// The outcome of a part of the work; `None` if it was stopped.
    pub(crate) fn part<T>(work: impl FnOnce() -> T) -> Option<T> {
        match catch_unwind(AssertUnwindSafe(work)) {
            Ok(outcome) => Some(outcome),
            Err(cause) if cause.is::<Stopped>() => None,
            Err(cause) => resume_unwind(cause),
        }
    }
}

/// Does `work` without the interpreter's lock, on a separate thread, while this one checks for signals.
#[expect(clippy::redundant_closure_for_method_calls, reason = "the method is not general over its lifetime")]
pub(crate) fn interruptible<T: Send>(py: Python<'_>, work: impl FnOnce(&Stop) -> T + Send) -> PyResult<T> {
    let stop = Stop(AtomicBool::new(false));
    py.detach(|| {
        std::thread::scope(|scope| {
            let (alive, done) = channel::<()>();
            let worker = std::thread::Builder::new().spawn_scoped(scope, || {
                let _alive = alive;
                Stop::part(|| work(&stop))
            });
            let worker = worker.map_err(|error| {
                PyRuntimeError::new_err(format!("cannot start a thread: {error}\nhint: `ulimit -u` shows the maximum"))
            })?;
            let mut signal = None;
            while done.recv_timeout(Duration::from_millis(50)) == Err(RecvTimeoutError::Timeout) {
                if signal.is_none()
                    && let Err(error) = Python::attach(|py| py.check_signals())
                {
                    stop.0.store(true, Ordering::Relaxed);
                    signal = Some(error);
                }
            }
            match (worker.join(), signal) {
                (_, Some(signal)) => Err(signal),
                (Ok(outcome), None) => Ok(outcome.expect("nothing stops work but a signal")),
                (Err(cause), None) => resume_unwind(cause),
            }
        })
    })
}
