//! Listening address of the metrics.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;

use thiserror::Error;

/// Listening address of the metrics: "9464", which is that port on the loopback address, or "ADDRESS:PORT".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricsAddress(pub SocketAddr);

/// An invalid address.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("\"{}\" is not an address: use a port, such as 9464, or ADDRESS:PORT, such as 127.0.0.1:9464", .0.escape_debug())]
pub struct MetricsAddressError(String);

impl FromStr for MetricsAddress {
    type Err = MetricsAddressError;

    fn from_str(text: &str) -> Result<Self, MetricsAddressError> {
        let of_port = |port: &str| port.parse().ok().map(|port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
        let all = text.parse().ok().or_else(|| of_port(text)).or_else(|| of_port(text.strip_prefix("localhost:")?));
        all.map(Self).ok_or_else(|| MetricsAddressError(text.chars().take(80).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address__without_a_host_is_loopback() {
        for (text, address) in [
            ("9464", "127.0.0.1:9464"),
            ("localhost:9464", "127.0.0.1:9464"),
            ("0.0.0.0:80", "0.0.0.0:80"),
            ("[::1]:9464", "[::1]:9464"),
        ] {
            assert_eq!(text.parse::<MetricsAddress>().unwrap().0.to_string(), address);
        }
        for wrong in ["", "x", "70000", "example.org:80", "127.0.0.1"] {
            assert!(wrong.parse::<MetricsAddress>().is_err(), "{wrong}");
        }
    }
}
