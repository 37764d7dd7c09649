//! Changes of a session that are worth a log line.

use std::net::SocketAddr;

use fairwave_units::Duration;
use tracing::Level;

use super::address::canonical;
use crate::session::{Session, SessionStats};

/// The last logged state of a session: it is compared some twenty times a second, never for each packet.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    datagram_bytes: u32,
    address: Option<SocketAddr>,
    is_silent: bool,
}

/// Silence is worth a line from here on.
const SILENT: Duration = Duration::from_secs(3);

impl Watch {
    /// Logs what is new.
    pub(crate) fn look(&mut self, session: &Session, address: Option<SocketAddr>, stats: &SessionStats) {
        if !tracing::enabled!(Level::INFO) {
            return;
        }
        let span = session.span();
        if ![0, self.datagram_bytes].contains(&stats.datagram_bytes) {
            self.datagram_bytes = stats.datagram_bytes;
            tracing::info!(parent: span, datagram_bytes = stats.datagram_bytes, "path MTU");
        }
        if address.is_some() && address != self.address {
            if let (Some(from), Some(to)) = (self.address, address) {
                tracing::info!(parent: span, from = %canonical(from), to = %canonical(to), "the peer's address \
                    changed");
            }
            self.address = address;
        }
        let is_silent = stats.silent_for >= SILENT;
        if is_silent != self.is_silent {
            self.is_silent = is_silent;
            let what = if is_silent { "no packets from the peer" } else { "packets from the peer again" };
            tracing::info!(parent: span, "{what}");
        }
    }
}
