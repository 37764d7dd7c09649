//! Files over the network: fetched, sent and listed with a ticket.

use std::ffi::OsString;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, channel};

use fairwave_files::{
    Ended, GetOptions, ListFilter, ListedEntry, ListedKind, Outcome, Progress, Transfer, TransferError,
};
use fairwave_host::{Endpoint, Ticket};
use fairwave_units::Duration;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::copy_options::CopyOptions;
use crate::error::system;
use crate::link_options::LinkOptions;

/// How often a call that waits looks for signals, and calls Python's callback.
const LOOK: Duration = Duration::from_millis(50);
/// A transfer that was stopped leaves a state to go on from within this.
const STOP_TAKES: Duration = Duration::from_secs(5);

/// Fetches what a ticket is for: what became of it, as a dict. `look` is called while it runs, with its progress; it
/// stops when that returns true or fails.
#[pyfunction]
pub(crate) fn get<'py>(
    py: Python<'py>,
    ticket: &str,
    destination: PathBuf,
    names: Vec<OsString>,
    rename: Option<OsString>,
    options: CopyOptions,
    look: Py<PyAny>,
) -> PyResult<Bound<'py, PyDict>> {
    let ticket = read(ticket)?;
    let request = GetOptions { names, destination, rename, ..options.of_get(py)? };
    run(py, &options.link, &ticket, &look, |endpoint| fairwave_files::get(endpoint, &ticket, request))
}

/// Sends files to the server of a ticket; as [`get`].
#[pyfunction]
pub(crate) fn put<'py>(
    py: Python<'py>,
    paths: Vec<PathBuf>,
    ticket: &str,
    options: CopyOptions,
    look: Py<PyAny>,
) -> PyResult<Bound<'py, PyDict>> {
    let ticket = read(ticket)?;
    let mut request = options.of_put(py)?;
    // As for the command, a source that ends in `/.` is what is in it.
    if paths.iter().any(|path| path.as_os_str().as_bytes().ends_with(b"/.")) {
        if paths.len() > 1 {
            return Err(PyValueError::new_err("paths: the content of a directory (DIR/.) is sent by itself"));
        }
        request.names = Some(Vec::new());
    }
    run(py, &options.link, &ticket, &look, |endpoint| fairwave_files::put(endpoint, &ticket, &paths, &request))
}

/// An entry of a list: path, kind, bytes of a file, permission bits, modification time, target or reason.
type Entry = (Py<PyBytes>, &'static str, Option<u64>, u16, f64, Option<Py<PyBytes>>);

/// Lists a share.
#[pyfunction]
pub(crate) fn ls(
    py: Python<'_>,
    ticket: &str,
    names: Vec<Vec<u8>>,
    recursive: bool,
    link: LinkOptions,
    look: Py<PyAny>,
) -> PyResult<Vec<Entry>> {
    let ticket = read(ticket)?;
    let endpoint = Endpoint::bind(&link.config(py, Some(&ticket))?).map_err(system)?;
    let listed = in_background(py, &endpoint, &look, |endpoint| {
        let mut entries = Vec::new();
        let filter = ListFilter::new(&names, recursive);
        let terms = GetOptions::default().session;
        let done = fairwave_files::list(endpoint, &ticket, terms, filter, &mut |entry| {
            entries.push(Python::attach(|py| listed(py, entry)));
            ControlFlow::Continue(())
        });
        done.map(|()| entries)
    });
    py.detach(|| endpoint.close());
    listed?.ok_or_else(|| system("stopped"))?.map_err(system)
}

fn listed(py: Python<'_>, entry: &ListedEntry<'_>) -> Entry {
    let (kind, bytes, more) = match entry.kind {
        ListedKind::File(bytes) => ("file", Some(bytes), None),
        ListedKind::Directory => ("directory", None, None),
        ListedKind::Symlink(target) => ("link", None, Some(target)),
        ListedKind::Skipped(reason) => ("skipped", None, Some(reason.as_bytes())),
        ListedKind::Failed(reason) => ("failed", None, Some(reason.as_bytes())),
    };
    let (seconds, nanoseconds) = entry.modified;
    let bytes_of = |bytes| PyBytes::new(py, bytes).unbind();
    let modified_s = seconds as f64 + f64::from(nanoseconds) * 1e-9;
    (bytes_of(entry.path), kind, bytes, entry.mode, modified_s, more.map(bytes_of))
}

fn read(ticket: &str) -> PyResult<Ticket> {
    ticket.trim().parse().map_err(|error| PyValueError::new_err(format!("ticket: {error}")))
}

fn run<'py>(
    py: Python<'py>,
    link: &LinkOptions,
    ticket: &Ticket,
    look: &Py<PyAny>,
    begin: impl FnOnce(&Endpoint) -> Result<Transfer, TransferError> + Send,
) -> PyResult<Bound<'py, PyDict>> {
    let endpoint = Endpoint::bind(&link.config(py, Some(ticket))?).map_err(system)?;
    let ended = match in_background(py, &endpoint, look, begin) {
        Ok(Some(Ok(transfer))) => wait(py, &transfer, look),
        Ok(Some(Err(error))) => Err(system(error)),
        Ok(None) => Ok((Outcome::empty(Ended::Stopped), Progress::default())),
        Err(error) => Err(error),
    };
    py.detach(|| endpoint.close());
    let (outcome, progress) = ended?;
    as_dict(py, &outcome, &progress)
}

/// Does what waits for a peer on a separate thread, so that this one can stop it; `None` if Python's callback did.
fn in_background<T: Send>(
    py: Python<'_>,
    endpoint: &Endpoint,
    look: &Py<PyAny>,
    work: impl FnOnce(&Endpoint) -> T + Send,
) -> PyResult<Option<T>> {
    py.detach(|| {
        std::thread::scope(|scope| {
            let (done, is_done) = channel();
            let worker = std::thread::Builder::new().spawn_scoped(scope, move || _ = done.send(work(endpoint)));
            worker.map_err(|error| PyRuntimeError::new_err(format!("cannot start a thread: {error}")))?;
            let every = std::time::Duration::from_nanos(LOOK.as_nanos());
            loop {
                match is_done.recv_timeout(every) {
                    Ok(value) => return Ok(Some(value)),
                    Err(RecvTimeoutError::Disconnected) => return Err(PyRuntimeError::new_err("a thread panicked")),
                    Err(RecvTimeoutError::Timeout) => {}
                }
                let stops = Python::attach(|py| asks_to_stop(py, look, &Progress::default()));
                if !matches!(stops, Ok(false)) {
                    // The work ends with the endpoint.
                    endpoint.close();
                    return stops.map(|_| None);
                }
            }
        })
    })
}

/// Waits until a transfer is over, or until Python wants it to stop.
fn wait(py: Python<'_>, transfer: &Transfer, look: &Py<PyAny>) -> PyResult<(Outcome, Progress)> {
    loop {
        if let Some(outcome) = py.detach(|| transfer.wait(Some(LOOK))) {
            let progress = transfer.progress();
            // The last numbers: there is nothing left to stop.
            asks_to_stop(py, look, &progress)?;
            return Ok((outcome, progress));
        }
        let stops = asks_to_stop(py, look, &transfer.progress());
        if !matches!(stops, Ok(false)) {
            transfer.stop();
            let outcome = py.detach(|| transfer.wait(Some(STOP_TAKES)));
            stops?;
            return Ok((outcome.unwrap_or_else(|| Outcome::empty(Ended::Stopped)), transfer.progress()));
        }
    }
}

fn asks_to_stop(py: Python<'_>, look: &Py<PyAny>, progress: &Progress) -> PyResult<bool> {
    py.check_signals()?;
    let Progress { files_done, files_total, bytes_done, bytes_total, bytes_resumed, .. } = *progress;
    look.bind(py).call1((files_done, files_total, bytes_done, bytes_total, bytes_resumed))?.is_truthy()
}

fn as_dict<'py>(py: Python<'py>, outcome: &Outcome, progress: &Progress) -> PyResult<Bound<'py, PyDict>> {
    let entries = |entries: &[fairwave_files::Failure]| -> Vec<(Py<PyBytes>, String)> {
        entries.iter().map(|entry| (PyBytes::new(py, &entry.path).unbind(), entry.reason.clone())).collect()
    };
    let dict = PyDict::new(py);
    dict.set_item("files", outcome.files)?;
    dict.set_item("bytes", outcome.bytes)?;
    dict.set_item("resumed_bytes", progress.bytes_resumed)?;
    dict.set_item("deleted", outcome.files_deleted)?;
    dict.set_item("failed", entries(&outcome.failed))?;
    dict.set_item("skipped", entries(&outcome.skipped))?;
    dict.set_item("warned", entries(&outcome.warned))?;
    dict.set_item("blake3", outcome.blake3.map(|hash| PyBytes::new(py, &hash).unbind()))?;
    let error = match &outcome.ended {
        Ended::Done => None,
        Ended::Stopped => Some("the transfer was stopped"),
        Ended::Failed(reason) => Some(reason.as_str()),
    };
    dict.set_item("error", error)?;
    Ok(dict)
}
