//! Files over the network: taken from whoever serves them, and served.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

use fairwave_files::{Durable, Ended, GetOptions, Share, ShareOptions, Transfer};
use fairwave_host::{
    Capacity, Endpoint, EndpointConfig, Here, Keyring, Listen, NodeChoice, Offering, PathControl, PathKind,
    ServerOptions, ShareId, StateDir, Ticket, Validity, listen_address,
};
use fairwave_schemes::node::host_rule;
use fairwave_units::{Bytes, Duration, Rate};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::error::parse_error;
use crate::why;

/// How often a call that waits looks for signals.
const LOOK: Duration = Duration::from_millis(50);
/// A transfer that was stopped leaves a state to go on from within this.
const STOP_TAKES: Duration = Duration::from_secs(5);

/// Options of this end of a transfer: capacity and limit as texts.
#[derive(FromPyObject)]
pub(crate) struct LinkOptions {
    #[pyo3(item)]
    capacity: Option<String>,
    #[pyo3(item)]
    dedicated: bool,
    #[pyo3(item)]
    plain: bool,
    #[pyo3(item)]
    rule: String,
    #[pyo3(item)]
    path_control: String,
}

impl LinkOptions {
    fn config(&self, py: Python<'_>, ticket: Option<&Ticket>) -> PyResult<EndpointConfig> {
        let said = self.capacity.as_deref().map(|text| rate(py, "capacity", text)).transpose()?;
        let peer = ticket.and_then(|ticket| ticket.addresses.first()).map(SocketAddr::ip);
        let capacity = Capacity::find(said, peer).rate;
        host_rule(&self.rule)
            .map_err(|error| PyValueError::new_err(format!("rule: {error}\nhint: {}", error.hint())))?;
        Ok(EndpointConfig {
            send_capacity: capacity,
            receive_capacity: capacity,
            is_card_capacity: said.is_none(),
            node: NodeChoice::Auto,
            path: if self.dedicated { PathKind::Dedicated } else { PathKind::Shared },
            is_plain: self.plain,
            path_control: if self.path_control == "cubic" { PathControl::Cubic } else { PathControl::Bbr },
            rule: self.rule.clone(),
            ..EndpointConfig::default()
        })
    }
}

fn rate(py: Python<'_>, argument: &str, text: &str) -> PyResult<Rate> {
    text.parse().map_err(|error| parse_error(py, argument, &error))
}

fn system(error: impl std::fmt::Display) -> PyErr {
    PyOSError::new_err(error.to_string())
}

/// Fetches what a ticket is for: what became of it, as a dict.
#[pyfunction]
#[pyo3(signature = (ticket, destination, names, check, dry_run, links, durable, limit, retry, link))]
#[expect(clippy::too_many_arguments, reason = "the Python face names and explains them")]
pub(crate) fn get<'py>(
    py: Python<'py>,
    ticket: &str,
    destination: PathBuf,
    names: Vec<OsString>,
    check: bool,
    dry_run: bool,
    links: bool,
    durable: &str,
    limit: Option<String>,
    retry: &str,
    link: LinkOptions,
) -> PyResult<Bound<'py, PyDict>> {
    let ticket: Ticket = ticket.trim().parse().map_err(|error| PyValueError::new_err(format!("ticket: {error}")))?;
    let durable: Durable = durable.parse().map_err(|error| PyValueError::new_err(format!("durable: {error}")))?;
    let limit = limit.map(|text| rate(py, "limit", &text)).transpose()?;
    let retry: Duration = retry.parse().map_err(|error| parse_error(py, "retry", &error))?;
    let keeps_links = links;
    let options =
        GetOptions { names, destination, check, dry_run, keeps_links, durable, limit, retry, ..GetOptions::default() };
    let config = link.config(py, Some(&ticket))?;
    let endpoint = Endpoint::bind(&config).map_err(system)?;
    let transfer = py.detach(|| fairwave_files::get(&endpoint, &ticket, options)).map_err(system)?;
    let waited = wait(py, &transfer);
    py.detach(|| endpoint.close());
    waited?;
    outcome(py, &transfer)
}

/// Waits until a transfer is over, or until Python wants it to stop.
fn wait(py: Python<'_>, transfer: &Transfer) -> PyResult<()> {
    while py.detach(|| transfer.wait(Some(LOOK))).is_none() {
        if let Err(signal) = py.check_signals() {
            transfer.stop();
            py.detach(|| transfer.wait(Some(STOP_TAKES)));
            return Err(signal);
        }
    }
    Ok(())
}

fn outcome<'py>(py: Python<'py>, transfer: &Transfer) -> PyResult<Bound<'py, PyDict>> {
    let found = py.detach(|| transfer.wait(None));
    let found = found.ok_or_else(|| system("the transfer ended without a result"))?;
    let entries = |entries: &[fairwave_files::Failure]| -> Vec<(Py<PyBytes>, String)> {
        entries.iter().map(|entry| (PyBytes::new(py, &entry.path).unbind(), entry.reason.clone())).collect()
    };
    let dict = PyDict::new(py);
    dict.set_item("files", found.files)?;
    dict.set_item("bytes", found.bytes)?;
    dict.set_item("resumed_bytes", transfer.progress().bytes_resumed)?;
    dict.set_item("failed", entries(&found.failed))?;
    dict.set_item("skipped", entries(&found.skipped))?;
    dict.set_item("blake3", found.blake3.map(|hash| PyBytes::new(py, &hash).unbind()))?;
    let error = match found.ended {
        Ended::Done => None,
        Ended::Stopped => Some("the transfer was stopped".to_owned()),
        Ended::Failed(reason) => Some(reason),
    };
    dict.set_item("error", error)?;
    Ok(dict)
}

/// Files that are offered, until it is closed.
#[pyclass(frozen, module = "fairwave._core")]
pub(crate) struct Server {
    endpoint: Endpoint,
    share: Arc<Share>,
    ticket: Ticket,
    here: Here,
}

#[pymethods]
impl Server {
    /// Offers files, and issues a ticket for them.
    #[new]
    #[pyo3(signature = (paths, writable, readable, links, quota, once, expires_s, listen, link))]
    #[expect(clippy::too_many_arguments, clippy::fn_params_excessive_bools, reason = "the Python face names them")]
    fn new(
        py: Python<'_>,
        paths: Vec<PathBuf>,
        writable: bool,
        readable: bool,
        links: bool,
        quota: Option<&str>,
        once: bool,
        expires_s: Option<f64>,
        listen: Option<&str>,
        link: LinkOptions,
    ) -> PyResult<Self> {
        let absolute: Vec<PathBuf> = paths.iter().map(std::path::absolute).collect::<Result<_, _>>().map_err(system)?;
        let writable_into = match (writable, absolute.as_slice()) {
            (false, _) => None,
            (true, [one]) => Some(one.clone()),
            (true, _) => return Err(PyValueError::new_err("writable: expected one directory")),
        };
        if (readable || links) && !writable {
            let option = if readable { "readable" } else { "links" };
            return Err(PyValueError::new_err(format!("{option}: requires writable")));
        }
        let quota = match quota.map(str::parse::<Bytes>).transpose() {
            Ok(Some(_)) if !writable => {
                return Err(PyValueError::new_err("quota: requires writable"));
            }
            Ok(Some(Bytes::ZERO)) => return Err(PyValueError::new_err("quota: must be above zero")),
            quota => quota.map_err(|error| parse_error(py, "quota", &error))?,
        };
        let id = match absolute.as_slice() {
            [one] if readable => ShareId::of_exchange(one),
            all => ShareId::of(all, writable),
        };
        let shown = |path: &PathBuf| fairwave_files::escaped(path.as_os_str().as_bytes());
        let paths = absolute.iter().map(shown).collect();
        let offering = Offering { paths, takes: writable, gives: !writable || readable };
        let (only_takes, may_keep_links) = (!offering.gives, links);
        let options = ShareOptions { writable_into, only_takes, may_keep_links, quota, ..ShareOptions::default() };
        let share = Share::new(absolute, options).map_err(|error| PyValueError::new_err(format!("paths: {error}")))?;
        let share = Arc::new(share);
        let listen = match listen {
            Some(text) => Listen::At(listen_address(text).ok_or_else(|| {
                let hint = "use the form 192.0.2.7, 192.0.2.7:8642 or [2001:db8::7]:8642";
                PyValueError::new_err(format!("listen: \"{text}\" is not an address: {hint}"))
            })?),
            None => Listen::Usual,
        };
        let validity = validity(expires_s, once)?;
        let config = link.config(py, None)?;
        let here = Here { capacity: config.send_capacity };
        let options = ServerOptions { endpoint: config, listen, validity, ..ServerOptions::default() };
        let keyring = StateDir::open().and_then(|state| Keyring::open(state, id)).map_err(system)?;
        let server = fairwave_host::Server::open(keyring, &options).map_err(system)?;
        server.keyring.keep_offering(offering).map_err(system)?;
        let fairwave_host::Server { endpoint, keyring, ticket } = server;
        endpoint.listen_with(keyring, share.judges(), share.accept());
        Ok(Self { endpoint, share, ticket, here })
    }

    /// The ticket that admits clients.
    #[getter]
    fn ticket(&self) -> String {
        self.ticket.to_string()
    }

    /// Transfers since the start, or the last of them: peer, whether it puts, whether it is over, files, bytes.
    fn transfers(&self) -> Vec<(String, bool, bool, u64, u64)> {
        let visit_row = |visit: fairwave_files::Visit| {
            let progress = visit.transfer.progress();
            (visit.from.to_string(), visit.is_put(), visit.transfer.is_over(), progress.files_done, progress.bytes_done)
        };
        self.share.transfers().into_iter().map(visit_row).collect()
    }

    /// The limits of the open sessions, and facts about their paths: a dict each. It takes a quarter of a
    /// second, as rates are of that long.
    fn why<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let sessions = py.detach(|| why::sessions(&self.endpoint, &self.share, self.here));
        sessions.iter().map(|session| why::to_dict(py, session)).collect()
    }

    /// Ends all transfers, and offers nothing any more.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.endpoint.close());
    }
}

/// The ticket options of a call; `None` if it has none.
fn validity(expires_s: Option<f64>, is_once: bool) -> PyResult<Option<Validity>> {
    let lasts_s = match expires_s {
        None => Validity::default().lasts_s,
        Some(f64::INFINITY) => None,
        Some(seconds) if seconds > 0.0 => Some(seconds.ceil() as u64),
        Some(seconds) => {
            return Err(PyValueError::new_err(format!("expires_s: {seconds} must be above zero")));
        }
    };
    Ok((expires_s.is_some() || is_once).then_some(Validity { lasts_s, is_once }))
}
