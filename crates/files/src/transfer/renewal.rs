//! Renewal of the ticket of a transfer whose peer may be restarted.

use fairwave_host::{Endpoint, Session, Ticket};
use thiserror::Error;

/// Asked before each session but the first, on the transfer's own thread, which waits for the answer: another ticket,
/// or nothing where that of before is still the one to use.
pub type Renew = Box<dyn FnMut(&Lost<'_>) -> Result<Option<Ticket>, RenewError> + Send>;

/// The state between the end of a session and the next one.
pub struct Lost<'a> {
    /// The endpoint of the next session.
    pub endpoint: &'a Endpoint,
    /// The session that ended, if any.
    pub former: Option<&'a Session>,
    /// Which attempt this is to open the next one, from 1.
    pub attempt: u32,
    /// Whether the transfer is to stop. A slow renewal should poll it.
    pub is_stopped: &'a (dyn Fn() -> bool + Sync),
}

/// Reason why there is no other ticket.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RenewError {
    /// It may be available later.
    #[error("{0}")]
    Passing(String),
    /// It will not become available.
    #[error("{0}")]
    Final(String),
}
