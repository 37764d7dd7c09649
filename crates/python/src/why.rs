//! The limits of the sessions of an endpoint, and facts about their paths.

use std::time::Duration;

use fairwave_files::{Share, Transfer};
use fairwave_host::{Endpoint, Here, SessionStatus, StatusSample};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Period over which rates are computed.
const LOOKED: Duration = Duration::from_millis(250);

/// The status of each open session, from two samples.
pub(crate) fn sessions(endpoint: &Endpoint, share: &Share, here: Here) -> Vec<SessionStatus> {
    let look = || {
        let transfers: Vec<Transfer> = share.transfers().into_iter().map(|visit| visit.transfer).collect();
        StatusSample::take(endpoint.sessions(), &transfers.iter().filter_map(Transfer::carried).collect::<Vec<_>>())
    };
    let before = look();
    std::thread::sleep(LOOKED);
    look().since(&before, here)
}

/// One of them as a dict: what is not known is `None`.
pub(crate) fn to_dict<'py>(py: Python<'py>, session: &SessionStatus) -> PyResult<Bound<'py, PyDict>> {
    let (dict, path) = (PyDict::new(py), &session.path);
    dict.set_item("peer", session.peer.to_string())?;
    dict.set_item("sends", session.is_source)?;
    dict.set_item("carrier", session.carrier.to_string())?;
    dict.set_item("rate_bps", session.rate_bps)?;
    dict.set_item("limited_by", session.limited_by.map(|cause| cause.to_string()))?;
    dict.set_item("because", &session.because)?;
    dict.set_item("advice", session.advice.as_deref())?;
    dict.set_item("rtt_s", session.rtt_s)?;
    dict.set_item("least_rtt_s", path.least_rtt_s)?;
    dict.set_item("queueing_s", path.queueing_s)?;
    dict.set_item("loss_share", path.loss_share)?;
    dict.set_item("late_share", path.late_share)?;
    dict.set_item("lateness_s", path.lateness_s)?;
    dict.set_item("marked_share", path.marked_share)?;
    dict.set_item("delivery_rate_bps", path.delivery_rate_bps)?;
    Ok(dict)
}
