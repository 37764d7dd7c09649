//! Files that are offered to the holders of a ticket.

use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

use fairwave_files::{Share, ShareOptions};
use fairwave_host::{
    Endpoint, Here, Keyring, Listen, Offering, ServerOptions, ShareId, StateDir, Ticket, Validity, listen_address,
};
use fairwave_units::Bytes;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::{parse_error, system};
use crate::link_options::LinkOptions;
use crate::why;

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
    #[pyo3(signature = (paths, writable, readable, links, delete, archive, quota, once, expires_s, listen, link))]
    #[expect(clippy::too_many_arguments, clippy::fn_params_excessive_bools, reason = "the Python face names them")]
    fn new(
        py: Python<'_>,
        paths: Vec<PathBuf>,
        writable: bool,
        readable: bool,
        links: bool,
        delete: bool,
        archive: bool,
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
        let of_writable = [("readable", readable), ("links", links), ("delete", delete), ("archive", archive)];
        if let Some((option, _)) = of_writable.iter().find(|(_, is_set)| *is_set && !writable) {
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
        let (only_takes, may_keep_links, may_delete) = (!offering.gives, links, delete);
        let options = ShareOptions {
            writable_into,
            only_takes,
            may_keep_links,
            may_delete,
            may_archive: archive,
            quota,
            ..ShareOptions::default()
        };
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

/// The ticket options of a call; `None` without any.
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
