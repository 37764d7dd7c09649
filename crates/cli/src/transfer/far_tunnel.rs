//! What leads to the far end of a copy beside the network: the ssh that started it.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use fairwave_host::{Endpoint, TunnelWatch};

/// The far end's output and input, and where that end is.
pub(crate) struct FarTunnel {
    pub(crate) reader: OwnedFd,
    pub(crate) writer: OwnedFd,
    pub(crate) peer: SocketAddr,
}

impl FarTunnel {
    /// From now on sessions of the endpoint may go by it.
    pub(crate) fn hand_over(self, endpoint: &Endpoint) -> TunnelWatch {
        endpoint.add_tunnel(self.reader, self.writer, self.peer)
    }
}
