//! Options of this end of a transfer.

use std::net::SocketAddr;

use fairwave_host::{Capacity, EndpointConfig, NodeChoice, PathControl, PathKind, Ticket};
use fairwave_schemes::node::host_rule;
use fairwave_units::Rate;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::error::parse_error;

/// Options of this end of a transfer: quantities as texts.
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
    /// The configuration of an endpoint, for a session with the peer of a ticket.
    pub(crate) fn config(&self, py: Python<'_>, ticket: Option<&Ticket>) -> PyResult<EndpointConfig> {
        let said = self.capacity.as_deref().map(str::parse::<Rate>).transpose();
        let said = said.map_err(|error| parse_error(py, "capacity", &error))?;
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
