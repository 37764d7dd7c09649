//! Addresses as log lines and sessions have them.

use std::net::SocketAddr;

/// As people write it: of IPv4 as such.
pub(crate) fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}
